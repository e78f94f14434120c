//! Single writes. Options of a write are flags, so that the usual write is short.

use crate::env::{Buffer, ByteArray, Env, Object, Space};
use crate::failure::call;
use crate::kinds::{KEYSPACES, handle};
use jni_sys::{jint, jlong};
use shingle::{Durability, Error, Expiry, Result, WriteOptions};

/// A flag: the write survives the end of the process.
const BUFFERED: jint = 1;
/// A flag: the write survives a power loss.
const SYNCED: jint = 2;
/// A flag: a write that would have to wait fails.
const NO_WAIT: jint = 4;

pub(crate) fn write_options(flags: jint) -> Result<WriteOptions> {
    let durability = match flags & (BUFFERED | SYNCED) {
        0 => None,
        BUFFERED => Some(Durability::Buffered),
        SYNCED => Some(Durability::Synced),
        _ => return Err(Error::invalid("a write is buffered or synced, not both")),
    };
    Ok(WriteOptions { durability, wait: flags & NO_WAIT == 0 })
}

/// Stores a value under a key.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_put(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    keyspace: jlong,
    key: ByteArray<'_>,
    value: ByteArray<'_>,
    flags: jint,
) {
    call(&env, || {
        let (mut key_space, mut value_space) = (Space::new(), Space::new());
        let key = env.bytes(key, &mut key_space)?;
        let value = env.bytes(value, &mut value_space)?;
        KEYSPACES.get(handle(keyspace))?.put_with(key, value, &write_options(flags)?)
    });
}

/// Stores a value of a direct buffer under a key of one.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_putDirect(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    keyspace: jlong,
    key: Buffer<'_>,
    key_start: jint,
    key_bytes: jint,
    value: Buffer<'_>,
    value_start: jint,
    value_bytes: jint,
    flags: jint,
) {
    call(&env, || {
        let key = env.direct(key, key_start, key_bytes)?;
        let value = env.direct(value, value_start, value_bytes)?;
        KEYSPACES.get(handle(keyspace))?.put_with(key, value, &write_options(flags)?)
    });
}

/// Stores a value that ends at `expires_millis` after 1970.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_putExpiring(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    keyspace: jlong,
    key: ByteArray<'_>,
    value: ByteArray<'_>,
    expires_millis: jlong,
    flags: jint,
) {
    call(&env, || {
        let (mut key_space, mut value_space) = (Space::new(), Space::new());
        let key = env.bytes(key, &mut key_space)?;
        let value = env.bytes(value, &mut value_space)?;
        let expiry = expiry(expires_millis)?;
        let options = write_options(flags)?;
        KEYSPACES.get(handle(keyspace))?.put_expiring_with(key, value, expiry, &options)
    });
}

/// A moment as Java gives it.
pub(crate) fn expiry(millis: jlong) -> Result<Expiry> {
    let millis = u64::try_from(millis).map_err(|_| Error::invalid("an expiry before 1970"))?;
    Ok(Expiry::from_millis(millis))
}

/// Removes a key; it need not exist.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_delete(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    keyspace: jlong,
    key: ByteArray<'_>,
    flags: jint,
) {
    call(&env, || {
        let mut space = Space::new();
        let key = env.bytes(key, &mut space)?;
        KEYSPACES.get(handle(keyspace))?.delete_with(key, &write_options(flags)?)
    });
}

/// Removes the keys from `start` on and before `end`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_deleteRange(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    keyspace: jlong,
    start: ByteArray<'_>,
    end: ByteArray<'_>,
    flags: jint,
) {
    call(&env, || {
        let (mut start_space, mut end_space) = (Space::new(), Space::new());
        let start = env.bytes(start, &mut start_space)?;
        let end = env.bytes(end, &mut end_space)?;
        KEYSPACES.get(handle(keyspace))?.delete_range_with(start, end, &write_options(flags)?)
    });
}

/// Applies an operand to the value of a key, by the keyspace's merge operator.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_merge(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    keyspace: jlong,
    key: ByteArray<'_>,
    operand: ByteArray<'_>,
    flags: jint,
) {
    call(&env, || {
        let (mut key_space, mut operand_space) = (Space::new(), Space::new());
        let key = env.bytes(key, &mut key_space)?;
        let operand = env.bytes(operand, &mut operand_space)?;
        KEYSPACES.get(handle(keyspace))?.merge_with(key, operand, &write_options(flags)?)
    });
}
