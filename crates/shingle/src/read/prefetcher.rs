//! Prefetching of values in scans.
//!
//! The runs name values anywhere in the segments, so a scan of them would make one random read
//! after another. A *prefetcher* walks the same entries some steps ahead of the cursor and tells
//! the store which records will be read. A parallel store then has several reads in progress, and
//! the system merges adjacent ones. The prefetcher begins after a few values in a row, with the
//! first that the store does not have in memory: a scan of values in memory pays nothing for it.
//! Its lead is never longer than the scan so far, so short scans pay little for it.
//!
//! The prefetcher's output is advice: it ignores range tombstones and operands, and the cursor
//! reads and verifies each record itself.

use super::source::Source;
use super::values::ValueFiles;
use base::expiry::EXPIRY_BYTES;
use base::key::{EntryKind, SequenceNumber, split_internal_key, trailer_kind, trailer_sequence};
use base::{KeyRange, Result};
use table::{EntryIter, MergingIter};
use values::ValuePointer;

/// Values in a row before the prefetcher begins.
const VALUES_BEFORE: u32 = 4;
/// Maximum lead, in values: WiscKey reads with 32 threads.
const LEAD_MAX: usize = 32;
/// Maximum bytes of prefetched records that are not read yet.
const LEAD_BYTES_MAX: u64 = 4 << 20;

/// How a cursor prefetches values.
#[derive(Default)]
pub(super) struct ReadAhead {
    /// Values that were read one after another.
    in_a_row: u32,
    prefetcher: Option<Prefetcher>,
}

struct Prefetcher {
    inputs: MergingIter<Source>,
    /// Records that the cursor has not read yet, and their bytes.
    ahead: usize,
    ahead_bytes: u64,
    key: Vec<u8>,
}

impl ReadAhead {
    /// The cursor jumps, or changes direction.
    pub(super) fn reset(&mut self) {
        *self = ReadAhead::default();
    }

    /// Values are being prefetched.
    pub(super) fn is_ahead(&self) -> bool {
        self.prefetcher.is_some()
    }

    /// The cursor read a value that was in memory.
    pub(super) fn pass(&mut self) {
        self.in_a_row = self.in_a_row.saturating_add(1);
    }

    /// The cursor is about to read the record that `pointer` names, for the entry `internal_key`.
    /// `sources` makes the prefetcher's inputs, once.
    pub(super) fn advance(
        &mut self,
        internal_key: &[u8],
        pointer: &[u8],
        scene: &Scene<'_>,
        sources: impl FnOnce() -> Result<Vec<Source>>,
    ) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        // An error that stops the prefetcher stops the cursor too, when the cursor comes there.
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
        let prefetcher = match &mut self.prefetcher {
            Some(prefetcher) => prefetcher,
            none => none.insert(Prefetcher::begin(internal_key, sources()?)?),
        };
        prefetcher.pass(ValuePointer::decode(pointer)?.record_bytes.into());
        prefetcher.run(scene, LEAD_MAX.min(self.in_a_row as usize))
    }
}

/// The fixed inputs of a prefetcher.
pub(super) struct Scene<'a> {
    pub files: &'a ValueFiles,
    pub snapshot: SequenceNumber,
    pub bounds: &'a KeyRange,
}

impl Prefetcher {
    /// A prefetcher positioned after the cursor's entry.
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

    /// Restores the lead once half of it is used: requests for several records merge better.
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
                let stored = self.inputs.value();
                let pointer = match trailer_kind(trailer) {
                    Some(EntryKind::Pointer) => Some(stored),
                    Some(EntryKind::ExpiringPointer) => stored.get(EXPIRY_BYTES..),
                    _ => None,
                };
                if let Some(pointer) = pointer {
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
