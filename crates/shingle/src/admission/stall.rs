//! What users learn of admission: why and how long writes wait.

/// Why a write was throttled or stalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StallReason {
    /// Memtables fill faster than they are flushed.
    MemoryFull,
    /// Level 0 has many runs.
    Level0,
    /// Compaction is far behind.
    CompactionDebt,
    /// Value segments are nearly full and garbage collection can reclaim space, or garbage
    /// collection is far behind.
    ValueSpace,
    /// An ingestion into the keyspace flushes what was written before it.
    Ingest,
}

impl StallReason {
    /// Every reason, in the order of reports.
    pub const ALL: &[StallReason] = &[
        StallReason::MemoryFull,
        StallReason::Level0,
        StallReason::CompactionDebt,
        StallReason::ValueSpace,
        StallReason::Ingest,
    ];

    /// The name in tables, JSON and metrics.
    pub fn name(self) -> &'static str {
        match self {
            StallReason::MemoryFull => "memory-full",
            StallReason::Level0 => "level-0",
            StallReason::CompactionDebt => "compaction-debt",
            StallReason::ValueSpace => "value-space",
            StallReason::Ingest => "ingest",
        }
    }
}

/// The wait that a write would have.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = shingle::Options::new().open(dir.path())?;
/// if let Some(wait) = db.would_wait(100) {
///     println!("{}: about {} ns", wait.reason.name(), wait.estimate_ns);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wait {
    /// What is scarce.
    pub reason: StallReason,
    /// Estimated duration, in nanoseconds.
    pub estimate_ns: u64,
}

/// How often and how long writes waited for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stall {
    /// The reason.
    pub reason: StallReason,
    /// Number of waits.
    pub count: u64,
    /// Their sum, in nanoseconds.
    pub ns: u64,
}

impl Stall {
    /// The waits that `before` does not have.
    pub(crate) fn since(&self, before: &[Stall]) -> Stall {
        let before = before.iter().find(|before| before.reason == self.reason);
        let (count, ns) = before.map_or((0, 0), |before| (before.count, before.ns));
        Stall {
            reason: self.reason,
            count: self.count.saturating_sub(count),
            ns: self.ns.saturating_sub(ns),
        }
    }
}

/// What a write meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StallCondition {
    /// Writes do not wait.
    Normal,
    /// Writes are throttled.
    Delayed,
    /// Writes wait until background work has caught up.
    Stopped,
}

impl StallCondition {
    /// The name in the event log and in metrics: `normal`, `delayed` or `stopped`.
    pub fn name(self) -> &'static str {
        match self {
            StallCondition::Normal => "normal",
            StallCondition::Delayed => "delayed",
            StallCondition::Stopped => "stopped",
        }
    }
}

/// The condition changed, or the reason of a condition that is not normal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StallChange {
    pub condition: StallCondition,
    pub previous: StallCondition,
    /// The reason of the condition; if that is normal, of the condition before.
    pub reason: StallReason,
}
