//! Keyspaces: their names, and their creation with fixed properties.

use crate::env::{ByteArray, Env, Object, Space};
use crate::failure::call;
use crate::kinds::{DBS, KEYSPACES, given, handle};
use crate::options::text;
use crate::read::packed_texts;
use jni_sys::{jint, jlong};
use shingle::{Error, KeyspaceOptions, PrefixRule, Result};
use std::time::Duration;

/// A flag: writes do not go to the log.
const WITHOUT_WAL: jint = 1;
/// A flag: a keyspace that exists is opened.
const MAY_EXIST: jint = 2;

fn properties(
    operator: Option<&[u8]>,
    ttl_millis: jlong,
    prefix_bytes: jint,
    flags: jint,
) -> Result<KeyspaceOptions> {
    let ttl = u64::try_from(ttl_millis).map_err(|_| Error::invalid("a time below zero"))?;
    let prefix = u8::try_from(prefix_bytes).map_err(|_| {
        Error::invalid(format!("a prefix of {prefix_bytes} bytes: it has 0 to 255"))
    })?;
    Ok(KeyspaceOptions {
        merge_operator: operator.map(text).transpose()?.map(str::to_string),
        ttl: (ttl > 0).then(|| Duration::from_millis(ttl)),
        prefix: if prefix == 0 { PrefixRule::None } else { PrefixRule::Fixed(prefix) },
        without_wal: flags & WITHOUT_WAL != 0,
        ..KeyspaceOptions::default()
    })
}

/// Creates a keyspace, or opens one that has these properties.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_createKeyspace(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
    name: ByteArray<'_>,
    merge_operator: ByteArray<'_>,
    ttl_millis: jlong,
    prefix_bytes: jint,
    flags: jint,
) -> jlong {
    call(&env, || {
        let (mut name_space, mut operator_space) = (Space::new(), Space::new());
        let name = text(env.bytes(name, &mut name_space)?)?;
        let operator = env.optional_bytes(merge_operator, &mut operator_space)?;
        let properties = properties(operator, ttl_millis, prefix_bytes, flags)?;
        let db = DBS.get(handle(db))?;
        let made = match flags & MAY_EXIST {
            0 => db.create_keyspace(name, properties)?,
            _ => db.open_or_create_keyspace(name, properties)?,
        };
        given(&KEYSPACES, made)
    })
}

/// The keyspace of a name, as it is.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_findKeyspace(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
    name: ByteArray<'_>,
) -> jlong {
    call(&env, || {
        let mut space = Space::new();
        let found = DBS.get(handle(db))?.keyspace(text(env.bytes(name, &mut space)?)?)?;
        given(&KEYSPACES, found)
    })
}

/// The keyspace that every database has.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_defaultKeyspace(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
) -> jlong {
    call(&env, || {
        let found = DBS.get(handle(db))?.default_keyspace().clone();
        given(&KEYSPACES, found)
    })
}

/// The name of a keyspace.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_keyspaceName<'a>(
    env: Env<'a>,
    _class: Object<'_>,
    _owner: Object<'_>,
    keyspace: jlong,
) -> ByteArray<'a> {
    call(&env, || env.new_bytes(KEYSPACES.get(handle(keyspace))?.name().as_bytes()))
}

/// The names of all keyspaces, packed.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_keyspaces<'a>(
    env: Env<'a>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
) -> ByteArray<'a> {
    call(&env, || {
        let names = DBS.get(handle(db))?.keyspaces();
        env.new_bytes(packed_texts(&names).bytes())
    })
}

/// Removes a keyspace with everything in it.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_dropKeyspace(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
    name: ByteArray<'_>,
) {
    call(&env, || {
        let mut space = Space::new();
        DBS.get(handle(db))?.drop_keyspace(text(env.bytes(name, &mut space)?)?)
    });
}

/// Compacts the keys from `start` on and before `end`; null is no bound.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_compactRange(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    keyspace: jlong,
    start: ByteArray<'_>,
    end: ByteArray<'_>,
) {
    call(&env, || {
        let (mut start_space, mut end_space) = (Space::new(), Space::new());
        let start = env.optional_bytes(start, &mut start_space)?;
        let end = env.optional_bytes(end, &mut end_space)?;
        KEYSPACES.get(handle(keyspace))?.compact_range(start, end)
    });
}

/// An estimate of the number of keys.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_approximateSize(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    keyspace: jlong,
) -> jlong {
    call(&env, || {
        let keys = KEYSPACES.get(handle(keyspace))?.approximate_len()?;
        Ok(jlong::try_from(keys).unwrap_or(jlong::MAX))
    })
}

/// Frees the handle of a keyspace; the keyspace stays.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_closeKeyspace(
    env: Env<'_>,
    _class: Object<'_>,
    keyspace: jlong,
) {
    call(&env, || KEYSPACES.remove(handle(keyspace)));
}
