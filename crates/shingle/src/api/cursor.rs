//! Ordered reads: cursors that stand on a key, and iterators over pairs.

use crate::engine::Engine;
use crate::keyspace::KeyspaceState;
use crate::merge_operator::Unmerged;
use crate::read::cursor::{CursorOptions, InternalCursor};
use crate::read::moment::Moment;
use base::key::{KeyRange, SequenceNumber, successor};
use base::{Error, Result};
use std::ops::Bound;
use std::sync::Arc;
use table::Bytes;

/// Bytes that a background scan reads ahead.
const BACKGROUND_READAHEAD_BYTES: u32 = 256 << 10;

/// What an ordered read reads, and how.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Keys outside are not shown.
    pub range: KeyRange,
    /// Blocks that had to be read go into the cache.
    pub fill_cache: bool,
    /// Nobody waits for it: read ahead in large pieces, and leave the cache alone.
    pub background: bool,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions { range: KeyRange::all(), fill_cache: true, background: false }
    }
}

impl ReadOptions {
    /// The keys between two bounds.
    pub fn range(start: Bound<&[u8]>, end: Bound<&[u8]>) -> ReadOptions {
        let start = match start {
            Bound::Unbounded => [].into(),
            Bound::Included(key) => key.into(),
            Bound::Excluded(key) => successor(key),
        };
        let end = match end {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(successor(key)),
            Bound::Excluded(key) => Some(key.into()),
        };
        ReadOptions { range: KeyRange { start, end }, ..ReadOptions::default() }
    }

    /// The keys that start with `prefix`.
    pub fn prefix(prefix: &[u8]) -> ReadOptions {
        ReadOptions { range: KeyRange::prefix(prefix), ..ReadOptions::default() }
    }
}

/// Holds a snapshot for as long as a cursor lives.
pub(crate) struct Held {
    engine: Arc<Engine>,
    sequence: SequenceNumber,
}

impl Held {
    pub(crate) fn new(engine: Arc<Engine>, sequence: SequenceNumber) -> Held {
        Held { engine, sequence }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.engine.snapshots.release(self.sequence);
    }
}

/// A cursor tells the ledger of what it showed this many bytes at a time.
const COUNTED_BYTES_MIN: u64 = 64 << 10;

enum State {
    Ready(Box<InternalCursor>),
    Failed(Error),
}

/// Stands on a key, and moves both ways. Owned and `Send`: it pins the memtables and files that it
/// reads, and shows the state of the moment it was made.
///
/// After an error it stands nowhere and repeats the error, with one exception: where the operands
/// of a key cannot be merged, the movement to that key gives the error, and the cursor stands on
/// the key ([`Cursor::unmerged`] is what it holds). The next movement goes on from there.
pub struct Cursor {
    state: State,
    range: KeyRange,
    _held: Option<Arc<Held>>,
    engine: Arc<Engine>,
    /// Bytes shown that the ledger does not know yet.
    shown_bytes: u64,
    keyspace: Arc<KeyspaceState>,
    moment: Moment,
    options: CursorOptions,
}

impl Cursor {
    pub(crate) fn new(
        engine: Arc<Engine>,
        keyspace: &Arc<KeyspaceState>,
        moment: Moment,
        options: ReadOptions,
        held: Option<Arc<Held>>,
    ) -> Cursor {
        let cursor_options = CursorOptions {
            fill_cache: options.fill_cache && !options.background,
            readahead_bytes: if options.background { BACKGROUND_READAHEAD_BYTES } else { 0 },
            walk_bytes_max: match engine.store.recalls_writes() {
                true => engine.settings.readahead_bytes,
                false => engine.settings.device_walk_bytes_max,
            },
        };
        Cursor {
            state: begin(keyspace, &moment, cursor_options, &options.range),
            range: options.range,
            _held: held,
            engine,
            shown_bytes: 0,
            keyspace: keyspace.clone(),
            moment,
            options: cursor_options,
        }
    }

    /// Another cursor over the same moment, that stands nowhere.
    fn twin(&self) -> Cursor {
        Cursor {
            state: begin(&self.keyspace, &self.moment, self.options, &self.range),
            range: self.range.clone(),
            _held: self._held.clone(),
            engine: self.engine.clone(),
            shown_bytes: 0,
            keyspace: self.keyspace.clone(),
            moment: self.moment.clone(),
            options: self.options,
        }
    }

    fn inner(&mut self) -> Result<&mut InternalCursor> {
        match &mut self.state {
            State::Ready(cursor) => Ok(cursor),
            State::Failed(error) => Err(error.clone()),
        }
    }

    /// Counts what the cursor shows after a move.
    #[inline]
    fn shows(&mut self, moved: Result<()>) -> Result<()> {
        if let State::Ready(cursor) = &self.state
            && cursor.valid()
        {
            self.shown_bytes += (cursor.key().len() + cursor.value().len()) as u64;
            if self.shown_bytes >= COUNTED_BYTES_MIN {
                self.count_shown();
            }
        }
        moved
    }

    fn count_shown(&mut self) {
        self.engine.ledger().user_read(std::mem::take(&mut self.shown_bytes));
    }

    /// To the first key.
    pub fn seek_to_first(&mut self) -> Result<()> {
        let moved = self.inner()?.seek_to_first();
        self.shows(moved)
    }

    /// To the last key.
    pub fn seek_to_last(&mut self) -> Result<()> {
        let moved = self.inner()?.seek_to_last();
        self.shows(moved)
    }

    /// To the first key at or after `key`.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let moved = self.inner()?.seek(key.as_ref());
        self.shows(moved)
    }

    /// To the last key at or before `key`.
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let moved = self.inner()?.seek_for_prev(key.as_ref());
        self.shows(moved)
    }

    /// To the next key. Does nothing when the cursor stands nowhere.
    #[allow(clippy::should_implement_trait)] // A cursor is no iterator: it lends its key.
    pub fn next(&mut self) -> Result<()> {
        let cursor = self.inner()?;
        if !cursor.valid() {
            return Ok(());
        }
        let moved = cursor.next();
        self.shows(moved)
    }

    /// To the key before. Does nothing when the cursor stands nowhere.
    pub fn prev(&mut self) -> Result<()> {
        let cursor = self.inner()?;
        if !cursor.valid() {
            return Ok(());
        }
        let moved = cursor.prev();
        self.shows(moved)
    }

    /// The cursor stands on a key.
    pub fn valid(&self) -> bool {
        matches!(&self.state, State::Ready(cursor) if cursor.valid())
    }

    /// The key; empty when the cursor stands nowhere.
    pub fn key(&self) -> &[u8] {
        match &self.state {
            State::Ready(cursor) if cursor.valid() => cursor.key(),
            _ => &[],
        }
    }

    /// The value; empty when the cursor stands nowhere.
    pub fn value(&self) -> &[u8] {
        match &self.state {
            State::Ready(cursor) if cursor.valid() => cursor.value(),
            _ => &[],
        }
    }

    /// What the key holds, where its operands could not be merged: the movement that led here gave
    /// the error.
    pub fn unmerged(&self) -> Option<&Unmerged> {
        match &self.state {
            State::Ready(cursor) => cursor.unmerged(),
            State::Failed(_) => None,
        }
    }

    /// The value, to keep. A value in the block cache is not copied.
    pub fn value_bytes(&self) -> Bytes {
        match &self.state {
            State::Ready(cursor) if cursor.valid() => cursor.value_bytes(),
            _ => Bytes::from(Vec::new()),
        }
    }
}

fn begin(
    keyspace: &KeyspaceState,
    moment: &Moment,
    options: CursorOptions,
    range: &KeyRange,
) -> State {
    let made = keyspace.check_open().and_then(|()| {
        let operator = keyspace.operator.clone();
        InternalCursor::new(moment.clone(), operator, options, range.clone())
    });
    match made {
        Ok(cursor) => State::Ready(Box::new(cursor)),
        Err(error) => State::Failed(error),
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.count_shown();
    }
}

/// Pairs in key order, from both ends. Owned and `Send`. After an error there is nothing more, but
/// for one of a single key, whose operands cannot be merged: the next pair is that of the next key.
pub struct Iter {
    front: Cursor,
    /// Made when the back is first asked for.
    back: Option<Box<Cursor>>,
    front_begun: bool,
    done: bool,
}

type Pair = (Bytes, Bytes);

impl Iter {
    pub(crate) fn new(cursor: Cursor) -> Iter {
        Iter { front: cursor, back: None, front_begun: false, done: false }
    }

    fn advance_front(&mut self) -> (Result<Option<Pair>>, bool) {
        let moved = match self.front_begun {
            true => self.front.next(),
            false => self.front.seek_to_first(),
        };
        self.front_begun = true;
        let met = |back: &Cursor| back.valid() && self.front.key() >= back.key();
        let has_met = self.front.valid() && self.back.as_deref().is_some_and(met);
        shown(&self.front, moved, has_met)
    }

    fn advance_back(&mut self) -> (Result<Option<Pair>>, bool) {
        let (back, moved) = match &mut self.back {
            Some(back) => {
                let moved = back.prev();
                (back, moved)
            }
            None => {
                let mut back = Box::new(self.front.twin());
                let moved = back.seek_to_last();
                (self.back.insert(back), moved)
            }
        };
        let has_met = self.front_begun
            && self.front.valid()
            && back.valid()
            && back.key() <= self.front.key();
        shown(back, moved, has_met)
    }

    fn give(&mut self, advanced: (Result<Option<Pair>>, bool)) -> Option<Result<Pair>> {
        let (given, goes_on) = advanced;
        self.done = !goes_on;
        given.transpose()
    }
}

/// What a cursor that moved shows, and whether more can come. An error of the key that it stands on
/// is not the end; where the other end was there already, it was shown.
fn shown(cursor: &Cursor, moved: Result<()>, has_met: bool) -> (Result<Option<Pair>>, bool) {
    match moved {
        _ if has_met => (Ok(None), false),
        Err(error) => (Err(error), cursor.valid()),
        Ok(()) if !cursor.valid() => (Ok(None), false),
        Ok(()) => (Ok(Some((Bytes::from(cursor.key()), cursor.value_bytes()))), true),
    }
}

impl Iterator for Iter {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Result<Pair>> {
        if self.done {
            return None;
        }
        let advanced = self.advance_front();
        self.give(advanced)
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Result<Pair>> {
        if self.done {
            return None;
        }
        let advanced = self.advance_back();
        self.give(advanced)
    }
}
