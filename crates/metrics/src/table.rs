//! The table of metrics. A metric's name, unit, labels and samples are here, and nowhere else.

mod samples;

use crate::definition::{Definition, RocksdbName};
use crate::family::{Kind, Scope, Unit};
use samples::{
    by_cause, by_cleanup, by_keyspace, by_level, by_reason, by_shape, cache, histogram, number,
    of_values, real, value_seconds,
};
use shingle::StallCondition;

const CAUSE: &[&str] = &["cause"];
const KEYSPACE: &[&str] = &["keyspace"];
const LEVEL: &[&str] = &["level"];
const SHAPE: &[&str] = &["keyspace", "level"];
const REASON: &[&str] = &["reason"];

/// Selects the causes of all compactions.
const COMPACTIONS: &str = "cause=~\"compaction-.*\"";

/// RocksDB's name for the sum over all samples.
const fn all(name: &'static str) -> RocksdbName {
    RocksdbName { name, selector: "" }
}

/// RocksDB's name for the sum over the samples that `selector` selects.
const fn part(name: &'static str, selector: &'static str) -> RocksdbName {
    RocksdbName { name, selector }
}

/// Makes a [`Definition`] of a line: kind, unit, scope, name, labels, the help line, RocksDB's
/// names for equal numbers, and the samples.
macro_rules! metric {
    ($kind:ident $unit:ident $scope:ident $name:literal $labels:expr, $help:literal,
     $rocksdb:expr, $samples:expr) => {
        Definition {
            name: $name,
            help: $help,
            kind: Kind::$kind,
            unit: Unit::$unit,
            scope: Scope::$scope,
            labels: $labels,
            rocksdb: $rocksdb,
            samples: $samples,
        }
    };
}

pub(crate) static TABLE: &[Definition] = &[
    // What users move, and what that costs.
    metric!(Counter Bytes Opening "shingle_user_written_bytes" &[],
        "Bytes of keys and values that users wrote.", &[all("rocksdb.bytes.written")],
        |s| number(s.ledger.user_write_bytes)),
    metric!(Counter Bytes Opening "shingle_user_read_bytes" &[],
        "Bytes of keys and values that users received.", &[],
        |s| number(s.ledger.user_read_bytes)),
    metric!(Counter Bytes Opening "shingle_io_written_bytes" CAUSE,
        "Bytes written to files or to the device.",
        &[part("rocksdb.wal.bytes", "cause=\"wal\""),
          part("rocksdb.flush.write.bytes", "cause=\"flush\""),
          part("rocksdb.compact.write.bytes", COMPACTIONS)],
        |s| by_cause(s, |t| t.write_bytes)),
    metric!(Counter Bytes Opening "shingle_io_read_bytes" CAUSE,
        "Bytes read from files or from the device.",
        &[part("rocksdb.compact.read.bytes", COMPACTIONS)],
        |s| by_cause(s, |t| t.read_bytes)),
    metric!(Counter Count Opening "shingle_io_writes" CAUSE,
        "Write requests.", &[], |s| by_cause(s, |t| t.write_ops)),
    metric!(Counter Count Opening "shingle_io_reads" CAUSE,
        "Read requests.", &[], |s| by_cause(s, |t| t.read_ops)),
    metric!(Counter Count Opening "shingle_io_syncs" CAUSE,
        "Requests to make earlier writes durable.",
        &[part("rocksdb.wal.synced", "cause=\"wal\"")],
        |s| by_cause(s, |t| t.sync_ops)),
    metric!(Counter Bytes Opening "shingle_media_written_bytes" CAUSE,
        "Bytes that the device wrote to its medium, where it reports them.", &[],
        |s| by_cause(s, |t| t.media_write_bytes)),
    metric!(Counter Bytes Opening "shingle_media_read_bytes" CAUSE,
        "Bytes that the device read from its medium, where it reports them.", &[],
        |s| by_cause(s, |t| t.media_read_bytes)),
    // Writes that wait.
    metric!(Counter Count Opening "shingle_write_stalls" REASON,
        "Waits of writes in admission.", &[],
        |s| by_reason(s, |stall| samples::whole(stall.count))),
    metric!(Counter Seconds Opening "shingle_write_stall_seconds" REASON,
        "Time that writes waited in admission.", &[all("rocksdb.stall.micros")],
        |s| by_reason(s, |stall| samples::seconds(stall.ns))),
    metric!(Counter Seconds Opening "shingle_background_limit_wait_seconds" &[],
        "Time that compactions waited for the limit of background bytes.", &[],
        |s| real(s.limit_wait_ns as f64 / 1e9)),
    metric!(Gauge Count Opening "shingle_write_delayed" &[],
        "1 while writes are throttled.", &[],
        |s| number((s.write_condition == StallCondition::Delayed).into())),
    metric!(Gauge Count Opening "shingle_write_stopped" &[],
        "1 while writes wait until background work has caught up.",
        &[all("rocksdb.is-write-stopped")],
        |s| number((s.write_condition == StallCondition::Stopped).into())),
    // Durations.
    metric!(Histogram Seconds Opening "shingle_wal_sync_seconds" &[],
        "Syncs of the write-ahead log.", &[all("rocksdb.wal.file.sync.micros")],
        |s| histogram(&s.wal_sync)),
    metric!(Histogram Seconds Opening "shingle_flush_seconds" &[],
        "Flushes, from begin to end.", &[all("rocksdb.db.flush.micros")],
        |s| histogram(&s.flush)),
    metric!(Histogram Seconds Opening "shingle_compaction_seconds" &[],
        "Compactions with a rewrite, from begin to end.",
        &[all("rocksdb.compaction.times.micros")], |s| histogram(&s.compaction)),
    // The tree.
    metric!(Gauge Count Database "shingle_level_files" SHAPE,
        "Table files that have live runs in the level.",
        &[part("rocksdb.num-files-at-level<N>", "level=\"<N>\"")],
        |s| by_shape(s, |level| samples::whole(level.files))),
    metric!(Gauge Count Database "shingle_level_nodes" SHAPE,
        "Nodes of the level.", &[], |s| by_shape(s, |level| samples::whole(level.nodes))),
    metric!(Gauge Count Database "shingle_level_runs" SHAPE,
        "Slices of runs in the level.", &[],
        |s| by_shape(s, |level| samples::whole(level.runs))),
    metric!(Gauge Bytes Database "shingle_level_bytes" SHAPE,
        "Live bytes of the level.", &[], |s| by_shape(s, |level| samples::whole(level.bytes))),
    metric!(Gauge Count Database "shingle_level_score" SHAPE,
        "How urgent the compaction of the level is; 1 is at the limit.", &[],
        |s| by_shape(s, |level| samples::fraction(level.score))),
    // Work on the tree.
    metric!(Counter Count Opening "shingle_level_compactions" LEVEL,
        "Compactions into the level; for level 0, flushes too.", &[],
        |s| by_level(s, |level| samples::whole(level.count))),
    metric!(Counter Seconds Opening "shingle_level_compaction_seconds" LEVEL,
        "Time of background threads in compactions into the level.", &[],
        |s| by_level(s, |level| samples::fraction(level.seconds))),
    metric!(Counter Bytes Opening "shingle_level_upper_read_bytes" LEVEL,
        "Bytes that compactions into the level read from levels above it.", &[],
        |s| by_level(s, |level| samples::whole(level.read_bytes_upper))),
    metric!(Counter Bytes Opening "shingle_level_lower_read_bytes" LEVEL,
        "Bytes that compactions into the level read from the level itself.", &[],
        |s| by_level(s, |level| samples::whole(level.read_bytes_lower))),
    metric!(Counter Bytes Opening "shingle_level_written_bytes" LEVEL,
        "Bytes of runs written into the level.", &[],
        |s| by_level(s, |level| samples::whole(level.write_bytes))),
    metric!(Counter Bytes Opening "shingle_level_predicted_written_bytes" LEVEL,
        "Bytes that the scheme expected these compactions to write.", &[],
        |s| by_level(s, |level| samples::whole(level.predicted_write_bytes))),
    metric!(Counter Bytes Opening "shingle_level_moved_bytes" LEVEL,
        "Bytes that came into the level without a rewrite.", &[],
        |s| by_level(s, |level| samples::whole(level.moved_bytes))),
    metric!(Counter Count Opening "shingle_level_read_entries" LEVEL,
        "Entries that compactions into the level read.", &[],
        |s| by_level(s, |level| samples::whole(level.keys_in))),
    metric!(Counter Count Opening "shingle_level_dropped_entries" LEVEL,
        "Entries that compactions into the level dropped.", &[],
        |s| by_level(s, |level| samples::whole(level.keys_dropped))),
    metric!(Gauge Bytes Database "shingle_pending_compaction_bytes" KEYSPACE,
        "Estimated bytes to compact until every level is within its limit.",
        &[all("rocksdb.estimate-pending-compaction-bytes")],
        |s| by_keyspace(s, |k| samples::whole(k.pending_bytes))),
    metric!(Gauge Count Opening "shingle_backed_off_compactions" KEYSPACE,
        "Compactions that failed and wait for another try.", &[], samples::backed_off),
    metric!(Gauge Count Opening "shingle_background_error" &[],
        "1 while background work fails.", &[],
        |s| number(s.background_error.is_some().into())),
    // Expiry and compaction filters.
    metric!(Counter Count Opening "shingle_expired_entries" KEYSPACE,
        "Expired values that compactions removed.", &[],
        |s| by_cleanup(s, |keyspace| keyspace.expired)),
    metric!(Counter Count Opening "shingle_filter_decisions" &["keyspace", "decision"],
        "Values that the compaction filter kept, dropped or replaced.",
        &[part("rocksdb.compaction.key.drop.user", "decision=\"drop\"")],
        samples::filter_decisions),
    metric!(Gauge Count Opening "shingle_filter_unknown" KEYSPACE,
        "1 while the process does not know the compaction filter of the keyspace.", &[],
        |s| by_cleanup(s, |keyspace| keyspace.lacks_filter.into())),
    // Space.
    metric!(Gauge Bytes Database "shingle_space_bytes" &[],
        "Bytes of all files.", &[], |s| number(s.space_bytes)),
    metric!(Gauge Bytes Database "shingle_live_bytes" KEYSPACE,
        "Bytes of live slices, and of separated values not known to be garbage.",
        &[all("rocksdb.estimate-live-data-size")],
        |s| by_keyspace(s, |k| samples::whole(k.live_bytes))),
    // Separated values.
    metric!(Gauge Count Database "shingle_value_segments" KEYSPACE,
        "Value segments, retired ones included.", &[],
        |s| of_values(s, |v| v.segments)),
    metric!(Gauge Count Database "shingle_value_groups" KEYSPACE,
        "Segment groups.", &[], |s| of_values(s, |v| v.groups)),
    metric!(Gauge Bytes Database "shingle_value_bytes" KEYSPACE,
        "Bytes of value segments.", &[all("rocksdb.total-blob-file-size")],
        |s| of_values(s, |v| v.total_bytes)),
    metric!(Gauge Bytes Database "shingle_value_garbage_bytes" KEYSPACE,
        "Bytes known to be garbage, in segments that are not retired.",
        &[all("rocksdb.live-blob-file-garbage-size")], |s| of_values(s, |v| v.dead_bytes)),
    metric!(Gauge Bytes Database "shingle_value_retired_bytes" KEYSPACE,
        "Bytes of segments that were collected and that old readers still need.", &[],
        |s| of_values(s, |v| v.retired_bytes)),
    metric!(Gauge Bytes Database "shingle_value_cold_store_bytes" KEYSPACE,
        "Bytes of value segments in the cold store.", &[],
        |s| of_values(s, |v| v.cold_store_bytes)),
    metric!(Counter Count Opening "shingle_value_gc_runs" KEYSPACE,
        "Completed garbage collections.", &[], |s| of_values(s, |v| v.collected.count)),
    metric!(Counter Bytes Opening "shingle_value_gc_read_bytes" KEYSPACE,
        "Bytes of the segments that garbage collection retired.", &[],
        |s| of_values(s, |v| v.collected.read_bytes)),
    metric!(Counter Bytes Opening "shingle_value_gc_written_bytes" KEYSPACE,
        "Bytes that garbage collection wrote to new segments.", &[],
        |s| of_values(s, |v| v.collected.write_bytes)),
    metric!(Counter Count Opening "shingle_value_gc_lookups" KEYSPACE,
        "Values that garbage collection looked up in the tree.", &[],
        |s| of_values(s, |v| v.collected.lookups)),
    metric!(Counter Seconds Opening "shingle_value_work_seconds" &["keyspace", "part"],
        "Time of background threads in writing and garbage-collecting values.", &[],
        value_seconds),
    // Memory.
    metric!(Gauge Count Opening "shingle_memtables" KEYSPACE,
        "Memtables, active and sealed.", &[], |s| by_keyspace(s, |k| samples::whole(k.memtables))),
    metric!(Gauge Bytes Opening "shingle_memtable_bytes" KEYSPACE,
        "Bytes in memtables.", &[all("rocksdb.cur-size-all-mem-tables")],
        |s| by_keyspace(s, |k| samples::whole(k.memtable_bytes))),
    metric!(Gauge Bytes Opening "shingle_cache_bytes" &[],
        "Bytes in the block cache.", &[all("rocksdb.block-cache-usage")],
        |s| number(s.cache_bytes)),
    metric!(Gauge Bytes Opening "shingle_open_runs_bytes" &[],
        "Memory of open tables outside the cache.", &[all("rocksdb.estimate-table-readers-mem")],
        |s| number(s.open_runs_bytes)),
    metric!(Gauge Bytes Opening "shingle_background_buffer_bytes" &[],
        "Buffers of flushes, compactions and garbage collection.", &[],
        |s| number(s.background_buffer_bytes)),
    metric!(Counter Count Opening "shingle_cache_hits" &["kind"],
        "Blocks that were in the block cache.",
        &[part("rocksdb.block.cache.<kind>.hit", "kind=\"<kind>\"")],
        |s| cache(s, |kind| kind.hits)),
    metric!(Counter Count Opening "shingle_cache_misses" &["kind"],
        "Blocks that had to be read.",
        &[part("rocksdb.block.cache.<kind>.miss", "kind=\"<kind>\"")],
        |s| cache(s, |kind| kind.misses)),
    // Readers and transactions.
    metric!(Gauge Count Opening "shingle_snapshots" &[],
        "Live snapshots.", &[all("rocksdb.num-snapshots")], |s| number(s.snapshots)),
    metric!(Gauge Count Database "shingle_changes_logs" &[],
        "Number of logs that are kept for change feeds alone.", &[], |s| number(s.changes.logs)),
    metric!(Gauge Bytes Database "shingle_changes_bytes" &[],
        "Logs that are kept for change feeds alone.", &[], |s| number(s.changes.bytes)),
    metric!(Counter Count Opening "shingle_transactions_committed" &[],
        "Transactions that were committed.", &[], |s| number(s.transactions.committed)),
    metric!(Counter Count Opening "shingle_transaction_conflicts" &[],
        "Transactions that failed because of another write.", &[],
        |s| number(s.transactions.conflicts)),
    metric!(Gauge Count Database "shingle_sequence" &[],
        "The newest sequence number.", &[], |s| number(s.sequence)),
    metric!(Gauge Seconds Opening "shingle_uptime_seconds" &[],
        "Time since the database was opened.", &[], |s| real(s.uptime_seconds)),
];
