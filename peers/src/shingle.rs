//! Shingle behind [`Store`]: to be connected when its public interface is there.
//!
//! What remains is the body of [`open`]: open the database in `dir` with the memory budget, cache
//! and filter bits of `options`, without compression, and wrap it in the `Store` that the
//! benchmarks of the command line use.

use crate::engine::EngineOptions;
use base::{Error, ErrorKind, Result};
use lab::store::Store;
use std::path::Path;

/// Opens Shingle in `dir`.
pub fn open(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Store>> {
    let message = format!("Shingle is not connected yet; asked for {options:?}");
    Err(Error::new(ErrorKind::Unsupported, message).in_file(dir.display().to_string()))
}
