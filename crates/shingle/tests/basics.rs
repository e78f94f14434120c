//! The first things that a user tries.

#![allow(clippy::unwrap_used)]

use media::Notes;
use shingle::runtime::Stepped;
use shingle::{Cursor, Db, Options, ReadOptions, WriteBatch, WriteOptions};
use std::collections::BTreeMap;
use std::sync::Arc;

#[test]
fn what_was_written_is_read_and_survives_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Options::new().write_buffer_bytes(64 << 10).open(dir.path()).unwrap();
    let mut model = BTreeMap::new();
    let mut random = base::random::Random::new(1);
    for round in 0..4 {
        let db = open();
        for _ in 0..20_000 {
            let key = format!("key{:06}", random.below(10_000)).into_bytes();
            if random.one_in(5) {
                db.delete(&key).unwrap();
                model.remove(&key);
            } else {
                let value = format!("value{round}-{}", random.next_u64()).into_bytes();
                db.put(&key, &value).unwrap();
                model.insert(key, value);
            }
        }
        check(&db, &model);
        if round % 2 == 0 {
            db.close().unwrap();
        }
    }
    let db = open();
    check(&db, &model);
    db.compact().unwrap();
    check(&db, &model);
    println!("{}", db.stats());
    let report = db.check(&mut |_| {}).unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
}

fn check(db: &Db, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let got: Vec<(Vec<u8>, Vec<u8>)> =
        db.iter().map(|pair| pair.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
    let want: Vec<(Vec<u8>, Vec<u8>)> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    assert!(got == want, "forward: {} != {}", got.len(), want.len());
    let back: Vec<Vec<u8>> = db.iter().rev().map(|pair| pair.unwrap().0.to_vec()).collect();
    assert!(back.iter().eq(model.keys().rev()), "backward");
    for pieces in [1, 100, usize::MAX] {
        let mut cursor = db.cursor(ReadOptions::default());
        cursor.seek_to_first().unwrap();
        assert!(visited(&mut cursor, pieces, false) == want, "forward in pieces of {pieces}");
        cursor.seek_to_last().unwrap();
        let mut back = visited(&mut cursor, pieces, true);
        back.reverse();
        assert!(back == want, "backward in pieces of {pieces}");
    }
    for (key, value) in model.iter().step_by(7) {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(value.as_slice()));
    }
    assert_eq!(db.get("nothing").unwrap(), None);
}

/// What a cursor shows from its position on, `piece` entries in a call.
fn visited(cursor: &mut Cursor, piece: usize, in_reverse: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut seen = Vec::new();
    while cursor.valid() {
        let begun = seen.len();
        let visit = |key: &[u8], value: &[u8]| {
            seen.push((key.to_vec(), value.to_vec()));
            seen.len() - begun < piece
        };
        if in_reverse { cursor.prev_while(visit) } else { cursor.next_while(visit) }.unwrap();
        assert!(seen.len() > begun && seen.len() - begun <= piece);
    }
    seen
}

#[test]
fn a_snapshot_keeps_its_moment() {
    let dir = tempfile::tempdir().unwrap();
    let db = Options::new().write_buffer_bytes(16 << 10).open(dir.path()).unwrap();
    db.put("a", "1").unwrap();
    let snapshot = db.snapshot();
    let mut batch = WriteBatch::new();
    batch.put("a", "2").unwrap();
    batch.put("b", "2").unwrap();
    db.write(batch, &WriteOptions::default()).unwrap();
    db.delete_range("a", "z").unwrap();
    db.flush().unwrap();
    db.compact().unwrap();
    assert_eq!(snapshot.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(snapshot.iter().count(), 1);
    assert_eq!(db.get("a").unwrap(), None);
    assert_eq!(db.iter().count(), 0);
}

#[test]
fn a_deleted_range_without_keys_does_not_keep_a_database_from_opening() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Options::new().expert(|e| e.no_threads = true).open(dir.path()).unwrap();
    let db = open();
    db.delete_range("a", "a").unwrap();
    // As a killed process leaves it: the log holds the operation, and nothing was flushed.
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    let killed = Options::new().open(copy.path()).unwrap();
    killed.put("a", "1").unwrap();
    killed.close().unwrap();
    db.close().unwrap();
    assert_eq!(open().iter().count(), 0);
}

/// The line of a report whose title is this.
fn amplification(db: &Db, title: &str) -> String {
    let report = db.property("rocksdb.stats").unwrap();
    let line = report.lines().find(|line| line.starts_with(&format!("{title} amplification: ")));
    line.unwrap_or_else(|| panic!("{report}")).to_string()
}

#[test]
fn a_report_tells_amplification_since_the_report_before() {
    let dir = tempfile::tempdir().unwrap();
    let db = Options::new().open(dir.path()).unwrap();
    for n in 0..100u64 {
        db.put(n.to_be_bytes(), [7; 100]).unwrap();
    }
    let first = amplification(&db, "Interval");
    assert!(!first.contains(": WA -,"), "{first}");
    // Files do not report media bytes.
    assert!(first.contains("AWA -, MWA -,") && first.contains("MRA -"), "{first}");
    assert!(amplification(&db, "Interval").contains(": WA -, without WAL -,"));
    assert!(!amplification(&db, "Cumulative").contains(": WA -,"));
}

/// Bytes that users wrote, by event of traffic.
fn traffic<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<u64> {
    let number = |line: &str| {
        let (_, after) = line.split_once("\"user_write_bytes\": ")?;
        after.split(',').next()?.parse().ok()
    };
    lines.filter(|line| line.contains("\"traffic\"")).filter_map(number).collect()
}

#[test]
fn events_of_traffic_come_with_flushes_once_a_minute_and_add_up() {
    let store = Arc::new(media::mem::MemStore::new(Arc::default()));
    let runtime = Arc::new(Stepped::new(1, 1));
    let db = Options::new().open_in(store.clone(), runtime.clone()).unwrap();
    // Flushes at 0, 40, 80, 120 and 160 seconds: two are a minute after opening or the last event.
    for _ in 0..5 {
        for n in 0..10u64 {
            db.put(n.to_be_bytes(), [7; 92]).unwrap();
        }
        db.flush().unwrap();
        runtime.pass(40_000_000_000);
    }
    let events = db.events();
    assert_eq!(traffic(events.iter().map(String::as_str)), [3000, 2000], "{events:?}");
    db.put([1; 8], [7; 92]).unwrap();
    db.close().unwrap();
    let log = String::from_utf8(store.read_note("LOG").unwrap().unwrap()).unwrap();
    assert_eq!(traffic(log.lines()), [3000, 2000, 100], "{log}");
}
