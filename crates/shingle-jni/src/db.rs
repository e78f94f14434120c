//! Databases: opening, closing, and work on a whole database.

use crate::env::{ByteArray, Env, Object, Space};
use crate::failure::call;
use crate::kinds::{DBS, RESOURCES, given, handle};
use crate::options::{options, text};
use crate::read::packed_texts;
use jni_sys::{jboolean, jint, jlong};
use std::time::Duration;

/// A flag of opening: a database that does not exist is not created.
const MUST_EXIST: jint = 1;
/// A flag of opening: reads only.
const READ_ONLY: jint = 2;
/// A flag of opening: the database must be new.
const CREATE_NEW: jint = 4;

/// Opens the database in a directory. `resources` may be zero.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_open(
    env: Env<'_>,
    _class: Object<'_>,
    path: ByteArray<'_>,
    pairs: ByteArray<'_>,
    flags: jint,
    resources: jlong,
) -> jlong {
    call(&env, || {
        let (mut path_space, mut pairs_space) = (Space::new(), Space::new());
        let path = bindings::path(env.bytes(path, &mut path_space)?)?;
        let mut options = options(env.bytes(pairs, &mut pairs_space)?)?
            .create(flags & MUST_EXIST == 0)
            .create_new(flags & CREATE_NEW != 0)
            .read_only(flags & READ_ONLY != 0);
        if resources != 0 {
            options = options.resources(&*RESOURCES.get(handle(resources))?);
        }
        given(&DBS, options.open(path)?)
    })
}

/// Removes the database in a directory.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_destroy(
    env: Env<'_>,
    _class: Object<'_>,
    path: ByteArray<'_>,
) {
    call(&env, || {
        let mut space = Space::new();
        shingle::destroy(bindings::path(env.bytes(path, &mut space)?)?)
    });
}

/// Closes a database. Calls of other threads that are in it end first.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_closeDatabase(
    env: Env<'_>,
    _class: Object<'_>,
    db: jlong,
) {
    call(&env, || {
        let open = shingle::Db::clone(&*DBS.get(handle(db))?);
        DBS.remove(handle(db))?;
        open.close()
    });
}

/// Flushes the memtables of all keyspaces to tables, and waits until they are there.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_flush(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
) {
    call(&env, || DBS.get(handle(db))?.flush());
}

/// Begins a flush, and does not wait for its end.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_beginFlush(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
) {
    call(&env, || DBS.get(handle(db))?.begin_flush());
}

/// Makes every earlier write durable.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_sync(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
) {
    call(&env, || DBS.get(handle(db))?.sync());
}

/// Compacts every keyspace.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_compact(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
) {
    call(&env, || DBS.get(handle(db))?.compact());
}

/// Waits until no background work is due.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_waitIdle(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
) {
    call(&env, || DBS.get(handle(db))?.wait_idle());
}

/// Waits until `bytes` can be written without a wait, at most `timeout_millis`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_waitWritable(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
    bytes: jlong,
    timeout_millis: jlong,
) -> jboolean {
    call(&env, || {
        let timeout = Duration::from_millis(u64::try_from(timeout_millis).unwrap_or(0));
        let bytes = u64::try_from(bytes).unwrap_or(0);
        DBS.get(handle(db))?.wait_writable(bytes, Some(timeout))
    })
}

/// Copies the database as it is now to a new directory.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_checkpoint(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
    target: ByteArray<'_>,
) {
    call(&env, || {
        let mut space = Space::new();
        DBS.get(handle(db))?.checkpoint(bindings::path(env.bytes(target, &mut space)?)?)
    });
}

/// Changes an option of an open database.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_setOption(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
    name: ByteArray<'_>,
    value: ByteArray<'_>,
) {
    call(&env, || {
        let (mut name_space, mut value_space) = (Space::new(), Space::new());
        let name = text(env.bytes(name, &mut name_space)?)?;
        let value = text(env.bytes(value, &mut value_space)?)?;
        DBS.get(handle(db))?.set_option(name, value)
    });
}

/// The statistics as JSON.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_stats<'a>(
    env: Env<'a>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
) -> ByteArray<'a> {
    call(&env, || {
        let stats = DBS.get(handle(db))?.stats().to_json();
        env.new_bytes(stats.as_bytes())
    })
}

/// A property by its name; null where there is none of that name.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_property<'a>(
    env: Env<'a>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
    name: ByteArray<'_>,
) -> ByteArray<'a> {
    call(&env, || {
        let mut space = Space::new();
        let found = DBS.get(handle(db))?.property(text(env.bytes(name, &mut space)?)?);
        env.new_optional_bytes(found.as_ref().map(String::as_bytes))
    })
}

/// Compares the whole database with its checksums: the problems, packed.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_check<'a>(
    env: Env<'a>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
) -> ByteArray<'a> {
    call(&env, || {
        let report = DBS.get(handle(db))?.check(&mut |_| {})?;
        env.new_bytes(packed_texts(&report.problems).bytes())
    })
}
