//! A trace as the simulated stores take it: memtable after memtable, each with the reads that come
//! before its flush.
//!
//! A memtable ends where the whole trace, not the sample, has written its bytes: so the sample
//! decides what a memtable holds and not how long it lasts. The place of a key is its rank among
//! the sample's keys, spread over all numbers: keys that come in order, or cluster, do so here.

use super::operation::Kind;
use super::sample::{Bounds, Sample};
use super::summary::Summary;
use std::collections::BTreeMap;
use tree::simulate::{Entry, spread};

/// Bytes of a pointer, and of what stands in front of a record in a segment.
const POINTER_BYTES: f64 = 12.0;
const RECORD_HEADER_BYTES: f64 = 12.0;

/// How a trace is turned into a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    /// Bytes of a memtable.
    pub memtable_bytes: u64,
    /// Values of this many bytes and more are separated, in layouts with key-value separation.
    pub value_threshold_bytes: u64,
    /// As if there were this many times the keys and operations.
    pub grow: u64,
    /// What the simulated stores work on.
    pub bounds: Bounds,
}

/// What happens until a memtable is flushed, and the flush.
#[derive(Clone, Debug, Default)]
pub struct Epoch {
    /// Keys that are read and are not in the memtable, by place.
    pub gets: Vec<u32>,
    /// Reads that the memtable answers.
    pub memtable_gets: u64,
    /// Places where scans begin.
    pub scans: Vec<u32>,
    /// What is flushed, ascending by key.
    pub entries: Vec<Entry>,
    /// The keys' numbers, in the same order.
    pub keys: Vec<u32>,
    /// Numbers of the keys of puts that the memtable's newer writes superseded.
    pub overwritten: Vec<u32>,
}

/// A workload. Bytes are those of the trace's records, not of simulated ones.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Memtables in their order.
    pub epochs: Vec<Epoch>,
    /// Entries that were there before: place and number, in the order that they are loaded in.
    pub old: Vec<(u32, u32)>,
    /// Keys of the sample.
    pub keys: u32,
    /// Records that a simulated one stands for.
    pub scale: u64,
    /// Bytes of a memtable.
    pub memtable_bytes: u64,
    /// Mean bytes of a write, key and value.
    pub entry_bytes: f64,
    /// The same where large values leave a pointer.
    pub pointer_entry_bytes: f64,
    /// Mean bytes of a record in a segment of values.
    pub segment_record_bytes: f64,
    /// By the key's number: its values are separated, where the layout does that.
    pub is_apart: Vec<bool>,
    /// The share of gets that read a separated value.
    pub apart_get_share: f64,
    /// Of all keys at the end, by number: those that are there.
    pub live: Vec<bool>,
    /// Bytes that the user writes.
    pub write_bytes: u64,
    /// Gets.
    pub gets: u64,
    /// Scans.
    pub scans: u64,
    /// Records that scans read.
    pub scan_records: u64,
    /// Reads, of all operations.
    pub read_share: f64,
}

impl Workload {
    /// Of a trace.
    pub fn new(sample: &Sample, summary: &Summary, scope: &Scope) -> Workload {
        let sample = sample.within(scope.bounds);
        let of = |kind: Kind| {
            let counts = summary.operations_by_kind.iter();
            counts.filter(|(name, _)| *name == kind.name()).map(|(_, count)| count).sum::<u64>()
        };
        let writes = of(Kind::Put) + of(Kind::Update) + of(Kind::Delete);
        let grow = scope.grow.max(1);
        let entry_bytes = match writes {
            0 => summary.key_bytes.mean,
            _ => summary.write_bytes as f64 / writes as f64,
        };
        let is_apart = apart(&sample, summary, scope.value_threshold_bytes);
        let sizes = Sizes::new(&sample, &is_apart);
        let places = places(&sample);
        let place = |key: u32| places.get(key as usize).copied().unwrap_or_default();
        let numbers = 0..sample.keys.len() as u32;
        let mut old: Vec<u32> = (numbers.clone())
            .filter(|&key| sample.keys.get(key as usize).is_some_and(|key| key.is_old))
            .collect();
        old.sort_by_key(|&key| sample.keys.get(key as usize).map(|key| key.hash));
        Workload {
            epochs: epochs(&sample, &places, old.len() as u64 + 1, scope),
            old: old.into_iter().map(|key| (place(key), key)).collect(),
            keys: numbers.end,
            scale: sample.keys_per_key().saturating_mul(grow),
            memtable_bytes: scope.memtable_bytes,
            entry_bytes: entry_bytes.max(1.0),
            pointer_entry_bytes: (entry_bytes - sizes.apart_bytes_per_write).max(1.0),
            segment_record_bytes: summary.key_bytes.mean
                + sizes.apart_value_bytes
                + RECORD_HEADER_BYTES,
            apart_get_share: sizes.apart_get_share,
            live: live(&sample),
            is_apart,
            write_bytes: summary.write_bytes.saturating_mul(grow),
            gets: of(Kind::Get).saturating_mul(grow),
            scans: of(Kind::Scan).saturating_mul(grow),
            scan_records: summary.scan_records.saturating_mul(grow),
            read_share: summary.read_share,
        }
    }

    /// Bytes of the records that are there at the end, as the user sees them.
    pub fn live_bytes(&self) -> f64 {
        let live = self.live.iter().filter(|is_live| **is_live).count();
        live as f64 * self.entry_bytes * self.scale as f64
    }

    /// Memtables that the trace fills.
    pub fn memtables(&self) -> f64 {
        self.write_bytes as f64 / self.memtable_bytes.max(1) as f64
    }

    /// Some values are large enough to be separated.
    pub fn has_large_values(&self) -> bool {
        self.is_apart.contains(&true)
    }
}

/// By the key's number: its largest value reaches the threshold; where its values are not known,
/// the median of all does.
fn apart(sample: &Sample, summary: &Summary, threshold_bytes: u64) -> Vec<bool> {
    let mut largest = vec![0u64; sample.keys.len()];
    for event in &sample.events {
        if let Some(known) = largest.get_mut(event.key as usize) {
            *known = (*known).max(u64::from(event.value_bytes));
        }
    }
    let or_median = |bytes: u64| if bytes == 0 { summary.value_bytes.p50 } else { bytes };
    largest.into_iter().map(|bytes| or_median(bytes) >= threshold_bytes.max(1)).collect()
}

/// The bytes of separated values.
struct Sizes {
    /// Bytes that a write does not bring into the tree, on average over all writes.
    apart_bytes_per_write: f64,
    /// Mean bytes of a separated value.
    apart_value_bytes: f64,
    apart_get_share: f64,
}

impl Sizes {
    fn new(sample: &Sample, is_apart: &[bool]) -> Sizes {
        let (mut writes, mut apart, mut bytes) = (0u64, 0u64, 0u64);
        let (mut gets, mut apart_gets) = (0u64, 0u64);
        for event in &sample.events {
            let is_apart = is_apart.get(event.key as usize) == Some(&true);
            match event.kind {
                Kind::Put | Kind::Update if is_apart => {
                    writes += 1;
                    apart += 1;
                    bytes += u64::from(event.value_bytes);
                }
                Kind::Put | Kind::Update | Kind::Delete => writes += 1,
                Kind::Get => {
                    gets += 1;
                    apart_gets += u64::from(is_apart);
                }
                Kind::Scan | Kind::DeleteRange => {}
            }
        }
        let mean = |sum: f64, count: u64| sum / count.max(1) as f64;
        let saved_bytes = bytes as f64 - POINTER_BYTES * apart as f64;
        Sizes {
            apart_bytes_per_write: mean(saved_bytes, writes),
            apart_value_bytes: mean(bytes as f64, apart),
            apart_get_share: mean(apart_gets as f64, gets),
        }
    }
}

/// By the key's number: its rank among the keys, spread over all numbers.
fn places(sample: &Sample) -> Vec<u32> {
    let mut order: Vec<u32> = (0..sample.keys.len() as u32).collect();
    let of = |number: &u32| sample.keys.get(*number as usize).map(|key| (&key.start, key.hash));
    order.sort_by(|a, b| of(a).cmp(&of(b)));
    let mut places = vec![0; order.len()];
    for (rank, key) in (0u32..).zip(&order) {
        if let Some(place) = places.get_mut(*key as usize) {
            *place = spread(rank, order.len() as u64);
        }
    }
    places
}

/// By the key's number: it is there at the end.
fn live(sample: &Sample) -> Vec<bool> {
    let mut live: Vec<bool> = sample.keys.iter().map(|key| key.is_old).collect();
    for event in sample.events.iter().filter(|event| event.kind.is_write()) {
        if let Some(is_live) = live.get_mut(event.key as usize) {
            *is_live = event.kind != Kind::Delete;
        }
    }
    live
}

/// `sequence`: that of the first operation; what was there before has smaller ones.
fn epochs(sample: &Sample, places: &[u32], sequence: u64, scope: &Scope) -> Vec<Epoch> {
    let mut epochs = Vec::new();
    let mut now = Epoch::default();
    let mut memtable: BTreeMap<u32, (u32, Entry)> = BTreeMap::new();
    let mut number = 0;
    for (sequence, event) in (sequence..).zip(&sample.events) {
        let written = event.written_before_bytes.saturating_mul(scope.grow.max(1));
        let its_number = written / scope.memtable_bytes.max(1);
        if its_number != number {
            number = its_number;
            end(&mut now, &mut memtable, &mut epochs);
        }
        let Some(&key) = places.get(event.key as usize) else { continue };
        match event.kind {
            Kind::Get if memtable.contains_key(&key) => now.memtable_gets += 1,
            Kind::Get => now.gets.push(key),
            Kind::Scan => now.scans.push(key),
            Kind::DeleteRange => {}
            Kind::Put | Kind::Update | Kind::Delete => {
                let is_delete = event.kind == Kind::Delete;
                let before = memtable.insert(key, (event.key, Entry { key, sequence, is_delete }));
                let superseded = before.filter(|(_, entry)| !entry.is_delete);
                now.overwritten.extend(superseded.map(|(number, _)| number));
            }
        }
    }
    end(&mut now, &mut memtable, &mut epochs);
    epochs
}

/// The memtable is flushed, and the next one begins.
fn end(now: &mut Epoch, memtable: &mut BTreeMap<u32, (u32, Entry)>, epochs: &mut Vec<Epoch>) {
    for (key, entry) in std::mem::take(memtable).into_values() {
        now.keys.push(key);
        now.entries.push(entry);
    }
    epochs.push(std::mem::take(now));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Collector, Operation};

    fn workload(operations: &[Operation<'_>], memtable_bytes: u64) -> Workload {
        let mut collector = Collector::new(Bounds::default()).unwrap();
        operations.iter().for_each(|operation| collector.take(operation));
        let scope = Scope {
            memtable_bytes,
            value_threshold_bytes: 100,
            grow: 1,
            bounds: Bounds::default(),
        };
        Workload::new(&collector.sample, &collector.summary(), &scope)
    }

    #[test]
    fn memtables_end_by_bytes_and_hold_the_newest_entry_of_each_key() {
        let put = |key: &'static [u8]| Operation::new(None, Kind::Put, key).value(9);
        let get = |key: &'static [u8]| Operation::new(None, Kind::Get, key);
        let first = [put(b"b"), put(b"a"), put(b"b"), get(b"b"), get(b"z"), put(b"c")];
        let operations = [&first[..], &[get(b"a"), put(b"d")]].concat();
        let workload = workload(&operations, 35);
        let sizes: Vec<_> = workload.epochs.iter().map(|epoch| epoch.entries.len()).collect();
        assert_eq!(sizes, [3, 1]);
        let first = &workload.epochs[0];
        assert!(first.entries.is_sorted_by_key(|entry| entry.key));
        // The third operation, behind the one key that was there before.
        assert_eq!((first.entries[1].sequence, first.keys[1]), (4, 0));
        assert_eq!((first.memtable_gets, first.gets.len()), (1, 1));
        assert_eq!(workload.epochs[1].gets, [first.entries[0].key]);
        // `z` was read and never written: it was there before.
        assert_eq!((workload.old.len(), workload.live_bytes()), (1, 5.0 * 10.0));
        assert!(!workload.has_large_values());
    }

    #[test]
    fn large_values_leave_a_pointer() {
        let put = |key: &'static [u8], bytes| Operation::new(None, Kind::Put, key).value(bytes);
        let read = Operation::new(None, Kind::Get, b"b");
        let workload = workload(&[put(b"a", 49), put(b"b", 149), read], 1000);
        assert_eq!(workload.is_apart, [false, true]);
        assert_eq!((workload.entry_bytes, workload.apart_get_share), (100.0, 1.0));
        let expected = (50.0 + 1.0 + POINTER_BYTES) / 2.0;
        assert!((workload.pointer_entry_bytes - expected).abs() < 1e-9);
        assert_eq!(workload.segment_record_bytes, 1.0 + 149.0 + RECORD_HEADER_BYTES);
    }
}
