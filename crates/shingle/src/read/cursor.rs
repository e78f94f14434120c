//! Ordered reads: what a user sees when the versions of each key are resolved.
//!
//! Invariants:
//! - A cursor shows each key once, with the newest version visible at its snapshot.
//! - Keys hidden by tombstones do not appear.
//! - Values that have expired do not appear. A cursor judges all of them at one time.
//! - After an error the cursor stays invalid and repeats the error.
//!
//! One error concerns a single key: its operands are not merged. The movement to that key returns
//! the error, but the cursor is at the key, can tell what it holds, and can move on.

use super::clock::{self, ReadTime};
use super::deleted::Deleted;
use super::hidden::Walk;
use super::moment::Moment;
use super::prefetcher::{ReadAhead, Scene};
use super::source::{Leap, Source};
use super::sources::sources;
use super::view::ReadView;
use crate::merge_operator::{KeyspaceOperator, Unmerged};
use base::expiry::EXPIRY_BYTES;
use base::key::{
    EntryKind, Key, KeyRange, SEQUENCE_MAX, SequenceNumber, display_key, internal_key,
    push_internal_key, split_internal_key, trailer_kind, trailer_sequence,
};
use base::{Cause, Error, ErrorKind, Expiry, Result};
use std::sync::Arc;
use table::Bytes;
use table::{EntryIter, IterOptions, MergingIter};

/// How a cursor reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CursorOptions {
    pub fill_cache: bool,
    pub readahead_bytes: u32,
    /// See [`table::IterOptions::walk_bytes_max`].
    pub walk_bytes_max: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// The inputs are at the current entry.
    Forward,
    /// The inputs are before every version of the current key.
    Backward,
}

/// A cursor over one keyspace at one snapshot.
pub(crate) struct InternalCursor {
    inputs: MergingIter<Source>,
    snapshot: SequenceNumber,
    operator: Option<Arc<KeyspaceOperator>>,
    deleted: Deleted,
    bounds: KeyRange,
    direction: Direction,
    key: Vec<u8>,
    /// The key of a seek; kept to reuse its memory.
    target: Vec<u8>,
    /// The value, when the inputs are not at it: in backward direction, or after combining
    /// operands.
    value: Option<Bytes>,
    /// `value` was read from a segment, and the inputs are still at its pointer.
    stands_on_value: bool,
    /// When the value expires, or the value that its operands stand on.
    expiry: Option<Expiry>,
    time: ReadTime,
    /// Set if the operands of the current key are not merged; its value is empty then.
    unmerged: Option<Box<Unmerged>>,
    view: Arc<ReadView>,
    options: CursorOptions,
    ahead: ReadAhead,
    /// Over the tombstones that a forward movement meets.
    walk: Walk,
    valid: bool,
    error: Option<Error>,
}

impl InternalCursor {
    pub(crate) fn new(
        moment: Moment,
        operator: Option<Arc<KeyspaceOperator>>,
        options: CursorOptions,
        bounds: KeyRange,
    ) -> Result<InternalCursor> {
        let view = moment.view().clone();
        Ok(InternalCursor {
            inputs: MergingIter::new(sources(&view, &bounds, &scan_options(options))?),
            deleted: Deleted::new(&view, moment.sequence()),
            snapshot: moment.sequence(),
            operator,
            bounds,
            direction: Direction::Forward,
            key: Vec::new(),
            target: Vec::new(),
            value: None,
            stands_on_value: false,
            expiry: None,
            time: ReadTime::default(),
            unmerged: None,
            view,
            options,
            ahead: ReadAhead::default(),
            walk: Walk::default(),
            valid: false,
            error: None,
        })
    }

    /// Judges values that expire at `time`.
    pub(crate) fn at(self, time: ReadTime) -> InternalCursor {
        InternalCursor { time, ..self }
    }

    /// From now on it judges values that expire at the same time as `other`.
    pub(crate) fn fix_time_as(&mut self, other: &mut InternalCursor) {
        self.time = other.time.fix(&self.view.tree.context.clock);
    }

    pub(crate) fn valid(&self) -> bool {
        self.valid
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) fn value(&self) -> &[u8] {
        match &self.value {
            Some(value) => value,
            None => self.inputs.value(),
        }
    }

    pub(crate) fn value_bytes(&self) -> Bytes {
        match &self.value {
            Some(value) => value.clone(),
            None => self.inputs.value_bytes(),
        }
    }

    /// When the value expires; of a merged value, when the value below its operands does.
    pub(crate) fn expiry(&self) -> Option<Expiry> {
        self.expiry
    }

    /// The content of the current key, if its operands were not merged.
    pub(crate) fn unmerged(&self) -> Option<&Unmerged> {
        self.unmerged.as_deref().filter(|_| self.valid)
    }

    pub(crate) fn seek_to_first(&mut self) -> Result<()> {
        let start = self.bounds.start.clone();
        self.seek(&start)
    }

    /// Moves to the first key at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.moving(|cursor| {
            cursor.direction = Direction::Forward;
            cursor.ahead.reset();
            let from = if *key < *cursor.bounds.start { &cursor.bounds.start } else { key };
            cursor.target.clear();
            push_internal_key(&mut cursor.target, from, cursor.snapshot, EntryKind::SEARCH);
            cursor.inputs.seek(&cursor.target)?;
            cursor.walk.begin(from);
            let tree = &cursor.view.tree;
            let hidden = tree.hidden.around(from, cursor.snapshot);
            let hidden = hidden.filter(|_| !tree.has_below());
            cursor.deleted.hide(hidden.clone());
            if let Some((range, sequence)) = hidden {
                cursor.leap_hidden(range, sequence)?;
            }
            cursor.settle_forward(false)
        })
    }

    pub(crate) fn seek_to_last(&mut self) -> Result<()> {
        let end: Option<Key> = self.bounds.end.clone();
        self.moving(|cursor| {
            cursor.direction = Direction::Backward;
            match end {
                None => cursor.inputs.seek_to_last()?,
                Some(end) => cursor.inputs.seek_for_prev(&before_key(&end))?,
            }
            cursor.settle_backward()
        })
    }

    /// Moves to the last key at or before `key`.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        if !self.bounds.is_before_end(key) {
            return self.seek_to_last();
        }
        let last_version = internal_key(key, 0, EntryKind::Delete);
        self.moving(|cursor| {
            cursor.direction = Direction::Backward;
            cursor.inputs.seek_for_prev(&last_version)?;
            cursor.settle_backward()
        })
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        self.moving(|cursor| {
            if cursor.direction == Direction::Backward {
                cursor.direction = Direction::Forward;
                let after = internal_key(&cursor.key, 0, EntryKind::Delete);
                cursor.inputs.seek(&after)?;
            } else if cursor.value.is_none() || cursor.stands_on_value {
                cursor.inputs.next()?;
            }
            cursor.walk.end();
            cursor.settle_forward(true)
        })
    }

    pub(crate) fn prev(&mut self) -> Result<()> {
        self.moving(|cursor| {
            if cursor.direction == Direction::Forward {
                cursor.direction = Direction::Backward;
                cursor.ahead.reset();
                let before = before_key(&cursor.key);
                cursor.inputs.seek_for_prev(&before)?;
            }
            cursor.settle_backward()
        })
    }

    /// Runs a movement. An error makes the cursor invalid for good, unless it concerns only the key
    /// that the cursor came to.
    fn moving(&mut self, movement: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        match movement(self) {
            Ok(()) => self.status(),
            Err(error) => {
                self.valid = false;
                self.error = Some(error.clone());
                Err(error)
            }
        }
    }

    /// The error of the last movement.
    #[inline]
    pub(crate) fn status(&self) -> Result<()> {
        let of_key = self.unmerged.as_ref().map(|unmerged| &unmerged.error);
        self.error.as_ref().or(of_key).map_or(Ok(()), |error| Err(error.clone()))
    }

    #[inline]
    fn stand_nowhere(&mut self) {
        self.value = None;
        self.stands_on_value = false;
        self.expiry = None;
        self.unmerged = None;
        self.valid = false;
    }

    /// Moves from the inputs' position to the first visible key. `skip`: the remaining versions of
    /// the current key do not count.
    fn settle_forward(&mut self, mut skip: bool) -> Result<()> {
        self.stand_nowhere();
        while self.inputs.valid() {
            crate::work::add(1);
            let (user_key, trailer) = split(self.inputs.key())?;
            if !self.bounds.is_before_end(user_key) {
                return Ok(());
            }
            let sequence = trailer_sequence(trailer);
            if sequence > self.snapshot || (skip && user_key == self.key) {
                self.inputs.next()?;
                continue;
            }
            let deleted = sequence < self.deleted.newest_over(user_key)?;
            self.key.clear();
            self.key.extend_from_slice(user_key);
            self.expiry = None;
            match kind_of(trailer)? {
                _ if deleted => {
                    skip = true;
                    if self.deleted.should_leap() && self.leap_forward()? {
                        continue;
                    }
                }
                EntryKind::Put => {
                    self.valid = true;
                    return Ok(());
                }
                EntryKind::Merge => {
                    if self.combine_forward()? {
                        self.valid = true;
                        return Ok(());
                    }
                    // It may have a value at another time.
                    self.walk.end();
                    skip = true;
                    continue;
                }
                EntryKind::Delete => {
                    skip = true;
                    self.walk.pass(&self.key, self.snapshot, &self.view.tree.hidden);
                }
                kind => {
                    if self.stand_on(kind)? {
                        return Ok(());
                    }
                    self.walk.end();
                    skip = true;
                }
            }
            self.inputs.next()?;
        }
        Ok(())
    }

    /// After a seek into a stretch that another cursor found empty, passes all that it had then.
    /// Inputs that stay may have entries that these tombstones hid, which `deleted` hides now.
    #[cold]
    fn leap_hidden(&mut self, range: KeyRange, sequence: SequenceNumber) -> Result<()> {
        let ends = [&range.end, &self.bounds.end];
        let Some(end) = ends.into_iter().flatten().min() else { return Ok(()) };
        self.target.clear();
        push_internal_key(&mut self.target, end, SEQUENCE_MAX, EntryKind::SEARCH);
        self.leap(true, sequence + 1)?;
        Ok(())
    }

    /// Takes the value of an entry that is more than a put; `false`: it has expired. Out of line,
    /// so that a scan of plain values does not pay for it.
    #[inline(never)]
    fn stand_on(&mut self, kind: EntryKind) -> Result<bool> {
        self.value = match kind {
            EntryKind::Pointer => Some(match self.read_from_memory()? {
                Some(value) => value,
                None => {
                    self.read_ahead(0);
                    self.read_value(self.inputs.value())?
                }
            }),
            EntryKind::ExpiringPointer => {
                self.read_ahead(EXPIRY_BYTES);
                self.unexpired(kind, self.inputs.value_bytes())?
            }
            EntryKind::ExpiringPut => self.unexpired(kind, self.inputs.value_bytes())?,
            _ => return Err(unexpected_kind()),
        };
        self.stands_on_value = self.value.is_some();
        self.valid = self.stands_on_value;
        Ok(self.valid)
    }

    /// Combines the operands that begin at the inputs' position; the inputs end up below them.
    /// `false`: the key has no value.
    #[inline(never)]
    fn combine_forward(&mut self) -> Result<bool> {
        let mut operands: Vec<Bytes> = Vec::new();
        let mut base_value = None;
        while self.inputs.valid() {
            let (user_key, trailer) = split(self.inputs.key())?;
            if user_key != self.key {
                break;
            }
            let deleted = trailer_sequence(trailer) < self.deleted.newest_over(user_key)?;
            match kind_of(trailer)? {
                _ if deleted => break,
                EntryKind::Merge => operands.push(self.inputs.value_bytes()),
                EntryKind::Put => {
                    base_value = Some(self.inputs.value_bytes());
                    break;
                }
                EntryKind::Pointer => {
                    base_value = Some(self.read_value(self.inputs.value())?);
                    break;
                }
                kind @ (EntryKind::ExpiringPut | EntryKind::ExpiringPointer) => {
                    base_value = self.unexpired(kind, self.inputs.value_bytes())?;
                    break;
                }
                EntryKind::Delete => break,
                EntryKind::DeleteRange => return Err(unexpected_kind()),
            }
            self.inputs.next()?;
        }
        operands.reverse();
        self.merge(base_value, operands)
    }

    /// Merges the operands, oldest first, on top of `base` to the value; `false` where the key has
    /// no value. Operands that cannot be merged are kept as they are.
    fn merge(&mut self, base: Option<Bytes>, operands: Vec<Bytes>) -> Result<bool> {
        let Some(operator) = &self.operator else {
            let key = display_key(&self.key);
            let message =
                format!("key {key} has merge operands, but its keyspace has no merge operator");
            return Err(Error::new(ErrorKind::Corruption, message));
        };
        let oldest_first: Vec<&[u8]> = operands.iter().map(|operand| &operand[..]).collect();
        match operator.merge(&self.key, base.as_deref(), &oldest_first) {
            Ok(value) => self.value = value.map(Bytes::from),
            Err(error) => {
                self.unmerged = Some(Box::new(Unmerged { base, operands, error }));
                self.value = Some(Bytes::default());
            }
        }
        Ok(self.value.is_some())
    }

    /// Moves from the inputs' position backward to the last visible key; the inputs end up before
    /// it.
    fn settle_backward(&mut self) -> Result<()> {
        self.stand_nowhere();
        while self.inputs.valid() {
            let (user_key, _) = split(self.inputs.key())?;
            if *user_key < *self.bounds.start {
                return Ok(());
            }
            self.key.clear();
            self.key.extend_from_slice(user_key);
            self.expiry = None;
            if self.resolve_backward()? {
                self.valid = true;
                return Ok(());
            }
            if self.deleted.is_over(&self.key) && self.deleted.should_leap() {
                self.leap_backward()?;
            }
        }
        Ok(())
    }

    /// Moves to the end of the stretch that a range tombstone hides, past all older entries.
    /// `false`: there are none left to pass.
    #[inline(never)]
    fn leap_forward(&mut self) -> Result<bool> {
        let Some(end) = self.deleted.end() else { return Ok(false) };
        let end = self.bounds.end.as_deref().map_or(end, |bound| end.min(bound));
        self.target.clear();
        push_internal_key(&mut self.target, end, SEQUENCE_MAX, EntryKind::SEARCH);
        self.leap(true, self.deleted.sequence())
    }

    /// The same to the stretch's start.
    fn leap_backward(&mut self) -> Result<bool> {
        let start = self.deleted.start().max(&self.bounds.start);
        self.target.clear();
        push_internal_key(&mut self.target, start, SEQUENCE_MAX, EntryKind::SEARCH);
        self.leap(false, self.deleted.sequence())
    }

    /// Moves to the target, past everything older than `below`.
    fn leap(&mut self, is_forward: bool, below: SequenceNumber) -> Result<bool> {
        // The prefetcher's inputs are inside the stretch that is leapt over.
        self.ahead.reset();
        let leap = Leap { target: &self.target, is_forward, below };
        self.inputs.leap(&self.target, |source| {
            crate::work::add(1);
            source.leap(leap)
        })
    }

    /// Walks the versions of the current key from oldest to newest, and past them. Leaves the
    /// visible value; `false` when there is none.
    fn resolve_backward(&mut self) -> Result<bool> {
        // Oldest first here; each value or tombstone makes older versions irrelevant.
        let mut operands: Vec<Bytes> = Vec::new();
        // What the newest value stores. A pointer is followed at the end, because the segment of an
        // older version may be gone.
        let mut newest: Option<(EntryKind, Bytes)> = None;
        while self.inputs.valid() {
            crate::work::add(1);
            let (user_key, trailer) = split(self.inputs.key())?;
            if user_key != self.key {
                break;
            }
            let sequence = trailer_sequence(trailer);
            if sequence <= self.snapshot {
                let deleted = sequence < self.deleted.newest_over(user_key)?;
                match kind_of(trailer)? {
                    EntryKind::Merge if !deleted => operands.push(self.inputs.value_bytes()),
                    EntryKind::DeleteRange => return Err(unexpected_kind()),
                    kind => {
                        operands.clear();
                        let is_value = !deleted && kind != EntryKind::Delete;
                        newest = is_value.then(|| (kind, self.inputs.value_bytes()));
                    }
                }
            }
            self.inputs.prev()?;
        }
        let value = match newest {
            None => None,
            Some((EntryKind::Pointer, pointer)) => Some(self.read_value(&pointer)?),
            Some((kind, stored)) if kind.is_expiring() => self.unexpired(kind, stored)?,
            Some((_, value)) => Some(value),
        };
        if !operands.is_empty() {
            return self.merge(value, operands);
        }
        self.value = value;
        Ok(self.value.is_some())
    }

    /// The value that an expiring entry of this kind stores, unless it has expired.
    #[cold]
    fn unexpired(&mut self, kind: EntryKind, stored: Bytes) -> Result<Option<Bytes>> {
        let (expiry, content) = clock::split(&stored)?;
        if self.time.is_over(expiry, &self.view.tree.context.clock) {
            return Ok(None);
        }
        self.expiry = Some(expiry);
        match kind {
            EntryKind::ExpiringPointer => self.read_value(content).map(Some),
            _ => Ok(Some(stored.skip(EXPIRY_BYTES))),
        }
    }

    /// The value at the inputs' position, as long as none of the scan was waited for: then it needs
    /// no prefetcher.
    fn read_from_memory(&mut self) -> Result<Option<Bytes>> {
        if self.ahead.is_ahead() {
            return Ok(None);
        }
        let files = &self.view.tree.context.values;
        let value = files.read_from_memory(self.inputs.value(), &self.key)?;
        if value.is_some() {
            self.ahead.pass();
        }
        Ok(value)
    }

    /// In a scan, prefetches the values after the one at the inputs' position, whose pointer begins
    /// at byte `at` of the stored value.
    fn read_ahead(&mut self, at: usize) {
        let (view, options) = (&self.view, self.options);
        let files = &view.tree.context.values;
        let bounds = &self.bounds;
        let scene = Scene { files, snapshot: self.snapshot, bounds };
        let pointer = self.inputs.value().get(at..).unwrap_or_default();
        let key = self.inputs.key();
        self.ahead.advance(key, pointer, &scene, || sources(view, bounds, &scan_options(options)));
    }

    /// The value of the current key that `pointer` names.
    fn read_value(&self, pointer: &[u8]) -> Result<Bytes> {
        self.view.tree.context.values.read(pointer, &self.key, Cause::Scan)
    }
}

/// The position before every version of `key`, and after everything smaller.
fn before_key(key: &[u8]) -> Vec<u8> {
    internal_key(key, SEQUENCE_MAX, EntryKind::SEARCH)
}

#[inline]
fn split(internal: &[u8]) -> Result<(&[u8], u64)> {
    split_internal_key(internal)
        .ok_or_else(|| corruption("found an internal key without its trailer"))
}

#[inline]
fn kind_of(trailer: u64) -> Result<EntryKind> {
    trailer_kind(trailer).ok_or_else(|| corruption("found an entry of unknown kind"))
}

fn unexpected_kind() -> Error {
    corruption("found an entry that this value layout does not write")
}

#[cold]
fn corruption(message: &str) -> Error {
    Error::new(ErrorKind::Corruption, message)
}

/// Options of a user's scan.
fn scan_options(options: CursorOptions) -> IterOptions {
    let CursorOptions { fill_cache, readahead_bytes, walk_bytes_max } = options;
    let cause = Cause::Scan;
    IterOptions { fill_cache, readahead_bytes, walk_bytes_max, ..IterOptions::cached(cause) }
}
