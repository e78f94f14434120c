//! A workload on the simulated stores: the tree under a scheme, and a value layout beside it.
//!
//! Garbage among values is what moves of the tree found, as in the engine: under a scheme that
//! seldom merges, garbage collection does not know of many dead values.

use super::workload::{Epoch, Workload};
use base::{Error, Result};
use std::collections::HashMap;
use tree::policy::{Descriptor, Limits};
use tree::simulate::{Entry, Store};
use tree::version::LEVEL0_NODE;
use values::ValueLimits;
use values::simulate::Simulation;

/// More moves than any policy needs after one flush.
const MOVES_MAX: u32 = 100_000;
/// Maximum bytes that a simulated record stands for.
const RECORD_BYTES_MAX: f64 = (1u64 << 30) as f64;
/// Simulated records that a segment should hold.
const RECORDS_IN_SEGMENT: u64 = 16;

/// What a tree cost, without what was there before. Bytes are those of the whole trace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TreeCost {
    /// Bytes that flushes wrote.
    pub flushed_bytes: f64,
    /// Bytes that moves wrote.
    pub moved_bytes: f64,
    /// Bytes of all files at the end.
    pub file_bytes: f64,
    /// Files that were begun, a set of tables being one.
    pub files: f64,
    /// Runs asked for a get, on average, filters aside; one that the memtable answers asks none.
    pub runs_per_get: f64,
    /// Gets that found their key in a run, of all gets.
    pub found_share: f64,
    /// Runs in which a scan begins.
    pub runs_per_scan: f64,
}

impl TreeCost {
    /// Bytes written for each that was flushed.
    pub fn per_flushed(&self) -> f64 {
        (self.flushed_bytes + self.moved_bytes) / self.flushed_bytes.max(1.0)
    }
}

/// What a value layout cost. Bytes are those of the whole trace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ValueCost {
    /// Bytes that went to segments, those of garbage collection included.
    pub written_bytes: f64,
    /// Values that garbage collection moved: each writes a pointer anew.
    pub moved_records: f64,
    /// Bytes of all segments at the end.
    pub segment_bytes: f64,
}

/// What reads asked.
#[derive(Default)]
struct Asked {
    gets: u64,
    runs: u64,
    found: u64,
    scans: u64,
    scan_runs: u64,
}

/// The workload on a tree, with its values in it or as `layout` places them.
pub fn replay(
    workload: &Workload,
    scheme: &Descriptor,
    limits: Limits,
    layout: &values::Descriptor,
) -> Result<(TreeCost, ValueCost)> {
    let mut apart = Separated::new(workload, layout)?;
    let entry_bytes = match apart {
        Some(_) => workload.pointer_entry_bytes,
        None => workload.entry_bytes,
    };
    let simulated_bytes = simulated_bytes(entry_bytes, workload.scale)?;
    let table_bytes_max = limits.table_bytes_max;
    let mut store = Store::new((scheme.make)(), limits, simulated_bytes);
    store.observed.reads_share = Some(workload.read_share);
    store.dropped = apart.as_ref().map(|_| Vec::new());
    load(&mut store, workload, simulated_bytes)?;
    let written = |store: &Store| store.written_bytes.iter().sum::<u64>();
    let (flushed_before, moved_before) = (store.flushed_bytes, written(&store));
    let mut asked = Asked::default();
    for epoch in &workload.epochs {
        asked.read(&store, epoch);
        if let Some(apart) = &mut apart {
            apart.write(epoch);
        }
        flush(&mut store, &epoch.entries)?;
        if let (Some(apart), Some(dropped)) = (&mut apart, &mut store.dropped) {
            apart.find(dropped);
        }
    }
    let flushed_bytes = (store.flushed_bytes - flushed_before) as f64;
    let moved_bytes = (written(&store) - moved_before) as f64;
    let tables_in_set = store.sets.1.max(1) as f64 / store.sets.0.max(1) as f64;
    let tree = TreeCost {
        flushed_bytes,
        moved_bytes,
        file_bytes: store.version.file_bytes() as f64,
        files: workload.epochs.len() as f64 + moved_bytes / table_bytes_max as f64 / tables_in_set,
        runs_per_get: asked.runs as f64 / asked.gets.max(1) as f64,
        found_share: asked.found as f64 / asked.gets.max(1) as f64,
        runs_per_scan: asked.scan_runs as f64 / asked.scans.max(1) as f64,
    };
    Ok((tree, apart.map_or_else(ValueCost::default, |apart| apart.cost(workload.scale))))
}

impl Asked {
    /// The reads before a memtable's flush.
    fn read(&mut self, store: &Store, epoch: &Epoch) {
        self.gets += epoch.memtable_gets;
        epoch.gets.iter().for_each(|&key| self.get(store, key));
        self.scans += epoch.scans.len() as u64;
        let scan_runs = epoch.scans.iter().map(|&key| store.slices_of(key) as u64);
        self.scan_runs += scan_runs.sum::<u64>();
    }

    fn get(&mut self, store: &Store, key: u32) {
        let (runs, is_found) = store.asked(key);
        self.gets += 1;
        self.runs += runs as u64;
        self.found += u64::from(is_found);
    }
}

/// What was there before, in the order of hashes.
fn load(store: &mut Store, workload: &Workload, simulated_bytes: u64) -> Result<()> {
    let entries = (workload.memtable_bytes / simulated_bytes).max(1) as usize;
    let mut sequences = 1u64..;
    for chunk in workload.old.chunks(entries) {
        let numbered = chunk.iter().zip(sequences.by_ref());
        let entry = |(&(key, _), sequence)| Entry { key, sequence, is_delete: false };
        let mut memtable: Vec<Entry> = numbered.map(entry).collect();
        memtable.sort_by_key(|entry| entry.key);
        flush(store, &memtable)?;
    }
    // What was there before the trace had time, and readers that paid for level 0.
    store.observed.is_idle = true;
    store.observed.seeks.insert((0, LEVEL0_NODE), u64::MAX);
    let settled = settle(store);
    store.observed.seeks.clear();
    store.observed.is_idle = false;
    settled
}

fn flush(store: &mut Store, entries: &[Entry]) -> Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    store.flush(entries)?;
    settle(store)
}

fn settle(store: &mut Store) -> Result<()> {
    for _ in 0..MOVES_MAX {
        if !store.step()? {
            return Ok(());
        }
    }
    Err(Error::invalid("the policy does not settle: it always has another move"))
}

/// The workload's large values, beside the tree of their pointers.
struct Separated<'a> {
    store: Simulation,
    is_apart: &'a [bool],
    /// Numbers of keys by their places in the tree.
    numbers: HashMap<u32, u32>,
    record_bytes: u64,
    writes_at_commit: bool,
    /// Bytes of the user, and all, that were there before.
    before: (u64, u64),
}

impl Separated<'_> {
    /// Nothing, if values stay in the tree. What was there before is loaded.
    fn new<'a>(
        workload: &'a Workload,
        layout: &values::Descriptor,
    ) -> Result<Option<Separated<'a>>> {
        let layout = (layout.make)();
        if !layout.separates() {
            return Ok(None);
        }
        let record_bytes = simulated_bytes(workload.segment_record_bytes, workload.scale)?;
        let of_epoch = |epoch: &Epoch| -> Vec<(u32, u32)> {
            epoch.entries.iter().map(|entry| entry.key).zip(epoch.keys.iter().copied()).collect()
        };
        let written = workload.epochs.iter().flat_map(of_epoch);
        let mut apart = Separated {
            is_apart: &workload.is_apart,
            numbers: workload.old.iter().copied().chain(written).collect(),
            record_bytes,
            writes_at_commit: layout.writes_at_commit(),
            store: Simulation::new(
                layout,
                value_limits(record_bytes),
                workload.keys,
                record_bytes,
                0,
            ),
            before: (0, 0),
        };
        for ((_, key), sequence) in workload.old.iter().zip(1..) {
            if apart.is_apart(*key) {
                apart.store.put_version(*key, sequence);
            }
        }
        apart.before = (apart.store.user_bytes, apart.store.written_bytes);
        Ok(Some(apart))
    }

    fn is_apart(&self, key: u32) -> bool {
        self.is_apart.get(key as usize) == Some(&true)
    }

    /// A memtable's values. Where a commit writes them, those too that no flush comes to see.
    fn write(&mut self, epoch: &Epoch) {
        if self.writes_at_commit {
            let seen_by_no_flush = epoch.overwritten.iter().filter(|key| self.is_apart(**key));
            let keys: Vec<u32> = seen_by_no_flush.copied().collect();
            keys.into_iter().for_each(|key| self.store.put_dead(key));
        }
        for (&key, entry) in epoch.keys.iter().zip(&epoch.entries) {
            if !self.is_apart(key) {
                continue;
            }
            if entry.is_delete {
                self.store.delete_version(key);
            } else {
                self.store.put_version(key, entry.sequence);
            }
        }
    }

    /// What moves dropped is garbage that is known.
    fn find(&mut self, dropped: &mut Vec<Entry>) {
        for entry in dropped.drain(..) {
            if let Some(&key) = self.numbers.get(&entry.key) {
                self.store.found(key, entry.sequence);
            }
        }
        self.store.collect_what_is_due();
    }

    fn cost(self, scale: u64) -> ValueCost {
        let (user, written) = self.before;
        let (user, written) = (self.store.user_bytes - user, self.store.written_bytes - written);
        let moved = written.saturating_sub(user) as f64 / self.record_bytes as f64;
        ValueCost {
            written_bytes: written as f64,
            moved_records: moved * scale as f64,
            segment_bytes: self.store.usage().total_bytes as f64,
        }
    }
}

/// Bytes of a simulated record.
fn simulated_bytes(record_bytes: f64, scale: u64) -> Result<u64> {
    let bytes = (record_bytes * scale as f64).round().max(1.0);
    if bytes > RECORD_BYTES_MAX {
        return Err(Error::invalid(format!(
            "one simulated record would stand for {scale} records of {record_bytes:.0} bytes, more \
             than 1 GiB; let the workload grow less, or the sample be larger"
        )));
    }
    Ok(bytes as u64)
}

/// The engine's sizes; larger ones where a simulated record would not fit.
fn value_limits(record_bytes: u64) -> ValueLimits {
    let limits = ValueLimits::default();
    let times = (record_bytes * RECORDS_IN_SEGMENT).div_ceil(limits.log_segment_bytes).max(1);
    ValueLimits {
        segment_bytes: limits.segment_bytes * times,
        log_segment_bytes: limits.log_segment_bytes * times,
        ..limits
    }
}
