//! Ordered reads: cursors and iterators.

use crate::engine::Engine;
use crate::keyspace::KeyspaceState;
use crate::merge_operator::Unmerged;
use crate::read::cursor::{CursorOptions, InternalCursor};
use crate::read::moment::Moment;
use base::key::{KeyRange, SequenceNumber, successor};
use base::{Error, Expiry, Result};
use std::ops::{Bound, Deref, RangeBounds};
use std::sync::Arc;
use table::Bytes;

/// Bytes that a background scan prefetches.
const BACKGROUND_READAHEAD_BYTES: u32 = 256 << 10;

/// Which keys an ordered read shows, and how it reads them.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = shingle::Options::new().open(dir.path())?;
/// use shingle::ReadOptions;
///
/// db.put("user/1", "Ann")?;
/// // A scan for a backup: reads ahead, and leaves the block cache alone.
/// let options = ReadOptions { background: true, ..ReadOptions::prefix(b"user/") };
/// assert_eq!(db.iter_with(options).count(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Only keys in this range are shown.
    pub range: KeyRange,
    /// Puts blocks that were read from the medium into the cache.
    pub fill_cache: bool,
    /// For scans without a waiting user: prefetches in large pieces, and leaves the cache alone.
    pub background: bool,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions { range: KeyRange::all(), fill_cache: true, background: false }
    }
}

impl ReadOptions {
    /// The keys in `range`, such as `"a".."b"`.
    pub fn range<K: AsRef<[u8]>>(range: impl RangeBounds<K>) -> ReadOptions {
        let start = match range.start_bound() {
            Bound::Unbounded => [].into(),
            Bound::Included(key) => key.as_ref().into(),
            Bound::Excluded(key) => successor(key.as_ref()),
        };
        let end = match range.end_bound() {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(successor(key.as_ref())),
            Bound::Excluded(key) => Some(key.as_ref().into()),
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
        self.engine.release_snapshot(self.sequence);
    }
}

/// The engine, as the last thing that a cursor drops: files that its view alone held can go.
struct LastDropped(Arc<Engine>);

impl Deref for LastDropped {
    type Target = Arc<Engine>;

    fn deref(&self) -> &Arc<Engine> {
        &self.0
    }
}

impl Drop for LastDropped {
    fn drop(&mut self) {
        self.0.release_files();
    }
}

/// A cursor tells the ledger of what it showed this many bytes at a time.
const COUNTED_BYTES_MIN: u64 = 64 << 10;

enum State {
    Ready(Box<InternalCursor>),
    Failed(Error),
}

/// A position in the keys of a keyspace that moves in both directions.
///
/// Owned and `Send`. A cursor shows the state of the moment it was made, and keeps the memtables
/// and files of that moment. It begins without a position: seek first.
///
/// # Errors
///
/// Movements fail as reads do, see [`Keyspace`](crate::Keyspace). After an error the cursor has no
/// position, and every movement repeats the error. The exception is a key whose operands cannot be
/// merged: the movement to that key fails, the cursor is at the key, [`Cursor::unmerged`] gives its
/// operands, and the next movement goes on from there.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = shingle::Options::new().open(dir.path())?;
/// use shingle::ReadOptions;
///
/// for key in ["a", "b", "c"] {
///     db.put(key, "")?;
/// }
/// let mut cursor = db.cursor(ReadOptions::default());
/// cursor.seek("b")?;
/// assert_eq!(cursor.key(), b"b");
/// cursor.prev()?;
/// assert_eq!(cursor.key(), b"a");
/// cursor.prev()?;
/// assert!(!cursor.valid());
/// # Ok(())
/// # }
/// ```
pub struct Cursor {
    state: State,
    range: KeyRange,
    _held: Option<Arc<Held>>,
    /// Bytes shown that the ledger does not know yet.
    shown_bytes: u64,
    keyspace: Arc<KeyspaceState>,
    moment: Moment,
    options: CursorOptions,
    /// The last field, because fields are dropped in their order.
    engine: LastDropped,
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
            shown_bytes: 0,
            keyspace: keyspace.clone(),
            moment,
            options: cursor_options,
            engine: LastDropped(engine),
        }
    }

    /// The cursor, whose movements all give this error.
    pub(crate) fn failed(mut self, error: Error) -> Cursor {
        self.state = State::Failed(error);
        self
    }

    /// Another cursor over the same moment, without a position.
    fn twin(&mut self) -> Cursor {
        let mut state = begin(&self.keyspace, &self.moment, self.options, &self.range);
        if let (State::Ready(first), State::Ready(twin)) = (&mut self.state, &mut state) {
            twin.fix_time_as(first);
        }
        Cursor {
            state,
            range: self.range.clone(),
            _held: self._held.clone(),
            shown_bytes: 0,
            keyspace: self.keyspace.clone(),
            moment: self.moment.clone(),
            options: self.options,
            engine: LastDropped(self.engine.clone()),
        }
    }

    fn inner(&mut self) -> Result<&mut InternalCursor> {
        match &mut self.state {
            State::Ready(cursor) => Ok(cursor),
            State::Failed(error) => Err(error.clone()),
        }
    }

    /// The cursor, for a move to any place.
    fn seeking(&mut self) -> Result<&mut InternalCursor> {
        self.engine.check_process()?;
        self.inner()
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
        self.engine.look_if_due();
    }

    /// Moves to the first key.
    ///
    /// # Errors
    ///
    /// As for all movements, see [`Cursor`].
    pub fn seek_to_first(&mut self) -> Result<()> {
        let moved = self.seeking()?.seek_to_first();
        self.shows(moved)
    }

    /// Moves to the last key.
    ///
    /// # Errors
    ///
    /// As for all movements, see [`Cursor`].
    pub fn seek_to_last(&mut self) -> Result<()> {
        let moved = self.seeking()?.seek_to_last();
        self.shows(moved)
    }

    /// Moves to the first key at or after `key`.
    ///
    /// # Errors
    ///
    /// As for all movements, see [`Cursor`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let moved = self.seeking()?.seek(key.as_ref());
        self.shows(moved)
    }

    /// Moves to the last key at or before `key`.
    ///
    /// # Errors
    ///
    /// As for all movements, see [`Cursor`].
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let moved = self.seeking()?.seek_for_prev(key.as_ref());
        self.shows(moved)
    }

    /// Moves to the next key. Does nothing where the cursor has no position.
    ///
    /// # Errors
    ///
    /// As for all movements, see [`Cursor`].
    #[allow(clippy::should_implement_trait)] // A cursor is no iterator: it lends its key.
    pub fn next(&mut self) -> Result<()> {
        let cursor = self.inner()?;
        if !cursor.valid() {
            return cursor.status();
        }
        let moved = cursor.next();
        self.shows(moved)
    }

    /// Moves to the previous key. Does nothing where the cursor has no position.
    ///
    /// # Errors
    ///
    /// As for all movements, see [`Cursor`].
    pub fn prev(&mut self) -> Result<()> {
        let cursor = self.inner()?;
        if !cursor.valid() {
            return cursor.status();
        }
        let moved = cursor.prev();
        self.shows(moved)
    }

    /// Shows `visit` the key and value at the position, then those of the next keys, until it says
    /// `false` or there are no more. The cursor stands behind the last one that was shown. Faster
    /// than a loop of [`Cursor::next`].
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = shingle::Options::new().open(dir.path())?;
    /// # let mut cursor = db.cursor(shingle::ReadOptions::default());
    /// let mut bytes = 0;
    /// cursor.seek_to_first()?;
    /// cursor.next_while(|key, value| {
    ///     bytes += key.len() + value.len();
    ///     true
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for all movements, see [`Cursor`]. What lies before the error was shown.
    pub fn next_while(&mut self, visit: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        self.visit(visit, InternalCursor::next)
    }

    /// [`Cursor::next_while`] in reverse. The cursor stands before the last one that was shown.
    ///
    /// # Errors
    ///
    /// As for [`Cursor::next_while`].
    pub fn prev_while(&mut self, visit: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        self.visit(visit, InternalCursor::prev)
    }

    #[inline]
    fn visit(
        &mut self,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
        step: impl Fn(&mut InternalCursor) -> Result<()>,
    ) -> Result<()> {
        loop {
            let cursor = self.inner()?;
            // The movement to the first one counted that one.
            let (mut bytes, mut counted, mut goes_on) = (0, true, true);
            let mut moved = cursor.status();
            while cursor.valid() && moved.is_ok() && goes_on && bytes < COUNTED_BYTES_MIN {
                let (key, value) = (cursor.key(), cursor.value());
                if !std::mem::take(&mut counted) {
                    bytes += (key.len() + value.len()) as u64;
                }
                goes_on = visit(key, value);
                moved = step(cursor);
            }
            let is_over = !cursor.valid() || moved.is_err() || !goes_on;
            self.shown_bytes += bytes;
            self.shows(moved)?;
            if is_over {
                return Ok(());
            }
        }
    }

    /// The error of the last movement, again. A loop that ends when the cursor is not valid asks
    /// here whether it has seen every key.
    ///
    /// # Errors
    ///
    /// As for all movements, see [`Cursor`].
    #[inline]
    pub fn status(&self) -> Result<()> {
        match &self.state {
            State::Ready(cursor) => cursor.status(),
            State::Failed(error) => Err(error.clone()),
        }
    }

    /// True where the cursor is at a key.
    pub fn valid(&self) -> bool {
        matches!(&self.state, State::Ready(cursor) if cursor.valid())
    }

    /// The key; empty where the cursor has no position.
    pub fn key(&self) -> &[u8] {
        match &self.state {
            State::Ready(cursor) if cursor.valid() => cursor.key(),
            _ => &[],
        }
    }

    /// The value; empty where the cursor has no position.
    pub fn value(&self) -> &[u8] {
        match &self.state {
            State::Ready(cursor) if cursor.valid() => cursor.value(),
            _ => &[],
        }
    }

    /// The operands of a key whose operands could not be merged. The movement to the key gave the
    /// error.
    pub fn unmerged(&self) -> Option<&Unmerged> {
        match &self.state {
            State::Ready(cursor) => cursor.unmerged(),
            State::Failed(_) => None,
        }
    }

    /// When the value expires; `None`: it does not, or the cursor has no position. Of a merged
    /// value: when the value that its operands apply to expires.
    pub fn expiry(&self) -> Option<Expiry> {
        match &self.state {
            State::Ready(cursor) if cursor.valid() => cursor.expiry(),
            _ => None,
        }
    }

    /// The value as an owned handle. A value in the block cache is not copied.
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

/// Keys and values in key order, from both ends. Owned and `Send`.
///
/// An error ends the iteration, except where it is about a single key whose operands cannot be
/// merged: then the next item is that of the next key.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = shingle::Options::new().open(dir.path())?;
/// for key in ["a", "b", "c"] {
///     db.put(key, "")?;
/// }
/// let last = db.iter().next_back().expect("there are keys")?;
/// assert_eq!(&last.0[..], b"c");
/// let keys: Vec<_> = db.range("a"..="b").map(|pair| pair.map(|(key, _)| key)).collect();
/// assert_eq!(keys.len(), 2);
/// # Ok(())
/// # }
/// ```
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

    /// When the value that `next` gave last expires.
    pub(crate) fn expiry_at_front(&self) -> Option<Expiry> {
        self.front.expiry()
    }

    /// When the value that `next_back` gave last expires.
    pub(crate) fn expiry_at_back(&self) -> Option<Expiry> {
        self.back.as_deref().and_then(Cursor::expiry)
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
    type Item = Result<(Bytes, Bytes)>;

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
