//! Backups: each generation is the database of its moment, shares what it can, and survives a crash
//! at any request of the ones that come after it.

use crate::config::Config;
use crate::history::{Generator, profile};
use crate::model::Model;
use crate::run::{Failure, Runner, read_all};
use crate::volume::seeds_for_cells;
use base::random::Random;
use media::faulty::{FaultPlan, FaultyStore, Filter, Operation};
use media::mem::{MemStore, Personality};
use media::{FileKind, FileStore};
use parking_lot::Mutex;
use shingle::{Backups, Db, ErrorKind, Keep, Options, runtime::Stepped};
use std::sync::Arc;

fn memory() -> MemStore {
    MemStore::new(Arc::default())
}

fn open(store: &MemStore) -> Db {
    Options::new().open_store(Arc::new(store.clone())).unwrap()
}

fn backups(store: &MemStore) -> Backups {
    Backups::open_store(Arc::new(store.clone())).unwrap()
}

fn restored(backups: &Backups, number: u64) -> Db {
    let target = memory();
    backups.restore_to(number, &target, &mut |_| ()).unwrap();
    let db = open(&target);
    assert!(db.check(&mut |_| ()).unwrap().is_clean());
    db
}

fn history(config: &Config, seed: u64) -> Result<u64, Failure> {
    let model = Arc::new(Mutex::new(Model::new()));
    let mut runner = Runner::open(config, Arc::new(memory()), model, seed)?;
    let directory = memory();
    let backups = backups(&directory);
    let mut expected = Vec::new();
    let profile = profile(300).sometimes_expiring(seed);
    for (at, step) in Generator::new(seed, profile).steps().iter().enumerate() {
        runner.step(step)?;
        if at % 60 == 30 {
            let backup = backups.create(&runner.db, &mut |_| ())?;
            expected.push((backup.number, runner.model.lock().clone()));
        }
    }
    for (number, model) in &expected {
        assert!(backups.verify(*number, &mut |_| ())?.is_empty());
        let target: Arc<dyn FileStore> = Arc::new(memory());
        backups.restore_to(*number, &*target, &mut |_| ())?;
        let runtime = config.at(model).runtime();
        let found = read_all(&config.options().open_in(target, runtime)?)?;
        model.recover(&found).map_err(Failure::Wrong)?;
        // A backup flushes first, so nothing is missing.
        for (slot, contents) in &found {
            let now = model.living(*slot).map(|life| life.fingerprint(model.now()));
            assert_eq!(now, Some(contents.fingerprint), "backup {number}");
        }
    }
    let pruned = backups.prune(&Keep { last: 2, ..Keep::default() })?;
    assert_eq!(pruned.backups.len() + 2, expected.len());
    let left: Vec<u64> = backups.list()?.iter().map(|backup| backup.number).collect();
    assert!(backups.verify(left[0], &mut |_| ())?.is_empty());
    runner.finish()?;
    Ok(expected.len() as u64)
}

#[test]
fn each_generation_is_the_database_of_its_moment_on_every_configuration() {
    for seed in seeds_for_cells(20) {
        let config = Config::draw(seed);
        history(&config, seed).unwrap_or_else(|failure| panic!("{seed} {config:?}: {failure:?}"));
    }
}

#[test]
fn generations_share_what_did_not_change() {
    let (store, directory) = (memory(), memory());
    let (db, backups) = (open(&store), backups(&directory));
    for n in 0..2000u32 {
        db.put(n.to_be_bytes(), [n as u8; 200]).unwrap();
    }
    let first = backups.create(&db, &mut |_| ()).unwrap();
    let again = backups.create(&db, &mut |_| ()).unwrap();
    assert_eq!(first.new_bytes, first.bytes);
    assert!(again.new_bytes < first.bytes / 50, "{again:?} shares nothing with {first:?}");
    db.put("new", "value").unwrap();
    let third = backups.create(&db, &mut |_| ()).unwrap();
    assert!(third.new_bytes < first.bytes / 10, "{third:?}");
    assert_eq!(restored(&backups, again.number).get("new").unwrap(), None);
    assert!(restored(&backups, third.number).get("new").unwrap().is_some());
    assert_eq!(backups.at(again.taken_micros).unwrap().unwrap().number, again.number);
    let pruned = backups.prune(&Keep { last: 1, ..Keep::default() }).unwrap();
    assert_eq!(pruned.backups, [first.number, again.number]);
    assert!(restored(&backups, third.number).get("new").unwrap().is_some());
    let gone = backups.restore_to(first.number, &memory(), &mut |_| ()).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}

/// Two databases that came from one have files of equal names and lengths.
#[test]
fn copies_of_a_database_that_went_on_separately_share_a_directory() {
    let (store, directory) = (memory(), memory());
    let (db, backups) = (open(&store), backups(&directory));
    db.put("k", "common").unwrap();
    let common = backups.create(&db, &mut |_| ()).unwrap();
    let copy = memory();
    backups.restore_to(common.number, &copy, &mut |_| ()).unwrap();
    let copy = open(&copy);
    db.put("k", "here-1").unwrap();
    copy.put("k", "there1").unwrap();
    let here = backups.create(&db, &mut |_| ()).unwrap();
    let there = backups.create(&copy, &mut |_| ()).unwrap();
    for (backup, value) in [(common, "common"), (here, "here-1"), (there, "there1")] {
        let db = restored(&backups, backup.number);
        assert_eq!(db.get("k").unwrap().as_deref(), Some(value.as_bytes()));
    }
}

#[test]
fn backups_of_several_databases_are_told_apart() {
    let directory = memory();
    let databases = [open(&memory()), open(&memory())];
    for (value, db) in [("1", 0), ("2", 1), ("3", 0)] {
        databases[db].put("k", value).unwrap();
        backups(&directory).create(&databases[db], &mut |_| ()).unwrap();
    }
    let all = backups(&directory).list().unwrap();
    let (ours, other) = (all[0].database, all[1].database);
    assert!(ours != other && all[2].database == ours, "{all:?}");
    let prune = |backups: Backups| backups.prune(&Keep { last: 1, ..Keep::default() });
    for error in [
        backups(&directory).newest().unwrap_err(),
        backups(&directory).at(u64::MAX).unwrap_err(),
        prune(backups(&directory)).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let words = error.to_string();
        for database in [ours, other] {
            assert!(words.contains(&format!("{database:016x}")), "{words}");
        }
    }
    let unknown = prune(backups(&directory).of_database(ours ^ 1)).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    assert_eq!(backups(&directory).list().unwrap(), all, "a refused pruning removed something");

    let of_other = backups(&directory).of_database(other);
    assert_eq!(of_other.newest().unwrap().as_ref(), Some(&all[1]));
    let foreign = of_other.restore_to(3, &memory(), &mut |_| ()).unwrap_err();
    assert_eq!(foreign.kind(), ErrorKind::NotFound);
    assert_eq!(prune(backups(&directory).of_database(ours)).unwrap().backups, [1]);
    assert_eq!(backups(&directory).list().unwrap(), all[1..]);
    let db = restored(&backups(&directory), 2);
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"2"[..]));
}

/// A store bounds the bytes of its root.
#[test]
fn the_root_does_not_grow_with_the_number_of_backups() {
    let directory = memory();
    let (db, backups) = (open(&memory()), backups(&directory));
    let root_bytes = |_| {
        backups.create(&db, &mut |_| ()).unwrap();
        directory.root().unwrap().unwrap().len()
    };
    let bytes: Vec<usize> = (0..10).map(root_bytes).collect();
    assert_eq!(bytes, [bytes[0]; 10]);
    assert_eq!(backups.list().unwrap().len(), 10);
}

#[test]
fn a_crash_while_a_backup_is_taken_or_pruned_costs_no_earlier_one() {
    for seed in 0..24u64 {
        let (store, directory) = (memory(), memory());
        let db = open(&store);
        db.put("n", "1").unwrap();
        let first = backups(&directory).create(&db, &mut |_| ()).unwrap();
        db.put("n", "2").unwrap();
        let mut random = Random::new(seed);
        let personality = Personality::ALL[seed as usize % 6];
        // An image of each moment of the second backup, and of the pruning after it.
        let mut images = Vec::new();
        backups(&directory)
            .create(&db, &mut |_| images.push(directory.crash_image(&mut random, personality)))
            .unwrap();
        images.push(directory.crash_image(&mut random, personality));
        backups(&directory).prune(&Keep { last: 1, ..Keep::default() }).unwrap();
        let pruned = directory.crash_image(&mut random, personality);
        for image in &images {
            let backups = backups(image);
            assert!(backups.verify(first.number, &mut |_| ()).unwrap().is_empty());
            for backup in backups.list().unwrap() {
                let value = restored(&backups, backup.number).get("n").unwrap();
                assert_eq!(value.as_deref(), Some(backup.number.to_string().as_bytes()));
            }
            // What the crash left is no obstacle.
            let next = backups.create(&db, &mut |_| ()).unwrap();
            assert!(backups.verify(next.number, &mut |_| ()).unwrap().is_empty());
        }
        let backups = backups(&pruned);
        for backup in backups.list().unwrap() {
            let problems = backups.verify(backup.number, &mut |_| ()).unwrap();
            assert!(backup.number == first.number || problems.is_empty(), "{problems:?}");
        }
    }
}

#[test]
fn damage_in_a_backup_is_found_and_not_restored() {
    let (store, directory) = (memory(), memory());
    let (db, backups) = (open(&store), backups(&directory));
    for n in 0..100u32 {
        db.put(n.to_be_bytes(), [1; 100]).unwrap();
    }
    let backup = backups.create(&db, &mut |_| ()).unwrap();
    let files = directory.list().unwrap();
    let largest = files.iter().filter(|file| file.name.kind == FileKind::Table);
    let largest = largest.max_by_key(|file| file.bytes).unwrap().name;
    directory.overwrite(largest, 500, b"damage").unwrap();
    let problems = backups.verify(backup.number, &mut |_| ()).unwrap();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].contains(&largest.to_string()), "{problems:?}");
    let target = memory();
    let error = backups.restore_to(backup.number, &target, &mut |_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(target.root().unwrap().is_none(), "a damaged restore looks like a database");
}

#[test]
fn a_database_and_a_backup_directory_are_not_taken_for_each_other() {
    let home = tempfile::tempdir().unwrap();
    let (db_path, path) = (home.path().join("db"), home.path().join("backups"));
    let db = Options::new().open(&db_path).unwrap();
    let refused = Backups::open(&db_path).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Incompatible, "{refused}");
    Backups::open(&path).unwrap().create(&db, &mut |_| ()).unwrap();
    let refused = Options::new().open(&path).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Incompatible, "{refused}");
    std::fs::create_dir(home.path().join("mail")).unwrap();
    std::fs::write(home.path().join("mail/letter"), "x").unwrap();
    let refused = Backups::open(home.path().join("mail")).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    let follower = Options::new().follow(&db_path).unwrap();
    let refused = Backups::open(&path).unwrap().create(&follower.db(), &mut |_| ()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
}

/// A copy of the directory that lacks its root looks like one that never had backups.
#[test]
fn backups_whose_root_was_lost_are_not_removed() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("backups");
    let db = Options::new().open(home.path().join("db")).unwrap();
    db.put("key", "value").unwrap();
    let backups = Backups::open(&path).unwrap();
    backups.create(&db, &mut |_| ()).unwrap();
    let root = std::fs::read(path.join("CURRENT")).unwrap();
    std::fs::remove_file(path.join("CURRENT")).unwrap();
    let names = || {
        let files = std::fs::read_dir(&path).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    for error in [
        Backups::open(&path).err().unwrap(),
        backups.list().unwrap_err(),
        backups.create(&db, &mut |_| ()).unwrap_err(),
        backups.prune(&Keep::default()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    }
    assert_eq!(names(), before);
    std::fs::write(path.join("CURRENT"), root).unwrap();
    assert!(backups.verify(1, &mut |_| ()).unwrap().is_empty());
}

/// A write that comes while the copy begins with its flush is in it. One that comes while files are
/// copied is not, and a change feed of the original has to begin before it.
#[test]
fn the_sequence_number_of_a_copy_is_that_of_its_last_write() {
    let of = |operation, kind| Filter { operation: Some(operation), kind: Some(kind) };
    let during_flush = of(Operation::Create, FileKind::Table);
    let during_copy = of(Operation::Open, FileKind::Wal);
    for (filter, expected) in [(during_flush, 2), (during_copy, 1)] {
        for is_backup in [false, true] {
            let plan = Arc::<FaultPlan>::default();
            let store = Arc::new(FaultyStore::new(Arc::new(memory()), plan.clone()));
            let db = Options::new().open_in(store, Arc::new(Stepped::new(1, 3))).unwrap();
            db.put("before", "1").unwrap();
            let writer = db.clone();
            plan.act(filter, 0, Box::new(move || writer.put("during", "2").unwrap()));
            let target = memory();
            let mut stated = expected;
            if is_backup {
                let backups = backups(&memory());
                let backup = backups.create(&db, &mut |_| ()).unwrap();
                backups.restore_to(backup.number, &target, &mut |_| ()).unwrap();
                stated = backup.sequence;
            } else {
                db.checkpoint_to(&target).unwrap();
            }
            let what = format!("{filter:?}, backup: {is_backup}");
            assert_eq!(db.iter().count(), 2, "{what}");
            let copy = open(&target);
            let held = copy.iter().count() as u64;
            assert_eq!((held, stated), (expected, expected), "{what}");
            assert_eq!(copy.snapshot().pins().sequence, expected, "{what}");
        }
    }
}
