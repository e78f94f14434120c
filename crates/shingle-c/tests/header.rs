//! The header in `include` is what cbindgen makes of the code.

#![allow(clippy::unwrap_used)]

use std::path::Path;

/// Set it to have the header written.
const WRITE: &str = "SHINGLE_WRITE_HEADER";

#[test]
fn the_header_is_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_root_or_default(folder);
    let bindings = cbindgen::generate_with_config(folder, config).unwrap();
    let mut made = Vec::new();
    bindings.write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = folder.join("include/shingle.h");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == made, "write it anew: {WRITE}=1 cargo test -p shingle-c --test header");
}
