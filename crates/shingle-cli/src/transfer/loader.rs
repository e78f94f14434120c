//! Writes of many records, in batches.

use super::Record;
use crate::failure::Outcome;
use shingle::{Db, Keyspace, WriteBatch, WriteOptions};

/// A batch is written when it has this many bytes.
const BATCH_BYTES: u64 = 1 << 20;
/// A batch is written when it has this many records.
const BATCH_RECORDS: usize = 1000;

/// Writes records in batches.
pub struct Loader<'a> {
    db: &'a Db,
    batch: WriteBatch,
    batch_bytes: u64,
    /// Records so far.
    pub records: u64,
    /// Bytes of keys and values so far.
    pub bytes: u64,
}

impl<'a> Loader<'a> {
    /// For records of any keyspace of `db`.
    pub fn new(db: &'a Db) -> Loader<'a> {
        Loader { db, batch: WriteBatch::new(), batch_bytes: 0, records: 0, bytes: 0 }
    }

    /// One more record.
    pub fn put(&mut self, keyspace: &Keyspace, record: Record<'_>) -> Outcome {
        let Record { key, value, expiry } = record;
        match expiry {
            None => self.batch.put_in(keyspace, key, value)?,
            Some(expiry) => self.batch.put_expiring_in(keyspace, key, value, expiry)?,
        }
        self.batch_bytes += record.bytes();
        self.records += 1;
        self.bytes += record.bytes();
        self.write_when_full()
    }

    /// One record less.
    pub fn delete(&mut self, keyspace: &Keyspace, key: &[u8]) -> Outcome {
        self.batch.delete_in(keyspace, key)?;
        self.write_when_full()
    }

    fn write_when_full(&mut self) -> Outcome {
        if self.batch_bytes >= BATCH_BYTES || self.batch.len() >= BATCH_RECORDS {
            self.write()?;
        }
        Ok(())
    }

    /// Writes what is left.
    pub fn write(&mut self) -> Outcome {
        if !self.batch.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            self.db.write(batch, &WriteOptions { durability: None, wait: true })?;
        }
        self.batch_bytes = 0;
        Ok(())
    }
}
