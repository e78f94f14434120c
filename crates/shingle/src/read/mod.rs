//! The read path. It knows nothing of schemes: memtables, then level by level the one node whose
//! range holds the key, its slices newest first, each behind its filter.

mod ahead;
pub(crate) mod cursor;
mod deleted;
pub(crate) mod get;
pub(crate) mod moment;
pub(crate) mod multi_get;
pub(crate) mod source;
#[cfg(test)]
mod tests;
pub(crate) mod values;
pub(crate) mod view;

use base::{Error, ErrorKind};
use media::FileName;

/// Steps of cursors through entries and tombstones: counted in tests, nothing elsewhere.
mod work {
    #[cfg(test)]
    thread_local! {
        static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    #[inline]
    pub(super) fn add(_steps: usize) {
        #[cfg(test)]
        STEPS.set(STEPS.get() + _steps);
    }

    #[cfg(test)]
    pub(super) fn take() -> usize {
        STEPS.replace(0)
    }
}

/// The manifest, a log or a pointer names a file that is not there: that is damage, not absence.
pub(crate) fn missing(error: Error, name: FileName) -> Error {
    if error.kind() != ErrorKind::NotFound {
        return error;
    }
    Error::new(ErrorKind::Corruption, "a file that the database needs is missing")
        .in_file(name.to_string())
}
