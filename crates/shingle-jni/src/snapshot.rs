//! Snapshots.

use crate::env::{ByteArray, Env, Object, Space};
use crate::failure::call;
use crate::kinds::{DBS, KEYSPACES, SNAPSHOTS, given, handle};
use crate::read::several;
use jni_sys::jlong;

/// The state of all keyspaces as it is now, seen through the default keyspace.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_snapshot(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
) -> jlong {
    call(&env, || given(&SNAPSHOTS, DBS.get(handle(db))?.snapshot()))
}

/// The same moment, seen through another keyspace.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_snapshotOf(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    snapshot: jlong,
    _keyspace_owner: Object<'_>,
    keyspace: jlong,
) -> jlong {
    call(&env, || {
        let keyspace = KEYSPACES.get(handle(keyspace))?;
        given(&SNAPSHOTS, SNAPSHOTS.get(handle(snapshot))?.of(&keyspace)?)
    })
}

/// The value of a key at the snapshot; null where there is none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_snapshotGet<'a>(
    env: Env<'a>,
    _class: Object<'_>,
    _owner: Object<'_>,
    snapshot: jlong,
    key: ByteArray<'_>,
) -> ByteArray<'a> {
    call(&env, || {
        let mut space = Space::new();
        let found = SNAPSHOTS.get(handle(snapshot))?.get(env.bytes(key, &mut space)?)?;
        env.new_optional_bytes(found.as_deref())
    })
}

/// The values of several keys at the snapshot.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_snapshotMultiGet<'a>(
    env: Env<'a>,
    _class: Object<'_>,
    _owner: Object<'_>,
    snapshot: jlong,
    packed_keys: ByteArray<'_>,
) -> ByteArray<'a> {
    call(&env, || {
        let snapshot = SNAPSHOTS.get(handle(snapshot))?;
        several(&env, packed_keys, |keys| snapshot.multi_get(keys))
    })
}

/// Frees a snapshot.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_closeSnapshot(
    env: Env<'_>,
    _class: Object<'_>,
    snapshot: jlong,
) {
    call(&env, || SNAPSHOTS.remove(handle(snapshot)));
}
