//! Why a byte moves. Every read and every write of the engine carries a [`Cause`].

/// The deepest level that a tree may have, plus one.
pub const LEVELS_MAX: u8 = 32;

/// Why bytes are read from or written to the file store.
///
/// ```
/// # extern crate base as shingle;
/// # let ledger = shingle::Ledger::default().snapshot();
/// use shingle::Cause;
///
/// // `ledger` is `db.stats().ledger`.
/// let log = ledger.cause(Cause::Wal).write_bytes;
/// let compaction = ledger.traffic(Cause::is_compaction).write_bytes;
/// println!("{log} bytes of log, {compaction} by compaction");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cause {
    /// The write-ahead log.
    Wal,
    /// A memtable written out as a run.
    Flush,
    /// A move of the tree, by the level that receives the output.
    Compaction(u8),
    /// A move of the tree that only reads asked for: they have paid for fewer runs.
    ReadCompaction,
    /// A move of the tree that only idle time asked for: an idle database keeps less garbage.
    IdleCompaction,
    /// A large value written to the value store.
    ValueWrite,
    /// Values moved by the value store's garbage collection.
    ValueGc,
    /// The log of edits.
    Manifest,
    /// The root pointer, the lock, the options file, the event log: small files beside the data.
    Housekeeping,
    /// A point read by the user.
    Get,
    /// A scan by the user.
    Scan,
    /// Indexes, filters and footers read when a run is opened.
    OpenRun,
    /// Reads and writes while the database opens.
    Recovery,
    /// Verification of stored bytes.
    Check,
    /// Copies made for a checkpoint.
    Checkpoint,
    /// Superblock, journal and snapshots of a store that has no file system below it.
    StoreMetadata,
    /// Live bytes that such a store moves to empty the zone in which they lie.
    Reclaim,
    /// Logs read by change feeds.
    Changes,
    /// Sorted files that an ingestion copies or verifies.
    Ingest,
}

impl Cause {
    /// How many distinct causes there are; [`Cause::index`] is below this.
    pub const COUNT: usize = 18 + LEVELS_MAX as usize;

    /// A dense number for tables indexed by cause.
    #[inline]
    pub fn index(self) -> usize {
        match self {
            Cause::Wal => 0,
            Cause::Flush => 1,
            Cause::ValueWrite => 2,
            Cause::ValueGc => 3,
            Cause::Manifest => 4,
            Cause::Housekeeping => 5,
            Cause::Get => 6,
            Cause::Scan => 7,
            Cause::OpenRun => 8,
            Cause::Recovery => 9,
            Cause::Check => 10,
            Cause::Checkpoint => 11,
            Cause::StoreMetadata => 12,
            Cause::Reclaim => 13,
            Cause::Changes => 14,
            Cause::Ingest => 15,
            Cause::ReadCompaction => 16,
            Cause::IdleCompaction => 17,
            Cause::Compaction(level) => 18 + level.min(LEVELS_MAX - 1) as usize,
        }
    }

    /// All causes, in the order of [`Cause::index`].
    pub fn all() -> impl Iterator<Item = Cause> {
        use Cause::*;
        let fixed = [
            Wal,
            Flush,
            ValueWrite,
            ValueGc,
            Manifest,
            Housekeeping,
            Get,
            Scan,
            OpenRun,
            Recovery,
            Check,
            Checkpoint,
            StoreMetadata,
            Reclaim,
            Changes,
            Ingest,
            ReadCompaction,
            IdleCompaction,
        ];
        fixed.into_iter().chain((0..LEVELS_MAX).map(Compaction))
    }

    /// The name used in tables, JSON and metrics.
    pub fn name(self) -> String {
        match self {
            Cause::Wal => "wal".into(),
            Cause::Flush => "flush".into(),
            Cause::Compaction(level) => format!("compaction-L{level}"),
            Cause::ReadCompaction => "compaction-reads".into(),
            Cause::IdleCompaction => "compaction-idle".into(),
            Cause::ValueWrite => "value-write".into(),
            Cause::ValueGc => "value-gc".into(),
            Cause::Manifest => "manifest".into(),
            Cause::Housekeeping => "housekeeping".into(),
            Cause::Get => "get".into(),
            Cause::Scan => "scan".into(),
            Cause::OpenRun => "open-run".into(),
            Cause::Recovery => "recovery".into(),
            Cause::Check => "check".into(),
            Cause::Checkpoint => "checkpoint".into(),
            Cause::StoreMetadata => "store-metadata".into(),
            Cause::Reclaim => "reclaim".into(),
            Cause::Changes => "changes".into(),
            Cause::Ingest => "ingest".into(),
        }
    }

    /// Work that runs behind the user's back and may be paced, as against work that a user waits
    /// for.
    pub fn is_background(self) -> bool {
        let others =
            [Cause::Flush, Cause::ValueGc, Cause::Check, Cause::Checkpoint, Cause::Reclaim];
        self.is_compaction() || others.contains(&self)
    }

    /// A move of the tree, whatever asked for it.
    pub fn is_compaction(self) -> bool {
        use Cause::{Compaction, IdleCompaction, ReadCompaction};
        matches!(self, Compaction(_) | ReadCompaction | IdleCompaction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_dense_and_in_order() {
        let indexes: Vec<usize> = Cause::all().map(Cause::index).collect();
        assert_eq!(indexes, (0..Cause::COUNT).collect::<Vec<_>>());
    }

    #[test]
    fn names_are_distinct() {
        let names: std::collections::BTreeSet<String> = Cause::all().map(Cause::name).collect();
        assert_eq!(names.len(), Cause::COUNT);
    }
}
