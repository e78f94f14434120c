//! From the parts of [`Stats`] to samples.

use crate::family::{Buckets, Sample, Value};
use shingle::{
    CacheCounters, CleanupStats, KeyspaceStats, Latency, LevelShape, LevelStats, Stall, Stats,
    Traffic, ValueStats,
};
use std::collections::BTreeMap;

const NS_PER_SECOND: f64 = 1e9;

pub(super) fn whole(number: u64) -> Value {
    Value::Whole(number)
}

pub(super) fn fraction(number: f64) -> Value {
    Value::Real(number)
}

pub(super) fn seconds(ns: u64) -> Value {
    Value::Real(ns as f64 / NS_PER_SECOND)
}

/// One sample without labels.
pub(super) fn number(number: u64) -> Vec<Sample> {
    vec![Sample::new(whole(number))]
}

/// The same for a number with a fraction.
pub(super) fn real(number: f64) -> Vec<Sample> {
    vec![Sample::new(fraction(number))]
}

pub(super) fn by_cause(stats: &Stats, of: fn(&Traffic) -> u64) -> Vec<Sample> {
    let causes = stats.ledger.causes();
    causes.map(|(cause, t)| Sample::new(whole(of(&t))).label("cause", cause.name())).collect()
}

pub(super) fn by_reason(stats: &Stats, of: fn(&Stall) -> Value) -> Vec<Sample> {
    let stalls = stats.stalls.iter();
    stalls.map(|stall| Sample::new(of(stall)).label("reason", stall.reason.name())).collect()
}

/// The levels that have data or were compacted into.
pub(super) fn by_level(stats: &Stats, of: fn(&LevelStats) -> Value) -> Vec<Sample> {
    let (shown, _) = LevelStats::worth_showing(&stats.levels);
    let sample =
        |level: &&LevelStats| Sample::new(of(level)).label("level", level.shape.level.to_string());
    shown.iter().map(sample).collect()
}

/// The levels of each keyspace, empty ones included: a level that becomes empty shows a zero.
pub(super) fn by_shape(stats: &Stats, of: fn(&LevelShape) -> Value) -> Vec<Sample> {
    let of_keyspace = |keyspace: &KeyspaceStats| {
        let sample = |level: &LevelShape| {
            let sample = Sample::new(of(level)).label("keyspace", &keyspace.name);
            sample.label("level", level.level.to_string())
        };
        keyspace.levels.iter().map(sample).collect::<Vec<Sample>>()
    };
    stats.keyspaces.iter().flat_map(of_keyspace).collect()
}

pub(super) fn by_keyspace(stats: &Stats, of: fn(&KeyspaceStats) -> Value) -> Vec<Sample> {
    let keyspaces = stats.keyspaces.iter();
    keyspaces.map(|keyspace| Sample::new(of(keyspace)).label("keyspace", &keyspace.name)).collect()
}

/// The keyspaces that have something to say about separated values.
fn with_values(stats: &Stats) -> impl Iterator<Item = &KeyspaceStats> {
    stats.keyspaces.iter().filter(|keyspace| keyspace.values != ValueStats::default())
}

pub(super) fn of_values(stats: &Stats, of: fn(&ValueStats) -> u64) -> Vec<Sample> {
    let sample = |keyspace: &KeyspaceStats| {
        Sample::new(whole(of(&keyspace.values))).label("keyspace", &keyspace.name)
    };
    with_values(stats).map(sample).collect()
}

pub(super) fn value_seconds(stats: &Stats) -> Vec<Sample> {
    let of_keyspace = |keyspace: &KeyspaceStats| {
        keyspace.values.times.parts().map(|(part, ns)| {
            Sample::new(seconds(ns)).label("keyspace", &keyspace.name).label("part", part)
        })
    };
    with_values(stats).flat_map(of_keyspace).collect()
}

/// The keyspaces whose values expire, or that have a compaction filter.
pub(super) fn by_cleanup(stats: &Stats, of: fn(&CleanupStats) -> u64) -> Vec<Sample> {
    let sample = |cleanup: &CleanupStats| {
        Sample::new(whole(of(cleanup))).label("keyspace", &cleanup.keyspace)
    };
    stats.cleanup.iter().map(sample).collect()
}

pub(super) fn filter_decisions(stats: &Stats) -> Vec<Sample> {
    let of_keyspace = |cleanup: &CleanupStats| {
        let decisions = [
            ("keep", cleanup.filter_kept),
            ("drop", cleanup.filter_dropped),
            ("replace", cleanup.filter_replaced),
        ];
        decisions.map(|(decision, count)| {
            let sample = Sample::new(whole(count)).label("keyspace", &cleanup.keyspace);
            sample.label("decision", decision)
        })
    };
    stats.cleanup.iter().flat_map(of_keyspace).collect()
}

/// Compactions that wait for another try, by keyspace, zeros included.
pub(super) fn backed_off(stats: &Stats) -> Vec<Sample> {
    let mut counts: BTreeMap<&str, u64> =
        stats.keyspaces.iter().map(|keyspace| (keyspace.name.as_str(), 0)).collect();
    for work in &stats.backed_off {
        *counts.entry(&work.keyspace).or_default() += 1;
    }
    let sample = |(name, count): (&str, u64)| Sample::new(whole(count)).label("keyspace", name);
    counts.into_iter().map(sample).collect()
}

pub(super) fn cache(stats: &Stats, of: fn(&CacheCounters) -> u64) -> Vec<Sample> {
    let kinds = stats.cache_counters.iter();
    kinds.map(|counters| Sample::new(whole(of(counters))).label("kind", counters.kind)).collect()
}

pub(super) fn histogram(latency: &Latency) -> Vec<Sample> {
    let bounds = Latency::BOUNDS_NS.into_iter().zip(latency.buckets);
    let buckets = Buckets {
        up_to: bounds.map(|(ns, count)| (ns as f64 / NS_PER_SECOND, count)).collect(),
        count: latency.count,
        sum_seconds: latency.sum_ns as f64 / NS_PER_SECOND,
    };
    vec![Sample::new(Value::Buckets(buckets))]
}
