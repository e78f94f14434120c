//! `cargo xtask c-library FOLDER`: builds the C library and puts it, its header and its pkg-config
//! file where C programs find them.

use crate::repository::Repository;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The number in the library's name: it grows with each change that breaks linked programs.
const SONAME: &str = "libshingle.so.0";

/// Installs into `prefix`, which may exist.
pub fn install(repository: &Repository, prefix: &Path) -> Result<(), String> {
    let root = repository.root.as_deref().ok_or("the repository is in no folder")?;
    let built = build(root, "shingle-c")?;
    let failed = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
    let prefix = std::path::absolute(prefix).map_err(|error| failed(prefix, error))?;
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let pkgconfig = lib.join("pkgconfig");
    for folder in [&pkgconfig, &include] {
        std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    }
    let copy = |from: &Path, to: &Path| {
        std::fs::copy(from, to).map(|_| ()).map_err(|error| failed(from, error))
    };
    copy(&built.join("libshingle_c.so"), &lib.join(SONAME))?;
    copy(&built.join("libshingle_c.a"), &lib.join("libshingle.a"))?;
    copy(&root.join("crates/shingle-c/include/shingle.h"), &include.join("shingle.h"))?;
    let link = lib.join("libshingle.so");
    if link.symlink_metadata().is_ok() {
        std::fs::remove_file(&link).map_err(|error| failed(&link, error))?;
    }
    std::os::unix::fs::symlink(SONAME, &link).map_err(|error| failed(&link, error))?;
    let file = pkgconfig.join("shingle.pc");
    std::fs::write(&file, description(&prefix)).map_err(|error| failed(&file, error))?;
    println!("installed in {}", prefix.display());
    Ok(())
}

/// Builds a package for release, and gives the folder with its libraries.
pub fn build(root: &Path, package: &str) -> Result<PathBuf, String> {
    let status = Command::new("cargo")
        .args(["build", "--release", "--locked", "--package", package])
        .current_dir(root)
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| root.join("target"));
    if status.success() { Ok(target.join("release")) } else { Err("the build failed".into()) }
}

/// What `pkg-config` reads.
fn description(prefix: &Path) -> String {
    format!(
        "prefix={}\n\
         libdir=${{prefix}}/lib\n\
         includedir=${{prefix}}/include\n\
         \n\
         Name: shingle\n\
         Description: An embedded, ordered key-value store that writes little\n\
         Version: {}\n\
         Cflags: -I${{includedir}}\n\
         Libs: -L${{libdir}} -Wl,-rpath,${{libdir}} -lshingle\n\
         Libs.private: -lpthread -ldl -lm\n",
        prefix.display(),
        env!("CARGO_PKG_VERSION"),
    )
}
