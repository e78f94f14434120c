//! Background work by the level that received it: the numbers of the compaction table.

use base::cause::LEVELS_MAX;
use parking_lot::Mutex;

/// Work into one level. Bytes of runs; the ledger has the bytes of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelWork {
    /// Bytes read from levels above the output.
    pub read_bytes_upper: u64,
    /// Bytes read from the output level itself.
    pub read_bytes_lower: u64,
    /// Bytes of runs written.
    pub write_bytes: u64,
    /// Bytes that changed level by an edit alone.
    pub moved_bytes: u64,
    /// Moves done.
    pub count: u64,
    /// Time in background steps, in nanoseconds.
    pub busy_ns: u64,
    /// Entries read.
    pub entries_in: u64,
    /// Entries that were no longer needed.
    pub entries_dropped: u64,
    /// Bytes that the plans expected to write.
    pub predicted_write_bytes: u64,
}

/// Counters by level; level 0 is the output of flushes.
#[derive(Debug, Default)]
pub(crate) struct WorkStats {
    levels: Mutex<[LevelWork; LEVELS_MAX as usize]>,
}

impl WorkStats {
    pub(crate) fn add(&self, level: u8, change: impl FnOnce(&mut LevelWork)) {
        let mut levels = self.levels.lock();
        change(&mut levels[usize::from(level.min(LEVELS_MAX - 1))]);
    }

    pub(crate) fn levels(&self) -> [LevelWork; LEVELS_MAX as usize] {
        *self.levels.lock()
    }
}
