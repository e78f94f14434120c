//! Statistics: what the database did and how it stands, as a table, as JSON and as properties.

mod to_json;

use crate::admission::{Stall, StallCondition};
use crate::change_stats::ChangeStats;
use crate::cleanup::CleanupStats;
use crate::histogram::{Histogram, Latency};
use crate::ingest::IngestCounters;
use crate::transaction_counters::TransactionCounters;
use crate::value_stats::{ValueGroup, ValueStats};
use base::cause::Cause;
use base::{LedgerSnapshot, Result};
use std::fmt;

/// Histograms that are always on.
#[derive(Default)]
pub(crate) struct Latencies {
    pub wal_sync: Histogram,
    pub flush: Histogram,
    pub compaction: Histogram,
}

/// A level as it is now: of one keyspace, or the sum over keyspaces.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LevelShape {
    /// The level.
    pub level: u8,
    /// Files that have live runs in it.
    pub files: u64,
    /// Nodes.
    pub nodes: u64,
    /// Slices.
    pub runs: u64,
    /// Live bytes.
    pub bytes: u64,
    /// How urgent it is to compact it; 1.0 is at the limit.
    pub score: f64,
}

impl LevelShape {
    /// Adds the same level of another keyspace: sums, and the higher score.
    pub fn add(&mut self, other: &LevelShape) {
        self.files += other.files;
        self.nodes += other.nodes;
        self.runs += other.runs;
        self.bytes += other.bytes;
        self.score = self.score.max(other.score);
    }
}

/// A level, and what was done in it since the database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LevelStats {
    /// The level as it is now.
    pub shape: LevelShape,
    /// Bytes read from levels above by compactions into this level.
    pub read_bytes_upper: u64,
    /// Bytes read from this level by compactions into it.
    pub read_bytes_lower: u64,
    /// Bytes written into this level.
    pub write_bytes: u64,
    /// Bytes that came without a rewrite.
    pub moved_bytes: u64,
    /// Compactions into this level.
    pub count: u64,
    /// Time of these compactions, in seconds.
    pub seconds: f64,
    /// Entries that these compactions read.
    pub keys_in: u64,
    /// Entries that these compactions dropped.
    pub keys_dropped: u64,
    /// Bytes that their plans predicted to write.
    pub predicted_write_bytes: u64,
}

impl LevelStats {
    /// The levels that have data or were compacted into, and their sum.
    pub fn worth_showing(levels: &[LevelStats]) -> (Vec<&LevelStats>, LevelStats) {
        let is_used = |level: &&LevelStats| level.shape.runs > 0 || level.count > 0;
        let shown: Vec<&LevelStats> = levels.iter().filter(is_used).collect();
        let mut sum = LevelStats::default();
        for level in &shown {
            sum.shape.add(&level.shape);
            sum.read_bytes_upper += level.read_bytes_upper;
            sum.read_bytes_lower += level.read_bytes_lower;
            sum.write_bytes += level.write_bytes;
            sum.moved_bytes += level.moved_bytes;
            sum.count += level.count;
            sum.seconds += level.seconds;
            sum.keys_in += level.keys_in;
            sum.keys_dropped += level.keys_dropped;
        }
        // A score compares one level with its limit.
        sum.shape.score = 0.0;
        (shown, sum)
    }

    /// Bytes written into the level per byte that came from above.
    pub fn write_amplification(&self) -> Option<f64> {
        let source = if self.shape.level == 0 { self.write_bytes } else { self.read_bytes_upper };
        (source > 0).then(|| self.write_bytes as f64 / source as f64)
    }
}

/// How a keyspace stands.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct KeyspaceStats {
    /// Its name.
    pub name: String,
    /// Level 0 first.
    pub levels: Vec<LevelShape>,
    /// Memtables, active and sealed.
    pub memtables: u64,
    /// Bytes in them.
    pub memtable_bytes: u64,
    /// Bytes of live slices, and of value records not known to be dead.
    pub live_bytes: u64,
    /// Bytes of pending compaction.
    pub pending_bytes: u64,
    /// Separated values.
    pub values: ValueStats,
}

/// A compaction that failed and waits for another try.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BackedOffWork {
    /// The keyspace.
    pub keyspace: String,
    /// How often it failed in a row.
    pub failures: u32,
    /// Seconds until the next try.
    pub retry_seconds: f64,
    /// What went wrong, where, and what to do about it.
    pub error: String,
}

/// Hits and misses of the block cache for one kind of block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheCounters {
    /// `data`, `index` or `filter`.
    pub kind: &'static str,
    /// Blocks that were in the cache.
    pub hits: u64,
    /// Blocks that had to be read.
    pub misses: u64,
}

/// Statistics of a database at one moment. [`fmt::Display`] prints RocksDB's table of levels and
/// the totals, [`Stats::to_json`] everything.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = shingle::Options::new().open(dir.path())?;
/// use shingle::Cause;
///
/// db.put("apple", "red")?;
/// let stats = db.stats();
/// println!("log: {} bytes", stats.ledger.cause(Cause::Wal).write_bytes);
/// println!("{stats}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Every byte with its cause.
    pub ledger: LedgerSnapshot,
    /// Level 0 first.
    pub levels: Vec<LevelStats>,
    /// Each keyspace.
    pub keyspaces: Vec<KeyspaceStats>,
    /// What a write meets now.
    pub write_condition: StallCondition,
    /// How often and how long writes waited, by reason.
    pub stalls: Vec<Stall>,
    /// Syncs of the log.
    pub wal_sync: Latency,
    /// Flushes, from begin to end.
    pub flush: Latency,
    /// Compactions with a rewrite, from begin to end.
    pub compaction: Latency,
    /// How long compactions and garbage collection were throttled by
    /// `background_bytes_per_second`, in nanoseconds.
    pub limit_wait_ns: u64,
    /// Bytes of all files on the medium.
    pub space_bytes: u64,
    /// Bytes of live slices, and of value records not known to be dead.
    pub live_bytes: u64,
    /// Separated values.
    pub values: ValueStats,
    /// Expired values and compaction filters, by keyspace; only keyspaces that have either.
    pub cleanup: Vec<CleanupStats>,
    /// Segment groups, by keyspace.
    pub value_groups: Vec<ValueGroup>,
    /// Bytes in memtables.
    pub memtable_bytes: u64,
    /// Bytes in the block cache.
    pub cache_bytes: u64,
    /// Memory of open runs outside the cache.
    pub open_runs_bytes: u64,
    /// Buffers of background work.
    pub background_buffer_bytes: u64,
    /// Hits and misses of the block cache: data, index, filter.
    pub cache_counters: Vec<CacheCounters>,
    /// Bytes that compactions are expected to rewrite until no level is over its limit. May be more
    /// than the data: bytes that move down several levels count at each.
    pub pending_bytes: u64,
    /// Compactions that failed and wait for another try; other compactions go on.
    pub backed_off: Vec<BackedOffWork>,
    /// Live snapshots.
    pub snapshots: u64,
    /// What is kept for change feeds.
    pub changes: ChangeStats,
    /// How transactions ended.
    pub transactions: TransactionCounters,
    /// Sorted files that were ingested.
    pub ingestions: IngestCounters,
    /// The newest sequence number.
    pub sequence: u64,
    /// Seconds since the database was opened.
    pub uptime_seconds: f64,
    /// The error that stopped background work, if one did.
    pub background_error: Option<String>,
}

impl Stats {
    /// Space amplification: bytes on the medium per live byte.
    pub fn space_amplification(&self) -> Option<f64> {
        (self.live_bytes > 0).then(|| self.space_bytes as f64 / self.live_bytes as f64)
    }

    /// Bytes written to value segments per user byte: by flushes, and by garbage collection again.
    pub fn value_write_amplification(&self) -> Option<f64> {
        let written = |cause| self.ledger.cause(cause).write_bytes;
        let bytes = written(Cause::ValueWrite) + written(Cause::ValueGc);
        let user = self.ledger.user_write_bytes;
        (user > 0).then(|| bytes as f64 / user as f64)
    }

    /// Bytes written anywhere but to value segments per user byte: log, runs, manifest.
    pub fn index_write_amplification(&self) -> Option<f64> {
        let values = self.value_write_amplification()?;
        self.ledger.write_amplification().map(|all| all - values)
    }

    /// Nanoseconds that writes waited, over all reasons.
    pub fn stall_ns(&self) -> u64 {
        self.stalls.iter().map(|stall| stall.ns).sum()
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        compaction_table(f, &self.levels)?;
        self.write_summary(f)
    }
}

impl Stats {
    /// What [`fmt::Display`] shows below the table of levels: totals, stalls, failures.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_summary(&mut text);
        text
    }

    /// The lines of [`Stats::summary`] that describe the data. The others count since the opening,
    /// which says nothing of the writer where a second process only reads.
    pub fn state_summary(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_state(&mut text);
        text
    }

    fn write_summary(&self, f: &mut impl fmt::Write) -> fmt::Result {
        self.write_counters(f)?;
        self.write_state(f)?;
        if self.snapshots > 0 {
            writeln!(f, "Snapshots: {}, which keep the data that they read", self.snapshots)?;
        }
        self.write_waits(f)?;
        for work in &self.backed_off {
            writeln!(
                f,
                "BackedOff compaction of `{}`: failed {} times, next try in {:.1} s: {}",
                work.keyspace, work.failures, work.retry_seconds, work.error,
            )?;
        }
        match &self.background_error {
            Some(error) => writeln!(f, "Background error: {error}"),
            None => Ok(()),
        }
    }

    /// What files and policies tell.
    fn write_state(&self, f: &mut impl fmt::Write) -> fmt::Result {
        let gb = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        let [live, pending] = [self.live_bytes, self.pending_bytes].map(gb);
        writeln!(f, "Live data: {live:.3} GB, pending compaction: {pending:.3} GB")?;
        if self.values.segments > 0 {
            value_lines(f, self)?;
        }
        for cleanup in &self.cleanup {
            writeln!(f, "{cleanup}")?;
        }
        self.changes.write_line(f)?;
        Ok(())
    }

    /// What writes and compactions waited for.
    fn write_waits(&self, f: &mut impl fmt::Write) -> fmt::Result {
        for Stall { reason, count, ns } in &self.stalls {
            let seconds = *ns as f64 / 1e9;
            writeln!(f, "Write Stall: {}: {count} times, {seconds:.3} seconds", reason.name())?;
        }
        if self.wal_sync.count > 0 {
            let Latency { count, p50_ns, p99_ns, max_ns, .. } = self.wal_sync;
            let [p50, p99, max] = [p50_ns, p99_ns, max_ns].map(|ns| ns as f64 / 1e6);
            writeln!(f, "Log syncs: {count}, ms: p50 {p50:.3}, p99 {p99:.3}, max {max:.3}")?;
        }
        if self.limit_wait_ns > 0 {
            let seconds = self.limit_wait_ns as f64 / 1e9;
            writeln!(
                f,
                "Compactions throttled by background_bytes_per_second: {seconds:.3} seconds"
            )?;
        }
        Ok(())
    }

    fn write_counters(&self, f: &mut impl fmt::Write) -> fmt::Result {
        let gb = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        writeln!(f, "Uptime(secs): {:.1}", self.uptime_seconds)?;
        writeln!(f, "Flush(GB): {:.3}", gb(self.ledger.cause(Cause::Flush).write_bytes))?;
        let host = self.ledger.host();
        writeln!(
            f,
            "User writes: {:.3} GB, host writes: {:.3} GB, host reads: {:.3} GB, W-Amp: {}",
            gb(self.ledger.user_write_bytes),
            gb(host.write_bytes),
            gb(host.read_bytes),
            ratio(self.ledger.write_amplification()),
        )?;
        writeln!(
            f,
            "User reads: {:.3} GB, R-Amp: {}",
            gb(self.ledger.user_read_bytes),
            ratio(self.ledger.read_amplification()),
        )?;
        amplification_line(f, "Cumulative", &self.ledger)?;
        if self.values.segments > 0 {
            value_counters(f, self)?;
        }
        let TransactionCounters { committed, conflicts } = self.transactions;
        if committed + conflicts > 0 {
            writeln!(f, "Transactions: {committed} committed, {conflicts} conflicts")?;
        }
        Ok(())
    }
}

/// The papers' factors over what a ledger has.
pub(crate) fn amplification_line(
    f: &mut impl fmt::Write,
    title: &str,
    ledger: &LedgerSnapshot,
) -> fmt::Result {
    writeln!(
        f,
        "{title} amplification: WA {}, without WAL {}, AWA {}, MWA {}, RA {}, ARA {}, MRA {}",
        ratio(ledger.write_amplification()),
        ratio(ledger.write_amplification_without_wal()),
        ratio(ledger.auxiliary_write_amplification()),
        ratio(ledger.multiplicative_write_amplification()),
        ratio(ledger.merge_read_amplification()),
        ratio(ledger.auxiliary_read_amplification()),
        ratio(ledger.multiplicative_read_amplification()),
    )
}

fn value_lines(f: &mut impl fmt::Write, stats: &Stats) -> fmt::Result {
    let gb = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let ValueStats { segments, groups, total_bytes, dead_bytes, retired_bytes, .. } = stats.values;
    writeln!(
        f,
        "Values: {segments} segments in {groups} groups, {:.3} GB, known dead {:.3} GB, retired \
         {:.3} GB",
        gb(total_bytes),
        gb(dead_bytes),
        gb(retired_bytes),
    )?;
    writeln!(
        f,
        "A value is known dead once compaction drops its pointer; until then it counts as live."
    )?;
    match stats.values.cold_store_bytes {
        0 => Ok(()),
        bytes => writeln!(f, "Values in the cold store: {:.3} GB", gb(bytes)),
    }
}

fn value_counters(f: &mut impl fmt::Write, stats: &Stats) -> fmt::Result {
    let gb = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let ValueStats { collected, times, .. } = stats.values;
    writeln!(
        f,
        "Values W-Amp: {}, Index W-Amp: {}",
        ratio(stats.value_write_amplification()),
        ratio(stats.index_write_amplification()),
    )?;
    writeln!(
        f,
        "Value GC: {} runs, read {:.3} GB, written {:.3} GB, look-ups {}, reclaimed per byte \
         written: {}",
        collected.count,
        gb(collected.read_bytes),
        gb(collected.write_bytes),
        collected.lookups,
        ratio(collected.reclaimed_per_written()),
    )?;
    let seconds = |ns: u64| ns as f64 / 1e9;
    writeln!(
        f,
        "Value seconds: written {:.3}; GC: read {:.3}, look-ups {:.3}, written {:.3}, \
         pointers {:.3}",
        seconds(times.write_ns),
        seconds(times.collect_read_ns),
        seconds(times.collect_lookup_ns),
        seconds(times.collect_write_ns),
        seconds(times.collect_pointer_ns),
    )
}

fn ratio(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.2}"))
}

/// The table that people know, with the columns in the order that they know.
fn compaction_table(f: &mut fmt::Formatter<'_>, levels: &[LevelStats]) -> fmt::Result {
    writeln!(
        f,
        "Level     Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) Wnew(GB) Moved(GB) \
         W-Amp Rd(MB/s) Wr(MB/s) Comp(sec) Comp(cnt) Avg(sec)     KeyIn   KeyDrop"
    )?;
    writeln!(f, "{}", "-".repeat(160))?;
    let (shown, sum) = LevelStats::worth_showing(levels);
    for level in shown {
        level_line(f, &format!("L{}", level.shape.level), level)?;
    }
    level_line(f, "Sum", &sum)
}

fn level_line(f: &mut fmt::Formatter<'_>, name: &str, level: &LevelStats) -> fmt::Result {
    let gb = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let mb_per_second = |bytes: u64| bytes as f64 / f64::from(1 << 20) / level.seconds.max(1e-9);
    let read = level.read_bytes_upper + level.read_bytes_lower;
    let size_mb = level.shape.bytes as f64 / f64::from(1 << 20);
    writeln!(
        f,
        "{name:>5} {:>7}/0 {size_mb:>7.2} MB {:>5.1} {:>8.3} {:>7.3} {:>8.3} {:>9.3} {:>8.3} \
         {:>9.3} {:>5} {:>8.1} {:>8.1} {:>9.2} {:>9} {:>8.3} {:>9} {:>9}",
        level.shape.files,
        level.shape.score,
        gb(read),
        gb(level.read_bytes_upper),
        gb(level.read_bytes_lower),
        gb(level.write_bytes),
        gb(level.write_bytes.saturating_sub(level.read_bytes_lower)),
        gb(level.moved_bytes),
        ratio(level.write_amplification()),
        mb_per_second(read),
        mb_per_second(level.write_bytes),
        level.seconds,
        level.count,
        level.seconds / (level.count.max(1) as f64),
        level.keys_in,
        level.keys_dropped,
    )
}

/// A live table file.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = shingle::Options::new().open(dir.path())?;
/// db.put("apple", "red")?;
/// db.flush()?;
/// for file in db.files() {
///     println!("level {}: {}, {} bytes", file.level, file.name, file.bytes);
/// }
/// # assert_eq!(db.files().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileInfo {
    /// Its name in the store.
    pub name: String,
    /// Bytes in it.
    pub bytes: u64,
    /// Bytes of live slices in it.
    pub live_bytes: u64,
    /// The deepest level that has a slice of it.
    pub level: u8,
    /// The keyspace.
    pub keyspace: String,
    /// The first key.
    pub smallest: Vec<u8>,
    /// The first key after the last; `None`: no bound.
    pub largest: Option<Vec<u8>>,
}

/// What a check found.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = shingle::Options::new().open(dir.path())?;
/// # db.put("apple", "red")?;
/// # db.close()?;
/// let report = shingle::check_closed(dir.path(), &mut |progress| {
///     println!("{}: {} of {} bytes", progress.what, progress.done_bytes, progress.total_bytes);
/// })?;
/// assert!(report.is_clean(), "{:?}", report.problems);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Files that were read.
    pub files: u64,
    /// Bytes that were verified.
    pub bytes: u64,
    /// Entries that were read.
    pub entries: u64,
    /// Bytes of runs that are not data blocks: indexes, filters, range tombstones, footers.
    pub metadata_bytes: u64,
    /// What is wrong, in sentences; empty when all is well.
    pub problems: Vec<String>,
    /// The check was cancelled: the report is of what was read until then.
    pub is_cancelled: bool,
}

impl CheckReport {
    /// Everything was read, and nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty() && !self.is_cancelled
    }

    pub(crate) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.problems.push(error.to_string())).ok()
    }
}
