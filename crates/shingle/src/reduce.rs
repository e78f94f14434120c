//! The merge loop's rule: which entries of a merged stream are still needed.
//!
//! Entries arrive in internal-key order, newest version of a key first. The live snapshots cut the
//! sequence numbers into *stripes*; of each key, a stripe needs only its newest version.
//!
//! Invariants:
//! - Whatever a snapshot, or a later reader, saw before, it sees after.
//! - A tombstone is dropped only from the oldest stripe, and only when no older version of its key
//!   can exist outside the inputs ([`OlderData`]).
//! - A value that has expired is a tombstone from then on, for snapshots too. The job's time is one
//!   for all entries.
//! - A filter is asked only about the newest version of a key, and only if no snapshot sees it.
//! - Operands are combined only within a stripe, and only down to a value, a tombstone, or the
//!   certain end of the key's history. A value that expires later is no such end: they outlive it.

use crate::compaction_filter::{CompactionFilter, FilterDecision, FilterEntry, decide};
use crate::merge_operator::MergeOperator;
use crate::read::clock;
use crate::read::values::ValueFiles;
use crate::unvouched::Unvouched;
use base::expiry::EXPIRY_BYTES;
use base::key::{
    EntryKind, SEQUENCE_MAX, SequenceNumber, VALUE_BYTES_MAX, push_internal_key,
    split_internal_key, trailer_kind, trailer_sequence,
};
use base::{Cause, Error, Expiry, FileId, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use table::Bytes;
use table::iter::EntryIter;
use table::range_delete::RangeDeletes;
use tree::Segments;
use tree::moves::OlderData;
use values::ValuePointer;

/// Receives the entries that are kept.
pub(crate) trait Sink {
    /// Takes the next entry, in internal-key order.
    fn entry(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()>;
}

/// Counts of kept and dropped entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub entries_in: u64,
    pub entries_out: u64,
    pub bytes_in: u64,
    /// Values that had expired.
    pub expired: u64,
    /// Decisions of the filter.
    pub kept: u64,
    pub dropped: u64,
    pub replaced: u64,
}

/// What a merge goes by.
pub(crate) struct Rules {
    /// Ascending.
    pub snapshots: Vec<SequenceNumber>,
    pub range_deletes: RangeDeletes,
    pub operator: Option<Arc<dyn MergeOperator>>,
    pub filter: Option<Arc<dyn CompactionFilter>>,
    pub older: OlderData,
    /// Values that expire up to this time have expired.
    pub now_ms: u64,
    /// Versions that a newer one in their stripe hides are kept too, as LevelDB's flush keeps them.
    /// Only where nothing is known to be absent below, and values are inline: then every tombstone
    /// stays above what it hides, and no segment counts a value as gone that is still there.
    pub keeps_hidden: bool,
}

/// The segments that entries of the merged stream point to.
pub(crate) struct ValueSource {
    pub files: Arc<ValueFiles>,
    /// The segments when the merge began.
    pub segments: Segments,
    /// Bytes that belong to no segment yet, and cannot become garbage there.
    pub unvouched: Unvouched,
}

impl ValueSource {
    /// The value; `None` where its segment is gone: a newer version is in a run above, and no
    /// reader can see this one.
    fn read(&self, pointer: &[u8], key: &[u8]) -> Result<Option<Bytes>> {
        if !self.has_segment(pointer)? {
            return Ok(None);
        }
        self.files.read(pointer, key, Cause::ValueGc).map(Some)
    }

    fn has_segment(&self, pointer: &[u8]) -> Result<bool> {
        Ok(self.segments.get(ValuePointer::decode(pointer)?.file).is_some())
    }
}

/// Applies the rule to one merged stream.
pub(crate) struct Reducer {
    /// Ascending.
    snapshots: Vec<SequenceNumber>,
    range_deletes: RangeDeletes,
    /// The current key's position in them.
    deletes_at: usize,
    operator: Option<Arc<dyn MergeOperator>>,
    filter: Option<Arc<dyn CompactionFilter>>,
    older: OlderData,
    now_ms: u64,
    keeps_hidden: bool,
    user_key: Vec<u8>,
    has_key: bool,
    /// Operands of the current key were passed on as they are.
    has_operands: bool,
    /// The stripe of the current key whose newest version was seen.
    settled: Option<usize>,
    operands: Vec<Vec<u8>>,
    scratch: Vec<u8>,
    counts: Counts,
    values: ValueSource,
    /// Bytes of value records whose last entry was dropped, by segment.
    buried: BTreeMap<FileId, u64>,
}

impl Reducer {
    pub(crate) fn new(rules: Rules, values: ValueSource) -> Reducer {
        debug_assert!(rules.snapshots.is_sorted());
        Reducer {
            snapshots: rules.snapshots,
            range_deletes: rules.range_deletes,
            deletes_at: 0,
            operator: rules.operator,
            filter: rules.filter,
            older: rules.older,
            now_ms: rules.now_ms,
            keeps_hidden: rules.keeps_hidden,
            user_key: Vec::new(),
            has_key: false,
            has_operands: false,
            settled: None,
            operands: Vec::new(),
            scratch: Vec::new(),
            counts: Counts::default(),
            values,
            buried: BTreeMap::new(),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Bytes of value records that nothing refers to any more, by segment.
    pub(crate) fn buried(&self) -> &BTreeMap<FileId, u64> {
        &self.buried
    }

    /// Counts the record of an entry that goes, if it has one.
    fn bury_entry(&mut self, kind: EntryKind, stored: &[u8]) -> Result<()> {
        match kind {
            EntryKind::Pointer => self.bury(stored),
            EntryKind::ExpiringPointer => self.bury(clock::split(stored)?.1),
            _ => Ok(()),
        }
    }

    fn bury(&mut self, pointer: &[u8]) -> Result<()> {
        let pointer = ValuePointer::decode(pointer)?;
        if self.values.unvouched.holds(&pointer) {
            return Ok(());
        }
        *self.buried.entry(pointer.file).or_default() += u64::from(pointer.record_bytes);
        Ok(())
    }

    /// Handles the entry that `input` is at, with the operands below it, and moves past them.
    pub(crate) fn step(&mut self, input: &mut impl EntryIter, sink: &mut impl Sink) -> Result<()> {
        let (user_key, trailer) = split(input.key())?;
        let (sequence, kind) = (trailer_sequence(trailer), kind_of(trailer)?);
        if !self.has_key || self.user_key != user_key {
            self.user_key.clear();
            self.user_key.extend_from_slice(user_key);
            self.has_key = true;
            self.has_operands = false;
            self.settled = None;
        }
        self.count_in(input);
        let stripe = self.stripe(sequence);
        let is_hidden = self.settled == Some(stripe);
        if self.is_range_deleted(sequence, stripe) || (is_hidden && !self.keeps_hidden) {
            self.bury_entry(kind, input.value())?;
            return input.next();
        }
        if is_hidden {
            return self.pass(input, sink);
        }
        match kind {
            EntryKind::Merge if self.operator.is_some() => {
                return self.combine(input, sink, sequence, stripe);
            }
            EntryKind::Merge => self.has_operands = true,
            EntryKind::Delete => {
                self.settled = Some(stripe);
                if stripe == 0 && !self.older.may_hold(&self.user_key) {
                    return input.next();
                }
            }
            EntryKind::Put
            | EntryKind::Pointer
            | EntryKind::ExpiringPut
            | EntryKind::ExpiringPointer => {
                self.settled = Some(stripe);
                if self.has_expired(kind, input.value())? {
                    self.counts.expired += 1;
                    self.bury_entry(kind, input.value())?;
                    self.delete(sink, sequence, stripe)?;
                    return input.next();
                }
                if self.filter.is_some() && stripe == self.snapshots.len() && !self.has_operands {
                    return self.ask_filter(input, sink, sequence, kind, stripe);
                }
            }
            EntryKind::DeleteRange => return Err(unexpected("a range tombstone among entries")),
        }
        self.pass(input, sink)
    }

    /// Keeps the entry that `input` is at, and moves past it.
    fn pass(&mut self, input: &mut impl EntryIter, sink: &mut impl Sink) -> Result<()> {
        self.counts.entries_out += 1;
        sink.entry(input.key(), input.value())?;
        input.next()
    }

    fn has_expired(&self, kind: EntryKind, stored: &[u8]) -> Result<bool> {
        Ok(kind.is_expiring() && clock::split(stored)?.0.is_over(self.now_ms))
    }

    /// The current key is deleted at `sequence`: leaves a tombstone where something may be older.
    fn delete(
        &mut self,
        sink: &mut impl Sink,
        sequence: SequenceNumber,
        stripe: usize,
    ) -> Result<()> {
        if stripe == 0 && !self.older.may_hold(&self.user_key) {
            return Ok(());
        }
        self.write(sink, sequence, EntryKind::Delete, &[])
    }

    fn write(
        &mut self,
        sink: &mut impl Sink,
        sequence: SequenceNumber,
        kind: EntryKind,
        stored: &[u8],
    ) -> Result<()> {
        self.scratch.clear();
        push_internal_key(&mut self.scratch, &self.user_key, sequence, kind);
        self.counts.entries_out += 1;
        sink.entry(&self.scratch, stored)
    }

    /// Does what the filter decides about the value that `input` is at, and moves past it.
    fn ask_filter(
        &mut self,
        input: &mut impl EntryIter,
        sink: &mut impl Sink,
        sequence: SequenceNumber,
        kind: EntryKind,
        stripe: usize,
    ) -> Result<()> {
        let stored = input.value();
        let (expiry, content) = match kind.is_expiring() {
            true => clock::split(stored).map(|(expiry, content)| (Some(expiry), content))?,
            false => (None, stored),
        };
        let (values, key) = (&self.values, &self.user_key);
        if kind.is_pointer() && !values.has_segment(content)? {
            // A newer version is in a run above.
            self.write(sink, sequence, kind, stored)?;
            return input.next();
        }
        let value = || match kind.is_pointer() {
            true => values.files.read(content, key, Cause::ValueGc),
            false => Ok(Bytes::from(content)),
        };
        let decision = match &self.filter {
            Some(filter) => decide(filter, &FilterEntry { key, expiry, value: &value })?,
            None => FilterDecision::Keep,
        };
        match decision {
            FilterDecision::Keep => {
                self.counts.kept += 1;
                self.write(sink, sequence, kind, stored)?;
            }
            FilterDecision::Drop => {
                self.counts.dropped += 1;
                self.bury_entry(kind, stored)?;
                self.delete(sink, sequence, stripe)?;
            }
            FilterDecision::Replace(value) => {
                self.counts.replaced += 1;
                if value.len() > VALUE_BYTES_MAX {
                    return Err(Error::invalid(
                        "a compaction filter gave a value that is too long",
                    ));
                }
                self.bury_entry(kind, stored)?;
                self.write_value(sink, sequence, expiry, value)?;
            }
        }
        input.next()
    }

    fn write_value(
        &mut self,
        sink: &mut impl Sink,
        sequence: SequenceNumber,
        expiry: Option<Expiry>,
        value: Vec<u8>,
    ) -> Result<()> {
        let Some(expiry) = expiry else {
            return self.write(sink, sequence, EntryKind::Put, &value);
        };
        let mut stored = Vec::with_capacity(EXPIRY_BYTES + value.len());
        expiry.push_with(&value, &mut stored);
        self.write(sink, sequence, EntryKind::ExpiringPut, &stored)
    }

    fn count_in(&mut self, input: &impl EntryIter) {
        self.counts.entries_in += 1;
        self.counts.bytes_in += (input.key().len() + input.value().len()) as u64;
    }

    /// The number of snapshots that do not see `sequence`: equal numbers mean that no snapshot is
    /// between.
    fn stripe(&self, sequence: SequenceNumber) -> usize {
        if self.snapshots.is_empty() {
            return 0;
        }
        self.snapshots.partition_point(|&snapshot| snapshot < sequence)
    }

    /// A range tombstone of the same stripe hides this version of the current key.
    fn is_range_deleted(&mut self, sequence: SequenceNumber, stripe: usize) -> bool {
        if self.range_deletes.is_empty() {
            return false;
        }
        let newest = self.snapshots.get(stripe).copied().unwrap_or(SEQUENCE_MAX);
        let stretch = self.range_deletes.stretch(&self.user_key, newest, &mut self.deletes_at);
        stretch.sequence.is_some_and(|s| s > sequence)
    }

    /// Combines the operand that `input` is at with those below it in the stripe.
    fn combine(
        &mut self,
        input: &mut impl EntryIter,
        sink: &mut impl Sink,
        newest: SequenceNumber,
        stripe: usize,
    ) -> Result<()> {
        self.operands.clear();
        let mut sequences = vec![];
        let mut base = Base::Nothing;
        let base_found = loop {
            let (_, trailer) = split(input.key())?;
            let (sequence, kind) = (trailer_sequence(trailer), kind_of(trailer)?);
            if sequence != newest {
                self.count_in(input);
            }
            let base_found = match kind {
                _ if self.is_range_deleted(sequence, stripe) => {
                    self.bury_entry(kind, input.value())?;
                    true
                }
                _ if self.has_expired(kind, input.value())? => {
                    self.counts.expired += 1;
                    self.bury_entry(kind, input.value())?;
                    base = Base::Deleted(sequence);
                    true
                }
                EntryKind::ExpiringPut | EntryKind::ExpiringPointer => {
                    base = Base::Expiring { sequence, kind, stored: input.value().to_vec() };
                    true
                }
                EntryKind::Merge => {
                    self.operands.push(input.value().to_vec());
                    sequences.push(sequence);
                    false
                }
                EntryKind::Put => {
                    base = Base::Value(sequence, input.value().to_vec());
                    true
                }
                EntryKind::Delete => {
                    base = Base::Deleted(sequence);
                    true
                }
                EntryKind::Pointer => {
                    let pointer = input.value().to_vec();
                    let value = self.values.read(&pointer, &self.user_key)?;
                    base = Base::Pointer { sequence, pointer, value };
                    true
                }
                EntryKind::DeleteRange => {
                    return Err(unexpected("a range tombstone among entries"));
                }
            };
            input.next()?;
            if base_found || !self.is_same_stripe(input, stripe)? {
                break base_found;
            }
        };
        let history_ends = base_found || self.history_ends(input, stripe)?;
        self.settled = Some(stripe);
        if !history_ends {
            return self.pass_operands(sink, &sequences);
        }
        self.emit_combined(sink, &sequences, stripe, &base)
    }

    fn is_same_stripe(&self, input: &impl EntryIter, stripe: usize) -> Result<bool> {
        if !input.valid() {
            return Ok(false);
        }
        let (user_key, trailer) = split(input.key())?;
        Ok(user_key == self.user_key && self.stripe(trailer_sequence(trailer)) == stripe)
    }

    /// It is certain that nothing is below the operands, in the inputs or outside.
    fn history_ends(&mut self, input: &impl EntryIter, stripe: usize) -> Result<bool> {
        let more = input.valid() && split(input.key())?.0 == self.user_key;
        Ok(!more && stripe == 0 && !self.older.may_hold(&self.user_key))
    }

    fn pass_operands(&mut self, sink: &mut impl Sink, sequences: &[SequenceNumber]) -> Result<()> {
        for (operand, &sequence) in self.operands.iter().zip(sequences) {
            self.scratch.clear();
            push_internal_key(&mut self.scratch, &self.user_key, sequence, EntryKind::Merge);
            self.counts.entries_out += 1;
            sink.entry(&self.scratch, operand)?;
        }
        Ok(())
    }

    fn emit_combined(
        &mut self,
        sink: &mut impl Sink,
        sequences: &[SequenceNumber],
        stripe: usize,
        base: &Base,
    ) -> Result<()> {
        if matches!(base, Base::Pointer { value: None, .. } | Base::Expiring { .. }) {
            return self.pass_all(sink, sequences, base);
        }
        let Some(operator) = &self.operator else { return Ok(()) };
        let oldest_first: Vec<&[u8]> = self.operands.iter().rev().map(Vec::as_slice).collect();
        let merged = operator.merge(&self.user_key, base.value(), &oldest_first);
        // An operator that refuses must not stop the background work: reads will report it.
        let Ok(value) = merged else { return self.pass_all(sink, sequences, base) };
        if let Base::Pointer { pointer, .. } = base {
            self.bury(pointer)?;
        }
        match value {
            Some(value) => self.write(sink, sequences[0], EntryKind::Put, &value),
            None => self.delete(sink, sequences[0], stripe),
        }
    }

    /// Keeps the operands and their base as they are.
    fn pass_all(
        &mut self,
        sink: &mut impl Sink,
        sequences: &[SequenceNumber],
        base: &Base,
    ) -> Result<()> {
        self.pass_operands(sink, sequences)?;
        let (sequence, kind, value) = match base {
            Base::Nothing => return Ok(()),
            Base::Value(sequence, value) => (*sequence, EntryKind::Put, value.as_slice()),
            Base::Deleted(sequence) => (*sequence, EntryKind::Delete, &[][..]),
            Base::Pointer { sequence, pointer, .. } => {
                (*sequence, EntryKind::Pointer, pointer.as_slice())
            }
            Base::Expiring { sequence, kind, stored } => (*sequence, *kind, stored.as_slice()),
        };
        self.write(sink, sequence, kind, value)
    }
}

/// The base of operands, as far as it was found.
enum Base {
    /// Nothing, or a value that a range tombstone hides.
    Nothing,
    Value(SequenceNumber, Vec<u8>),
    Deleted(SequenceNumber),
    /// A value in a segment.
    Pointer {
        sequence: SequenceNumber,
        pointer: Vec<u8>,
        value: Option<Bytes>,
    },
    /// A value, or a pointer to it, that expires later.
    Expiring {
        sequence: SequenceNumber,
        kind: EntryKind,
        stored: Vec<u8>,
    },
}

impl Base {
    fn value(&self) -> Option<&[u8]> {
        match self {
            Base::Value(_, value) => Some(value),
            Base::Pointer { value, .. } => value.as_deref(),
            Base::Nothing | Base::Deleted(_) | Base::Expiring { .. } => None,
        }
    }
}

fn split(internal: &[u8]) -> Result<(&[u8], u64)> {
    split_internal_key(internal).ok_or_else(|| unexpected("an internal key without its trailer"))
}

fn kind_of(trailer: u64) -> Result<EntryKind> {
    trailer_kind(trailer).ok_or_else(|| unexpected("an entry of unknown kind"))
}

fn unexpected(what: &str) -> Error {
    Error::new(base::ErrorKind::Corruption, format!("found {what} while merging runs"))
}
