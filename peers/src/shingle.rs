//! Shingle behind [`Store`]: the adapter of the lab, with bytes as the kernel counts them.

use crate::engine::EngineOptions;
use crate::kernel;
use ::shingle::{Compression, Options};
use base::Result;
use lab::shingle_store::ShingleStore;
use lab::store::{Counters, Store};
use lab::watched::{Watched, Watcher};
use std::path::{Path, PathBuf};

/// Counts what the kernel counts for the files in `dir`.
struct Kernel {
    dir: PathBuf,
}

/// Opens Shingle in `dir`. Without a log, it is a keyspace of its own.
pub fn open(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Store>> {
    open_preset(dir, options, "modern")
}

/// Opens Shingle with LevelDB's rules, to be compared with LevelDB itself.
pub fn open_with_leveldb_rules(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Store>> {
    open_preset(dir, options, "leveldb")
}

fn open_preset(dir: &Path, options: &EngineOptions, preset: &str) -> Result<Box<dyn Store>> {
    let db = Options::new()
        .set("preset", preset)?
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
        Counters {
            wal_bytes: own.wal_bytes,
            stall_ns: own.stall_ns,
            ..kernel::counters(&self.dir)
        }
    }
}
