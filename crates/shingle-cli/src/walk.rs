//! The records of a range, in the order and number that the flags ask for.

use crate::args::range::OrderArgs;
use crate::failure::Outcome;
use base::KeyRange;
use shingle::{Cursor, Keyspace, ReadOptions};

/// Goes through a range, one record at a time.
pub struct Walk {
    cursor: Cursor,
    reverse: bool,
    limit: u64,
    /// Records so far.
    pub count: u64,
    is_over: bool,
}

impl Walk {
    /// Before the first record.
    pub fn new(keyspace: &Keyspace, range: KeyRange, order: &OrderArgs) -> Walk {
        let is_over = range.is_empty();
        let cursor = keyspace.cursor(ReadOptions { range, ..ReadOptions::default() });
        let limit = order.limit.unwrap_or(u64::MAX);
        Walk { cursor, reverse: order.reverse, limit, count: 0, is_over }
    }

    /// The next record; its operands may not be merged.
    pub fn next(&mut self) -> Outcome<Option<&Cursor>> {
        if self.is_over || self.count == self.limit {
            return Ok(None);
        }
        let moved = match (self.count, self.reverse) {
            (0, false) => self.cursor.seek_to_first(),
            (0, true) => self.cursor.seek_to_last(),
            (_, false) => self.cursor.next(),
            (_, true) => self.cursor.prev(),
        };
        // A valid cursor with an error is at a key whose operands are not merged.
        if !self.cursor.valid() {
            self.is_over = true;
            moved?;
            return Ok(None);
        }
        self.count += 1;
        Ok(Some(&self.cursor))
    }
}
