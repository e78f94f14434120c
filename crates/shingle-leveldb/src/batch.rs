//! Batches. They belong to no database until they are written, can be read, and can be written
//! again, so they keep their operations themselves.

use crate::memory::bytes;
use shingle::{Result, WriteBatch};
use std::ffi::{c_char, c_void};

/// Operations in their order.
#[allow(non_camel_case_types)]
#[derive(Default)]
pub struct leveldb_writebatch_t {
    /// Keys and values, one after the other.
    bytes: Vec<u8>,
    operations: Vec<Operation>,
}

/// Sizes of the key, and of the value of a put.
#[derive(Clone, Copy)]
struct Operation {
    key_bytes: usize,
    value_bytes: Option<usize>,
}

impl leveldb_writebatch_t {
    /// The same for the engine.
    pub fn engine(&self) -> Result<WriteBatch> {
        let mut batch = WriteBatch::new();
        for (key, value) in self.iter() {
            match value {
                Some(value) => batch.put(key, value)?,
                None => batch.delete(key)?,
            }
        }
        Ok(batch)
    }

    /// Keys, and the values of puts.
    fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let mut rest = &self.bytes[..];
        let mut take = move |count: usize| {
            let (taken, behind) = rest.split_at(count);
            rest = behind;
            taken
        };
        self.operations.iter().map(move |operation| {
            let key = take(operation.key_bytes);
            (key, operation.value_bytes.map(&mut take))
        })
    }

    fn add(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        let value_bytes = value.map(<[u8]>::len);
        self.operations.push(Operation { key_bytes: key.len(), value_bytes });
    }
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
    batch.bytes.clear();
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
    batch.add(bytes(key, key_length), Some(bytes(value, value_length)));
}

/// Adds a deletion.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_delete(
    batch: &mut leveldb_writebatch_t,
    key: *const c_char,
    key_length: usize,
) {
    batch.add(bytes(key, key_length), None);
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
    for (key, value) in batch.iter() {
        match (value, put, deleted) {
            (Some(value), Some(put), _) => {
                put(state, key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len());
            }
            (None, _, Some(deleted)) => deleted(state, key.as_ptr().cast(), key.len()),
            _ => {}
        }
    }
}

/// Adds the operations of another batch.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_append(
    batch: &mut leveldb_writebatch_t,
    other: &leveldb_writebatch_t,
) {
    batch.bytes.extend_from_slice(&other.bytes);
    batch.operations.extend_from_slice(&other.operations);
}

/// Bytes of the keys and values, and of what an operation needs beside them.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_leveldb_writebatch_bytes(batch: &leveldb_writebatch_t) -> usize {
    12 + batch.bytes.len() + 3 * batch.operations.len()
}
