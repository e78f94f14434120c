//! Statistics as JSON: every field of [`Stats`].

use super::{BackedOffWork, CacheCounters, KeyspaceStats, LevelShape, LevelStats, Stats};
use crate::admission::Stall;
use crate::cleanup::CleanupStats;
use crate::histogram::Latency;
use crate::json;
use crate::value_stats::{ValueGroup, ValueStats};
use base::ledger::Traffic;
use base::{Cause, LedgerSnapshot};

impl Stats {
    /// Everything as one JSON object.
    pub fn to_json(&self) -> String {
        // A field that is left out is an error of the compiler.
        let Stats {
            ledger,
            levels,
            keyspaces,
            stalls,
            write_condition,
            wal_sync,
            flush,
            compaction,
            limit_wait_ns,
            space_bytes,
            live_bytes,
            values,
            cleanup,
            value_groups,
            memtable_bytes,
            cache_bytes,
            open_runs_bytes,
            background_buffer_bytes,
            cache_counters,
            pending_bytes,
            backed_off,
            snapshots,
            changes,
            transactions,
            ingestions,
            sequence,
            uptime_seconds,
            background_error,
        } = self;
        let int = |n: &u64| n.to_string();
        let error = background_error.as_deref().map_or("null".into(), json::string);
        let latencies = [("wal_sync", wal_sync), ("flush", flush), ("compaction", compaction)];
        let rest = [
            ("space_bytes", int(space_bytes)),
            ("live_bytes", int(live_bytes)),
            ("values", values_json(values)),
            ("value_wa", json::number(self.value_write_amplification())),
            ("index_wa", json::number(self.index_write_amplification())),
            ("value_groups", json::array(value_groups.iter().map(group_json))),
            ("cleanup", json::array(cleanup.iter().map(CleanupStats::to_json))),
            ("memtable_bytes", int(memtable_bytes)),
            ("cache_bytes", int(cache_bytes)),
            ("open_runs_bytes", int(open_runs_bytes)),
            ("background_buffer_bytes", int(background_buffer_bytes)),
            ("pending_bytes", int(pending_bytes)),
            ("limit_wait_ns", int(limit_wait_ns)),
            ("snapshots", int(snapshots)),
            ("changes", changes.to_json()),
            ("transactions_committed", int(&transactions.committed)),
            ("transaction_conflicts", int(&transactions.conflicts)),
            ("ingested", ingestions.to_json()),
            ("sequence", int(sequence)),
            ("uptime_seconds", json::number(Some(*uptime_seconds))),
            ("causes", json::array(ledger.causes().map(cause_json))),
            ("levels", json::array(levels.iter().map(level_json))),
            ("keyspaces", json::array(keyspaces.iter().map(keyspace_json))),
            ("stalls", json::array(stalls.iter().map(stall_json))),
            ("write_condition", json::string(write_condition.name())),
            ("cache", json::array(cache_counters.iter().map(cache_json))),
            ("latency_ns", json::object(latencies.map(|(name, l)| (name, latency_json(l))))),
            ("backed_off", json::array(backed_off.iter().map(backed_off_json))),
            ("background_error", error),
        ];
        json::object(amplification(ledger).into_iter().chain(rest))
    }
}

fn amplification(ledger: &LedgerSnapshot) -> [(&'static str, String); 13] {
    let int = |n: u64| n.to_string();
    [
        ("user_write_bytes", int(ledger.user_write_bytes)),
        ("user_read_bytes", int(ledger.user_read_bytes)),
        ("host_write_bytes", int(ledger.host().write_bytes)),
        ("host_read_bytes", int(ledger.host().read_bytes)),
        ("media_write_bytes", int(ledger.host().media_write_bytes)),
        ("wa", json::number(ledger.write_amplification())),
        ("ra", json::number(ledger.read_amplification())),
        ("wa_without_wal", json::number(ledger.write_amplification_without_wal())),
        ("awa", json::number(ledger.auxiliary_write_amplification())),
        ("mwa", json::number(ledger.multiplicative_write_amplification())),
        ("merge_ra", json::number(ledger.merge_read_amplification())),
        ("ara", json::number(ledger.auxiliary_read_amplification())),
        ("mra", json::number(ledger.multiplicative_read_amplification())),
    ]
}

fn cause_json((cause, traffic): (Cause, Traffic)) -> String {
    let int = |n: u64| n.to_string();
    json::object([
        ("cause", json::string(&cause.name())),
        ("write_bytes", int(traffic.write_bytes)),
        ("write_ops", int(traffic.write_ops)),
        ("read_bytes", int(traffic.read_bytes)),
        ("read_ops", int(traffic.read_ops)),
        ("sync_ops", int(traffic.sync_ops)),
        ("media_write_bytes", int(traffic.media_write_bytes)),
        ("media_read_bytes", int(traffic.media_read_bytes)),
    ])
}

fn stall_json(stall: &Stall) -> String {
    json::object([
        ("reason", json::string(stall.reason.name())),
        ("count", stall.count.to_string()),
        ("ns", stall.ns.to_string()),
    ])
}

fn cache_json(counters: &CacheCounters) -> String {
    json::object([
        ("kind", json::string(counters.kind)),
        ("hits", counters.hits.to_string()),
        ("misses", counters.misses.to_string()),
    ])
}

fn keyspace_json(keyspace: &KeyspaceStats) -> String {
    let KeyspaceStats {
        name,
        levels,
        memtables,
        memtable_bytes,
        live_bytes,
        pending_bytes,
        values,
    } = keyspace;
    json::object([
        ("keyspace", json::string(name)),
        ("levels", json::array(levels.iter().map(|level| json::object(shape_fields(level))))),
        ("memtables", memtables.to_string()),
        ("memtable_bytes", memtable_bytes.to_string()),
        ("live_bytes", live_bytes.to_string()),
        ("pending_bytes", pending_bytes.to_string()),
        ("values", values_json(values)),
    ])
}

fn shape_fields(shape: &LevelShape) -> [(&'static str, String); 6] {
    let LevelShape { level, files, nodes, runs, bytes, score } = shape;
    [
        ("level", level.to_string()),
        ("files", files.to_string()),
        ("nodes", nodes.to_string()),
        ("runs", runs.to_string()),
        ("bytes", bytes.to_string()),
        ("score", json::number(Some(*score))),
    ]
}

fn values_json(values: &ValueStats) -> String {
    let int = |n: u64| n.to_string();
    json::object([
        ("segments", int(values.segments)),
        ("groups", int(values.groups)),
        ("total_bytes", int(values.total_bytes)),
        ("dead_bytes", int(values.dead_bytes)),
        ("retired_bytes", int(values.retired_bytes)),
        ("cold_store_bytes", int(values.cold_store_bytes)),
        ("gc_runs", int(values.collected.count)),
        ("collected_read_bytes", int(values.collected.read_bytes)),
        ("collected_write_bytes", int(values.collected.write_bytes)),
        ("collected_lookups", int(values.collected.lookups)),
        ("times_ns", json::object(values.times.parts().map(|(name, ns)| (name, int(ns))))),
        ("reclaimed_per_written", json::number(values.collected.reclaimed_per_written())),
    ])
}

fn group_json(of: &ValueGroup) -> String {
    let tree::Group { tier, prefix, depth } = of.group;
    let tier = if tier == tree::Tier::Cold { "cold" } else { "main" };
    json::object([
        ("keyspace", json::string(&of.keyspace)),
        ("tier", json::string(tier)),
        ("depth", depth.to_string()),
        ("prefix", json::string(&format!("{prefix:016x}"))),
        ("segments", of.segments.to_string()),
        ("live_bytes", of.live_bytes.to_string()),
        ("dead_bytes", of.dead_bytes.to_string()),
    ])
}

fn backed_off_json(work: &BackedOffWork) -> String {
    json::object([
        ("keyspace", json::string(&work.keyspace)),
        ("failures", work.failures.to_string()),
        ("retry_seconds", json::number(Some(work.retry_seconds))),
        ("error", json::string(&work.error)),
    ])
}

fn level_json(level: &LevelStats) -> String {
    let int = |n: u64| n.to_string();
    let work = [
        ("read_bytes_upper", int(level.read_bytes_upper)),
        ("read_bytes_lower", int(level.read_bytes_lower)),
        ("write_bytes", int(level.write_bytes)),
        ("predicted_write_bytes", int(level.predicted_write_bytes)),
        ("moved_bytes", int(level.moved_bytes)),
        ("wa", json::number(level.write_amplification())),
        ("count", int(level.count)),
        ("seconds", json::number(Some(level.seconds))),
        ("keys_in", int(level.keys_in)),
        ("keys_dropped", int(level.keys_dropped)),
    ];
    json::object(shape_fields(&level.shape).into_iter().chain(work))
}

fn latency_json(latency: &Latency) -> String {
    let Latency { count, sum_ns, p50_ns, p99_ns, p999_ns, max_ns, buckets } = latency;
    let int = |n: &u64| n.to_string();
    json::object([
        ("count", int(count)),
        ("sum", int(sum_ns)),
        ("p50", int(p50_ns)),
        ("p99", int(p99_ns)),
        ("p999", int(p999_ns)),
        ("max", int(max_ns)),
        ("buckets", json::array(buckets.iter().map(u64::to_string))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_has_its_shape_and_then_its_work() {
        let shape = LevelShape { level: 1, files: 2, nodes: 3, runs: 4, bytes: 5, score: 6.5 };
        let level = LevelStats { shape, read_bytes_upper: 7, keys_in: 8, ..LevelStats::default() };
        let text = level_json(&level);
        let first =
            r#"{"level": 1, "files": 2, "nodes": 3, "runs": 4, "bytes": 5, "score": 6.5000, "#;
        assert!(text.starts_with(first), "{text}");
        let work = [r#""read_bytes_upper": 7, "#, r#""keys_in": 8, "#];
        assert!(work.iter().all(|figure| text.contains(figure)), "{text}");
    }
}
