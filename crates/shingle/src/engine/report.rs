//! What the engine reports about itself: statistics and files.

use crate::cleanup::CleanupStats;
use crate::engine::Engine;
use crate::engine::trees::{TreeState, Trees};
use crate::keyspace::KeyspaceState;
use crate::stats::{BackedOffWork, CacheCounters, FileInfo, LevelStats, Stats};
use crate::value_stats::{ValueGroup, ValueStats};
use base::{FileId, KeyRange, SequenceNumber};
use media::FileName;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use table::BlockKind;
use tree::{Group, Segment, Segments, Version};

/// The segments of all keyspaces, together and by group.
fn value_stats(trees: &Trees) -> (ValueStats, Vec<ValueGroup>) {
    let (mut values, mut all_groups) = (ValueStats::default(), Vec::new());
    for tree in trees.keyspaces.values() {
        let (segments, usage) = (&tree.version.segments, tree.version.segments.usage());
        let groups = groups(&tree.keyspace.name, segments);
        values.segments += segments.len() as u64;
        values.groups += groups.len() as u64;
        values.total_bytes += usage.total_bytes;
        values.dead_bytes += usage.dead_bytes;
        values.retired_bytes += usage.retired_bytes;
        let cold = segments.iter().filter(|segment| segment.is_in_cold_store);
        values.cold_store_bytes += cold.map(|segment| segment.bytes).sum::<u64>();
        values.collected.add(&tree.keyspace.values.collected());
        values.times.add(&tree.keyspace.values.times());
        all_groups.extend(groups);
    }
    (values, all_groups)
}

/// The segment groups of a keyspace.
fn groups(keyspace: &str, segments: &Segments) -> Vec<ValueGroup> {
    let of = |(group, segments): (Group, Vec<&Segment>)| ValueGroup {
        keyspace: keyspace.to_string(),
        group,
        segments: segments.len() as u64,
        live_bytes: segments.iter().map(|segment| segment.live_bytes()).sum(),
        dead_bytes: segments.iter().map(|segment| segment.dead_bytes).sum(),
    };
    segments.groups().into_iter().map(of).collect()
}

impl Engine {
    pub(crate) fn stats(&self) -> Stats {
        let mut levels = self.level_work();
        let mut pending_bytes = 0;
        let mut memtable_bytes = 0;
        for state in self.keyspaces() {
            let view = state.view();
            memtable_bytes += view.memtables().map(|m| m.bytes()).sum::<u64>();
        }
        let trees = self.versions.lock();
        for tree in trees.keyspaces.values() {
            let view = tree.picker_view(&tree.keyspace.limits, SequenceNumber::MAX);
            pending_bytes += tree.keyspace.policy.debt(&view).pending_bytes;
            let scores = tree.keyspace.policy.scores(&view);
            for (index, level) in tree.version.levels.iter().enumerate() {
                let slices = || level.nodes.iter().flat_map(|node| &node.slices);
                let files: BTreeSet<u64> = slices().map(|slice| slice.run.file.id.0).collect();
                let stats = &mut levels[index];
                stats.files += files.len() as u64;
                stats.nodes += level.nodes.len() as u64;
                stats.runs += slices().count() as u64;
                stats.bytes += level.bytes();
                stats.score = stats.score.max(scores.get(index).copied().unwrap_or(0.0));
            }
        }
        let (values, value_groups) = value_stats(&trees);
        let now_ns = self.runtime.now_ns();
        let backed_off = trees.backed_off.iter().map(|work| BackedOffWork {
            keyspace: trees
                .keyspaces
                .get(&work.keyspace)
                .map_or_else(String::new, |tree| tree.keyspace.name.clone()),
            failures: work.failures,
            retry_seconds: work.retry_ns.saturating_sub(now_ns) as f64 / 1e9,
            error: work.error.to_string(),
        });
        let backed_off = backed_off.collect();
        drop(trees);
        let in_runs: u64 = levels.iter().map(|level| level.bytes).sum();
        let live_bytes = in_runs + values.total_bytes - values.dead_bytes - values.retired_bytes;
        let space = self.store.list().map(|files| files.iter().map(|file| file.bytes).sum());
        Stats {
            ledger: self.ledger().snapshot(),
            levels,
            stalls: self.admission.stalls(),
            wal_sync: self.latencies.wal_sync.summary(),
            flush: self.latencies.flush.summary(),
            compaction: self.latencies.compaction.summary(),
            space_bytes: space.unwrap_or(0),
            live_bytes,
            values,
            cleanup: self.cleanup_stats(),
            value_groups,
            memtable_bytes,
            cache_bytes: self.cache.used_bytes(),
            open_runs_bytes: self.read.tables.open_bytes(),
            background_buffer_bytes: self.memory.background_bytes(),
            cache_counters: self.cache_counters(),
            pending_bytes,
            backed_off,
            snapshots: self.snapshots.len(),
            transactions: self.transactions.get(),
            ingestions: self.ingestions.get(),
            sequence: self.snapshots.visible(),
            uptime_seconds: (self.runtime.now_ns() - self.opened_ns) as f64 / 1e9,
            background_error: self.background_error().map(|error| error.to_string()),
        }
    }

    fn cleanup_stats(&self) -> Vec<CleanupStats> {
        let keyspaces = self.keyspaces();
        let cleans =
            keyspaces.iter().filter(|k| k.may_expire() || k.options.compaction_filter.is_some());
        let of = |keyspace: &Arc<KeyspaceState>| {
            let lacks_filter =
                keyspace.options.compaction_filter.is_some() && keyspace.filter.is_none();
            keyspace.cleanup.stats(&keyspace.name, lacks_filter)
        };
        cleans.map(of).collect()
    }

    fn level_work(&self) -> Vec<LevelStats> {
        let used = self.work_stats.levels();
        let levels = (0..).zip(used);
        levels
            .map(|(level, work)| LevelStats {
                level,
                read_bytes_upper: work.read_bytes_upper,
                read_bytes_lower: work.read_bytes_lower,
                write_bytes: work.write_bytes,
                moved_bytes: work.moved_bytes,
                count: work.count,
                seconds: work.busy_ns as f64 / 1e9,
                keys_in: work.entries_in,
                keys_dropped: work.entries_dropped,
                predicted_write_bytes: work.predicted_write_bytes,
                ..LevelStats::default()
            })
            .collect()
    }

    fn cache_counters(&self) -> Vec<CacheCounters> {
        [BlockKind::Data, BlockKind::Index, BlockKind::Filter]
            .into_iter()
            .map(|kind| {
                let counters = self.cache.counters(kind);
                CacheCounters { kind: kind.name(), hits: counters.hits, misses: counters.misses }
            })
            .collect()
    }

    pub(crate) fn files(&self) -> Vec<FileInfo> {
        let trees = self.versions.lock();
        let infos = |tree: &TreeState| {
            let mut places = places(&tree.version);
            let files = tree.version.files().into_iter();
            let info = files.map(|usage| {
                let place = places.remove(&usage.file.id);
                let (level, range) = place.unwrap_or_else(|| (0, KeyRange::all()));
                FileInfo {
                    name: FileName::table(usage.file.id).to_string(),
                    bytes: usage.total_bytes,
                    live_bytes: usage.live_bytes,
                    level,
                    keyspace: tree.keyspace.name.clone(),
                    smallest: range.start.to_vec(),
                    largest: range.end.map(|end| end.to_vec()),
                }
            });
            info.collect::<Vec<_>>()
        };
        trees.keyspaces.values().flat_map(infos).collect()
    }
}

/// For each file, the deepest level that shows it, and the keys that it is shown with.
fn places(version: &Version) -> HashMap<FileId, (u8, KeyRange)> {
    let mut places: HashMap<FileId, (u8, KeyRange)> = HashMap::new();
    for (level, nodes) in (0u8..).zip(&version.levels) {
        for slice in nodes.nodes.iter().flat_map(|node| &node.slices) {
            let new = || (level, slice.range.clone());
            let (deepest, range) = places.entry(slice.run.file.id).or_insert_with(new);
            *deepest = level;
            *range = range.union(&slice.range);
        }
    }
    places
}
