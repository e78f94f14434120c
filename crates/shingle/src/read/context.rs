//! What all reads of a database share: its files, as readers open them, and the signal that reads
//! cost much.

use super::clock::ExpiryClock;
use super::table_cache::TableCache;
use super::values::ValueFiles;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// One for each open database; every view holds it.
pub(crate) struct ReadContext {
    /// The runs of the trees.
    pub tables: Arc<TableCache>,
    /// The segments of separated values.
    pub values: Arc<ValueFiles>,
    /// By which values expire.
    pub clock: ExpiryClock,
    /// Misses of a run from which policies want to know them; `None` where no policy does.
    pub misses_min: Option<u64>,
    /// Since the last call of [`ReadContext::take_look_due`], reads had cost enough for policies to
    /// look at it.
    is_look_due: AtomicBool,
}

impl ReadContext {
    pub(crate) fn new(
        tables: TableCache,
        values: ValueFiles,
        clock: ExpiryClock,
        misses_min: Option<u64>,
    ) -> ReadContext {
        let (tables, values) = (Arc::new(tables), Arc::new(values));
        ReadContext { tables, values, clock, misses_min, is_look_due: AtomicBool::new(false) }
    }

    /// Reads have cost enough for policies to look at it.
    #[cold]
    pub(crate) fn set_look_due(&self) {
        self.is_look_due.store(true, Relaxed);
    }

    /// Since the last call, reads had cost enough for policies to look at it.
    #[inline]
    pub(crate) fn take_look_due(&self) -> bool {
        self.is_look_due.load(Relaxed) && self.is_look_due.swap(false, Relaxed)
    }
}
