//! Gets. Several values come back in one array: the size of each, little-endian in four bytes and
//! -1 for a missing key, and then its bytes.

use crate::env::{Buffer, ByteArray, Env, Object, Space};
use crate::failure::call;
use crate::kinds::{KEYSPACES, handle};
use bindings::{Chunk, Entries};
use jni_sys::{jint, jlong};
use shingle::{Bytes, Expiry, Result};

/// What stands for the size of a value that is missing.
const MISSING: u32 = u32::MAX;

/// The keys that Java asks for: each is an entry without a value.
pub(crate) fn keys(packed: &[u8]) -> Vec<&[u8]> {
    Entries::from(packed).map(|(key, _)| key).collect()
}

/// Values in the form of the module.
pub(crate) fn packed(values: &[Option<Bytes>]) -> Vec<u8> {
    let sizes = values.iter().map(|value| 4 + value.as_ref().map_or(0, |value| value.len()));
    let mut packed = Vec::with_capacity(sizes.sum());
    for value in values {
        let size = value.as_ref().map_or(MISSING, |value| value.len() as u32);
        packed.extend_from_slice(&size.to_le_bytes());
        packed.extend_from_slice(value.as_deref().unwrap_or_default());
    }
    packed
}

/// Texts: each is an entry without a value, so a text may have any characters.
pub(crate) fn packed_texts(texts: &[String]) -> Chunk {
    let mut packed = Chunk::default();
    texts.iter().for_each(|text| packed.push(text.as_bytes(), b""));
    packed
}

/// The value of a key; null where there is none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_get<'a>(
    env: Env<'a>,
    _class: Object<'_>,
    _owner: Object<'_>,
    keyspace: jlong,
    key: ByteArray<'_>,
) -> ByteArray<'a> {
    call(&env, || {
        let mut space = Space::new();
        let key = env.bytes(key, &mut space)?;
        let found = KEYSPACES.get(handle(keyspace))?.get_with(key, |value| env.new_bytes(value))?;
        found.unwrap_or(Ok(ByteArray::default()))
    })
}

/// The value of a key, with its expiry before it: milliseconds since 1970 in eight bytes,
/// little-endian, all ones where it does not end.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_getWithExpiry<'a>(
    env: Env<'a>,
    _class: Object<'_>,
    _owner: Object<'_>,
    keyspace: jlong,
    key: ByteArray<'_>,
) -> ByteArray<'a> {
    call(&env, || {
        let mut space = Space::new();
        let key = env.bytes(key, &mut space)?;
        let found = KEYSPACES.get(handle(keyspace))?.get_with_expiry(key)?;
        let packed = found.map(|(value, expiry)| {
            let mut packed = Vec::with_capacity(8 + value.len());
            expiry.unwrap_or(Expiry::NEVER).push_with(&value, &mut packed);
            packed
        });
        env.new_optional_bytes(packed.as_deref())
    })
}

/// The value of a key, copied to a direct buffer as far as that reaches; its whole size, or -1
/// where there is none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_getDirect(
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
) -> jlong {
    call(&env, || {
        let key = env.direct(key, key_start, key_bytes)?;
        // The buffers may overlap, so that the value is copied after the key was read.
        let Some(found) = KEYSPACES.get(handle(keyspace))?.get(key)? else { return Ok(-1) };
        env.fill_direct(value, value_start, value_bytes, &found)?;
        Ok(found.len() as jlong)
    })
}

/// The values of several keys, read together.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_multiGet<'a>(
    env: Env<'a>,
    _class: Object<'_>,
    _owner: Object<'_>,
    keyspace: jlong,
    packed_keys: ByteArray<'_>,
) -> ByteArray<'a> {
    call(&env, || {
        let keyspace = KEYSPACES.get(handle(keyspace))?;
        several(&env, packed_keys, |keys| keyspace.multi_get(keys))
    })
}

/// Unpacks keys, and packs the values that `get` finds.
pub(crate) fn several<'a>(
    env: &Env<'a>,
    packed_keys: ByteArray<'_>,
    get: impl FnOnce(&[&[u8]]) -> Result<Vec<Option<Bytes>>>,
) -> Result<ByteArray<'a>> {
    let mut space = Space::new();
    let found = get(&keys(env.bytes(packed_keys, &mut space)?))?;
    env.new_bytes(&packed(&found))
}
