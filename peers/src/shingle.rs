//! Shingle behind [`Store`]: the adapter of the lab, with bytes as the kernel counts them.

use crate::engine::{EngineOptions, VALUE_THRESHOLD_BYTES};
use crate::kernel;
use ::shingle::{Compression, Options};
use base::Result;
use std::path::{Path, PathBuf};
use workloads::shingle_store::ShingleStore;
use workloads::store::{Counters, Store};
use workloads::watched::{Watched, Watcher};

/// Counts what the kernel counts for the files in `dir`.
struct Kernel {
    dir: PathBuf,
}

/// Opens Shingle in `dir`. Without a log, it is a keyspace of its own.
pub fn open(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Store>> {
    open_as(dir, options, Options::new())
}

/// Opens Shingle with the scheme `leveled`.
pub fn open_leveled(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Store>> {
    open_as(dir, options, Options::new().scheme("leveled"))
}

/// Opens Shingle with LevelDB's rules, to be compared with LevelDB itself.
pub fn open_with_leveldb_rules(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Store>> {
    open_as(dir, options, Options::new().set("preset", "leveldb")?)
}

/// Opens Shingle with large values in one log.
pub fn open_log(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Store>> {
    open_as(dir, options, apart("log"))
}

/// Opens Shingle with large values in segment groups.
pub fn open_hashed(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Store>> {
    open_as(dir, options, apart("hashed"))
}

/// With a cold log for values that do not change.
pub fn open_hashed_cold(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Store>> {
    open_as(dir, options, apart("hashed").expert(|expert| expert.values.hotness = Some(true)))
}

/// With all values in segment groups, small ones too.
pub fn open_hashed_all(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Store>> {
    open_as(dir, options, apart("hashed").value_threshold_bytes(1))
}

fn apart(values: &str) -> Options {
    Options::new().values(values).value_threshold_bytes(VALUE_THRESHOLD_BYTES)
}

fn open_as(dir: &Path, options: &EngineOptions, own: Options) -> Result<Box<dyn Store>> {
    let db = own
        .compression(Compression::None)
        .set("write_buffer_bytes", &options.write_buffer_bytes.to_string())?
        .set("cache_bytes", &options.cache_bytes.to_string())?
        .set("filter_bits_per_key", &options.bloom_bits.to_string())?
        .set("background_threads", &options.background_threads.to_string())?
        .open(dir)?;
    let store = Box::new(ShingleStore::new(db, options.disable_wal)?);
    Ok(Box::new(Watched::new(store, Kernel { dir: dir.to_path_buf() })))
}

impl Watcher for Kernel {
    fn settle(&self) -> Result<()> {
        kernel::settle(&self.dir, || false)
    }

    fn counters(&self, own: Counters) -> Counters {
        let Counters { stall_ns, value_ns, .. } = own;
        Counters { stall_ns, value_ns, ..kernel::counters(&self.dir) }
    }
}
