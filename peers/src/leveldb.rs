//! LevelDB behind [`Store`], through its C interface. A delete of a range is a delete of each key
//! in it.
//!
//! LevelDB's objects may be used by several threads at once; its iterators may not, and stay inside
//! one call here. Every pointer below is owned by [`LevelDb`] or by the call that made it.
#![allow(unsafe_code)]

use crate::engine::{EngineOptions, failed, wal_is_fixed};
use crate::kernel;
use base::{Error, Result};
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use workloads::store::{Counters, Direction, Store, WriteOptions};

/// An object of LevelDB that only its own functions access.
type Opaque = *mut c_void;

#[link(name = "leveldb")]
unsafe extern "C" {
    fn leveldb_open(options: Opaque, name: *const c_char, error: *mut *mut c_char) -> Opaque;
    fn leveldb_close(database: Opaque);
    fn leveldb_write(database: Opaque, options: Opaque, batch: Opaque, error: *mut *mut c_char);
    fn leveldb_get(
        database: Opaque,
        options: Opaque,
        key: *const c_char,
        key_bytes: usize,
        value_bytes: *mut usize,
        error: *mut *mut c_char,
    ) -> *mut c_char;
    fn leveldb_property_value(database: Opaque, name: *const c_char) -> *mut c_char;
    fn leveldb_compact_range(
        database: Opaque,
        start: *const c_char,
        start_bytes: usize,
        limit: *const c_char,
        limit_bytes: usize,
    );
    fn leveldb_create_iterator(database: Opaque, options: Opaque) -> Opaque;
    fn leveldb_iter_destroy(iterator: Opaque);
    fn leveldb_iter_valid(iterator: Opaque) -> c_uchar;
    fn leveldb_iter_seek_to_first(iterator: Opaque);
    fn leveldb_iter_seek_to_last(iterator: Opaque);
    fn leveldb_iter_seek(iterator: Opaque, key: *const c_char, key_bytes: usize);
    fn leveldb_iter_next(iterator: Opaque);
    fn leveldb_iter_prev(iterator: Opaque);
    fn leveldb_iter_key(iterator: Opaque, bytes: *mut usize) -> *const c_char;
    fn leveldb_iter_value(iterator: Opaque, bytes: *mut usize) -> *const c_char;
    fn leveldb_iter_get_error(iterator: Opaque, error: *mut *mut c_char);
    fn leveldb_writebatch_create() -> Opaque;
    fn leveldb_writebatch_destroy(batch: Opaque);
    fn leveldb_writebatch_put(
        batch: Opaque,
        key: *const c_char,
        key_bytes: usize,
        value: *const c_char,
        value_bytes: usize,
    );
    fn leveldb_writebatch_delete(batch: Opaque, key: *const c_char, key_bytes: usize);
    fn leveldb_options_create() -> Opaque;
    fn leveldb_options_destroy(options: Opaque);
    fn leveldb_options_set_create_if_missing(options: Opaque, yes: c_uchar);
    fn leveldb_options_set_write_buffer_size(options: Opaque, bytes: usize);
    fn leveldb_options_set_compression(options: Opaque, kind: c_int);
    fn leveldb_options_set_cache(options: Opaque, cache: Opaque);
    fn leveldb_options_set_filter_policy(options: Opaque, policy: Opaque);
    fn leveldb_cache_create_lru(bytes: usize) -> Opaque;
    fn leveldb_cache_destroy(cache: Opaque);
    fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> Opaque;
    fn leveldb_filterpolicy_destroy(policy: Opaque);
    fn leveldb_readoptions_create() -> Opaque;
    fn leveldb_readoptions_destroy(options: Opaque);
    fn leveldb_writeoptions_create() -> Opaque;
    fn leveldb_writeoptions_destroy(options: Opaque);
    fn leveldb_writeoptions_set_sync(options: Opaque, yes: c_uchar);
    fn leveldb_free(pointer: *mut c_void);
}

/// Without compression.
const NO_COMPRESSION: c_int = 0;

struct LevelDb {
    database: Opaque,
    cache: Opaque,
    filter: Opaque,
    reads: Opaque,
    /// Write options: buffered, synced.
    writes: [Opaque; 2],
    dir: PathBuf,
}

// SAFETY: LevelDB locks its database inside, its cache and filter policy too, and only reads the
// options, so any thread may use and close them.
unsafe impl Send for LevelDb {}
// SAFETY: as above; nothing is changed through `&LevelDb` but by LevelDB's own locked functions.
unsafe impl Sync for LevelDb {}

/// Opens LevelDB in `dir`.
pub fn open(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Store>> {
    let name = CString::new(dir.as_os_str().as_encoded_bytes())
        .map_err(|_| Error::invalid("the directory's name has a zero byte"))?;
    // SAFETY: the functions take what their counterparts created; the options are destroyed after
    // the last use, the rest by `drop`.
    let (store, error) = unsafe {
        let all = leveldb_options_create();
        let cache = leveldb_cache_create_lru(options.cache_bytes as usize);
        let filter = leveldb_filterpolicy_create_bloom(options.bloom_bits as c_int);
        leveldb_options_set_create_if_missing(all, 1);
        leveldb_options_set_write_buffer_size(all, options.write_buffer_bytes as usize);
        leveldb_options_set_compression(all, NO_COMPRESSION);
        leveldb_options_set_cache(all, cache);
        leveldb_options_set_filter_policy(all, filter);
        let mut error = ptr::null_mut();
        let database = leveldb_open(all, name.as_ptr(), &mut error);
        leveldb_options_destroy(all);
        let writes = [0, 1].map(|sync| {
            let options = leveldb_writeoptions_create();
            leveldb_writeoptions_set_sync(options, sync);
            options
        });
        let reads = leveldb_readoptions_create();
        (LevelDb { database, cache, filter, reads, writes, dir: dir.to_path_buf() }, error)
    };
    check("LevelDB: open", error)?;
    Ok(Box::new(store))
}

impl Drop for LevelDb {
    fn drop(&mut self) {
        // SAFETY: each is destroyed once, the database first, which uses the others; it is null
        // when opening failed.
        unsafe {
            if !self.database.is_null() {
                leveldb_close(self.database);
            }
            leveldb_cache_destroy(self.cache);
            leveldb_filterpolicy_destroy(self.filter);
            leveldb_readoptions_destroy(self.reads);
            self.writes.iter().for_each(|&options| leveldb_writeoptions_destroy(options));
        }
    }
}

/// Turns LevelDB's error text, if any, into an error, and frees it.
fn check(doing: &str, error: *mut c_char) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: LevelDB sets an error to a string that ends with zero and belongs to the caller.
    let text = unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        leveldb_free(error.cast());
        text
    };
    Err(failed(doing, text))
}

/// A write batch, freed at the end.
struct Batch(Opaque);

impl Batch {
    fn new() -> Batch {
        // SAFETY: it has no conditions.
        Batch(unsafe { leveldb_writebatch_create() })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        // SAFETY: the batch copies both slices before it returns.
        unsafe {
            leveldb_writebatch_put(
                self.0,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
            );
        }
    }

    fn delete(&mut self, key: &[u8]) {
        // SAFETY: the batch copies the slice before it returns.
        unsafe { leveldb_writebatch_delete(self.0, key.as_ptr().cast(), key.len()) }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: this is the only owner.
        unsafe { leveldb_writebatch_destroy(self.0) }
    }
}

/// An iterator, destroyed at the end.
struct Entries(Opaque);

impl Entries {
    fn seek(&mut self, start: Option<&[u8]>, direction: Direction) {
        // SAFETY: the iterator is alive, and copies the key that it seeks.
        unsafe {
            match (start, direction) {
                (None, Direction::Forward) => leveldb_iter_seek_to_first(self.0),
                (None, Direction::Reverse) => leveldb_iter_seek_to_last(self.0),
                (Some(key), _) => leveldb_iter_seek(self.0, key.as_ptr().cast(), key.len()),
            }
        }
        // LevelDB seeks to the first key at or after `start`; backwards that is one too far, unless
        // it is the key itself.
        if let (Some(start), Direction::Reverse) = (start, direction) {
            match self.item() {
                None => self.seek(None, Direction::Reverse),
                Some((key, _)) if key > start => self.step(Direction::Reverse),
                Some(_) => {}
            }
        }
    }

    fn step(&mut self, direction: Direction) {
        // SAFETY: called only while the iterator stands on an entry.
        unsafe {
            match direction {
                Direction::Forward => leveldb_iter_next(self.0),
                Direction::Reverse => leveldb_iter_prev(self.0),
            }
        }
    }

    /// The entry that the iterator stands on.
    fn item(&self) -> Option<(&[u8], &[u8])> {
        // SAFETY: key and value of a valid iterator stay in place until it moves, for which it
        // must be borrowed mutably.
        unsafe {
            if leveldb_iter_valid(self.0) == 0 {
                return None;
            }
            let mut bytes = 0;
            let key = leveldb_iter_key(self.0, &mut bytes);
            let key = slice(key, bytes);
            let value = leveldb_iter_value(self.0, &mut bytes);
            Some((key, slice(value, bytes)))
        }
    }

    fn check(&self) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the iterator is alive.
        unsafe { leveldb_iter_get_error(self.0, &mut error) };
        check("LevelDB: scan", error)
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        // SAFETY: this is the only owner, and the database is still open.
        unsafe { leveldb_iter_destroy(self.0) }
    }
}

/// # Safety
/// `start` must point to `bytes` bytes that outlive the result; it may be null when there are none.
unsafe fn slice<'a>(start: *const c_char, bytes: usize) -> &'a [u8] {
    if bytes == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start.cast(), bytes) }
}

impl LevelDb {
    fn write(&self, batch: &Batch, options: WriteOptions) -> Result<()> {
        if options.disable_wal {
            return Err(wal_is_fixed("LevelDB"));
        }
        let mut error = ptr::null_mut();
        let writes = self.writes[usize::from(options.sync)];
        // SAFETY: database, options and batch are alive.
        unsafe { leveldb_write(self.database, writes, batch.0, &mut error) };
        check("LevelDB: write", error)
    }

    fn entries(&self) -> Entries {
        // SAFETY: database and options are alive.
        Entries(unsafe { leveldb_create_iterator(self.database, self.reads) })
    }
}

impl Store for LevelDb {
    fn put(&self, key: &[u8], value: &[u8], options: WriteOptions) -> Result<()> {
        self.put_batch(&[(key, value)], options)
    }

    fn put_batch(&self, entries: &[(&[u8], &[u8])], options: WriteOptions) -> Result<()> {
        let mut batch = Batch::new();
        entries.iter().for_each(|(key, value)| batch.put(key, value));
        self.write(&batch, options)
    }

    fn delete(&self, key: &[u8], options: WriteOptions) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete(key);
        self.write(&batch, options)
    }

    fn delete_range(&self, begin: &[u8], end: &[u8], options: WriteOptions) -> Result<()> {
        let mut entries = self.entries();
        entries.seek(Some(begin), Direction::Forward);
        while let Some((key, _)) = entries.item()
            && key < end
        {
            self.delete(key, options)?;
            entries.step(Direction::Forward);
        }
        entries.check()
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let (mut bytes, mut error) = (0, ptr::null_mut());
        // SAFETY: database and options are alive, and the key is only read.
        let found = unsafe {
            let key_start = key.as_ptr().cast();
            leveldb_get(self.database, self.reads, key_start, key.len(), &mut bytes, &mut error)
        };
        check("LevelDB: read", error)?;
        if found.is_null() {
            return Ok(false);
        }
        value.clear();
        // SAFETY: LevelDB returned `bytes` bytes that belong to the caller; freed after the copy.
        unsafe {
            value.extend_from_slice(slice(found, bytes));
            leveldb_free(found.cast());
        }
        Ok(true)
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        count: usize,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        let mut entries = self.entries();
        entries.seek(start, direction);
        let mut visited = 0;
        while visited < count
            && let Some((key, value)) = entries.item()
        {
            visit(key, value);
            visited += 1;
            entries.step(direction);
        }
        entries.check()?;
        Ok(visited)
    }

    /// LevelDB flushes only on the way to a compaction.
    fn flush(&self) -> Result<()> {
        self.compact_all()
    }

    fn compact_all(&self) -> Result<()> {
        // SAFETY: null bounds mean the whole range.
        unsafe { leveldb_compact_range(self.database, ptr::null(), 0, ptr::null(), 0) };
        Ok(())
    }

    /// LevelDB syncs only with a write: an empty batch does.
    fn sync(&self) -> Result<()> {
        self.write(&Batch::new(), WriteOptions { sync: true, disable_wal: false })
    }

    fn wait_idle(&self) -> Result<()> {
        kernel::settle(&self.dir, || false)
    }

    fn counters(&self) -> Result<Counters> {
        Ok(kernel::counters(&self.dir))
    }

    fn report(&self, name: &str) -> Option<String> {
        let property = CString::new(format!("leveldb.{name}")).ok()?;
        // SAFETY: the result is null, or a string that ends with zero and belongs to the caller.
        unsafe {
            let text = leveldb_property_value(self.database, property.as_ptr());
            if text.is_null() {
                return None;
            }
            let report = CStr::from_ptr(text).to_string_lossy().into_owned();
            leveldb_free(text.cast());
            Some(report)
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> EngineOptions {
        EngineOptions {
            write_buffer_bytes: 1 << 20,
            cache_bytes: 1 << 20,
            bloom_bits: 10,
            background_threads: 1,
            disable_wal: false,
        }
    }

    #[test]
    fn errors_of_the_library_come_through() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), &options()).unwrap();
        let error = open(dir.path(), &options()).err().unwrap();
        assert!(error.to_string().contains("LevelDB: open"), "{error}");
        let no_wal = WriteOptions { disable_wal: true, sync: false };
        assert!(store.put(b"k", b"v", no_wal).is_err());
    }

    #[test]
    fn empty_keys_and_values_and_many_threads() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), &options()).unwrap();
        store.put(b"", b"", WriteOptions::default()).unwrap();
        let mut value = vec![1];
        assert!(store.get(b"", &mut value).unwrap());
        assert!(value.is_empty());
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let store = store.as_ref();
                scope.spawn(move || {
                    for i in 0..500u16 {
                        let key = [&[thread][..], &i.to_be_bytes()].concat();
                        store.put(&key, &[thread; 1000], WriteOptions::default()).unwrap();
                        let mut value = Vec::new();
                        assert!(store.get(&key, &mut value).unwrap());
                        assert_eq!(value, [thread; 1000]);
                    }
                });
            }
        });
        let visited = store.scan(None, usize::MAX, Direction::Forward, &mut |_, _| {}).unwrap();
        assert_eq!(visited, 2001);
        assert!(store.report("stats").unwrap().contains("Compactions"));
    }
}
