//! Options of a database, of reads and of writes; caches, filters, comparators, environments.
//!
//! What has no counterpart is taken and does nothing: block restarts, paranoid checks (every block
//! is checked), sizes of files and blocks, the log for people (Shingle writes its own), filters of
//! the program's own. An order of keys of the program's own is refused when a database is opened.

use crate::kinds::leveldb_snapshot_t;
use shingle::{
    Compression, Durability, Error, ErrorKind, Resources, Result, Snapshot, WriteOptions,
};
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

/// LevelDB's default.
const WRITE_BUFFER_BYTES: usize = 4 << 20;

/// LevelDB takes sizes of the write buffer within these bounds, and the nearest for others.
const WRITE_BUFFER_BOUNDS: (usize, usize) = (64 << 10, 1 << 30);

/// LevelDB's default.
const CACHE_BYTES: u64 = 8 << 20;

/// The name of the order that Shingle has.
const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// Options of a database.
#[allow(non_camel_case_types)]
pub struct leveldb_options_t {
    pub create_if_missing: bool,
    pub error_if_exists: bool,
    write_buffer_size: usize,
    compression: c_int,
    bloom_bits: Option<u8>,
    cache: Option<Resources>,
    comparator: Option<String>,
}

impl Default for leveldb_options_t {
    fn default() -> leveldb_options_t {
        leveldb_options_t {
            create_if_missing: false,
            error_if_exists: false,
            write_buffer_size: WRITE_BUFFER_BYTES,
            compression: 1,
            bloom_bits: None,
            cache: None,
            comparator: None,
        }
    }
}

impl leveldb_options_t {
    /// Refuses an order of keys that is not that of bytes.
    pub fn check_order(&self) -> Result<()> {
        let Some(name) = self.comparator.as_ref().filter(|name| *name != BYTEWISE) else {
            return Ok(());
        };
        let message = format!(
            "the comparator {name:?}: Shingle orders keys by their bytes, as {BYTEWISE} does"
        );
        Err(Error::new(ErrorKind::Unsupported, message))
    }

    /// Shingle's options that say the same.
    pub fn engine(&self) -> shingle::Options {
        let (least, most) = WRITE_BUFFER_BOUNDS;
        let options = shingle::Options::new()
            .create(self.create_if_missing)
            .create_new(self.error_if_exists)
            .write_buffer_bytes(self.write_buffer_size.clamp(least, most) as u64)
            .compression(if self.compression == 0 { Compression::None } else { Compression::Lz4 });
        let options = match &self.cache {
            Some(cache) => options.resources(cache),
            None => options.cache_bytes(CACHE_BYTES),
        };
        match self.bloom_bits {
            Some(bits) => options.filter_bits_per_key(bits),
            None => options,
        }
    }
}

/// The default options.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_create() -> Box<leveldb_options_t> {
    Box::default()
}

/// Frees options.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_destroy(options: Option<Box<leveldb_options_t>>) {
    drop(options);
}

/// The order of keys. Opening refuses one that is not that of bytes.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_comparator(
    options: &mut leveldb_options_t,
    comparator: Option<&leveldb_comparator_t>,
) {
    options.comparator = comparator.map(|comparator| comparator.name.clone());
}

/// Bloom filters with the policy's bits.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_filter_policy(
    options: &mut leveldb_options_t,
    policy: Option<&leveldb_filterpolicy_t>,
) {
    options.bloom_bits = policy.and_then(|policy| policy.bloom_bits);
}

/// Whether a database that does not exist is created.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_create_if_missing(options: &mut leveldb_options_t, yes: u8) {
    options.create_if_missing = yes != 0;
}

/// Whether a database that exists is an error.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_error_if_exists(options: &mut leveldb_options_t, yes: u8) {
    options.error_if_exists = yes != 0;
}

/// Does nothing: every block is checked.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_paranoid_checks(_options: &mut leveldb_options_t, _yes: u8) {}

/// Does nothing: C programs can only make the environment of the system.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_env(
    _options: &mut leveldb_options_t,
    _env: Option<&leveldb_env_t>,
) {
}

/// Does nothing: Shingle writes a log of its own.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_info_log(
    _options: &mut leveldb_options_t,
    _log: *mut c_void,
) {
}

/// Bytes of a memtable.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_write_buffer_size(
    options: &mut leveldb_options_t,
    bytes: usize,
) {
    options.write_buffer_size = bytes;
}

/// Does nothing: files are opened when they are read, and closed when there are too many.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_max_open_files(
    _options: &mut leveldb_options_t,
    _count: c_int,
) {
}

/// The cache of blocks.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_cache(
    options: &mut leveldb_options_t,
    cache: Option<&leveldb_cache_t>,
) {
    options.cache = cache.map(|cache| cache.0.clone());
}

/// Does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_block_size(_options: &mut leveldb_options_t, _bytes: usize) {}

/// Does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_block_restart_interval(
    _options: &mut leveldb_options_t,
    _count: c_int,
) {
}

/// Does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_max_file_size(
    _options: &mut leveldb_options_t,
    _bytes: usize,
) {
}

/// 0: none; otherwise LZ4.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_compression(options: &mut leveldb_options_t, method: c_int) {
    options.compression = method;
}

/// An order of keys.
#[allow(non_camel_case_types)]
pub struct leveldb_comparator_t {
    name: String,
    state: *mut c_void,
    destructor: Option<extern "C" fn(*mut c_void)>,
}

/// Compares keys; never called here.
type Compare =
    Option<extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int>;

/// An order of keys, to be refused when a database is opened with it.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_comparator_create(
    state: *mut c_void,
    destructor: Option<extern "C" fn(*mut c_void)>,
    _compare: Compare,
    name: Option<extern "C" fn(*mut c_void) -> *const c_char>,
) -> Box<leveldb_comparator_t> {
    let name = name.map_or(ptr::null(), |name| name(state));
    let name = String::from_utf8_lossy(crate::memory::c_bytes(name)).into_owned();
    Box::new(leveldb_comparator_t { name, state, destructor })
}

/// Frees a comparator with its state.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_comparator_destroy(comparator: Option<Box<leveldb_comparator_t>>) {
    if let Some(comparator) = comparator
        && let Some(destructor) = comparator.destructor
    {
        destructor(comparator.state);
    }
}

/// A filter policy.
#[allow(non_camel_case_types)]
pub struct leveldb_filterpolicy_t {
    /// `None`: one of the program's own, which is not used.
    bloom_bits: Option<u8>,
    state: *mut c_void,
    destructor: Option<extern "C" fn(*mut c_void)>,
}

/// A policy of the program's own is taken and not used.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_create(
    state: *mut c_void,
    destructor: Option<extern "C" fn(*mut c_void)>,
    _create_filter: *const c_void,
    _key_may_match: *const c_void,
    _name: *const c_void,
) -> Box<leveldb_filterpolicy_t> {
    Box::new(leveldb_filterpolicy_t { bloom_bits: None, state, destructor })
}

/// Bloom filters with this number of bits for each key.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_create_bloom(bits: c_int) -> Box<leveldb_filterpolicy_t> {
    let bloom_bits = Some(bits.clamp(0, 100) as u8);
    Box::new(leveldb_filterpolicy_t { bloom_bits, state: ptr::null_mut(), destructor: None })
}

/// Frees a policy with its state.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_destroy(policy: Option<Box<leveldb_filterpolicy_t>>) {
    if let Some(policy) = policy
        && let Some(destructor) = policy.destructor
    {
        destructor(policy.state);
    }
}

/// Options of reads.
#[allow(non_camel_case_types)]
pub struct leveldb_readoptions_t {
    pub fill_cache: bool,
    pub snapshot: Option<Snapshot>,
}

/// The default options of reads.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_create() -> Box<leveldb_readoptions_t> {
    Box::new(leveldb_readoptions_t { fill_cache: true, snapshot: None })
}

/// Frees options of reads.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_destroy(options: Option<Box<leveldb_readoptions_t>>) {
    drop(options);
}

/// Does nothing: every block is checked.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_verify_checksums(
    _options: &mut leveldb_readoptions_t,
    _yes: u8,
) {
}

/// Whether blocks that are read go to the cache.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_fill_cache(options: &mut leveldb_readoptions_t, yes: u8) {
    options.fill_cache = yes != 0;
}

/// Reads at a snapshot; null: as it is now.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_snapshot(
    options: &mut leveldb_readoptions_t,
    snapshot: Option<&leveldb_snapshot_t>,
) {
    options.snapshot = snapshot.map(|snapshot| snapshot.0.clone());
}

/// Options of writes.
#[allow(non_camel_case_types)]
pub struct leveldb_writeoptions_t {
    sync: bool,
}

impl leveldb_writeoptions_t {
    /// Shingle's options that say the same.
    pub fn engine(&self) -> WriteOptions {
        let durability = if self.sync { Durability::Synced } else { Durability::Buffered };
        WriteOptions { durability: Some(durability), wait: true }
    }
}

/// The default options of writes.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_create() -> Box<leveldb_writeoptions_t> {
    Box::new(leveldb_writeoptions_t { sync: false })
}

/// Frees options of writes.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_destroy(options: Option<Box<leveldb_writeoptions_t>>) {
    drop(options);
}

/// Whether a write survives a power loss when it returns.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_set_sync(options: &mut leveldb_writeoptions_t, yes: u8) {
    options.sync = yes != 0;
}

/// A cache of blocks.
#[allow(non_camel_case_types)]
pub struct leveldb_cache_t(Resources);

/// A cache of this many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_cache_create_lru(capacity: usize) -> Box<leveldb_cache_t> {
    Box::new(leveldb_cache_t(Resources::new(capacity as u64)))
}

/// Frees a cache; databases that use it keep it.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_cache_destroy(cache: Option<Box<leveldb_cache_t>>) {
    drop(cache);
}

/// The environment: a name alone.
#[allow(non_camel_case_types)]
pub struct leveldb_env_t {
    _private: u8,
}

/// The environment of the system.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_default_env() -> Box<leveldb_env_t> {
    Box::new(leveldb_env_t { _private: 0 })
}

/// Frees the environment.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_env_destroy(env: Option<Box<leveldb_env_t>>) {
    drop(env);
}

/// A directory for tests, in memory of `malloc`. It need not exist yet.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_env_get_test_directory(_env: Option<&leveldb_env_t>) -> *mut c_char {
    let given = std::env::var_os("TEST_TMPDIR").filter(|given| !given.is_empty());
    let folder = given.map_or_else(
        || format!("/tmp/leveldbtest-{}", crate::memory::user()).into(),
        std::path::PathBuf::from,
    );
    // As LevelDB: the caller meets an error of the directory when it uses it.
    let _ = std::fs::create_dir(&folder);
    crate::memory::copied(folder.as_os_str().as_encoded_bytes())
}
