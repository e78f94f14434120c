//! A position in a block: walks its entries both ways, with the key of the current one rebuilt
//! where a caller asks for it.

use crate::block::{Block, EntryHead, Kept, Malformed, head};
use crate::bytes::Bytes;
use base::key::{TRAILER_BYTES, split_internal_key};
use std::ops::Range;

/// Spare capacity for keys that are longer than the first one, so that few of them reallocate the
/// buffer.
const KEY_ROOM: usize = 24;

type Step = Result<(), Malformed>;

/// What a cursor remembers of the key of its entry.
pub(crate) trait KeyMemory {
    /// The next entry stores its key whole.
    fn restart(&mut self);

    /// The cursor goes on to the entry of `head`, the next one in `entries`.
    fn go_on(&mut self, entries: &[u8], head: &EntryHead) -> Step;

    /// The cursor jumps to the entry of `head`, which was found by a search for `user_key`.
    fn jump(&mut self, user_key: &[u8], entries: &[u8], head: &EntryHead);
}

/// The internal key.
impl KeyMemory for Vec<u8> {
    #[inline]
    fn restart(&mut self) {
        self.clear();
    }

    #[inline]
    fn go_on(&mut self, entries: &[u8], head: &EntryHead) -> Step {
        if head.shared > self.len().saturating_sub(TRAILER_BYTES) {
            return Err(Malformed("an entry shares more bytes than there are"));
        }
        self.truncate(head.shared);
        self.extend_from_slice(&entries[head.key_start..head.value_start]);
        Ok(())
    }

    #[inline]
    fn jump(&mut self, user_key: &[u8], entries: &[u8], head: &EntryHead) {
        self.clear();
        self.reserve(head.shared + (head.value_start - head.key_start) + KEY_ROOM);
        self.extend_from_slice(&user_key[..head.shared]);
        self.extend_from_slice(&entries[head.key_start..head.value_start]);
    }
}

/// Nothing: a walk over an index reads only its values.
impl KeyMemory for () {
    #[inline]
    fn restart(&mut self) {}

    #[inline]
    fn go_on(&mut self, _: &[u8], _: &EntryHead) -> Step {
        Ok(())
    }

    #[inline]
    fn jump(&mut self, _: &[u8], _: &[u8], _: &EntryHead) {}
}

/// A position in a block, or past its ends.
pub(crate) struct Cursor<K = Vec<u8>> {
    block: Block<Kept>,
    /// Where the current entry begins.
    at: usize,
    /// Where the next entry begins.
    next: usize,
    key: K,
    value: Range<usize>,
    valid: bool,
}

impl Cursor {
    /// At no entry of `block`.
    pub fn new(block: impl Into<Block<Kept>>) -> Cursor {
        Cursor::with(block.into(), Vec::new())
    }

    /// The internal key; at least a trailer when the cursor is valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }
}

impl Cursor<()> {
    /// At no entry of `block`; it will know no keys.
    pub fn without_keys(block: impl Into<Block<Kept>>) -> Cursor<()> {
        Cursor::with(block.into(), ())
    }
}

impl<K: KeyMemory> Cursor<K> {
    fn with(block: Block<Kept>, key: K) -> Cursor<K> {
        Cursor { block, at: 0, next: 0, key, value: 0..0, valid: false }
    }

    /// Goes over to another block, at no entry of it.
    pub fn set_block(&mut self, block: impl Into<Block<Kept>>) {
        self.block = block.into();
        self.valid = false;
        self.value = 0..0;
    }

    #[inline]
    pub fn valid(&self) -> bool {
        self.valid
    }

    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.block.bytes()[self.value.clone()]
    }

    pub fn value_bytes(&self) -> Bytes {
        Bytes::kept(&self.block, self.value.clone())
    }

    pub fn invalidate(&mut self) {
        self.valid = false;
    }

    pub fn first(&mut self) -> Step {
        self.next = 0;
        self.key.restart();
        self.next()
    }

    pub fn last(&mut self) -> Step {
        match self.block.restarts().checked_sub(1) {
            Some(restart) => self.walk(restart, self.block.entries_end()),
            None => {
                self.valid = false;
                Ok(())
            }
        }
    }

    /// Goes to the first entry at or after the internal key `target`.
    pub fn seek(&mut self, target: &[u8]) -> Step {
        self.valid = false;
        let Some((user_key, trailer)) = split_internal_key(target) else {
            return Err(Malformed("a search key without its trailer"));
        };
        let block = self.block.borrowed();
        let Some(found) = block.search(user_key, trailer)? else { return Ok(()) };
        self.key.jump(user_key, block.entries(), &found.head);
        self.stand(found.at, &found.head);
        Ok(())
    }

    /// Stands on the entry at `at`.
    #[inline]
    fn stand(&mut self, at: usize, head: &EntryHead) {
        self.value = head.value_start..head.end;
        self.at = at;
        self.next = head.end;
        self.valid = true;
    }

    /// Goes to the next entry.
    #[inline]
    pub fn next(&mut self) -> Step {
        self.valid = false;
        let entries = self.block.entries();
        if self.next >= entries.len() {
            return Ok(());
        }
        let head = head(entries, self.next)?;
        self.key.go_on(entries, &head)?;
        self.stand(self.next, &head);
        Ok(())
    }

    /// Goes to the entry before.
    pub fn prev(&mut self) -> Step {
        if !self.valid || self.at == 0 {
            self.valid = false;
            return Ok(());
        }
        let (mut low, mut high) = (0, self.block.restarts());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.block.restart(middle) < self.at {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.walk(low, self.at)
    }

    /// Goes to the last entry after restart `restart` that begins before `end`.
    fn walk(&mut self, restart: usize, end: usize) -> Step {
        self.next = self.block.restart(restart);
        self.key.restart();
        self.next()?;
        while self.valid && self.next < end {
            self.next()?;
        }
        Ok(())
    }
}
