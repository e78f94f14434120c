//! Appends to tables and sets: what they read, and how large the tables become.

use crate::watched::{Hook, Watched};
use base::FileId;
use media::FileKind;
use media::mem::MemStore;
use parking_lot::Mutex;
use shingle::runtime::Stepped;
use shingle::{Compression, Db, Options};
use std::collections::BTreeSet;
use std::sync::Arc;
use tree::version::LEVEL0_NODE;
use tree::{Cut, Input, Move, Plan, Reason};

/// File, place and length of every read of a table, in order.
type Reads = Arc<Mutex<Vec<(FileId, u64, usize)>>>;

/// Background steps run only while a caller waits; with a table limit of `table_bytes`.
fn open(reads: Reads, table_bytes: u64, level0_runs_trigger: usize) -> Db {
    let inner = MemStore::new(Arc::default());
    let hook: Hook = Arc::new(move |request| {
        if request.cause.is_some() && request.name.kind == FileKind::Table {
            let read = (request.name.id, request.offset, request.bytes as usize);
            reads.lock().push(read);
        }
    });
    Options::new()
        .scheme("lwc")
        .write_buffer_bytes(64 << 10)
        .compression(Compression::None)
        .expert(|e| {
            e.memtable_bytes = Some(8 << 10);
            e.scheme.table_bytes_max = Some(table_bytes);
            e.scheme.level0_runs_trigger = Some(level0_runs_trigger);
            e.readahead_bytes = Some(1024);
        })
        .open_in(
            Arc::new(Watched { inner, hook, in_memory: false }),
            Arc::new(Stepped::new(1, u64::MAX)),
        )
        .unwrap()
}

/// A run of level 0 over all keys.
pub fn flush_run(db: &Db, round: u64) {
    for n in 0..60u64 {
        let key = (n * 1000 + round % 1000).to_be_bytes();
        db.put(key, [round as u8; 100]).unwrap();
    }
    db.flush().unwrap();
}

/// Everything in level 0 goes to the nodes of level 3.
pub fn append(db: &Db, file_bytes_max: u64) {
    let keyspace = db.keyspace("default").unwrap();
    let version = keyspace.tree_for_test().unwrap();
    let input = Input::of(0, LEVEL0_NODE, version.level0());
    let file_bytes_max = Some(file_bytes_max);
    begin(db, Move::Append { input, to_level: 3, file_bytes_max, parts: 4 });
}

fn begin(db: &Db, action: Move) {
    let reason = Reason::Manual;
    let (read_bytes, write_bytes, cursors) = (0, 0, Vec::new());
    let plan = Plan { action, reason, score: 1.0, read_bytes, write_bytes, cursors };
    assert!(db.keyspace("default").unwrap().begin_plan_for_test(plan).unwrap());
    db.wait_idle().unwrap();
}

#[test]
fn an_append_reads_its_own_table_and_nothing_of_the_tables_below() {
    let reads = Reads::default();
    let db = open(reads.clone(), 1 << 30, 1000);
    let mut nodes = BTreeSet::new();
    for round in 0..12 {
        flush_run(&db, round);
        let keyspace = db.keyspace("default").unwrap();
        let before = keyspace.tree_for_test().unwrap();
        let own: BTreeSet<FileId> = before.level0().iter().map(|s| s.run.file.id).collect();
        if own.is_empty() {
            continue;
        }
        reads.lock().clear();
        append(&db, 1 << 30);
        let read: BTreeSet<FileId> = reads.lock().iter().map(|read| read.0).collect();
        assert_eq!(read, own, "round {round}");
        let after = keyspace.tree_for_test().unwrap();
        nodes.insert(after.level(3).nodes.len());
    }
    assert!(nodes.len() == 1 && nodes.first() > Some(&2), "{nodes:?}");
    let version = db.keyspace("default").unwrap().tree_for_test().unwrap();
    for node in version.level(3).nodes.iter() {
        let files: BTreeSet<FileId> = node.slices.iter().map(|s| s.run.file.id).collect();
        assert_eq!((node.slices.len() > 5, files.len()), (true, 1), "{node:?}");
    }
}

#[test]
fn an_append_leaves_a_file_that_has_no_room_and_goes_on_in_another() {
    let db = open(Reads::default(), 1 << 30, 1000);
    let band = 4 << 10;
    for round in 0..16 {
        flush_run(&db, round);
        if !db.keyspace("default").unwrap().tree_for_test().unwrap().level0().is_empty() {
            append(&db, band);
        }
    }
    let version = db.keyspace("default").unwrap().tree_for_test().unwrap();
    let appended: BTreeSet<FileId> = version
        .level(3)
        .nodes
        .iter()
        .flat_map(|node| &node.slices)
        .map(|slice| slice.run.file.id)
        .collect();
    let files = version.files();
    let files: Vec<_> = files.iter().filter(|file| appended.contains(&file.file.id)).collect();
    assert!(files.len() > 8, "{files:?}");
    assert!(files.iter().all(|file| file.total_bytes <= band), "{files:?}");
    assert!(files.iter().any(|file| file.total_bytes > band / 2), "{files:?}");
    assert_eq!(db.iter().count(), 16 * 60);
}

#[test]
fn no_table_of_the_scheme_outgrows_its_band() {
    let band = 16 << 10;
    let db = open(Reads::default(), band, 2);
    for round in 0..200 {
        flush_run(&db, round);
        db.wait_idle().unwrap();
    }
    let version = db.keyspace("default").unwrap().tree_for_test().unwrap();
    let below = version.levels.iter().skip(1).flat_map(|level| level.nodes.iter());
    let segments = below.clone().map(|node| node.slices.len()).max().unwrap_or(0);
    let tables: BTreeSet<FileId> =
        below.flat_map(|node| &node.slices).map(|slice| slice.run.file.id).collect();
    for usage in version.files().iter().filter(|usage| tables.contains(&usage.file.id)) {
        assert!(usage.total_bytes <= band, "{usage:?}");
    }
    assert!(segments > 1 && tables.len() > 20, "{segments} segments, {} tables", tables.len());
    assert_eq!(db.iter().count(), 200 * 60);
}

#[test]
fn a_set_is_read_from_front_to_back_a_table_at_a_time() {
    let reads = Reads::default();
    let db = open(reads.clone(), 1 << 30, 1000);
    for round in 0..8 {
        flush_run(&db, round);
    }
    let keyspace = db.keyspace("default").unwrap();
    let inputs = |level: u8| -> Vec<Input> {
        let version = keyspace.tree_for_test().unwrap();
        version.level(level).nodes.iter().map(|node| Input::whole(level, node)).collect()
    };
    let merge = |inputs, to_level| {
        let cut = Cut { table_bytes_max: 8 << 10, overlap_bytes_max: None };
        begin(&db, Move::Merge { inputs, to_level, cut, one_file: true, parallel_max: 1 });
        keyspace.tree_for_test().unwrap()
    };
    let set = merge(inputs(0), 2);
    let runs: Vec<_> = set.level(2).nodes.iter().map(|node| node.slices[0].run.clone()).collect();
    let file = runs[0].file.id;
    assert!(runs.len() > 4 && runs.iter().all(|run| run.file.id == file), "{runs:?}");
    reads.lock().clear();
    merge(inputs(2), 3);
    let read: Vec<(FileId, u64, usize)> = reads.lock().clone();
    // Each table is read in one go, because its writer kept its end, and the next table follows it
    // on the medium.
    let extents: Vec<_> = runs.iter().map(|run| run.offset..run.offset + run.bytes).collect();
    let place = |read: &(FileId, u64, usize)| extents.iter().position(|e| e.contains(&read.1));
    assert!(read.iter().all(|read| read.0 == file) && read.is_sorted_by_key(place), "{read:?}");
    for extent in &extents {
        let of_run = read.iter().filter(|read| extent.contains(&read.1));
        let bytes: Vec<usize> = of_run.map(|read| read.2).collect();
        let data_min = (extent.end - extent.start) / 2;
        assert!(bytes.len() == 1 && bytes[0] as u64 > data_min, "{bytes:?} of {extent:?}");
    }
    assert_eq!(db.iter().count(), 8 * 60);
}
