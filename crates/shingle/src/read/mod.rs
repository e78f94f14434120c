//! The read path. It does not depend on schemes: it probes the memtables, then level by level the
//! one node whose range contains the key. It probes a node's slices newest first, each behind its
//! filter.

pub(crate) mod clock;
pub(crate) mod context;
pub(crate) mod cursor;
mod deleted;
pub(crate) mod get;
pub(crate) mod hidden;
pub(crate) mod kept_views;
pub(crate) mod moment;
pub(crate) mod multi_get;
mod prefetcher;
mod slice_iter;
pub(crate) mod source;
mod sources;
pub(crate) mod table_cache;
#[cfg(test)]
mod tests;
pub(crate) mod values;
pub(crate) mod view;

use base::{Error, ErrorKind};
use media::FileName;

/// The manifest, a log or a pointer names a file that does not exist: that is damage, not a missing
/// key.
pub(crate) fn missing(error: Error, name: FileName) -> Error {
    if error.kind() != ErrorKind::NotFound {
        return error;
    }
    Error::new(ErrorKind::Corruption, "a file that the database needs is missing")
        .in_file(name.to_string())
}
