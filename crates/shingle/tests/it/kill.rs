//! A process is killed at any time. Every acknowledged write must be there.
//!
//! The test runs itself as a child that writes numbered batches and reports each acknowledgement
//! over a pipe. The parent kills it and opens the database.

use base::random::Random;
use shingle::{Db, Durability, Options, WriteBatch, WriteOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const DIRECTORY: &str = "SHINGLE_KILL_DIRECTORY";

pub fn open(path: &Path) -> Db {
    Options::new()
        .write_buffer_bytes(16 << 10)
        .expert(|e| {
            e.memtable_bytes = Some(8 << 10);
            e.scheme.table_bytes_max = Some(4096);
            e.scheme.level_bytes_base = Some(16 << 10);
        })
        .open(path)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Batch `n` writes these pairs: a counter, a key of its own, and one that is written again and
/// again.
pub fn batch(n: u64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    let mut random = Random::new(n);
    let padding = vec![b'p'; random.below(400) as usize];
    let value = [&n.to_le_bytes()[..], &padding].concat();
    batch.put("last", n.to_le_bytes()).unwrap();
    batch.put(format!("own/{n:08}"), &value).unwrap();
    batch.put(format!("again/{:04}", n % 97), &value).unwrap();
    batch
}

/// The child: does nothing unless the parent asks.
#[test]
fn child_of_the_kill_test() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let db = open(Path::new(&directory));
    let first = last(&db) + 1;
    let mut out = std::io::stdout().lock();
    for n in first.. {
        let durability = Some(if n % 8 == 0 { Durability::Synced } else { Durability::Buffered });
        db.write(batch(n), &WriteOptions { durability, wait: true }).unwrap();
        writeln!(out, "acknowledged {n}").unwrap();
        out.flush().unwrap();
    }
}

fn last(db: &Db) -> u64 {
    let last = db.get("last").unwrap();
    last.map_or(0, |bytes| u64::from_le_bytes(bytes[..].try_into().unwrap()))
}

/// Everything up to `last` is there, whole, and nothing more.
pub fn verify(db: &Db, acknowledged: u64) -> u64 {
    let last = last(db);
    assert!(last >= acknowledged, "{last} is the last of {acknowledged} acknowledged batches");
    for (n, pair) in (1..).zip(db.prefix("own/")) {
        let (key, value) = pair.unwrap();
        assert_eq!(key[..], *format!("own/{n:08}").as_bytes(), "a batch is missing");
        assert_eq!(value[..8], u64::to_le_bytes(n));
    }
    assert_eq!(db.prefix("own/").count() as u64, last);
    for pair in db.prefix("again/") {
        let (key, value) = pair.unwrap();
        let slot: u64 = std::str::from_utf8(&key[6..]).unwrap().parse().unwrap();
        let newest = last - (last + 97 - slot) % 97;
        assert_eq!(value[..8], newest.to_le_bytes(), "slot {slot} after {last}");
    }
    last
}

/// Starts the child on the database in `path`.
pub fn spawn_writer(path: &Path, out: Stdio) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child_of_the_kill_test", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, path)
        .stdout(out)
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_killed_process_keeps_what_was_acknowledged() {
    let kills = std::env::var("SHINGLE_KILLS").ok().and_then(|text| text.parse().ok());
    let (mut random, mut total) = (Random::new(7), 0);
    let mut directory = tempfile::tempdir().unwrap();
    for kill in 0..kills.unwrap_or(20u64) {
        if kill % 10 == 9 {
            directory = tempfile::tempdir().unwrap();
        }
        let path = directory.path().join("db");
        let mut child = spawn_writer(&path, Stdio::piped());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reader = std::thread::spawn(move || {
            let number = |line: String| {
                line.rsplit_once("acknowledged ").and_then(|(_, n)| n.parse::<u64>().ok())
            };
            lines.map_while(Result::ok).filter_map(number).last().unwrap_or(0)
        });
        std::thread::sleep(Duration::from_millis(random.below(250)));
        child.kill().unwrap();
        child.wait().unwrap();
        let acknowledged = reader.join().unwrap();
        let db = open(&path);
        total += verify(&db, acknowledged);
        if kill % 3 == 0 {
            let report = db.check(&mut |_| {}).unwrap();
            assert!(report.is_clean(), "{:?}", report.problems);
        }
        db.close().unwrap();
    }
    println!("batches found over all kills: {total}");
}
