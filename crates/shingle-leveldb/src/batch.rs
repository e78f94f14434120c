//! Batches. They belong to no database until they are written, can be read, and can be written
//! again, so they keep their operations themselves.
//!
//! The operations have the form that LevelDB documents, which the C++ interface keeps in its own
//! batches: for each operation a byte with its kind, the key, and the value of a put. A length
//! stands before each key and value, 7 bits in a byte, the lowest first.

use crate::kinds::{is_too_long, leveldb_t};
use crate::memory::bytes;
use crate::options::leveldb_writeoptions_t;
use crate::status::{Place, call};
use shingle::{Error, Result, WriteBatch};
use std::ffi::{c_char, c_void};

const DELETE: u8 = 0;
const PUT: u8 = 1;

/// Bytes before the first operation in a batch of C++: a sequence number, and a count.
const HEAD_BYTES: usize = 12;

/// Operations in their order.
#[allow(non_camel_case_types)]
#[derive(Default)]
pub struct leveldb_writebatch_t {
    operations: Vec<u8>,
}

impl leveldb_writebatch_t {
    fn add(&mut self, kind: u8, parts: &[&[u8]]) {
        self.operations.push(kind);
        for part in parts {
            add_length(&mut self.operations, part.len());
            self.operations.extend_from_slice(part);
        }
    }
}

/// One operation of a batch.
enum Operation<'a> {
    Put(&'a [u8], &'a [u8]),
    Delete(&'a [u8]),
}

/// Reads operations. Bytes that are none end it with an error.
struct Operations<'a> {
    rest: &'a [u8],
}

impl<'a> Operations<'a> {
    fn take(&mut self) -> Option<Operation<'a>> {
        let (kind, rest) = self.rest.split_first()?;
        self.rest = rest;
        match *kind {
            PUT => Some(Operation::Put(self.part()?, self.part()?)),
            DELETE => Some(Operation::Delete(self.part()?)),
            _ => None,
        }
    }

    fn part(&mut self) -> Option<&'a [u8]> {
        let (mut length, mut shift) = (0, 0);
        loop {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
            if shift > 28 {
                return None;
            }
        }
        let (part, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(part)
    }
}

impl<'a> Iterator for Operations<'a> {
    type Item = Result<Operation<'a>>;

    fn next(&mut self) -> Option<Result<Operation<'a>>> {
        if self.rest.is_empty() {
            return None;
        }
        let taken = self.take();
        if taken.is_none() {
            self.rest = &[];
        }
        Some(taken.ok_or_else(|| Error::corruption("WriteBatch", 0, "bad WriteBatch")))
    }
}

fn add_length(to: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        to.push(length as u8 | 0x80);
        length >>= 7;
    }
    to.push(length as u8);
}

fn engine(operations: &[u8]) -> Result<WriteBatch> {
    let mut batch = WriteBatch::new();
    for operation in (Operations { rest: operations }) {
        match operation? {
            Operation::Put(key, value) => batch.put(key, value)?,
            // No database has a key that is too long.
            Operation::Delete(key) if is_too_long(key) => {}
            Operation::Delete(key) => batch.delete(key)?,
        }
    }
    Ok(batch)
}

/// An empty batch.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_create() -> Box<leveldb_writebatch_t> {
    Box::default()
}

/// Frees a batch.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_destroy(batch: Option<Box<leveldb_writebatch_t>>) {
    drop(batch);
}

/// Removes every operation.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_clear(batch: &mut leveldb_writebatch_t) {
    batch.operations.clear();
}

/// Adds a put.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_put(
    batch: &mut leveldb_writebatch_t,
    key: *const c_char,
    key_length: usize,
    value: *const c_char,
    value_length: usize,
) {
    batch.add(PUT, &[bytes(key, key_length), bytes(value, value_length)]);
}

/// Adds a deletion.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_delete(
    batch: &mut leveldb_writebatch_t,
    key: *const c_char,
    key_length: usize,
) {
    batch.add(DELETE, &[bytes(key, key_length)]);
}

/// Hears a put.
type Put = Option<extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize)>;
/// Hears a deletion.
type Deleted = Option<extern "C" fn(*mut c_void, *const c_char, usize)>;

/// Tells the operations in their order.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_iterate(
    batch: &leveldb_writebatch_t,
    state: *mut c_void,
    put: Put,
    deleted: Deleted,
) {
    for operation in (Operations { rest: &batch.operations }).flatten() {
        match (operation, put, deleted) {
            (Operation::Put(key, value), Some(put), _) => {
                put(state, key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len());
            }
            (Operation::Delete(key), _, Some(deleted)) => {
                deleted(state, key.as_ptr().cast(), key.len());
            }
            _ => {}
        }
    }
}

/// Adds the operations of another batch, which may be the same one.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_append(
    destination: *mut leveldb_writebatch_t,
    source: *const leveldb_writebatch_t,
) {
    crate::memory::both(destination, source, |destination, source| match source {
        Some(source) => destination.operations.extend_from_slice(&source.operations),
        None => destination.operations.extend_from_within(..),
    });
}

/// Writes a batch: all of it, or nothing.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_write(
    db: &leveldb_t,
    options: &leveldb_writeoptions_t,
    batch: &leveldb_writebatch_t,
    error: Place<'_>,
) {
    call(error, || db.0.write(engine(&batch.operations)?, &options.engine()));
}

/// For the C++ interface: writes a batch in the form that it has there.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_leveldb_write(
    db: &leveldb_t,
    options: &leveldb_writeoptions_t,
    batch: *const c_char,
    batch_length: usize,
    error: Place<'_>,
) {
    call(error, || {
        let Some(operations) = bytes(batch, batch_length).get(HEAD_BYTES..) else {
            return Err(Error::corruption("WriteBatch", 0, "malformed WriteBatch (too small)"));
        };
        db.0.write(engine(operations)?, &options.engine())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_come_back_and_noise_is_an_error() {
        let mut batch = leveldb_writebatch_t::default();
        let long = vec![7; 40_000];
        batch.add(PUT, &[b"key", &long]);
        batch.add(DELETE, &[b""]);
        let told: Vec<_> = (Operations { rest: &batch.operations })
            .map(|operation| match operation.unwrap() {
                Operation::Put(key, value) => (key.to_vec(), Some(value.len())),
                Operation::Delete(key) => (key.to_vec(), None),
            })
            .collect();
        assert_eq!(told, [(b"key".to_vec(), Some(40_000)), (Vec::new(), None)]);
        assert_eq!(engine(&batch.operations).unwrap().len(), 2);
        for cut in 1..batch.operations.len() - 2 {
            assert!(engine(&batch.operations[..cut]).is_err(), "{cut}");
        }
        assert!(engine(&[2, 1, b'k']).is_err());
        assert!(engine(&[DELETE, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).is_err());
    }
}
