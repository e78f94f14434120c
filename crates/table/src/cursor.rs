//! A position in a block: walks its entries both ways, with the key of the current one rebuilt.

use crate::block::{Block, Malformed, head};
use crate::bytes::Bytes;
use base::key::{TRAILER_BYTES, split_internal_key};
use std::ops::Range;
use std::sync::Arc;

/// Room for keys that are longer than the first one, so that few of them move it.
const KEY_ROOM: usize = 24;

type Step = Result<(), Malformed>;

/// A position in a block, or past its ends.
pub(crate) struct Cursor {
    block: Arc<Block>,
    /// Where the current entry begins.
    at: usize,
    /// Where the next entry begins.
    next: usize,
    key: Vec<u8>,
    value: Range<usize>,
    valid: bool,
}

impl Cursor {
    /// At no entry of `block`.
    pub fn new(block: Arc<Block>) -> Cursor {
        Cursor { block, at: 0, next: 0, key: Vec::new(), value: 0..0, valid: false }
    }

    /// Goes over to another block, at no entry of it.
    pub fn set_block(&mut self, block: Arc<Block>) {
        self.block = block;
        self.valid = false;
    }

    #[inline]
    pub fn valid(&self) -> bool {
        self.valid
    }

    /// The internal key; at least a trailer when the cursor is valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.block.bytes()[self.value.clone()]
    }

    pub fn value_bytes(&self) -> Bytes {
        if self.block.is_mapped() {
            // A value that somebody keeps must not keep a file on the device.
            return Bytes::from(self.value());
        }
        Bytes::shared(self.block.clone(), self.value.clone())
    }

    pub fn invalidate(&mut self) {
        self.valid = false;
    }

    pub fn first(&mut self) -> Step {
        self.next = 0;
        self.key.clear();
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
        let head = found.head;
        self.key.clear();
        self.key.reserve(head.shared + (head.value_start - head.key_start) + KEY_ROOM);
        self.key.extend_from_slice(&user_key[..head.shared]);
        self.key.extend_from_slice(&block.bytes()[head.key_start..head.value_start]);
        self.value = found.value();
        self.at = found.at;
        self.next = head.end;
        self.valid = true;
        Ok(())
    }

    /// Goes to the next entry.
    #[inline]
    pub fn next(&mut self) -> Step {
        let entries = self.block.entries();
        if self.next >= entries.len() {
            self.valid = false;
            return Ok(());
        }
        let head = match head(entries, self.next) {
            Ok(head) => head,
            Err(malformed) => {
                self.valid = false;
                return Err(malformed);
            }
        };
        if head.shared > self.key.len().saturating_sub(TRAILER_BYTES) {
            self.valid = false;
            return Err(Malformed("an entry shares more bytes than there are"));
        }
        self.key.truncate(head.shared);
        self.key.extend_from_slice(&entries[head.key_start..head.value_start]);
        self.value = head.value_start..head.end;
        self.at = self.next;
        self.next = head.end;
        self.valid = true;
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
        self.key.clear();
        self.next()?;
        while self.valid && self.next < end {
            self.next()?;
        }
        Ok(())
    }
}
