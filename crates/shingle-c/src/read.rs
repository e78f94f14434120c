//! Gets. A value is given without a copy where it lies in a block of the cache: the caller holds
//! the block until it frees the value.

use crate::arguments::{Slice, Value, copy, give, places, slices, wanted};
use crate::failure::{Place, call};
use crate::kinds::{KEYSPACES, Keyspace};
use shingle::{Bytes, Error};
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// Where a get puts what it found.
pub(crate) type ValuePlace<'a> = Option<&'a mut MaybeUninit<Value>>;

/// Gives a value.
#[inline(always)]
pub(crate) fn give_value(place: ValuePlace<'_>, found: Option<Bytes>) -> shingle::Result<()> {
    Value::put(wanted(place)?, found);
    Ok(())
}

/// Gives the values of several keys; `values` has a place for each.
pub(crate) fn give_values(places: &mut [MaybeUninit<Value>], found: Vec<Option<Bytes>>) {
    for (place, found) in places.iter_mut().zip(found) {
        Value::put(place, found);
    }
}

pub(crate) fn keys(first: Option<&Slice>, count: usize) -> shingle::Result<Vec<&[u8]>> {
    slices(first, count)?.iter().map(|slice| slice.bytes()).collect()
}

/// The value of `key`, without a copy where its block is in the cache. Where there is none, which
/// is no error, its bytes begin at null. It lives until `shingle_value_free`, also after the
/// database is closed.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_get(
    keyspace: *mut Keyspace,
    key: Slice,
    value: Option<&mut MaybeUninit<Value>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let (keyspace, key) = (KEYSPACES.get(keyspace.addr())?, key.bytes()?);
        give_value(value, keyspace.get(key)?)
    })
}

/// The value of `key`, copied to `buffer` as far as `buffer_bytes` reach. `value_bytes` gets its
/// whole size, or `SIZE_MAX` where there is none. The key must not lie in `buffer`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_get_copy(
    keyspace: *mut Keyspace,
    key: Slice,
    buffer: Option<&mut MaybeUninit<u8>>,
    buffer_bytes: usize,
    value_bytes: Option<&mut MaybeUninit<usize>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let buffer = places(buffer, buffer_bytes)?;
        let mut bytes = usize::MAX;
        let copied = |value: &[u8]| bytes = copy(value, buffer);
        KEYSPACES.get(keyspace.addr())?.get_with(key.bytes()?, copied)?;
        give(value_bytes, bytes)
    })
}

/// The values of `count` keys, read together, each as `shingle_get` gives it.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_multi_get(
    keyspace: *mut Keyspace,
    keys: Option<&Slice>,
    count: usize,
    values: Option<&mut MaybeUninit<Value>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let keyspace = KEYSPACES.get(keyspace.addr())?;
        let (keys, places) = (self::keys(keys, count)?, places(values, count)?);
        give_values(places, keyspace.multi_get(&keys)?);
        Ok(())
    })
}

/// The value of `key` and when it ends, in milliseconds after 1970: `UINT64_MAX` where it does
/// not.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_get_with_expiry(
    keyspace: *mut Keyspace,
    key: Slice,
    value: Option<&mut MaybeUninit<Value>>,
    expires_millis: Option<&mut MaybeUninit<u64>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let Some(place) = expires_millis else {
            return Err(Error::invalid("the place for the expiry is null"));
        };
        let found = KEYSPACES.get(keyspace.addr())?.get_with_expiry(key.bytes()?)?;
        let expiry = found.as_ref().and_then(|(_, expiry)| *expiry);
        place.write(expiry.map_or(u64::MAX, |expiry| expiry.as_millis()));
        give_value(value, found.map(|(bytes, _)| bytes))
    })
}

/// Frees a value. It has no bytes then, so that freeing it again does nothing. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_value_free(value: Option<&mut Value>) {
    if let Some(value) = value {
        value.free();
    }
}
