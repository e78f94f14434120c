//! Cursors. A call moves a cursor and gives the entries from there on, so that a scan crosses once
//! for many entries.

use crate::env::{ByteArray, Env, Object, Space};
use crate::failure::call;
use crate::kinds::{CURSORS, KEYSPACES, SNAPSHOTS, given, handle};
use crate::position::Position;
use jni_sys::{jint, jlong};
use parking_lot::Mutex;
use shingle::{Error, ReadOptions, Result};

/// A flag: blocks that are read do not go to the block cache.
const LEAVES_CACHE: jint = 1;
/// A flag: no user waits.
const IS_BACKGROUND: jint = 2;

pub(crate) fn read_options(
    env: &Env<'_>,
    [start, end, prefix]: [ByteArray<'_>; 3],
    flags: jint,
) -> Result<ReadOptions> {
    let (mut first, mut second) = (Space::new(), Space::new());
    let mut options = match env.optional_bytes(prefix, &mut first)? {
        Some(prefix) => ReadOptions::prefix(prefix),
        None => ReadOptions::default(),
    };
    if let Some(start) = env.optional_bytes(start, &mut first)? {
        options.range.start = start.into();
    }
    if let Some(end) = env.optional_bytes(end, &mut second)? {
        options.range.end = Some(end.into());
    }
    options.fill_cache = flags & LEAVES_CACHE == 0;
    options.background = flags & IS_BACKGROUND != 0;
    Ok(options)
}

pub(crate) fn given_position(position: impl Into<Position>) -> Result<jlong> {
    given(&CURSORS, Mutex::new(position.into()))
}

/// A cursor over a keyspace as it is now.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_cursor(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    keyspace: jlong,
    start: ByteArray<'_>,
    end: ByteArray<'_>,
    prefix: ByteArray<'_>,
    flags: jint,
) -> jlong {
    call(&env, || {
        let options = read_options(&env, [start, end, prefix], flags)?;
        given_position(KEYSPACES.get(handle(keyspace))?.cursor(options))
    })
}

/// A cursor over a snapshot.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_snapshotCursor(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    snapshot: jlong,
    start: ByteArray<'_>,
    end: ByteArray<'_>,
    prefix: ByteArray<'_>,
    flags: jint,
) -> jlong {
    call(&env, || {
        let options = read_options(&env, [start, end, prefix], flags)?;
        given_position(SNAPSHOTS.get(handle(snapshot))?.cursor(options))
    })
}

/// Moves the cursor as `movement` says, and puts the entries from there on into `into`. Gives how
/// many bytes they have: where `into` is smaller, they wait for `Native_chunk`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_fill(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    cursor: jlong,
    movement: jint,
    key: ByteArray<'_>,
    bytes_max: jint,
    into: ByteArray<'_>,
) -> jint {
    call(&env, || {
        let mut space = Space::new();
        let key = env.optional_bytes(key, &mut space)?;
        let position = CURSORS.get(handle(cursor))?;
        let mut position = position.lock();
        position.fill(movement, key, usize::try_from(bytes_max).unwrap_or(0))?;
        let bytes = position.bytes();
        env.fill(into, bytes)?;
        jint::try_from(bytes.len()).map_err(|_| {
            Error::invalid(format!("an entry of {} bytes is too large for Java", bytes.len()))
        })
    })
}

/// The entries that were too many for the array of `Native_fill`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_chunk(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    cursor: jlong,
    into: ByteArray<'_>,
) {
    call(&env, || {
        let position = CURSORS.get(handle(cursor))?;
        match env.fill(into, position.lock().bytes())? {
            true => Ok(()),
            false => Err(Error::invalid("the cursor was moved by another thread")),
        }
    });
}

/// Frees a cursor.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_closeCursor(
    env: Env<'_>,
    _class: Object<'_>,
    cursor: jlong,
) {
    call(&env, || CURSORS.remove(handle(cursor)));
}
