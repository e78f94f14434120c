//! Segments as files: appended in batches, read by pointer, scanned in order.
//!
//! Invariant: a record is whole in one segment, and stands where its pointer says. What lies beyond
//! the bytes that the manifest vouches for was never committed; a writer that goes on begins there.

use crate::pointer::ValuePointer;
use crate::record::{self, HEADER_BYTES_MAX, Record, SegmentPlace};
use base::key::SequenceNumber;
use base::{Cause, Error, ErrorKind, Result};
use media::{AppendFile, FileName, ReadFile, SyncFile};

/// Appends records to one segment.
pub struct SegmentWriter {
    file: Box<dyn AppendFile>,
    place: SegmentPlace,
    cause: Cause,
    batch: Vec<u8>,
    batch_bytes: usize,
}

impl SegmentWriter {
    /// Goes on at the end of `file`. Records gather until there are `batch_bytes`, and then go to
    /// the file in one request.
    pub fn new(
        file: Box<dyn AppendFile>,
        place: SegmentPlace,
        batch_bytes: usize,
        cause: Cause,
    ) -> SegmentWriter {
        SegmentWriter { file, place, cause, batch: Vec::new(), batch_bytes }
    }

    /// Bytes of the segment, those that wait for their request included.
    pub fn bytes(&self) -> u64 {
        self.file.len() + self.batch.len() as u64
    }

    /// Which segment it is.
    pub fn place(&self) -> SegmentPlace {
        self.place
    }

    /// Appends a record, or a tag where there is no value; gives its pointer.
    pub fn add(
        &mut self,
        sequence: SequenceNumber,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<ValuePointer> {
        let offset = self.bytes();
        let before = self.batch.len();
        record::push_record(&mut self.batch, self.place, offset, sequence, key, value);
        let pointer = ValuePointer {
            file: self.place.file,
            offset,
            record_bytes: (self.batch.len() - before) as u32,
            value_bytes: value.map_or(0, |value| value.len() as u32),
        };
        if self.batch.len() >= self.batch_bytes {
            self.write_batch()?;
        }
        Ok(pointer)
    }

    /// Hands what was gathered to the file. After an error the segment takes no more.
    pub fn write_batch(&mut self) -> Result<()> {
        if !self.batch.is_empty() {
            self.file.append(&self.batch, self.cause)?;
            self.batch.clear();
        }
        Ok(())
    }

    /// Syncs what was written while others go on; `None` where the store cannot.
    pub fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        self.file.syncer()
    }

    /// Lets the system begin to write every record, before a [`SegmentWriter::sync`].
    pub fn begin_sync(&mut self) -> Result<()> {
        self.write_batch()?;
        self.file.begin_sync()
    }

    /// Makes every record durable; gives the segment's bytes.
    pub fn sync(&mut self) -> Result<u64> {
        self.write_batch()?;
        self.file.sync(self.cause)?;
        Ok(self.file.len())
    }
}

/// Reads the value that `pointer` names, and verifies that it is the value of `key`.
pub fn read(
    file: &dyn ReadFile,
    place: SegmentPlace,
    pointer: &ValuePointer,
    key: &[u8],
    cause: Cause,
) -> Result<Vec<u8>> {
    let mut bytes = vec![0; pointer.record_bytes as usize];
    file.read_at(pointer.offset, &mut bytes, cause)?;
    verified_value(bytes, place, pointer, key)
}

/// [`read`], unless the medium would be waited for; `None` then, and where the store cannot tell.
pub fn read_from_memory(
    file: &dyn ReadFile,
    place: SegmentPlace,
    pointer: &ValuePointer,
    key: &[u8],
    cause: Cause,
) -> Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; pointer.record_bytes as usize];
    match file.read_from_memory(pointer.offset, &mut bytes, cause)? {
        true => verified_value(bytes, place, pointer, key).map(Some),
        false => Ok(None),
    }
}

/// The value in the record `bytes`.
fn verified_value(
    mut bytes: Vec<u8>,
    place: SegmentPlace,
    pointer: &ValuePointer,
    key: &[u8],
) -> Result<Vec<u8>> {
    check_record(&bytes, place, pointer, key)?;
    bytes.drain(..bytes.len() - pointer.value_bytes as usize);
    Ok(bytes)
}

/// Verifies that the record which `pointer` names is there, and is the one that `key` was given at
/// `sequence`. `Corruption` where it is not.
pub fn verify(
    file: &dyn ReadFile,
    place: SegmentPlace,
    pointer: &ValuePointer,
    key: &[u8],
    sequence: SequenceNumber,
    cause: Cause,
) -> Result<()> {
    let (have, wanted) = (file.len()?, pointer.end());
    let name = FileName::value(place.file).to_string();
    if have < wanted {
        let message = format!("a value ends at byte {wanted}, and there are {have}");
        return Err(Error::corruption(name, have, message));
    }
    let mut bytes = vec![0; pointer.record_bytes as usize];
    file.read_at(pointer.offset, &mut bytes, cause)?;
    match check_record(&bytes, place, pointer, key)? {
        found if found == sequence => Ok(()),
        found => {
            let message =
                format!("a value of sequence number {found} stands for one of {sequence}");
            Err(Error::corruption(name, pointer.offset, message))
        }
    }
}

/// The sequence number of the record that `pointer` names, whose bytes are `bytes`, once it is
/// verified to be one of `key`.
fn check_record(
    bytes: &[u8],
    place: SegmentPlace,
    pointer: &ValuePointer,
    key: &[u8],
) -> Result<SequenceNumber> {
    let record = record::decode(bytes, place, pointer.offset)?;
    let is_right = record.key == key
        && record.bytes == bytes.len()
        && record.value.is_some_and(|value| value.len() == pointer.value_bytes as usize);
    if !is_right {
        let name = FileName::value(place.file).to_string();
        let message = "the record that a pointer names is of another key or length";
        return Err(Error::corruption(name, pointer.offset, message));
    }
    Ok(record.sequence)
}

/// Which of `places` the first record of `file` was written at, whatever the file is called.
pub fn first_of(
    file: &dyn ReadFile,
    places: impl IntoIterator<Item = SegmentPlace>,
    cause: Cause,
) -> Result<Option<SegmentPlace>> {
    let all_bytes = file.len()?;
    let mut bytes = vec![0; all_bytes.min(HEADER_BYTES_MAX as u64) as usize];
    file.read_at(0, &mut bytes, cause)?;
    let stated = record::stated_bytes(&bytes).filter(|&stated| stated as u64 <= all_bytes);
    let Some(stated) = stated else { return Ok(None) };
    bytes.resize(stated, 0);
    file.read_at(0, &mut bytes, cause)?;
    Ok(places.into_iter().find(|&place| record::decode(&bytes, place, 0).is_ok()))
}

/// How many bytes of `file`, whatever it is called, are records of the segment `place`.
pub fn sound_bytes(file: &dyn ReadFile, place: SegmentPlace, cause: Cause) -> Result<u64> {
    if first_of(file, [place], cause)?.is_none() {
        return Ok(0);
    }
    let mut scan = SegmentScan::new(file, place, file.len()?, cause);
    loop {
        match scan.next_record() {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(scan.offset()),
            Err(error) if error.kind() == ErrorKind::Corruption => return Ok(scan.offset()),
            Err(error) => return Err(error),
        }
    }
}

/// Walks the records of a segment in order, with large reads and bounded memory.
pub struct SegmentScan<'a> {
    file: &'a dyn ReadFile,
    place: SegmentPlace,
    cause: Cause,
    /// Bytes that the manifest vouches for.
    end: u64,
    /// The file's byte that `buffer` begins with.
    begin: u64,
    buffer: Vec<u8>,
    at: usize,
}

/// Bytes that a scan reads at once.
const SCAN_BYTES: usize = 1 << 20;

impl<'a> SegmentScan<'a> {
    /// A scan of the first `end` bytes.
    pub fn new(file: &'a dyn ReadFile, place: SegmentPlace, end: u64, cause: Cause) -> Self {
        SegmentScan { file, place, cause, end, begin: 0, buffer: Vec::new(), at: 0 }
    }

    /// Goes on at byte `offset`, where a record begins.
    pub fn starting_at(mut self, offset: u64) -> Self {
        self.begin = offset;
        self
    }

    /// The next record and its pointer; `None` at the end. An error names file and offset; what
    /// follows a damaged record cannot be found.
    pub fn next_record(&mut self) -> Result<Option<(Record<'_>, ValuePointer)>> {
        let offset = self.begin + self.at as u64;
        if offset >= self.end {
            return Ok(None);
        }
        self.fill(HEADER_BYTES_MAX)?;
        if let Some(total) = record::stated_bytes(&self.buffer[self.at..]) {
            self.fill(total)?;
        }
        let record = record::decode(&self.buffer[self.at..], self.place, offset)?;
        let pointer = ValuePointer {
            file: self.place.file,
            offset,
            record_bytes: record.bytes as u32,
            value_bytes: record.value.map_or(0, |value| value.len() as u32),
        };
        self.at += record.bytes;
        Ok(Some((record, pointer)))
    }

    /// The file's byte that the next record begins at.
    pub fn offset(&self) -> u64 {
        self.begin + self.at as u64
    }

    /// The next record can be given without a read.
    pub fn is_buffered(&self) -> bool {
        let rest = &self.buffer[self.at..];
        record::stated_bytes(rest).is_some_and(|bytes| bytes <= rest.len())
    }

    /// Has at least `wanted` bytes in the buffer, or all that are left.
    fn fill(&mut self, wanted: usize) -> Result<()> {
        if self.buffer.len() - self.at >= wanted {
            return Ok(());
        }
        self.buffer.drain(..self.at);
        self.begin += self.at as u64;
        self.at = 0;
        let have = self.buffer.len();
        let left = self.end - self.begin - have as u64;
        let more = left.min(wanted.saturating_sub(have).max(SCAN_BYTES) as u64) as usize;
        self.buffer.resize(have + more, 0);
        self.file.read_at(self.begin + have as u64, &mut self.buffer[have..], self.cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{DatabaseId, FileId};
    use media::FileStore;
    use media::mem::MemStore;
    use media::{FileHint, FileName};

    #[test]
    fn what_is_written_is_read_by_pointer_and_by_scan_across_batches() {
        let store = MemStore::new(std::sync::Arc::default());
        let place = SegmentPlace { database: DatabaseId(1), file: FileId(2) };
        let name = FileName::value(place.file);
        let append = store.create(name, &FileHint::default()).unwrap();
        let mut writer = SegmentWriter::new(append, place, 64 << 10, Cause::ValueWrite);
        let mut written = Vec::new();
        for number in 0..3000u64 {
            let key = format!("key{number}").into_bytes();
            let value = vec![number as u8; (number as usize * 37) % 2000];
            let value = (number % 10 != 3).then_some(value);
            let pointer = writer.add(number, &key, value.as_deref()).unwrap();
            written.push((key, value, pointer));
        }
        let huge = vec![9; 3 << 20];
        let pointer = writer.add(3000, b"huge", Some(&huge)).unwrap();
        written.push((b"huge".to_vec(), Some(huge), pointer));
        let bytes = writer.sync().unwrap();
        let file = store.open(name, false).unwrap();
        let mut scan = SegmentScan::new(&*file, place, bytes, Cause::ValueGc);
        for (key, value, pointer) in &written {
            let (record, at) = scan.next_record().unwrap().unwrap();
            assert_eq!((record.key, record.value, at), (&key[..], value.as_deref(), *pointer));
            if let Some(value) = value {
                assert_eq!(read(&*file, place, pointer, key, Cause::Get).unwrap(), *value);
                assert!(read(&*file, place, pointer, b"other", Cause::Get).is_err());
                let sequence = record.sequence;
                verify(&*file, place, pointer, key, sequence, Cause::Recovery).unwrap();
                let later = verify(&*file, place, pointer, key, sequence + 1, Cause::Recovery);
                assert_eq!(later.unwrap_err().kind(), ErrorKind::Corruption);
            }
        }
        assert!(scan.next_record().unwrap().is_none());
        let beyond = ValuePointer { offset: bytes, ..written[0].2 };
        assert!(verify(&*file, place, &beyond, &written[0].0, 0, Cause::Recovery).is_err());
        let ledger = store.ledger().snapshot();
        assert_eq!(ledger.cause(Cause::ValueWrite).write_bytes, bytes);
    }
}
