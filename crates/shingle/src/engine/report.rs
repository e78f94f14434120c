//! What the engine reports about itself: statistics and files.

use crate::change_stats::ChangeStats;
use crate::cleanup::CleanupStats;
use crate::engine::Engine;
use crate::engine::changes::chain;
use crate::engine::trees::TreeState;
use crate::keyspace::KeyspaceState;
use crate::stats::{
    BackedOffWork, CacheCounters, FileInfo, KeyspaceStats, LevelShape, LevelStats, Stats,
};
use crate::value_stats::{ValueGroup, ValueStats};
use base::{FileId, KeyRange, SequenceNumber};
use media::FileName;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use table::BlockKind;
use tree::{Group, Level, Segment, Segments, Version};

/// The separated values of a keyspace.
fn value_stats(tree: &TreeState) -> ValueStats {
    let (segments, usage) = (&tree.version.segments, tree.version.segments.usage());
    let cold = segments.iter().filter(|segment| segment.is_in_cold_store);
    ValueStats {
        segments: segments.len() as u64,
        groups: segments.groups().len() as u64,
        total_bytes: usage.total_bytes,
        dead_bytes: usage.dead_bytes,
        retired_bytes: usage.retired_bytes,
        cold_store_bytes: cold.map(|segment| segment.bytes).sum(),
        collected: tree.keyspace.values.collected(),
        times: tree.keyspace.values.times(),
    }
}

/// The levels of a keyspace.
fn level_shapes(tree: &TreeState, scores: &[f64]) -> Vec<LevelShape> {
    let levels = (0..).zip(&tree.version.levels);
    let shape = |(level, nodes): (u8, &Level)| {
        let slices = || nodes.nodes.iter().flat_map(|node| &node.slices);
        let files: BTreeSet<u64> = slices().map(|slice| slice.run.file.id.0).collect();
        LevelShape {
            level,
            files: files.len() as u64,
            nodes: nodes.nodes.len() as u64,
            runs: slices().count() as u64,
            bytes: nodes.bytes(),
            score: scores.get(usize::from(level)).copied().unwrap_or(0.0),
        }
    };
    levels.map(shape).collect()
}

/// A keyspace, but for its memtables.
fn keyspace_stats(tree: &TreeState) -> KeyspaceStats {
    let view = tree.picker_view(&tree.keyspace.limits, SequenceNumber::MAX);
    let policy = &tree.keyspace.policy;
    let (levels, values) = (level_shapes(tree, &policy.scores(&view)), value_stats(tree));
    let in_runs: u64 = levels.iter().map(|level| level.bytes).sum();
    KeyspaceStats {
        name: tree.keyspace.name.clone(),
        live_bytes: in_runs + values.total_bytes - values.dead_bytes - values.retired_bytes,
        pending_bytes: policy.debt(&view).pending_bytes,
        levels,
        values,
        ..KeyspaceStats::default()
    }
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

fn sum_of_values(keyspaces: &[KeyspaceStats]) -> ValueStats {
    let mut sum = ValueStats::default();
    keyspaces.iter().for_each(|keyspace| sum.add(&keyspace.values));
    sum
}

impl Engine {
    pub(crate) fn stats(&self) -> Stats {
        let memtables: HashMap<String, Vec<u64>> = self
            .keyspaces()
            .into_iter()
            .map(|state| {
                (state.name.clone(), state.view().memtables().map(|m| m.bytes()).collect())
            })
            .collect();
        let trees = self.versions.lock();
        let mut keyspaces: Vec<KeyspaceStats> =
            trees.keyspaces.values().map(keyspace_stats).collect();
        let trees_of = trees.keyspaces.values();
        let value_groups =
            trees_of.flat_map(|tree| groups(&tree.keyspace.name, &tree.version.segments)).collect();
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
        let floor = trees.log_floor;
        drop(trees);
        for keyspace in &mut keyspaces {
            // A keyspace that was created after the first look has nothing yet.
            let bytes = memtables.get(&keyspace.name).map_or(&[][..], Vec::as_slice);
            keyspace.memtables = bytes.len() as u64;
            keyspace.memtable_bytes = bytes.iter().sum();
        }
        let changes = self.change_stats(floor);
        let space = self.store.list().map(|files| files.iter().map(|file| file.bytes).sum());
        Stats {
            ledger: self.ledger().snapshot(),
            levels: self.levels_of(&keyspaces),
            write_condition: self.admission.condition(),
            stalls: self.admission.stalls(),
            wal_sync: self.latencies.wal_sync.summary(),
            flush: self.latencies.flush.summary(),
            compaction: self.latencies.compaction.summary(),
            limit_wait_ns: self.scheduler.limit_wait_ns(now_ns),
            space_bytes: space.unwrap_or(0),
            live_bytes: keyspaces.iter().map(|keyspace| keyspace.live_bytes).sum(),
            values: sum_of_values(&keyspaces),
            cleanup: self.cleanup_stats(),
            value_groups,
            memtable_bytes: keyspaces.iter().map(|keyspace| keyspace.memtable_bytes).sum(),
            cache_bytes: self.cache.used_bytes(),
            open_runs_bytes: self.read.tables.open_bytes(),
            background_buffer_bytes: self.memory.background_bytes(),
            cache_counters: self.cache_counters(),
            pending_bytes: keyspaces.iter().map(|keyspace| keyspace.pending_bytes).sum(),
            backed_off,
            snapshots: self.snapshots.len(),
            changes,
            transactions: self.transactions.get(),
            ingestions: self.ingestions.get(),
            sequence: self.snapshots.visible(),
            uptime_seconds: (self.runtime.now_ns() - self.opened_ns) as f64 / 1e9,
            background_error: self.background_error().map(|error| error.to_string()),
            keyspaces,
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

    /// The levels of all keyspaces together, with the work since the database was opened.
    fn levels_of(&self, keyspaces: &[KeyspaceStats]) -> Vec<LevelStats> {
        let mut levels = self.level_work();
        for shape in keyspaces.iter().flat_map(|keyspace| &keyspace.levels) {
            levels[usize::from(shape.level)].shape.add(shape);
        }
        levels
    }

    /// A handle that only reads finds the logs in the store; those that it cannot read do not
    /// count.
    fn change_stats(&self, floor: FileId) -> ChangeStats {
        match &self.changes {
            Some(changes) => changes.stats(),
            None if self.read_only => {
                chain::stats(&*self.store, self.database, floor).unwrap_or_default()
            }
            None => ChangeStats::default(),
        }
    }

    fn level_work(&self) -> Vec<LevelStats> {
        let used = self.work_stats.levels();
        let levels = (0..).zip(used);
        levels
            .map(|(level, work)| LevelStats {
                shape: LevelShape { level, ..LevelShape::default() },
                read_bytes_upper: work.read_bytes_upper,
                read_bytes_lower: work.read_bytes_lower,
                write_bytes: work.write_bytes,
                moved_bytes: work.moved_bytes,
                count: work.count,
                seconds: work.busy_ns as f64 / 1e9,
                keys_in: work.entries_in,
                keys_dropped: work.entries_dropped,
                predicted_write_bytes: work.predicted_write_bytes,
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
