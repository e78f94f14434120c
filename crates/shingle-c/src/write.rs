//! Single writes. Options of a write are flags, so that the usual write is short.

use crate::arguments::{Slice, give};
use crate::failure::{Place, call};
use crate::kinds::{DBS, Db, KEYSPACES, Keyspace};
use shingle::{Durability, Error, Expiry, WriteOptions};
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::time::Duration;

/// A write flag: the database's durability.
pub const SHINGLE_DEFAULT: u32 = 0;
/// A write flag: the write survives the end of the process.
pub const SHINGLE_BUFFERED: u32 = 1;
/// A write flag: the write survives a power loss.
pub const SHINGLE_SYNCED: u32 = 2;
/// A write flag: a write that would have to wait fails with `SHINGLE_WOULD_WAIT`.
pub const SHINGLE_NO_WAIT: u32 = 4;

#[inline]
pub(crate) fn write_options(flags: u32) -> shingle::Result<WriteOptions> {
    let durability = match flags & !SHINGLE_NO_WAIT {
        SHINGLE_DEFAULT => None,
        SHINGLE_BUFFERED => Some(Durability::Buffered),
        SHINGLE_SYNCED => Some(Durability::Synced),
        _ => return Err(refused(flags)),
    };
    Ok(WriteOptions { durability, wait: flags & SHINGLE_NO_WAIT == 0 })
}

#[cold]
fn refused(flags: u32) -> Error {
    if flags & !(SHINGLE_BUFFERED | SHINGLE_SYNCED | SHINGLE_NO_WAIT) == 0 {
        return Error::invalid("a write is buffered or synced, not both");
    }
    Error::invalid(format!("{flags:#x} has write flags that do not exist"))
}

/// Stores `value` under `key`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_put(
    keyspace: *mut Keyspace,
    key: Slice,
    value: Slice,
    flags: u32,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let keyspace = KEYSPACES.get(keyspace.addr())?;
        keyspace.put_with(key.bytes()?, value.bytes()?, &write_options(flags)?)
    })
}

/// Stores `value` under `key` until `expires_millis` after 1970.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_put_expiring(
    keyspace: *mut Keyspace,
    key: Slice,
    value: Slice,
    expires_millis: u64,
    flags: u32,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let (keyspace, options) = (KEYSPACES.get(keyspace.addr())?, write_options(flags)?);
        let expiry = Expiry::from_millis(expires_millis);
        keyspace.put_expiring_with(key.bytes()?, value.bytes()?, expiry, &options)
    })
}

/// Removes `key`; it need not be there.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_delete(
    keyspace: *mut Keyspace,
    key: Slice,
    flags: u32,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        KEYSPACES.get(keyspace.addr())?.delete_with(key.bytes()?, &write_options(flags)?)
    })
}

/// Removes the keys from `start` on and before `end`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_delete_range(
    keyspace: *mut Keyspace,
    start: Slice,
    end: Slice,
    flags: u32,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let (keyspace, options) = (KEYSPACES.get(keyspace.addr())?, write_options(flags)?);
        keyspace.delete_range_with(start.bytes()?, end.bytes()?, &options)
    })
}

/// Applies `operand` to the value of `key`, by the keyspace's merge operator.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_merge(
    keyspace: *mut Keyspace,
    key: Slice,
    operand: Slice,
    flags: u32,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let (keyspace, options) = (KEYSPACES.get(keyspace.addr())?, write_options(flags)?);
        keyspace.merge_with(key.bytes()?, operand.bytes()?, &options)
    })
}

/// Waits until `bytes` can be written without a wait, at most `timeout_millis`. `is_writable` gets
/// whether they can.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_wait_writable(
    db: *mut Db,
    bytes: u64,
    timeout_millis: u64,
    is_writable: Option<&mut MaybeUninit<bool>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let timeout = Duration::from_millis(timeout_millis);
        let found = DBS.get(db.addr())?.wait_writable(bytes, Some(timeout))?;
        give(is_writable, found)
    })
}
