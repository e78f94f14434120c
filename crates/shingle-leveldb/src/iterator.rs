//! Iterators. A failed movement leaves an iterator without a position, with its error.

use crate::memory::bytes;
use crate::status::{Place, fail};
use bindings::{Failure, guarded};
use shingle::{Cursor, Result};
use std::ffi::c_char;

/// A position in the keys of a database.
#[allow(non_camel_case_types)]
pub struct leveldb_iterator_t {
    cursor: Cursor,
    failure: Option<Failure>,
}

impl leveldb_iterator_t {
    pub fn new(cursor: Cursor) -> leveldb_iterator_t {
        leveldb_iterator_t { cursor, failure: None }
    }

    fn go(&mut self, movement: impl FnOnce(&mut Cursor) -> Result<()>) {
        let cursor = &mut self.cursor;
        self.failure = guarded(|| movement(cursor)).err();
    }
}

/// Frees an iterator.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_destroy(iterator: Option<Box<leveldb_iterator_t>>) {
    drop(iterator);
}

/// Whether it is at a key.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_valid(iterator: &leveldb_iterator_t) -> u8 {
    u8::from(iterator.failure.is_none() && iterator.cursor.valid())
}

/// Goes to the first key.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek_to_first(iterator: &mut leveldb_iterator_t) {
    iterator.go(Cursor::seek_to_first);
}

/// Goes to the last key.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek_to_last(iterator: &mut leveldb_iterator_t) {
    iterator.go(Cursor::seek_to_last);
}

/// Goes to a key, or the first one behind it.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek(
    iterator: &mut leveldb_iterator_t,
    key: *const c_char,
    key_length: usize,
) {
    iterator.go(|cursor| cursor.seek(bytes(key, key_length)));
}

/// Goes to the next key.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_next(iterator: &mut leveldb_iterator_t) {
    iterator.go(Cursor::next);
}

/// Goes to the key before.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_prev(iterator: &mut leveldb_iterator_t) {
    iterator.go(Cursor::prev);
}

/// The key; it lives until the iterator moves.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_key(
    iterator: &leveldb_iterator_t,
    length: Option<&mut usize>,
) -> *const c_char {
    given(iterator.cursor.key(), length)
}

/// The value; it lives until the iterator moves.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_value(
    iterator: &leveldb_iterator_t,
    length: Option<&mut usize>,
) -> *const c_char {
    given(iterator.cursor.value(), length)
}

/// The error that the last movement had.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_get_error(iterator: &leveldb_iterator_t, error: Place<'_>) {
    if let Some(failure) = &iterator.failure {
        fail(error, failure);
    }
}

fn given(bytes: &[u8], length: Option<&mut usize>) -> *const c_char {
    if let Some(length) = length {
        *length = bytes.len();
    }
    bytes.as_ptr().cast()
}
