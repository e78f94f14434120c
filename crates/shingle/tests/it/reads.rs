//! What reads request from a store that caches nothing of what was written, as a device does.

use crate::bands::{append, flush_run};
use crate::watched::{Request, Watched};
use base::random::Random;
use base::{Cause, FileId};
use media::FileKind;
use media::mem::MemStore;
use parking_lot::Mutex;
use shingle::runtime::Stepped;
use shingle::{Compression, Db, Options};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A read of a table, or a prefetch.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Asked {
    file: FileId,
    offset: u64,
    bytes: u64,
    cause: Option<Cause>,
}

type Log = Arc<Mutex<Vec<Asked>>>;

fn open(scheme: &str, steps: u64, store: &MemStore, log: &Log) -> Db {
    let log = log.clone();
    let hook = move |request: &Request| {
        let &Request { name, offset, bytes, cause } = request;
        if name.kind == FileKind::Table {
            log.lock().push(Asked { file: name.id, offset, bytes, cause });
        }
    };
    Options::new()
        .scheme(scheme)
        .write_buffer_bytes(64 << 10)
        .cache_bytes(0)
        .compression(Compression::None)
        .expert(|e| {
            e.memtable_bytes = Some(8 << 10);
            e.scheme.table_bytes_max = Some(16 << 10);
            e.scheme.level_bytes_base = Some(32 << 10);
            e.block_bytes = Some(512);
        })
        .open_in(
            Arc::new(Watched { inner: store.clone(), hook: Arc::new(hook), in_memory: false }),
            Arc::new(Stepped::new(7, steps)),
        )
        .unwrap()
}

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

fn write(db: &Db, random: &mut Random) -> Content {
    let mut content = Content::new();
    for _ in 0..6000 {
        let key = format!("key{:05}", random.below(4000)).into_bytes();
        let mut value = vec![0; 60];
        random.fill(&mut value);
        db.put(&key, &value).unwrap();
        content.insert(key, value);
    }
    db.flush().unwrap();
    content
}

/// Regression: on a disk, the first read of each run cost a seek for an end that the run's writer
/// had held: two thirds of lwc's seeks.
#[test]
fn a_run_is_opened_without_a_read_as_long_as_its_writer_lives() {
    for scheme in tree::policy::registry().iter().map(|scheme| scheme.name) {
        let (store, log) = (MemStore::new(Arc::default()), Log::default());
        let db = open(scheme, 2, &store, &log);
        let content = write(&db, &mut Random::new(5));
        db.wait_idle().unwrap();
        let ends = || {
            content
                .iter()
                .for_each(|(k, v)| assert_eq!(db.get(k).unwrap().as_deref(), Some(&v[..])));
            let log = std::mem::take(&mut *log.lock());
            assert!(log.iter().any(|asked| asked.cause == Some(Cause::Get)), "{scheme}");
            log.iter().filter(|asked| asked.cause == Some(Cause::OpenRun)).count()
        };
        assert_eq!(ends(), 0, "{scheme}");
        drop(db);
        let db = open(scheme, 2, &store, &log);
        assert_eq!(db.get(b"key00000, and more").unwrap(), None);
        content.keys().for_each(|key| assert!(db.get(key).unwrap().is_some()));
        let log = std::mem::take(&mut *log.lock());
        assert!(log.iter().any(|asked| asked.cause == Some(Cause::OpenRun)), "{scheme}: reopened");
    }
}

/// Regression: a scan read a node's segments by age, from the end of a band to its start, and a
/// block first of each.
#[test]
fn a_scan_announces_what_a_node_has_in_the_order_in_which_it_lies() {
    let (store, log) = (MemStore::new(Arc::default()), Log::default());
    let db = open("lwc", u64::MAX, &store, &log);
    for round in 0..12 {
        flush_run(&db, round);
        if !db.keyspace("default").unwrap().tree_for_test().unwrap().level0().is_empty() {
            append(&db, 1 << 30);
        }
    }
    let count = db.iter().count();
    log.lock().clear();
    assert_eq!(db.iter().count(), count);
    let log = std::mem::take(&mut *log.lock());
    let is_soon = |asked: &&[Asked]| asked[0].cause.is_none();
    let together: Vec<&[Asked]> =
        log.chunk_by(|a, b| a.cause.is_none() == b.cause.is_none()).filter(is_soon).collect();
    assert!(together.iter().any(|asked| asked.len() > 2), "{log:?}");
    for asked in together {
        assert!(asked.is_sorted_by_key(|asked| (asked.file, asked.offset)), "{asked:?}");
    }
    for (at, soon) in log.iter().enumerate().filter(|(_, asked)| asked.cause.is_none()) {
        let read = log[at..].iter().find(|asked| {
            asked.cause.is_some() && (asked.file, asked.offset) == (soon.file, soon.offset)
        });
        assert_eq!(read.map(|read| read.bytes), Some(soon.bytes), "{soon:?}");
    }
}
