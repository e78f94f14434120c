//! Read-ahead of values in scans.
//!
//! The runs name values that lie anywhere in the segments, so that a scan of them is one random
//! read after another. A *scout* walks the same entries some steps ahead of the cursor and tells
//! the store which records will be read: a store that works in parallel has several under way, and
//! the system merges neighbours. It begins after a few values in a row, and is never further ahead
//! than the scan has come, so that short scans pay little for it.
//!
//! What the scout says is advice: it follows no snapshot's finer points (range tombstones,
//! operands), and the cursor reads and verifies each record itself.

use super::source::Source;
use super::values::ValueFiles;
use base::key::{EntryKind, SequenceNumber, split_internal_key, trailer_kind, trailer_sequence};
use base::{KeyRange, Result};
use table::{EntryIter, MergingIter};
use values::ValuePointer;

/// Values in a row before the scout begins.
const VALUES_BEFORE: u32 = 4;
/// Its lead at the most, in values: WiscKey reads with 32 threads.
const LEAD_MAX: usize = 32;
/// Bytes that may be on their way.
const LEAD_BYTES_MAX: u64 = 4 << 20;

/// How a cursor's values are read ahead.
#[derive(Default)]
pub(super) struct ReadAhead {
    /// Values that were read one after another.
    in_a_row: u32,
    scout: Option<Prefetcher>,
}

struct Prefetcher {
    inputs: MergingIter<Source>,
    /// Records that the cursor has still to read, and their bytes.
    ahead: usize,
    ahead_bytes: u64,
    key: Vec<u8>,
}

impl ReadAhead {
    /// The cursor jumps, or turns round.
    pub(super) fn reset(&mut self) {
        *self = ReadAhead::default();
    }

    /// The cursor is about to read the record that `pointer` names, for the entry `internal_key`.
    /// `sources` makes the scout's inputs, once.
    pub(super) fn advance(
        &mut self,
        internal_key: &[u8],
        pointer: &[u8],
        scene: &Scene<'_>,
        sources: impl FnOnce() -> Result<Vec<Source>>,
    ) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        // What stops the scout stops the cursor too, in its turn.
        if self.in_a_row >= VALUES_BEFORE
            && self.send_ahead(internal_key, pointer, scene, sources).is_err()
        {
            self.reset();
        }
    }

    fn send_ahead(
        &mut self,
        internal_key: &[u8],
        pointer: &[u8],
        scene: &Scene<'_>,
        sources: impl FnOnce() -> Result<Vec<Source>>,
    ) -> Result<()> {
        let scout = match &mut self.scout {
            Some(scout) => scout,
            none => none.insert(Prefetcher::begin(internal_key, sources()?)?),
        };
        scout.pass(ValuePointer::decode(pointer)?.record_bytes.into());
        scout.run(scene, LEAD_MAX.min(self.in_a_row as usize))
    }
}

/// What a scout works in.
pub(super) struct Scene<'a> {
    pub files: &'a ValueFiles,
    pub snapshot: SequenceNumber,
    pub bounds: &'a KeyRange,
}

impl Prefetcher {
    /// Stands behind the entry that the cursor stands on.
    fn begin(internal_key: &[u8], sources: Vec<Source>) -> Result<Prefetcher> {
        let mut inputs = MergingIter::new(sources);
        inputs.seek(internal_key)?;
        let user_key = split_internal_key(internal_key).map_or(internal_key, |(key, _)| key);
        let key = user_key.to_vec();
        Ok(Prefetcher { inputs, ahead: 0, ahead_bytes: 0, key })
    }

    /// The cursor reads a record.
    fn pass(&mut self, record_bytes: u64) {
        self.ahead = self.ahead.saturating_sub(1);
        self.ahead_bytes = self.ahead_bytes.saturating_sub(record_bytes);
    }

    /// Restores the lead once half of it is gone: requests of several records merge better.
    fn run(&mut self, scene: &Scene<'_>, lead: usize) -> Result<()> {
        if self.ahead > lead / 2 {
            return Ok(());
        }
        while self.inputs.valid() && self.ahead < lead && self.ahead_bytes < LEAD_BYTES_MAX {
            let Some((user_key, trailer)) = split_internal_key(self.inputs.key()) else { break };
            if !scene.bounds.is_before_end(user_key) {
                break;
            }
            if trailer_sequence(trailer) <= scene.snapshot && user_key != self.key {
                self.key.clear();
                self.key.extend_from_slice(user_key);
                if trailer_kind(trailer) == Some(EntryKind::Pointer) {
                    let pointer = self.inputs.value();
                    self.ahead_bytes += u64::from(ValuePointer::decode(pointer)?.record_bytes);
                    self.ahead += 1;
                    scene.files.prefetch(pointer);
                }
            }
            self.inputs.next()?;
        }
        Ok(())
    }
}
