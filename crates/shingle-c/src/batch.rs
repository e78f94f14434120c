//! Batches.

use crate::arguments::{Slice, give_handle, slices};
use crate::failure::{Place, call};
use crate::kinds::{BATCHES, Batch, DBS, Db, KEYSPACES, Keyspace};
use crate::write::write_options;
use parking_lot::Mutex;
use shingle::{Expiry, WriteBatch};
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// An empty batch. Free it with `shingle_batch_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_batch_create(
    batch: Option<&mut MaybeUninit<*mut Batch>>,
    error: Place<'_>,
) -> c_int {
    call(error, || give_handle(batch, &BATCHES, Mutex::new(WriteBatch::new())))
}

/// Adds a put.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_batch_put(
    batch: *mut Batch,
    keyspace: *mut Keyspace,
    key: Slice,
    value: Slice,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let (key, value) = (key.bytes()?, value.bytes()?);
        add(batch, keyspace, |batch, keyspace| batch.put_in(keyspace, key, value))
    })
}

/// Adds `count` puts: of each key with the value at the same place. Cheaper than as many calls.
/// After an error the batch has those before the refused one.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_batch_put_many(
    batch: *mut Batch,
    keyspace: *mut Keyspace,
    keys: Option<&Slice>,
    values: Option<&Slice>,
    count: usize,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let (keys, values) = (slices(keys, count)?, slices(values, count)?);
        add(batch, keyspace, |batch, keyspace| {
            for (key, value) in keys.iter().zip(values) {
                batch.put_in(keyspace, key.bytes()?, value.bytes()?)?;
            }
            Ok(())
        })
    })
}

/// Adds a put of a value that ends at `expires_millis` after 1970.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_batch_put_expiring(
    batch: *mut Batch,
    keyspace: *mut Keyspace,
    key: Slice,
    value: Slice,
    expires_millis: u64,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let (key, value, expiry) =
            (key.bytes()?, value.bytes()?, Expiry::from_millis(expires_millis));
        add(batch, keyspace, |batch, keyspace| batch.put_expiring_in(keyspace, key, value, expiry))
    })
}

/// Adds a deletion.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_batch_delete(
    batch: *mut Batch,
    keyspace: *mut Keyspace,
    key: Slice,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let key = key.bytes()?;
        add(batch, keyspace, |batch, keyspace| batch.delete_in(keyspace, key))
    })
}

/// Adds a deletion of the keys from `start` on and before `end`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_batch_delete_range(
    batch: *mut Batch,
    keyspace: *mut Keyspace,
    start: Slice,
    end: Slice,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let (start, end) = (start.bytes()?, end.bytes()?);
        add(batch, keyspace, |batch, keyspace| batch.delete_range_in(keyspace, start, end))
    })
}

/// Adds a merge.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_batch_merge(
    batch: *mut Batch,
    keyspace: *mut Keyspace,
    key: Slice,
    operand: Slice,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let (key, operand) = (key.bytes()?, operand.bytes()?);
        add(batch, keyspace, |batch, keyspace| batch.merge_in(keyspace, key, operand))
    })
}

/// Removes everything from a batch and keeps its memory.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_batch_clear(batch: *mut Batch, error: Place<'_>) -> c_int {
    call(error, || {
        BATCHES.get(batch.addr())?.lock().clear();
        Ok(())
    })
}

/// Operations in a batch; 0 where there is no batch.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_batch_count(batch: *mut Batch) -> usize {
    BATCHES.get(batch.addr()).map_or(0, |batch| batch.lock().len())
}

/// Writes a batch: all of it, or nothing. The batch is empty afterwards, also after an error, and
/// can be filled anew.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_write(
    db: *mut Db,
    batch: *mut Batch,
    flags: u32,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let batch = std::mem::take(&mut *BATCHES.get(batch.addr())?.lock());
        DBS.get(db.addr())?.write(batch, &write_options(flags)?)
    })
}

/// Frees a batch. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_batch_free(batch: *mut Batch) {
    call(None, || BATCHES.remove(batch.addr()));
}

fn add(
    batch: *mut Batch,
    keyspace: *mut Keyspace,
    add: impl FnOnce(&mut WriteBatch, &shingle::Keyspace) -> shingle::Result<()>,
) -> shingle::Result<()> {
    let (batch, keyspace) = (BATCHES.get(batch.addr())?, KEYSPACES.get(keyspace.addr())?);
    add(&mut batch.lock(), &keyspace)
}
