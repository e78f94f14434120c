//! A window: records that GC looks up together.
//!
//! Index look-ups cost most of GC when they are made one by one, in the order of a segment's
//! records: each reads a block of its own. In key order, neighbours share blocks. So GC copies
//! records of its segments to memory, sorts them by key, looks them up batch by batch, and moves
//! live ones in that order. A larger window shares more blocks.
//!
//! Moved values lie in key order, so a later scan finds neighbours beside each other.

use super::record::{Held, RecordAt};
use crate::read::multi_get::Seen;
use base::SequenceNumber;
use base::page_memory::PageBuffer;
use std::ops::Range;
use values::ValuePointer;

/// Records that are looked up together.
pub(super) struct Window {
    /// Keys and values.
    bytes: PageBuffer,
    filled: usize,
    records: Vec<WindowRecord>,
    /// How far the records are looked up, and moved.
    pub looked_up: usize,
    pub moved: usize,
    /// No more are added.
    pub is_sorted: bool,
}

/// A record of a window.
pub(super) struct WindowRecord {
    begin: usize,
    key_bytes: u32,
    value_bytes: u32,
    pub sequence: SequenceNumber,
    pub pointer: ValuePointer,
    /// The key has only this record among those that GC reads.
    pub is_cold: bool,
    /// What the tree holds for the key, once it is looked up.
    pub held: Held,
    /// Where a pointer to the record was found, if that was in a run.
    pub seen: Option<Seen>,
}

impl Window {
    /// An empty window for records of at most `bytes`.
    pub(super) fn new(bytes: usize) -> Window {
        Window {
            bytes: PageBuffer::zeroed(bytes),
            filled: 0,
            records: Vec::new(),
            looked_up: 0,
            moved: 0,
            is_sorted: false,
        }
    }

    /// Memory that it uses.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.bytes.len() + self.records.capacity() * size_of::<WindowRecord>()) as u64
    }

    /// Copies a record and its value. `false`: there is no space for it.
    pub(super) fn push(&mut self, record: &RecordAt<'_>, value: &[u8], is_cold: bool) -> bool {
        let begin = self.filled;
        let end = begin + record.key.len() + value.len();
        let Some(space) = self.bytes.get_mut(begin..end) else { return false };
        let (key, rest) = space.split_at_mut(record.key.len());
        key.copy_from_slice(record.key);
        rest.copy_from_slice(value);
        self.records.push(WindowRecord {
            begin,
            key_bytes: record.key.len() as u32,
            value_bytes: value.len() as u32,
            sequence: record.sequence,
            pointer: record.pointer,
            is_cold,
            held: Held::Otherwise,
            seen: None,
        });
        self.filled = end;
        true
    }

    /// Sorts the records by key. Of the records of one key, all but the newest are dropped: they
    /// were superseded. Where two are equally new, one is a copy, and both stay.
    pub(super) fn sort(&mut self) {
        let bytes = &self.bytes;
        let key = |record: &WindowRecord| &bytes[record.key()];
        self.records.sort_unstable_by(|a, b| {
            key(a).cmp(key(b)).then(b.sequence.cmp(&a.sequence)).then(a.pointer.cmp(&b.pointer))
        });
        self.records
            .dedup_by(|later, kept| key(later) == key(kept) && later.sequence < kept.sequence);
        self.is_sorted = true;
    }

    /// The records, in the order of their keys once they are sorted.
    pub(super) fn records(&self) -> &[WindowRecord] {
        &self.records
    }

    /// What the tree holds for the keys of the records that begin with the first one that was not
    /// looked up.
    pub(super) fn note_held(&mut self, all: Vec<(Held, Option<Seen>)>) {
        for (held, seen) in all {
            let record = &mut self.records[self.looked_up];
            (record.held, record.seen) = (held, seen);
            self.looked_up += 1;
        }
    }

    /// The key of one of its records.
    pub(super) fn key(&self, record: &WindowRecord) -> &[u8] {
        &self.bytes[record.key()]
    }

    /// The value of one of its records.
    pub(super) fn value(&self, record: &WindowRecord) -> &[u8] {
        let begin = record.key().end;
        &self.bytes[begin..begin + record.value_bytes as usize]
    }
}

impl WindowRecord {
    fn key(&self) -> Range<usize> {
        self.begin..self.begin + self.key_bytes as usize
    }
}
