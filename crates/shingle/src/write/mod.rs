//! The write path: admission, the log, the memtables.

pub(crate) mod admission;
pub(crate) mod commit;
pub(crate) mod sync;
