//! The engines by name, and the options that all of them get alike.

use base::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use workloads::dbbench::Config;
use workloads::store::{Store, StoreFactory};

/// What every engine is given; none compresses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineOptions {
    /// Bytes of a memtable.
    pub write_buffer_bytes: u64,
    /// Bytes of the block cache.
    pub cache_bytes: u64,
    /// Bits per key of Bloom filters.
    pub bloom_bits: u64,
    /// Background threads, where an engine lets one choose.
    pub background_threads: u64,
    /// Writes will ask for no log, for engines that decide this when they open.
    pub disable_wal: bool,
}

impl EngineOptions {
    /// The options that db_bench's flags ask for.
    pub fn new(config: &Config) -> Result<EngineOptions> {
        let number =
            |name, default| Ok::<u64, Error>(config.engine_number(name)?.unwrap_or(default));
        if config.engine.get("compression_type").is_some_and(|kind| kind != "none") {
            return Err(Error::invalid("engines are compared without compression"));
        }
        Ok(EngineOptions {
            write_buffer_bytes: number("write_buffer_size", 64 << 20)?,
            cache_bytes: number("cache_size", 256 << 20)?,
            bloom_bits: number("bloom_bits", 10)?,
            background_threads: number("max_background_jobs", 2)?,
            disable_wal: config.disable_wal,
        })
    }
}

/// Values of this many bytes and more are separated, in the engines whose name says so.
#[cfg(any(feature = "rocksdb", feature = "shingle"))]
pub const VALUE_THRESHOLD_BYTES: u64 = 512;

type Open = fn(&Path, &EngineOptions) -> Result<Box<dyn Store>>;

/// An engine that this program was built with.
#[derive(Clone, Copy)]
pub struct Engine {
    /// Its name on the command line.
    pub name: &'static str,
    open: Open,
}

/// The engines that this program was built with.
pub const ENGINES: &[Engine] = &[
    #[cfg(feature = "shingle")]
    Engine { name: "shingle", open: crate::shingle::open },
    #[cfg(feature = "shingle")]
    Engine { name: "shingle-leveled", open: crate::shingle::open_leveled },
    #[cfg(feature = "shingle")]
    Engine { name: "shingle-leveldb-rules", open: crate::shingle::open_with_leveldb_rules },
    #[cfg(feature = "shingle")]
    Engine { name: "shingle-hashed", open: crate::shingle::open_hashed },
    #[cfg(feature = "shingle")]
    Engine { name: "shingle-hashed-cold", open: crate::shingle::open_hashed_cold },
    #[cfg(feature = "shingle")]
    Engine { name: "shingle-hashed-all", open: crate::shingle::open_hashed_all },
    #[cfg(feature = "shingle")]
    Engine { name: "shingle-log", open: crate::shingle::open_log },
    #[cfg(feature = "rocksdb")]
    Engine { name: "rocksdb", open: crate::rocks::open },
    #[cfg(feature = "rocksdb")]
    Engine { name: "rocksdb-blob", open: crate::rocks::open_with_blobs },
    #[cfg(feature = "leveldb")]
    Engine { name: "leveldb", open: crate::leveldb::open },
    #[cfg(feature = "fjall")]
    Engine { name: "fjall", open: crate::fjall::open },
    #[cfg(feature = "lmdb")]
    Engine { name: "lmdb", open: crate::lmdb::open },
];

impl Engine {
    /// The engine called `name`.
    pub fn named(name: &str) -> Result<Engine> {
        ENGINES.iter().find(|engine| engine.name == name).copied().ok_or_else(|| {
            let built: Vec<&str> = ENGINES.iter().map(|engine| engine.name).collect();
            Error::invalid(format!(
                "no engine '{name}' here, only {}; others come with `--features`",
                built.join(", ")
            ))
        })
    }
}

/// Opens one engine in one directory.
pub struct Place {
    engine: Engine,
    dir: PathBuf,
    options: EngineOptions,
}

impl Place {
    /// `engine` in `dir`.
    pub fn new(engine: Engine, dir: &Path, options: EngineOptions) -> Place {
        Place { engine, dir: dir.to_path_buf(), options }
    }
}

impl StoreFactory for Place {
    fn open(&self) -> Result<Box<dyn Store>> {
        std::fs::create_dir_all(&self.dir).map_err(|error| {
            Error::io("create the directory", error).in_file(self.dir.display().to_string())
        })?;
        (self.engine.open)(&self.dir, &self.options)
    }

    fn destroy(&self) -> Result<()> {
        match std::fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let place = self.dir.display().to_string();
                Err(Error::io("remove the directory", error).in_file(place))
            }
            _ => Ok(()),
        }
    }
}

/// A failed call of an engine; `doing` says which.
pub fn failed(doing: &str, error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("{doing}: {error}"))
}

/// The error of an engine that cannot do without its log.
#[cfg(any(feature = "fjall", feature = "leveldb"))]
pub fn wal_is_fixed(engine: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{engine} cannot write without its log"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use workloads::store::{Direction, WriteOptions};

    fn small() -> EngineOptions {
        EngineOptions {
            write_buffer_bytes: 1 << 20,
            cache_bytes: 1 << 20,
            bloom_bits: 10,
            background_threads: 2,
            disable_wal: false,
        }
    }

    fn keys(store: &dyn Store, start: Option<&str>, count: usize, direction: Direction) -> String {
        let mut keys = Vec::new();
        let start = start.map(str::as_bytes);
        let visited = store
            .scan(start, count, direction, &mut |key, value| {
                assert_eq!(value, [b"v", key].concat());
                keys.push(String::from_utf8(key.to_vec()).unwrap());
            })
            .unwrap();
        assert_eq!(visited, keys.len());
        keys.join(" ")
    }

    /// What every engine must do, or a comparison means nothing.
    fn conforms(store: &dyn Store) {
        let options = WriteOptions::default();
        let mut value = Vec::new();
        for key in ["b", "d", "f"] {
            store.put(key.as_bytes(), format!("v{key}").as_bytes(), options).unwrap();
        }
        store.put_batch(&[(b"h", b"vh"), (b"x", b"vx"), (b"y", b"vy")], options).unwrap();
        store.delete(b"d", WriteOptions { sync: true, ..options }).unwrap();
        store.delete(b"absent", options).unwrap();
        store.delete_range(b"x", b"z", options).unwrap();
        assert!(!store.get(b"d", &mut value).unwrap());
        assert!(!store.get(b"y", &mut value).unwrap());
        assert!(store.get(b"h", &mut value).unwrap());
        assert_eq!(value, b"vh");
        assert_eq!(keys(store, None, 10, Direction::Forward), "b f h");
        assert_eq!(keys(store, None, 2, Direction::Reverse), "h f");
        assert_eq!(keys(store, Some("c"), 1, Direction::Forward), "f");
        assert_eq!(keys(store, Some("f"), 9, Direction::Forward), "f h");
        assert_eq!(keys(store, Some("g"), 9, Direction::Reverse), "f b");
        assert_eq!(keys(store, Some("f"), 9, Direction::Reverse), "f b");
        assert_eq!(keys(store, Some("a"), 9, Direction::Reverse), "");
        assert_eq!(keys(store, Some("z"), 9, Direction::Reverse), "h f b");
        assert_eq!(keys(store, Some("z"), 9, Direction::Forward), "");
    }

    #[test]
    fn every_engine_conforms_and_keeps_its_content() {
        for &engine in ENGINES {
            let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
            let place = Place::new(engine, &dir.path().join("db"), small());
            let store = place.open().unwrap();
            conforms(store.as_ref());
            store.flush().unwrap();
            store.compact_all().unwrap();
            store.sync().unwrap();
            store.wait_idle().unwrap();
            assert!(store.counters().unwrap().space_bytes.unwrap() > 0, "{}", engine.name);
            store.close().unwrap();
            let store = place.open().unwrap();
            assert_eq!(keys(store.as_ref(), None, 10, Direction::Forward), "b f h");
            store.close().unwrap();
            place.destroy().unwrap();
            place.destroy().unwrap();
        }
    }

    #[test]
    fn an_engine_that_was_not_built_in_is_named_in_the_error() {
        let error = Engine::named("oracle").err().unwrap();
        assert!(error.to_string().contains("'oracle'"), "{error}");
    }
}
