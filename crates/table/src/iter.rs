//! How sorted entries are walked, whatever holds them.

use crate::bytes::Bytes;
use base::Result;

/// Walks entries in the order of internal keys (user key ascending, newer first), both ways.
///
/// A new iterator stands nowhere. After an error an iterator is not valid, and every later move
/// gives the same error. Moving an iterator that is not valid keeps it so.
pub trait EntryIter: Send {
    /// Goes to the first entry.
    fn seek_to_first(&mut self) -> Result<()>;

    /// Goes to the last entry.
    fn seek_to_last(&mut self) -> Result<()>;

    /// Goes to the first entry at or after `internal_key`.
    fn seek(&mut self, internal_key: &[u8]) -> Result<()>;

    /// Goes to the last entry at or before `internal_key`.
    fn seek_for_prev(&mut self, internal_key: &[u8]) -> Result<()>;

    /// Goes to the next entry.
    fn next(&mut self) -> Result<()>;

    /// Goes to the entry before.
    fn prev(&mut self) -> Result<()>;

    /// It stands at an entry.
    fn valid(&self) -> bool;

    /// The internal key of the entry; empty when not valid.
    fn key(&self) -> &[u8];

    /// The value of the entry; empty when not valid.
    fn value(&self) -> &[u8];

    /// The value, kept alive without a copy where the iterator can.
    fn value_bytes(&self) -> Bytes;
}

impl<I: EntryIter + ?Sized> EntryIter for Box<I> {
    fn seek_to_first(&mut self) -> Result<()> {
        (**self).seek_to_first()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        (**self).seek_to_last()
    }

    fn seek(&mut self, internal_key: &[u8]) -> Result<()> {
        (**self).seek(internal_key)
    }

    fn seek_for_prev(&mut self, internal_key: &[u8]) -> Result<()> {
        (**self).seek_for_prev(internal_key)
    }

    fn next(&mut self) -> Result<()> {
        (**self).next()
    }

    fn prev(&mut self) -> Result<()> {
        (**self).prev()
    }

    fn valid(&self) -> bool {
        (**self).valid()
    }

    fn key(&self) -> &[u8] {
        (**self).key()
    }

    fn value(&self) -> &[u8] {
        (**self).value()
    }

    fn value_bytes(&self) -> Bytes {
        (**self).value_bytes()
    }
}
