//! Tests of logs, over a file that is a vector.

mod chain;
mod damage;
mod records;

use super::*;
use base::{Cause, DatabaseId, Error, FileId, Result};
use media::{AppendFile, FileName, ReadFile, SyncFile};
use parking_lot::Mutex;
use std::sync::Arc;

/// What an append file and its test share.
#[derive(Clone, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Bytes {
    fn take(&self) -> Vec<u8> {
        self.0.lock().clone()
    }
}

struct Appended {
    bytes: Bytes,
    /// Appends fail once the file has this many bytes.
    bytes_max: usize,
    appends: usize,
}

impl AppendFile for Appended {
    fn append(&mut self, bytes: &[u8], _: Cause) -> Result<()> {
        let mut held = self.bytes.0.lock();
        if held.len() + bytes.len() > self.bytes_max {
            return Err(Error::io("append", std::io::Error::from_raw_os_error(28)));
        }
        held.extend_from_slice(bytes);
        self.appends += 1;
        Ok(())
    }

    fn sync(&mut self, _: Cause) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> u64 {
        self.bytes.0.lock().len() as u64
    }

    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        None
    }
}

/// A file with these bytes.
struct Stored(Vec<u8>);

impl ReadFile for Stored {
    fn read_at(&self, offset: u64, into: &mut [u8], _: Cause) -> Result<()> {
        let begin = offset as usize;
        let found = self.0.get(begin..begin + into.len());
        into.copy_from_slice(found.ok_or_else(|| Error::corruption("test", offset, "past end"))?);
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn prefetch(&self, _: u64, _: u64) {}

    fn name(&self) -> FileName {
        FileName::wal(FileId(9))
    }
}

const IDENTITY: LogIdentity =
    LogIdentity { database: DatabaseId(0xd1), file: FileId(9), kind: LogKind::Wal };

fn header(identity: LogIdentity, previous: Option<PreviousLog>) -> LogHeader {
    let LogIdentity { database, file, kind } = identity;
    LogHeader { database, file, kind, salt: 0x5a17, previous, has_origins: false, restates: false }
}

fn writer(identity: LogIdentity) -> (LogWriter, Bytes) {
    let bytes = Bytes::default();
    let file = Appended { bytes: bytes.clone(), bytes_max: usize::MAX, appends: 0 };
    let header = header(identity, None);
    (LogWriter::create(Box::new(file), header, Cause::Wal).unwrap(), bytes)
}

/// A log of `payloads` as bytes, with the offsets where its pieces begin, its end last. It is
/// synced before each record whose index is in `synced`.
fn log_of(identity: LogIdentity, payloads: &[Vec<u8>], synced: &[usize]) -> (Vec<u8>, Vec<u64>) {
    let (mut writer, bytes) = writer(identity);
    let mut offsets = vec![0, writer.bytes()];
    for (index, payload) in payloads.iter().enumerate() {
        if synced.contains(&index) {
            writer.sync().unwrap();
        }
        writer.append(&[payload]).unwrap();
        offsets.push(writer.bytes());
    }
    (bytes.take(), offsets)
}

/// The records of a log and how it ended.
fn read(bytes: &[u8], durable_bytes_min: u64) -> (Vec<Vec<u8>>, Result<End>) {
    let file = Stored(bytes.to_vec());
    let mut records = Vec::new();
    let mut reader = match LogReader::open(&file, IDENTITY, durable_bytes_min, Cause::Recovery) {
        Ok(reader) => reader,
        Err(error) => return (records, Err(error)),
    };
    loop {
        match reader.next() {
            Ok(Some(record)) => records.push(record.payload.to_vec()),
            Ok(None) => return (records, Ok(reader.end().unwrap())),
            Err(error) => {
                assert_eq!(reader.next().unwrap_err().to_string(), error.to_string());
                return (records, Err(error));
            }
        }
    }
}

fn small_payloads() -> Vec<Vec<u8>> {
    (0..8u8).map(|i| vec![i; 3 * usize::from(i)]).collect()
}
