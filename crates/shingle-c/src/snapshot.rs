//! Snapshots.

use crate::arguments::{Slice, Value, give_handle, places};
use crate::failure::{Place, call};
use crate::kinds::{DBS, Db, KEYSPACES, Keyspace, SNAPSHOTS, Snapshot};
use crate::read::{self, give_value, give_values};
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// The state of all keyspaces as it is now, seen through the default keyspace. It holds what
/// compactions would remove, until it is freed with `shingle_snapshot_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_snapshot_create(
    db: *mut Db,
    snapshot: Option<&mut MaybeUninit<*mut Snapshot>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let made = DBS.get(db.addr())?.snapshot();
        give_handle(snapshot, &SNAPSHOTS, made)
    })
}

/// The same moment, seen through another keyspace. Free it too.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_snapshot_of(
    snapshot: *mut Snapshot,
    keyspace: *mut Keyspace,
    other: Option<&mut MaybeUninit<*mut Snapshot>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let keyspace = KEYSPACES.get(keyspace.addr())?;
        let made = SNAPSHOTS.get(snapshot.addr())?.of(&keyspace);
        give_handle(other, &SNAPSHOTS, made?)
    })
}

/// The value of `key` at the snapshot; see `shingle_get`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_snapshot_get(
    snapshot: *mut Snapshot,
    key: Slice,
    value: Option<&mut MaybeUninit<Value>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let found = SNAPSHOTS.get(snapshot.addr())?.get(key.bytes()?)?;
        give_value(value, found)
    })
}

/// The values of `count` keys at the snapshot; see `shingle_multi_get`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_snapshot_multi_get(
    snapshot: *mut Snapshot,
    keys: Option<&Slice>,
    count: usize,
    values: Option<&mut MaybeUninit<Value>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let snapshot = SNAPSHOTS.get(snapshot.addr())?;
        let (keys, places) = (read::keys(keys, count)?, places(values, count)?);
        give_values(places, snapshot.multi_get(&keys)?);
        Ok(())
    })
}

/// Frees a snapshot. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_snapshot_free(snapshot: *mut Snapshot) {
    call(None, || SNAPSHOTS.remove(snapshot.addr()));
}
