//! The read path. It knows nothing of schemes: memtables, then level by level the one node whose
//! range holds the key, its slices newest first, each behind its filter.

pub(crate) mod cursor;
mod deleted;
pub(crate) mod get;
pub(crate) mod moment;
pub(crate) mod multi_get;
mod prefetcher;
pub(crate) mod source;
#[cfg(test)]
mod tests;
pub(crate) mod values;
pub(crate) mod view;

use base::{Error, ErrorKind};
use media::FileName;

/// The manifest, a log or a pointer names a file that is not there: that is damage, not absence.
pub(crate) fn missing(error: Error, name: FileName) -> Error {
    if error.kind() != ErrorKind::NotFound {
        return error;
    }
    Error::new(ErrorKind::Corruption, "a file that the database needs is missing")
        .in_file(name.to_string())
}
