//! Many threads on one database: what each of them sees must be possible.

use crate::config::Config;
use crate::volume::scaled;
use base::random::Random;
use media::mem::MemStore;
use shingle::{Db, Durability, KeyspaceOptions, WriteBatch, WriteOptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const WRITERS: u64 = 2;
const KEYS: u64 = 200;

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

/// Writes batches that give a pair of keys, one in each keyspace, the same rising number.
fn write(db: &Db, writer: u64, rounds: u64, acknowledged: &[AtomicU64]) {
    let mirror = db.keyspace("mirror").unwrap();
    let mut random = Random::new(writer);
    for round in 1..=rounds {
        let key = random.below(KEYS);
        let name = format!("{writer}/{key:04}");
        let value = [&round.to_le_bytes()[..], &vec![b'v'; random.below(200) as usize]].concat();
        let mut batch = WriteBatch::new();
        batch.put(&name, &value).unwrap();
        batch.put_in(&mirror, &name, &value).unwrap();
        let durability = random.one_in(50).then_some(Durability::Synced);
        db.write(batch, &WriteOptions { durability, wait: true }).unwrap();
        acknowledged[(writer * KEYS + key) as usize].store(round, Ordering::Release);
    }
}

/// Reads at random: numbers never fall, never lag behind what was acknowledged, and both keyspaces
/// of a snapshot agree.
fn read(db: &Db, seed: u64, stop: &AtomicBool, acknowledged: &[AtomicU64]) -> u64 {
    let mirror = db.keyspace("mirror").unwrap();
    let mut random = Random::new(seed);
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    let mut reads = 0;
    while !stop.load(Ordering::Relaxed) {
        reads += 1;
        let (writer, key) = (random.below(WRITERS), random.below(KEYS));
        let name = format!("{writer}/{key:04}");
        let floor = acknowledged[(writer * KEYS + key) as usize].load(Ordering::Acquire);
        match random.below(6) {
            0 => {
                let snapshot = db.snapshot();
                let one: Vec<_> = snapshot.iter().map(Result::unwrap).collect();
                let other: Vec<_> =
                    snapshot.of(&mirror).unwrap().iter().map(Result::unwrap).collect();
                assert_eq!(one.len(), other.len(), "a batch was seen in part");
                for ((key, value), (key2, value2)) in one.iter().zip(&other) {
                    assert_eq!((&key[..], &value[..]), (&key2[..], &value2[..]));
                }
            }
            1 => {
                for pair in db.prefix(format!("{writer}/")).rev() {
                    let (key, value) = pair.unwrap();
                    let key = String::from_utf8(key.to_vec()).unwrap();
                    let last = seen.entry(key).or_default();
                    assert!(number(&value) >= *last, "a scan went back in time");
                    *last = number(&value);
                }
            }
            _ => {
                let found = db.get(&name).unwrap().map_or(0, |value| number(&value));
                let last = seen.entry(name).or_default();
                assert!(found >= *last, "key went back from {last} to {found}");
                assert!(found >= floor, "{found} is older than the acknowledged {floor}");
                *last = found;
            }
        }
    }
    reads
}

/// Flushes, compacts, creates and drops while the others run.
fn disturb(db: &Db, stop: &AtomicBool) {
    let mut random = Random::new(99);
    while !stop.load(Ordering::Relaxed) {
        match random.below(5) {
            0 => db.flush().unwrap(),
            1 => db.compact().unwrap(),
            2 => db.sync().unwrap(),
            3 => {
                let passing = db.create_keyspace("passing", KeyspaceOptions::default()).unwrap();
                for n in 0..300u64 {
                    passing.put(n.to_be_bytes(), [7; 100]).unwrap();
                }
                let iter = passing.iter();
                db.drop_keyspace("passing").unwrap();
                assert_eq!(iter.map(Result::unwrap).count(), 300);
            }
            _ => {
                let report = db.check(&mut |_| {}).unwrap();
                assert!(report.is_clean(), "{:?}", report.problems);
            }
        }
    }
}

#[test]
fn threads_see_rising_numbers_and_whole_batches() {
    for seed in 0..scaled(3) {
        let config = Config { stepped: None, ..Config::draw(seed) };
        let db = config.open(Arc::new(MemStore::new(Arc::default()))).unwrap();
        db.create_keyspace("mirror", KeyspaceOptions::default()).unwrap();
        let acknowledged: Vec<AtomicU64> = (0..WRITERS * KEYS).map(|_| AtomicU64::new(0)).collect();
        let stop = AtomicBool::new(false);
        let reads = std::thread::scope(|scope| {
            let (db, acknowledged, stop) = (&db, &acknowledged[..], &stop);
            let readers: Vec<_> =
                (0..2).map(|n| scope.spawn(move || read(db, n, stop, acknowledged))).collect();
            scope.spawn(move || disturb(db, stop));
            let writers: Vec<_> = (0..WRITERS)
                .map(|n| scope.spawn(move || write(db, n, 4000, acknowledged)))
                .collect();
            let outcomes: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            stop.store(true, Ordering::Relaxed);
            outcomes.into_iter().for_each(|outcome| outcome.unwrap());
            readers.into_iter().map(|reader| reader.join().unwrap()).sum::<u64>()
        });
        for (at, floor) in acknowledged.iter().enumerate() {
            let name = format!("{}/{:04}", at as u64 / KEYS, at as u64 % KEYS);
            let found = db.get(&name).unwrap().map_or(0, |value| number(&value));
            assert_eq!(found, floor.load(Ordering::Acquire), "{name}");
        }
        println!("seed {seed}: {reads} reads");
        db.close().unwrap();
    }
}

fn count(directory: &str) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

/// The descriptors and threads of this process.
fn used() -> (usize, usize) {
    (count("/proc/self/fd"), count("/proc/self/task"))
}

#[test]
fn opening_and_closing_a_thousand_times_keeps_nothing() {
    if std::env::var("SHINGLE_ALONE").is_err() {
        // Other tests open files and threads of their own, so this one needs its own process.
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "threads::opening_and_closing_a_thousand_times_keeps_nothing"])
            .env("SHINGLE_ALONE", "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    // In memory where there is such a directory: a thousand times a few syncs take long on a disk.
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let mut before = None;
    for round in 0..1000u64 {
        let db = shingle::Options::new().memory_bytes(1 << 20).open(dir.path()).unwrap();
        db.put((round % 10).to_be_bytes(), "value").unwrap();
        assert!(db.get((round % 10).to_be_bytes()).unwrap().is_some());
        if round % 2 == 0 {
            db.close().unwrap();
        } else {
            drop(db);
        }
        if round == 20 {
            // The least of several looks is without threads that have just ended.
            let looks = (0..20).map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                used()
            });
            before = looks.min();
        }
    }
    let mut now = used();
    // Linux lists a thread for a moment after another thread has waited for its end.
    for _ in 0..1000 {
        if before == Some(now) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        now = used();
    }
    assert_eq!(before, Some(now), "descriptors or threads stayed");
    let db = shingle::Options::new().open(dir.path()).unwrap();
    db.compact().unwrap();
    db.wait_idle().unwrap();
    db.close().unwrap();
    let files = count(dir.path().to_str().unwrap());
    assert!(files < 60, "{files} files after a thousand openings");
}

/// Compiles only if they are: programs keep handles in structs that several threads share.
#[test]
fn handles_are_send_and_sync_and_owned() {
    fn shared<T: Send + Sync + 'static>() {}
    fn owned<T: Send + 'static>() {}
    shared::<Db>();
    shared::<shingle::Keyspace>();
    shared::<shingle::Snapshot>();
    shared::<shingle::Options>();
    shared::<shingle::Resources>();
    shared::<shingle::Error>();
    shared::<shingle::Bytes>();
    owned::<shingle::Cursor>();
    owned::<shingle::Iter>();
    owned::<WriteBatch>();
    owned::<shingle::Transaction>();
    owned::<shingle::Follower>();
}
