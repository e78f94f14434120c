//! A database that has something to say in every metric.

use shingle::{
    CompactionFilter, Db, FilterDecision, FilterEntry, IngestOptions, KeyspaceOptions, Options,
    Result, SortedFileOptions, SortedFileWriter, Stats,
};
use std::sync::Arc;

pub struct Sample {
    pub db: Db,
    _dir: tempfile::TempDir,
}

/// Drops every other key.
struct Odd;

impl CompactionFilter for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    fn filter(&self, entry: &FilterEntry<'_>) -> Result<FilterDecision> {
        let is_odd = entry.key().last().is_some_and(|byte| byte % 2 == 1);
        Ok(if is_odd { FilterDecision::Keep } else { FilterDecision::Drop })
    }
}

/// Three keyspaces, a compaction filter, separated values, garbage collections, a transaction and
/// an ingestion.
pub fn sample() -> Sample {
    let dir = tempfile::tempdir().unwrap();
    let db = Options::new()
        .values("log")
        .compaction_filter(Arc::new(Odd))
        .value_threshold_bytes(512)
        .write_buffer_bytes(64 << 10)
        .expert(|expert| expert.values.segment_bytes = Some(64 << 10))
        .open(dir.path())
        .unwrap();
    // A name that needs every escape of the text formats.
    let other = db.create_keyspace("o\"t\\h\ner", KeyspaceOptions::default()).unwrap();
    let filtered =
        KeyspaceOptions { compaction_filter: Some("odd".into()), ..KeyspaceOptions::default() };
    let filtered = db.create_keyspace("filtered", filtered).unwrap();
    (0..100u8).for_each(|n| filtered.put([n], "value").unwrap());
    for round in 0..8u8 {
        for n in 0..300u64 {
            db.put(n.to_be_bytes(), vec![round; 1000]).unwrap();
            other.put((n * u64::from(round)).to_be_bytes(), [round; 100]).unwrap();
        }
        db.flush().unwrap();
    }
    db.compact().unwrap();
    other.compact().unwrap();
    filtered.compact().unwrap();
    db.wait_idle().unwrap();
    let mut transaction = db.transaction();
    transaction.put("in", "transaction").unwrap();
    transaction.commit().unwrap();
    for n in 0..300u64 {
        db.get(n.to_be_bytes()).unwrap();
    }
    let sorted = dir.path().join("sorted");
    let mut file = SortedFileWriter::create(&sorted, &SortedFileOptions::default()).unwrap();
    file.put("ingested", "value").unwrap();
    file.finish().unwrap();
    db.ingest(&[sorted], &IngestOptions::default()).unwrap();
    db.sync().unwrap();
    Sample { db, _dir: dir }
}

impl Sample {
    pub fn stats(&self) -> Stats {
        self.db.stats()
    }
}
