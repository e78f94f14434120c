//! Linked slices: the bytes that they count for, and what their merges read.

use crate::watched::{Hook, Watched};
use base::random::Random;
use base::{Cause, FileId};
use media::FileKind;
use media::mem::MemStore;
use parking_lot::Mutex;
use shingle::runtime::Stepped;
use shingle::{Compression, Db, Options};
use std::collections::HashMap;
use std::sync::Arc;
use tree::{Slice, Version};

/// File, begin and end of every read of a table.
type Reads = Arc<Mutex<Vec<(FileId, u64, u64)>>>;

const KEYS: u64 = 20_000;

fn decimal(n: u64) -> Vec<u8> {
    format!("{n:016}").into_bytes()
}

/// A database of keys of 16 bytes, in no order, with slices linked in it.
fn linked(reads: Reads, key: fn(u64) -> Vec<u8>) -> (Db, Arc<Version>) {
    loaded("ldc", reads, key)
}

fn loaded(scheme: &str, reads: Reads, key: fn(u64) -> Vec<u8>) -> (Db, Arc<Version>) {
    let inner = MemStore::new(Arc::default());
    let hook: Hook = Arc::new(move |request| {
        if request.cause.is_some() && request.name.kind == FileKind::Table {
            let end = request.offset + request.bytes;
            reads.lock().push((request.name.id, request.offset, end));
        }
    });
    let db = Options::new()
        .scheme(scheme)
        .write_buffer_bytes(64 << 10)
        .compression(Compression::None)
        .expert(|e| {
            e.memtable_bytes = Some(32 << 10);
            e.scheme.table_bytes_max = Some(16 << 10);
            e.scheme.level_bytes_base = Some(80 << 10);
            e.scheme.level0_runs_trigger = Some(4);
            e.block_bytes = Some(512);
            e.readahead_bytes = Some(4096);
        })
        .open_in(Arc::new(Watched { inner, hook, in_memory: false }), Arc::new(Stepped::new(1, 5)))
        .unwrap();
    let mut random = Random::new(7);
    let mut keys: Vec<u64> = (0..KEYS).collect();
    for last in (1..keys.len()).rev() {
        keys.swap(last, random.below(last as u64 + 1) as usize);
    }
    for n in keys {
        db.put(key(n), [n as u8; 100]).unwrap();
    }
    db.wait_idle().unwrap();
    let version = db.keyspace("default").unwrap().tree_for_test().unwrap();
    (db, version)
}

/// The slices that show a part of their run.
fn parts(version: &Version) -> Vec<Slice> {
    version.slices().filter(|slice| !slice.range.covers(&slice.run.range)).cloned().collect()
}

#[test]
fn decimal_keys_cost_what_binary_keys_do() {
    let merged = |key: fn(u64) -> Vec<u8>| {
        let (db, version) = linked(Reads::default(), key);
        let ledger = db.stats().ledger;
        let causes = (0..8).map(Cause::Compaction);
        let bytes: u64 = causes.map(|cause| ledger.cause(cause).write_bytes).sum();
        (bytes as f64, version.files().len() as f64)
    };
    let (binary, binary_files) = merged(|n| u128::from(n).to_be_bytes().to_vec());
    let (decimal, decimal_files) = merged(decimal);
    assert!((0.9..1.1).contains(&(decimal / binary)), "{decimal} bytes, and {binary}");
    let files = decimal_files / binary_files;
    assert!((0.85..1.15).contains(&files), "{decimal_files} files, and {binary_files}");
}

#[test]
fn merges_of_parts_of_a_run_read_its_end_once() {
    let reads = Reads::default();
    let (_db, version) = linked(reads.clone(), decimal);
    let mut ends: HashMap<FileId, usize> = HashMap::new();
    for (file, _, end) in reads.lock().iter() {
        let usage = version.files();
        let bytes = usage.iter().find(|usage| usage.file.id == *file).map(|u| u.file.bytes());
        if bytes == Some(*end) {
            *ends.entry(*file).or_default() += 1;
        }
    }
    let shown = |file: FileId| {
        let of_file = version.slices().filter(|slice| slice.run.file.id == file);
        of_file.map(|slice| slice.bytes).sum::<u64>()
    };
    let mut merged = 0;
    for slice in parts(&version) {
        let file = &slice.run.file;
        let times = ends.get(&file.id).copied().unwrap_or(0);
        assert!(times <= 1, "{times} times: {slice:?}");
        merged += usize::from(shown(file.id) < file.bytes() * 9 / 10);
    }
    assert!(merged > 5, "hardly any run was merged in part");
}

/// A file with links shows in several nodes, on two levels.
#[test]
fn files_tell_the_deepest_level_and_all_keys_that_they_show_with() {
    let (db, version) = linked(Reads::default(), decimal);
    let files = db.files();
    assert_eq!(files.len(), version.files().len());
    let mut in_parts = 0;
    for (info, usage) in files.iter().zip(version.files()) {
        let shown: Vec<(u8, &Slice)> = (0u8..)
            .zip(&version.levels)
            .flat_map(|(level, nodes)| nodes.nodes.iter().map(move |node| (level, node)))
            .flat_map(|(level, node)| node.slices.iter().map(move |slice| (level, slice)))
            .filter(|(_, slice)| slice.run.file.id == usage.file.id)
            .collect();
        let hull = tree::version::hull(shown.iter().map(|(_, slice)| *slice));
        assert_eq!(Some(info.level), shown.iter().map(|(level, _)| *level).max(), "{info:?}");
        assert_eq!(info.smallest, hull.start.to_vec(), "{info:?}");
        assert_eq!(info.largest, hull.end.map(|end| end.to_vec()), "{info:?}");
        in_parts += usize::from(shown.len() > 1);
    }
    assert!(in_parts > 5, "hardly any file shows more than once");
}

/// 10 bits of a filter for each entry, and an index, of entries of a hundred bytes and more.
#[test]
fn check_counts_what_is_not_data() {
    let (db, version) = loaded("leveldb", Reads::default(), decimal);
    let report = db.check(&mut |_| {}).unwrap();
    let entries: u64 = version.runs().iter().map(|run| run.entries).sum();
    assert!(report.is_clean() && report.metadata_bytes > entries, "{report:?}");
    assert!(report.metadata_bytes < version.file_bytes() / 5, "{report:?}");
}

/// Otherwise the memory would come from blocks that readers use, and from another thread's heap.
#[test]
fn merges_in_parts_leave_the_cache_to_readers() {
    let (db, version) = loaded("leveled", Reads::default(), decimal);
    assert!(version.slices().count() > 20, "{version:?}");
    // A push asks indexes where it cuts a run. No data is read for it.
    let cached = |bytes: u64| version.file_bytes() / 10 < bytes;
    assert!(!cached(db.stats().cache_bytes), "{}", db.stats().cache_bytes);
    for n in 0..KEYS {
        assert!(db.get(decimal(n)).unwrap().is_some());
    }
    assert!(cached(db.stats().cache_bytes), "{}", db.stats().cache_bytes);
}
