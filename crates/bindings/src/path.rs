//! Paths as other languages give them.

use shingle::Result;
use std::path::Path;

/// The path of these bytes, which need not be UTF-8.
#[cfg(unix)]
pub fn path(bytes: &[u8]) -> Result<&Path> {
    use std::os::unix::ffi::OsStrExt;
    Ok(Path::new(std::ffi::OsStr::from_bytes(bytes)))
}

/// The path of these bytes, which must be UTF-8 here.
#[cfg(not(unix))]
pub fn path(bytes: &[u8]) -> Result<&Path> {
    let text = std::str::from_utf8(bytes);
    text.map(Path::new).map_err(|_| shingle::Error::invalid("a path is not UTF-8"))
}
