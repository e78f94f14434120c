//! A database that has something to say in every metric.

use shingle::{Db, KeyspaceOptions, Options, Stats};

pub struct Sample {
    pub db: Db,
    _dir: tempfile::TempDir,
}

/// Two keyspaces, separated values, garbage collections, transactions, snapshots and stalls.
pub fn sample() -> Sample {
    let dir = tempfile::tempdir().unwrap();
    let db = Options::new()
        .values("log")
        .value_threshold_bytes(512)
        .write_buffer_bytes(64 << 10)
        .expert(|expert| expert.values.segment_bytes = Some(64 << 10))
        .open(dir.path())
        .unwrap();
    // A name that needs every escape of the text formats.
    let other = db.create_keyspace("o\"t\\h\ner", KeyspaceOptions::default()).unwrap();
    for round in 0..8u8 {
        for n in 0..300u64 {
            db.put(n.to_be_bytes(), vec![round; 1000]).unwrap();
            other.put((n * u64::from(round)).to_be_bytes(), [round; 100]).unwrap();
        }
        db.flush().unwrap();
    }
    db.compact().unwrap();
    other.compact().unwrap();
    db.wait_idle().unwrap();
    let mut transaction = db.transaction();
    transaction.put("in", "transaction").unwrap();
    transaction.commit().unwrap();
    for n in 0..300u64 {
        db.get(n.to_be_bytes()).unwrap();
    }
    db.sync().unwrap();
    Sample { db, _dir: dir }
}

impl Sample {
    pub fn stats(&self) -> Stats {
        self.db.stats()
    }
}
