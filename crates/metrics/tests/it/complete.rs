//! Every number of `Stats` is in a metric, with the same value, or it is left out for a reason.
//!
//! `Stats::to_json` has every field of `Stats`, which the compiler checks there. This test compares
//! each number of that JSON with the metrics.

use crate::database::sample;
use crate::parser::{Parsed, parse};
use serde_json::Value;
use shingle_metrics::{definitions, families, text};
use std::collections::{BTreeMap, BTreeSet};

/// A number of the JSON, the metric that has it, and the factor between them. A path with `[]` is
/// the sum over a list.
const NUMBERS: &[(&str, &str, f64)] = &[
    ("user_write_bytes", "shingle_user_written_bytes_total", 1.0),
    ("user_read_bytes", "shingle_user_read_bytes_total", 1.0),
    ("host_write_bytes", "shingle_io_written_bytes_total", 1.0),
    ("host_read_bytes", "shingle_io_read_bytes_total", 1.0),
    ("media_write_bytes", "shingle_media_written_bytes_total", 1.0),
    ("causes[].write_bytes", "shingle_io_written_bytes_total", 1.0),
    ("causes[].read_bytes", "shingle_io_read_bytes_total", 1.0),
    ("causes[].write_ops", "shingle_io_writes_total", 1.0),
    ("causes[].read_ops", "shingle_io_reads_total", 1.0),
    ("causes[].sync_ops", "shingle_io_syncs_total", 1.0),
    ("causes[].media_write_bytes", "shingle_media_written_bytes_total", 1.0),
    ("causes[].media_read_bytes", "shingle_media_read_bytes_total", 1.0),
    ("stalls[].count", "shingle_write_stalls_total", 1.0),
    ("stalls[].ns", "shingle_write_stall_seconds_total", 1e-9),
    ("latency_ns.wal_sync.count", "shingle_wal_sync_seconds_count", 1.0),
    ("latency_ns.wal_sync.sum", "shingle_wal_sync_seconds_sum", 1e-9),
    ("latency_ns.flush.count", "shingle_flush_seconds_count", 1.0),
    ("latency_ns.flush.sum", "shingle_flush_seconds_sum", 1e-9),
    ("latency_ns.compaction.count", "shingle_compaction_seconds_count", 1.0),
    ("latency_ns.compaction.sum", "shingle_compaction_seconds_sum", 1e-9),
    ("levels[].files", "shingle_level_files", 1.0),
    ("levels[].nodes", "shingle_level_nodes", 1.0),
    ("levels[].runs", "shingle_level_runs", 1.0),
    ("levels[].bytes", "shingle_level_bytes", 1.0),
    ("levels[].count", "shingle_level_compactions_total", 1.0),
    ("levels[].seconds", "shingle_level_compaction_seconds_total", 1.0),
    ("levels[].read_bytes_upper", "shingle_level_upper_read_bytes_total", 1.0),
    ("levels[].read_bytes_lower", "shingle_level_lower_read_bytes_total", 1.0),
    ("levels[].write_bytes", "shingle_level_written_bytes_total", 1.0),
    ("levels[].predicted_write_bytes", "shingle_level_predicted_written_bytes_total", 1.0),
    ("levels[].moved_bytes", "shingle_level_moved_bytes_total", 1.0),
    ("levels[].keys_in", "shingle_level_read_entries_total", 1.0),
    ("levels[].keys_dropped", "shingle_level_dropped_entries_total", 1.0),
    ("keyspaces[].levels[].files", "shingle_level_files", 1.0),
    ("keyspaces[].levels[].nodes", "shingle_level_nodes", 1.0),
    ("keyspaces[].levels[].runs", "shingle_level_runs", 1.0),
    ("keyspaces[].levels[].bytes", "shingle_level_bytes", 1.0),
    ("keyspaces[].levels[].score", "shingle_level_score", 1.0),
    ("keyspaces[].memtables", "shingle_memtables", 1.0),
    ("keyspaces[].memtable_bytes", "shingle_memtable_bytes", 1.0),
    ("keyspaces[].live_bytes", "shingle_live_bytes", 1.0),
    ("keyspaces[].pending_bytes", "shingle_pending_compaction_bytes", 1.0),
    ("cleanup[].expired", "shingle_expired_entries_total", 1.0),
    ("cleanup[].lacks_filter", "shingle_filter_unknown", 1.0),
    ("limit_wait_ns", "shingle_background_limit_wait_seconds_total", 1e-9),
    ("memtable_bytes", "shingle_memtable_bytes", 1.0),
    ("live_bytes", "shingle_live_bytes", 1.0),
    ("pending_bytes", "shingle_pending_compaction_bytes", 1.0),
    ("space_bytes", "shingle_space_bytes", 1.0),
    ("cache_bytes", "shingle_cache_bytes", 1.0),
    ("cache[].hits", "shingle_cache_hits_total", 1.0),
    ("cache[].misses", "shingle_cache_misses_total", 1.0),
    ("open_runs_bytes", "shingle_open_runs_bytes", 1.0),
    ("background_buffer_bytes", "shingle_background_buffer_bytes", 1.0),
    ("snapshots", "shingle_snapshots", 1.0),
    ("changes.logs", "shingle_changes_logs", 1.0),
    ("changes.bytes", "shingle_changes_bytes", 1.0),
    ("transactions_committed", "shingle_transactions_committed_total", 1.0),
    ("transaction_conflicts", "shingle_transaction_conflicts_total", 1.0),
    ("ingested.ingestions", "shingle_ingestions_total", 1.0),
    ("ingested.files", "shingle_ingested_files_total", 1.0),
    ("ingested.files_below_level0", "shingle_ingested_files_below_level_zero_total", 1.0),
    ("ingested.entries", "shingle_ingested_entries_total", 1.0),
    ("ingested.bytes", "shingle_ingested_bytes_total", 1.0),
    ("ingested.copied_bytes", "shingle_ingested_copied_bytes_total", 1.0),
    ("sequence", "shingle_sequence", 1.0),
    ("uptime_seconds", "shingle_uptime_seconds", 1.0),
];

/// The same for the numbers of separated values, which are there for each keyspace and as a sum.
const VALUES: &[(&str, &str, f64)] = &[
    ("segments", "shingle_value_segments", 1.0),
    ("groups", "shingle_value_groups", 1.0),
    ("total_bytes", "shingle_value_bytes", 1.0),
    ("dead_bytes", "shingle_value_garbage_bytes", 1.0),
    ("retired_bytes", "shingle_value_retired_bytes", 1.0),
    ("cold_store_bytes", "shingle_value_cold_store_bytes", 1.0),
    ("gc_runs", "shingle_value_gc_runs_total", 1.0),
    ("collected_read_bytes", "shingle_value_gc_read_bytes_total", 1.0),
    ("collected_write_bytes", "shingle_value_gc_written_bytes_total", 1.0),
    ("collected_lookups", "shingle_value_gc_lookups_total", 1.0),
];

/// What has no metric of its own, and why. A path also stands for everything below it.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("wa", RATIO),
    ("ra", RATIO),
    ("wa_without_wal", RATIO),
    ("awa", RATIO),
    ("mwa", RATIO),
    ("merge_ra", RATIO),
    ("ara", RATIO),
    ("mra", RATIO),
    ("value_wa", RATIO),
    ("index_wa", RATIO),
    ("levels[].wa", RATIO),
    ("values.reclaimed_per_written", RATIO),
    ("keyspaces[].values.reclaimed_per_written", RATIO),
    ("levels[].score", "the largest of the keyspaces' scores, which are metrics"),
    ("latency_ns.wal_sync", QUANTILE),
    ("latency_ns.flush", QUANTILE),
    ("latency_ns.compaction", QUANTILE),
    ("value_groups", "a series for each group would be thousands; the sums are metrics"),
    ("changes.oldest_sequence", "a sequence number to compare with a consumer's, not over time"),
    ("backed_off", "texts and times to read; their number is a metric"),
    ("background_error", "a text; whether there is one is a metric"),
    ("write_condition", "a text; two metrics say it as 0 and 1"),
    ("values.times_ns", "in seconds by keyspace and part: see the test of times"),
    ("keyspaces[].values.times_ns", "in seconds by keyspace and part: see the test of times"),
    ("cleanup[].filter_kept", DECISION),
    ("cleanup[].filter_dropped", DECISION),
    ("cleanup[].filter_replaced", DECISION),
    ("cleanup[].keyspace", LABEL),
    ("levels[].level", LABEL),
    ("causes[].cause", LABEL),
    ("stalls[].reason", LABEL),
    ("cache[].kind", LABEL),
    ("keyspaces[].keyspace", LABEL),
    ("keyspaces[].levels[].level", LABEL),
];

const RATIO: &str = "a ratio of counters, which a query forms over any interval";
const QUANTILE: &str = "a histogram has buckets, and a query forms quantiles over any interval";
const DECISION: &str = "a metric by decision: see the test of decisions";
const LABEL: &str = "a label";

/// The leaves of a JSON text: the sum of the numbers at each path.
fn leaves(path: &str, value: &Value, sums: &mut BTreeMap<String, f64>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                leaves(&format!("{path}{dot}{name}"), value, sums);
            }
        }
        Value::Array(values) => values.iter().for_each(|v| leaves(&format!("{path}[]"), v, sums)),
        other => {
            let yes = other.as_bool().map(|yes| f64::from(u8::from(yes)));
            *sums.entry(path.to_string()).or_default() += other.as_f64().or(yes).unwrap_or(0.0);
        }
    }
}

fn mapped() -> Vec<(String, &'static str, f64)> {
    let plain = NUMBERS.iter().map(|(path, metric, factor)| (path.to_string(), *metric, *factor));
    let values = ["values", "keyspaces[].values"].into_iter().flat_map(|prefix| {
        VALUES.iter().map(move |(path, metric, f)| (format!("{prefix}.{path}"), *metric, *f))
    });
    plain.chain(values).collect()
}

fn is_excepted(path: &str) -> bool {
    EXCEPTIONS.iter().any(|(excepted, _)| {
        let rest = path.strip_prefix(excepted);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}

fn read() -> (BTreeMap<String, f64>, Parsed) {
    let stats = sample().stats();
    let json = serde_json::from_str(&stats.to_json()).unwrap();
    let mut sums = BTreeMap::new();
    leaves("", &json, &mut sums);
    (sums, parse(&text::prometheus(&families(&stats)), false))
}

#[test]
fn every_number_of_the_statistics_is_in_a_metric() {
    let (sums, parsed) = read();
    let mapped = mapped();
    for path in sums.keys() {
        let is_mapped = mapped.iter().any(|(known, _, _)| known == path);
        assert!(is_mapped || is_excepted(path), "{path} is in no metric: add one, or a reason");
    }
    for (path, metric, factor) in &mapped {
        let wanted = sums.get(path).unwrap_or_else(|| panic!("{path} is not in the statistics"));
        let found = parsed.sum(metric).unwrap_or_else(|| panic!("{metric} has no samples"));
        let (wanted, tolerance) = (wanted * factor, 1e-3);
        assert!((found - wanted).abs() <= tolerance, "{path}: {wanted}, {metric}: {found}");
    }
    let used = sums.iter().filter(|(_, sum)| **sum != 0.0).count();
    assert!(used > 60, "the sample is too small to prove anything: {used} numbers differ from 0");
}

#[test]
fn every_metric_is_compared_with_the_statistics() {
    // These say in another form what the exceptions say.
    let others = [
        "shingle_write_delayed",
        "shingle_write_stopped",
        "shingle_backed_off_compactions",
        "shingle_background_error",
        "shingle_filter_decisions_total",
        "shingle_value_work_seconds_total",
    ];
    let mapped: BTreeSet<&str> = mapped().into_iter().map(|(_, metric, _)| metric).collect();
    for series in definitions().iter().flat_map(|definition| definition.series()) {
        let is_known = mapped.contains(series.as_str()) || others.contains(&series.as_str());
        assert!(is_known || series.ends_with("_bucket"), "{series}");
    }
}

#[test]
fn times_of_values_are_seconds_by_part() {
    let (sums, parsed) = read();
    let total: f64 = sums
        .iter()
        .filter(|(path, _)| path.starts_with("values.times_ns."))
        .map(|(_, ns)| ns * 1e-9)
        .sum();
    let found = parsed.sum("shingle_value_work_seconds_total").unwrap();
    assert!(total > 0.0 && (found - total).abs() < 1e-9, "{total} {found}");
}

#[test]
fn decisions_of_filters_are_by_decision() {
    let stats = sample().stats();
    let parsed = parse(&text::prometheus(&families(&stats)), false);
    let cleanup = &stats.cleanup[0];
    let wanted = [
        ("keep", cleanup.filter_kept),
        ("drop", cleanup.filter_dropped),
        ("replace", cleanup.filter_replaced),
    ];
    for (decision, count) in wanted {
        let labels = [("keyspace", cleanup.keyspace.as_str()), ("decision", decision)];
        let labels = labels.map(|(name, value)| (name.to_string(), value.to_string())).into();
        let series = ("shingle_filter_decisions_total".to_string(), labels);
        assert_eq!(parsed.values[&series], count as f64, "{decision}");
    }
    assert!(cleanup.filter_kept > 0 && cleanup.filter_dropped > 0);
}

#[test]
fn buckets_are_those_of_the_statistics() {
    let stats = sample().stats();
    let parsed = parse(&text::prometheus(&families(&stats)), false);
    for (bound, count) in shingle::Latency::BOUNDS_NS.into_iter().zip(stats.flush.buckets) {
        let le = format!("{:?}", bound as f64 / 1e9);
        let series = ("shingle_flush_seconds_bucket".to_string(), [("le".to_string(), le)].into());
        assert_eq!(parsed.values[&series], count as f64, "{bound}");
    }
    assert!(stats.flush.count > 0);
}
