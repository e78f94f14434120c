//! Cursors: entry by entry, and many entries in one call.

use crate::arguments::{Slice, give, give_handle};
use crate::failure::{Place, call};
use crate::kinds::{CURSORS, Cursor, KEYSPACES, Keyspace, SNAPSHOTS, Snapshot};
use bindings::fill;
use parking_lot::Mutex;
use shingle::{Error, ReadOptions};
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// Which keys a cursor shows, and how it reads. All zero: all keys, the usual way.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CursorOptions {
    /// The first key that is shown; null: no bound.
    pub start: Slice,
    /// The first key behind those that are shown; null: no bound.
    pub end: Slice,
    /// Only keys that begin with it are shown, in place of `start` and `end`; null: all.
    pub prefix: Slice,
    /// Blocks that are read do not go to the block cache.
    pub leaves_cache: bool,
    /// No user waits: it prefetches in large pieces, and leaves the block cache alone.
    pub is_background: bool,
}

impl CursorOptions {
    fn given(options: Option<&CursorOptions>) -> shingle::Result<ReadOptions> {
        let Some(options) = options else { return Ok(ReadOptions::default()) };
        let mut given = match options.prefix.data.is_null() {
            false => ReadOptions::prefix(options.prefix.bytes()?),
            true => ReadOptions::default(),
        };
        if options.prefix.data.is_null() {
            given.range.start = options.start.bytes()?.into();
            if !options.end.data.is_null() {
                given.range.end = Some(options.end.bytes()?.into());
            }
        }
        given.fill_cache = !options.leaves_cache;
        given.background = options.is_background;
        Ok(given)
    }
}

/// A cursor over a keyspace as it is now. `options` may be null. It has no position until it seeks.
/// One thread uses it at a time; another one waits. Free it with `shingle_cursor_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_cursor_create(
    keyspace: *mut Keyspace,
    options: Option<&CursorOptions>,
    cursor: Option<&mut MaybeUninit<*mut Cursor>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let made = KEYSPACES.get(keyspace.addr())?.cursor(CursorOptions::given(options)?);
        give_handle(cursor, &CURSORS, Mutex::new(made))
    })
}

/// A cursor over the keyspace of a snapshot; see `shingle_cursor_create`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_snapshot_cursor(
    snapshot: *mut Snapshot,
    options: Option<&CursorOptions>,
    cursor: Option<&mut MaybeUninit<*mut Cursor>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let made = SNAPSHOTS.get(snapshot.addr())?.cursor(CursorOptions::given(options)?);
        give_handle(cursor, &CURSORS, Mutex::new(made))
    })
}

/// Goes to the first key.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_cursor_seek_to_first(cursor: *mut Cursor, error: Place<'_>) -> c_int {
    call(error, || CURSORS.get(cursor.addr())?.lock().seek_to_first())
}

/// Goes to the last key.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_cursor_seek_to_last(cursor: *mut Cursor, error: Place<'_>) -> c_int {
    call(error, || CURSORS.get(cursor.addr())?.lock().seek_to_last())
}

/// Goes to `key`, or the first key behind it.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_cursor_seek(cursor: *mut Cursor, key: Slice, error: Place<'_>) -> c_int {
    call(error, || CURSORS.get(cursor.addr())?.lock().seek(key.bytes()?))
}

/// Goes to `key`, or the last key before it.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_cursor_seek_for_prev(
    cursor: *mut Cursor,
    key: Slice,
    error: Place<'_>,
) -> c_int {
    call(error, || CURSORS.get(cursor.addr())?.lock().seek_for_prev(key.bytes()?))
}

/// Goes to the next key.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_cursor_next(cursor: *mut Cursor, error: Place<'_>) -> c_int {
    call(error, || CURSORS.get(cursor.addr())?.lock().next())
}

/// Goes to the key before.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_cursor_prev(cursor: *mut Cursor, error: Place<'_>) -> c_int {
    call(error, || CURSORS.get(cursor.addr())?.lock().prev())
}

/// Whether the cursor is at a key, and which key and value these are. The slices live until the
/// cursor moves or is freed. Without a cursor: false.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_cursor_entry(
    cursor: *mut Cursor,
    key: Option<&mut MaybeUninit<Slice>>,
    value: Option<&mut MaybeUninit<Slice>>,
) -> bool {
    let mut is_valid = false;
    call(None, || {
        let cursor = CURSORS.get(cursor.addr())?;
        let cursor = cursor.lock();
        is_valid = cursor.valid();
        if let (true, Some(key)) = (is_valid, key) {
            key.write(Slice::of(cursor.key()));
        }
        if let (true, Some(value)) = (is_valid, value) {
            value.write(Slice::of(cursor.value()));
        }
        Ok(())
    });
    is_valid
}

/// Frees a cursor. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_cursor_free(cursor: *mut Cursor) {
    call(None, || CURSORS.remove(cursor.addr()));
}

/// Entries that a cursor passed, in memory of their own.
pub struct Chunk(bindings::Chunk);

impl Chunk {
    /// Entries with these keys and empty values, in place of those before.
    pub(crate) fn put_keys(&mut self, keys: &[String]) {
        self.0.clear();
        keys.iter().for_each(|key| self.0.push(key.as_bytes(), b""));
    }
}

/// Memory for the entries of `shingle_cursor_chunk`. Free it with `shingle_chunk_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_chunk_create(
    chunk: Option<&mut MaybeUninit<Option<Box<Chunk>>>>,
    error: Place<'_>,
) -> c_int {
    call(error, || give(chunk, Some(Box::new(Chunk(bindings::Chunk::default())))))
}

/// Puts the entries from the cursor's position on into `chunk`, in place of what it had, and moves
/// the cursor behind them: at most `count_max` entries, and no other after `bytes_max` bytes. Empty
/// means that there are no more. `in_reverse` goes to smaller keys.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_cursor_chunk(
    cursor: *mut Cursor,
    in_reverse: bool,
    count_max: usize,
    bytes_max: usize,
    chunk: Option<&mut Chunk>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let Some(chunk) = chunk else { return Err(Error::invalid("there is no chunk")) };
        let cursor = CURSORS.get(cursor.addr())?;
        fill(&mut cursor.lock(), in_reverse, count_max, bytes_max, &mut chunk.0)
    })
}

/// The entries of a chunk, for `shingle_next_entry`. They live until the chunk is filled anew or
/// freed. Each is the size of the key and the size of the value, of 4 bytes, little-endian; then
/// the key and the value.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_chunk_entries(chunk: Option<&Chunk>) -> Slice {
    Slice::of(chunk.map_or(&[], |chunk| chunk.0.bytes()))
}

/// How many entries a chunk has.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_chunk_count(chunk: Option<&Chunk>) -> usize {
    chunk.map_or(0, |chunk| chunk.0.count())
}

/// Frees a chunk. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_chunk_free(chunk: Option<Box<Chunk>>) {
    drop(chunk);
}
