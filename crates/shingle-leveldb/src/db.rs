//! Databases: opening, reads, writes, and work on a whole database.

use crate::iterator::leveldb_iterator_t;
use crate::kinds::{is_too_long, leveldb_snapshot_t, leveldb_t};
use crate::memory::{bytes, c_bytes, copied, items, path, places};
use crate::options::{leveldb_options_t, leveldb_readoptions_t, leveldb_writeoptions_t};
use crate::status::{Place, call};
use shingle::{Db, Error, ErrorKind, ReadOptions, Result};
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

/// Opens a database by LevelDB's rules. Null, and an error, where it cannot be opened.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_open(
    options: &leveldb_options_t,
    name: *const c_char,
    error: Place<'_>,
) -> Option<Box<leveldb_t>> {
    call(error, || open(options, path(name)).map(|db| Box::new(leveldb_t(db))))
}

fn open(options: &leveldb_options_t, folder: &Path) -> Result<Db> {
    options.check_order()?;
    check_place(folder)?;
    let shown = folder.display();
    let exists = || Error::invalid(format!("{shown}: exists (error_if_exists is true)"));
    let is_missing =
        || Error::invalid(format!("{shown}: does not exist (create_if_missing is false)"));
    if options.error_if_exists && !options.create_if_missing {
        // Nothing is opened, whatever is there.
        let found = folder.join("CURRENT").try_exists();
        let found = found.map_err(|error| Error::io("open", error).in_file(shown.to_string()))?;
        return Err(if found { exists() } else { is_missing() });
    }
    match options.engine().open(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && options.error_if_exists => {
            Err(exists())
        }
        Err(error) if error.kind() == ErrorKind::NotFound && !options.create_if_missing => {
            Err(is_missing())
        }
        opened => opened,
    }
}

/// Refuses a place where no database of Shingle can be. Files of LevelDB and RocksDB are not
/// Shingle's to open or change.
pub fn check_place(folder: &Path) -> Result<()> {
    if folder.as_os_str().is_empty() {
        return Err(Error::invalid("the name of the database is empty"));
    }
    let Some(store) = foreign::store_at(folder) else { return Ok(()) };
    let (shown, name, format) = (folder.display(), store.name(), store.format());
    let message = format!(
        "{shown}: these are files of {name}, which Shingle does not change; import them into a \
         new database: shingle --db NEW import --format {format} {shown}"
    );
    Err(Error::new(ErrorKind::Incompatible, message))
}

/// Closes a database. Everything that was written survives a power loss.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_close(db: Option<Box<leveldb_t>>) {
    if let Some(db) = db {
        call(None, || db.0.close());
    }
}

/// Stores a value.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_put(
    db: &leveldb_t,
    options: &leveldb_writeoptions_t,
    key: *const c_char,
    key_length: usize,
    value: *const c_char,
    value_length: usize,
    error: Place<'_>,
) {
    call(error, || {
        let (key, value) = (bytes(key, key_length), bytes(value, value_length));
        db.0.put_with(key, value, &options.engine())
    });
}

/// Removes a key; it need not be there.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_delete(
    db: &leveldb_t,
    options: &leveldb_writeoptions_t,
    key: *const c_char,
    key_length: usize,
    error: Place<'_>,
) {
    call(error, || match bytes(key, key_length) {
        key if is_too_long(key) => Ok(()),
        key => db.0.delete_with(key, &options.engine()),
    });
}

/// The value of a key, in memory of `malloc`. Null, and no error, where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_get(
    db: &leveldb_t,
    options: &leveldb_readoptions_t,
    key: *const c_char,
    key_length: usize,
    value_length: Option<&mut usize>,
    error: Place<'_>,
) -> *mut c_char {
    let key = bytes(key, key_length);
    let given = |value: &[u8]| (copied(value), value.len());
    let found = call(error, || get(db, options, key, given));
    let (value, length) = found.flatten().unwrap_or((ptr::null_mut(), 0));
    if let Some(value_length) = value_length {
        *value_length = length;
    }
    value
}

/// For the C++ interface: whether there is a value, which goes to `give` with `to`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_leveldb_get(
    db: &leveldb_t,
    options: &leveldb_readoptions_t,
    key: *const c_char,
    key_length: usize,
    give: extern "C" fn(*mut c_void, *const c_char, usize),
    to: *mut c_void,
    error: Place<'_>,
) -> bool {
    let key = bytes(key, key_length);
    let given = |value: &[u8]| give(to, value.as_ptr().cast(), value.len());
    call(error, || get(db, options, key, given)).flatten().is_some()
}

fn get<R>(
    db: &leveldb_t,
    options: &leveldb_readoptions_t,
    key: &[u8],
    read: impl FnOnce(&[u8]) -> R,
) -> Result<Option<R>> {
    match &options.snapshot {
        _ if is_too_long(key) => Ok(None),
        Some(snapshot) => Ok(snapshot.get(key)?.map(|value| read(&value))),
        None => db.0.get_with(key, read),
    }
}

/// An iterator over all keys; it has no position until it seeks.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_iterator(
    db: &leveldb_t,
    options: &leveldb_readoptions_t,
) -> Box<leveldb_iterator_t> {
    let read = ReadOptions { fill_cache: options.fill_cache, ..ReadOptions::default() };
    Box::new(leveldb_iterator_t::new(match &options.snapshot {
        Some(snapshot) => snapshot.cursor(read),
        None => db.0.cursor(read),
    }))
}

/// The state as it is now.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_snapshot(db: &leveldb_t) -> Box<leveldb_snapshot_t> {
    Box::new(leveldb_snapshot_t(db.0.snapshot()))
}

/// Frees a snapshot.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_release_snapshot(
    _db: &leveldb_t,
    snapshot: Option<Box<leveldb_snapshot_t>>,
) {
    drop(snapshot);
}

/// A property by its name, in memory of `malloc`; null where there is none of that name.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_property_value(db: &leveldb_t, name: *const c_char) -> *mut c_char {
    let name = String::from_utf8_lossy(c_bytes(name));
    let found = call(None, || Ok(crate::property::value(&db.0, &name))).flatten();
    found.map_or(ptr::null_mut(), |value| copied(value.as_bytes()))
}

/// About how many bytes the keys of each range take.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_approximate_sizes(
    db: &leveldb_t,
    count: c_int,
    starts: *const *const c_char,
    start_lengths: *const usize,
    limits: *const *const c_char,
    limit_lengths: *const usize,
    sizes: *mut u64,
) {
    let count = count.max(0) as usize;
    let ranges = |keys, lengths| {
        items::<*const c_char>(keys, count).iter().zip(items::<usize>(lengths, count))
    };
    let ranges = ranges(starts, start_lengths).zip(ranges(limits, limit_lengths));
    for (((start, start_length), (limit, limit_length)), size) in ranges.zip(places(sizes, count)) {
        let (start, limit) = (bytes(*start, *start_length), bytes(*limit, *limit_length));
        *size = call(None, || crate::sizes::approximate(&db.0, start, limit)).unwrap_or(0);
    }
}

/// Compacts the keys of a range; null is no bound.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_compact_range(
    db: &leveldb_t,
    start: *const c_char,
    start_length: usize,
    limit: *const c_char,
    limit_length: usize,
) {
    let bound = |key: *const c_char, length| (!key.is_null()).then(|| bytes(key, length));
    call(None, || db.0.compact_range(bound(start, start_length), bound(limit, limit_length)));
}

/// Frees memory that a function gave.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_free(memory: *mut c_void) {
    crate::memory::free(memory);
}

/// The version of LevelDB whose interface this is.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_major_version() -> c_int {
    1
}

/// The version of LevelDB whose interface this is.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_minor_version() -> c_int {
    23
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_another_store_is_refused_with_the_import_that_reads_it() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../foreign/tests/data");
        let refused = |name: &str| check_place(&data.join(name)).unwrap_err();
        for (name, store, format) in [
            ("snappy.leveldb", "LevelDB", "import --format leveldb"),
            ("rocksdb/v5-none.rocksdb", "RocksDB", "import --format rocksdb"),
        ] {
            let error = refused(name);
            assert_eq!(error.kind(), ErrorKind::Incompatible);
            let words = error.to_string();
            assert!(words.contains(store) && words.contains(format), "{words}");
        }
        assert!(check_place(&data).is_ok());
    }
}
