//! Checkpoints on a file system: what they share with their database, and that both go on
//! independently.

use crate::config::cell_in_turn;
use crate::volume::seeds_for_cells;
use base::random::Random;
use media::faulty::{FaultPlan, FaultyStore, Filter, Operation};
use media::{FileKind, FileName};
use shingle::{Db, KeyspaceOptions, Options, runtime::Stepped};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(scheme: &str, layout: &str) -> Options {
    let sized = Options::new().write_buffer_bytes(16 << 10).cache_bytes(64 << 10);
    sized.scheme(scheme).values(layout).value_threshold_bytes(80).expert(|e| {
        e.memtable_bytes = Some(4 << 10);
        e.scheme.table_bytes_max = Some(8 << 10);
        e.block_bytes = Some(512);
        e.scheme.level_bytes_base = Some(16 << 10);
        e.scheme.fan_out = Some(3.0);
        e.scheme.level0_runs_trigger = Some(2);
        e.step_bytes = Some(1 << 10);
        e.values.segment_bytes = Some(8 << 10);
        e.values.log_segment_bytes = Some(2 << 10);
    })
}

/// A temporary directory, in memory where the system has one there.
fn temporary() -> tempfile::TempDir {
    match Path::new("/dev/shm").is_dir() {
        true => tempfile::tempdir_in("/dev/shm").unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

fn open(options: Options, path: &Path, seed: u64) -> Db {
    let store = options.directory(path, Arc::default()).unwrap();
    options.open_in(Arc::new(store), Arc::new(Stepped::new(seed, 3))).unwrap()
}

fn write(db: &Db, content: &mut Content, random: &mut Random, count: u64) {
    for _ in 0..count {
        let key = format!("{:05}", random.below(2000)).into_bytes();
        if random.one_in(5) {
            db.delete(&key).unwrap();
            content.remove(&key);
        } else {
            let value = vec![random.next_u64() as u8; 20 + random.below(120) as usize];
            db.put(&key, &value).unwrap();
            content.insert(key, value);
        }
    }
}

fn assert_is(db: &Db, content: &Content, what: &str) {
    let found = db.iter().map(Result::unwrap).map(|(key, value)| (key.to_vec(), value.to_vec()));
    assert!(found.eq(content.clone()), "{what}");
    let report = db.check(&mut |_| {}).unwrap();
    assert!(report.is_clean(), "{what}: {:?}", report.problems);
}

/// Bytes of each of Shingle's files in a directory, and its number of names.
fn files(path: &Path) -> BTreeMap<FileName, (u64, u64)> {
    let entries = std::fs::read_dir(path).unwrap().map(Result::unwrap);
    let named = entries.filter_map(|entry| {
        let name = FileName::parse(entry.file_name().to_str()?)?;
        Some((name, entry.metadata().unwrap()))
    });
    named.map(|(name, found)| (name, (found.len(), found.nlink()))).collect()
}

/// Bytes of tables and segments that have one name, of all their bytes.
fn own_bytes(path: &Path) -> (u64, u64) {
    let is_data = |name: &FileName| matches!(name.kind, FileKind::Table | FileKind::Value);
    let files: Vec<_> = files(path).into_iter().filter(|(name, _)| is_data(name)).collect();
    let own = files.iter().filter(|(_, (_, names))| *names == 1).map(|(_, (bytes, _))| bytes).sum();
    (own, files.iter().map(|(_, (bytes, _))| bytes).sum())
}

/// Tables of every scheme, and segments of every layout, are shared; a file that is being written
/// is copied.
#[test]
fn a_checkpoint_takes_next_to_no_space() {
    for scheme in tree::policy::registry() {
        for layout in values::registry() {
            let home = temporary();
            let (source, target) = (home.path().join("source"), home.path().join("target"));
            let db = open(options(scheme.name, layout.name), &source, 1);
            write(&db, &mut Content::new(), &mut Random::new(1), 2000);
            db.wait_idle().unwrap();
            db.checkpoint(&target).unwrap();
            let (own, all) = own_bytes(&target);
            let what = format!("{} with {}", scheme.name, layout.name);
            assert!(own * 10 <= all, "{what}: {own} of {all} bytes are copies");
        }
    }
}

/// A linked file that one of the two appended to would be damaged for the other.
#[test]
fn a_database_and_its_checkpoint_go_on_apart_under_any_scheme() {
    for seed in seeds_for_cells(1) {
        let mut random = Random::new(seed);
        let draw = |turn: u64| {
            let (scheme, layout) = cell_in_turn(turn);
            options(scheme, layout)
        };
        let home = temporary();
        let (source, target) = (home.path().join("source"), home.path().join("target"));
        let mut content = Content::new();
        let db = open(draw(seed), &source, seed);
        write(&db, &mut content, &mut random, 1500);
        // Moves and GC are in progress.
        db.checkpoint(&target).unwrap();
        let linked = files(&target);
        let mut copied = content.clone();
        write(&db, &mut content, &mut random, 700);
        db.wait_idle().unwrap();
        assert_is(&db, &content, &format!("seed {seed}: the database"));
        drop(db);
        for round in 0..2 {
            for (path, content) in [(&target, &mut copied), (&source, &mut content)] {
                let what = format!("seed {seed}, round {round}: {}", path.display());
                let db = open(draw(seed + 3 + round), path, seed);
                assert_is(&db, content, &what);
                write(&db, content, &mut random, 700);
                db.wait_idle().unwrap();
                assert_is(&db, content, &what);
                for (name, (bytes, names)) in files(path) {
                    let before = linked.get(&name).filter(|_| names > 1);
                    assert!(before.is_none_or(|b| b.0 == bytes), "{what}: {name} grew");
                }
                db.close().unwrap();
            }
        }
    }
}

/// Segments are copied and linked outside the lock of the trees: an edit of a user goes through in
/// the middle of one, and the checkpoint has the moment before it. With the lock held, this test
/// never ends.
#[test]
fn edits_go_on_while_a_checkpoint_shares_a_segment() {
    for layout in ["log", "hashed"] {
        let home = temporary();
        let (source, target) = (home.path().join("source"), home.path().join("target"));
        let plan = Arc::<FaultPlan>::default();
        let options = options("leveled", layout);
        let files = options.directory(&source, Arc::default()).unwrap();
        let store = FaultyStore::new(Arc::new(files), plan.clone());
        let runtime = Arc::new(Stepped::new(1, 3));
        let db = options.clone().open_in(Arc::new(store), runtime).unwrap();
        let mut content = Content::new();
        write(&db, &mut content, &mut Random::new(1), 1000);
        let share = Filter { operation: Some(Operation::Share), kind: Some(FileKind::Value) };
        let during = db.clone();
        let create = move || {
            let created = during.create_keyspace("meanwhile", KeyspaceOptions::default());
            created.unwrap().put("key", "value").unwrap();
        };
        plan.act(share, 1, Box::new(create));
        db.checkpoint(&target).unwrap();
        assert!(plan.count(share) > 1, "{layout}");
        assert_eq!(db.keyspaces(), ["default", "meanwhile"], "{layout}");
        let copy = open(options, &target, 1);
        assert_eq!(copy.keyspaces(), ["default"], "{layout}");
        assert_is(&copy, &content, layout);
        assert_is(&db, &content, layout);
    }
}

/// Links that a user made by hand, as a backup does, count as well.
#[test]
fn a_database_that_was_copied_by_links_is_left_as_it_is() {
    let home = temporary();
    let (source, target) = (home.path().join("source"), home.path().join("target"));
    let mut content = Content::new();
    let mut random = Random::new(3);
    let db = open(options("lwc", "hashed"), &source, 1);
    write(&db, &mut content, &mut random, 3000);
    db.close().unwrap();
    std::fs::create_dir(&target).unwrap();
    for entry in std::fs::read_dir(&source).unwrap().map(Result::unwrap) {
        let to = target.join(entry.file_name());
        let is_data = FileName::parse(entry.file_name().to_str().unwrap())
            .is_some_and(|name| matches!(name.kind, FileKind::Table | FileKind::Value));
        match is_data {
            true => std::fs::hard_link(entry.path(), to).unwrap(),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
    let mut newer = content.clone();
    let db = open(options("lwc", "hashed"), &source, 1);
    write(&db, &mut newer, &mut random, 2000);
    db.wait_idle().unwrap();
    assert_is(&db, &newer, "the database");
    db.close().unwrap();
    let db = open(options("lwc", "hashed"), &target, 1);
    assert_is(&db, &content, "its copy by links");
    write(&db, &mut content, &mut random, 2000);
    db.wait_idle().unwrap();
    assert_is(&db, &content, "its copy by links, written to");
    db.close().unwrap();
    let db = open(options("lwc", "hashed"), &source, 1);
    assert_is(&db, &newer, "the database after writes to the copy");
}
