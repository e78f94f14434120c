//! Files on a block device, for the time that they take: a store in memory whose appends, reads and
//! syncs go to the device as well. Nothing survives on the device alone.
//!
//! Invariant: what is read from the device is what was appended.

use base::{Cause, Error, Ledger, Result};
use media::mem::MemStore;
use media::{
    AppendFile, BlockDevice, FileHint, FileName, FileStore, FileSummary, ReadFile, Space,
    StoreLock, SyncFile,
};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

const SECTOR: usize = 4096;
/// The unit of placement. The first one is for the root and notes.
const CHUNK: u64 = 256 << 10;
/// Appended bytes go to the device in pieces of so many, or at a sync.
const BUFFER: usize = 64 << 10;

#[derive(Default)]
struct Placed {
    chunks: Vec<u64>,
    bytes: u64,
}

struct Places {
    files: HashMap<FileName, Placed>,
    free: BTreeSet<u64>,
}

struct Disk {
    device: Arc<dyn BlockDevice>,
    places: Mutex<Places>,
}

impl Disk {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap()
    }

    /// The pieces of a file's range: device offset and bytes, all multiples of the sector.
    fn pieces(&self, name: FileName, offset: u64, bytes: u64) -> Result<Vec<(u64, u64)>> {
        let mut guard = self.places();
        let Places { files, free } = &mut *guard;
        let placed = files.entry(name).or_default();
        let (mut at, end) = (offset, offset + bytes);
        let mut pieces = Vec::new();
        while at < end {
            let index = (at / CHUNK) as usize;
            if index == placed.chunks.len() {
                let chunk = free.pop_first();
                placed.chunks.push(chunk.ok_or_else(|| Error::invalid("the device is full"))?);
            }
            let count = (CHUNK - at % CHUNK).min(end - at);
            pieces.push((placed.chunks[index] + at % CHUNK, count));
            at += count;
        }
        placed.bytes = placed.bytes.max(end);
        Ok(pieces)
    }

    fn write(&self, name: FileName, offset: u64, bytes: &[u8], cause: Cause) -> Result<()> {
        let mut rest = bytes;
        for (at, count) in self.pieces(name, offset, bytes.len() as u64)? {
            let (part, after) = rest.split_at(count as usize);
            self.device.write(at, part, cause)?;
            rest = after;
        }
        Ok(())
    }

    /// Reads the part of a range that is on the device, and compares.
    fn read(&self, name: FileName, offset: u64, expected: &[u8], cause: Cause) -> Result<()> {
        let placed = self.places().files.get(&name).map_or(0, |placed| placed.bytes);
        let end = (offset + expected.len() as u64).min(placed);
        let first = offset / SECTOR as u64 * SECTOR as u64;
        if end <= offset {
            return Ok(());
        }
        let mut bytes = vec![0; (end - first).next_multiple_of(SECTOR as u64) as usize];
        let mut rest = &mut bytes[..];
        for (at, count) in self.pieces(name, first, rest.len() as u64)? {
            let (part, after) = rest.split_at_mut(count as usize);
            self.device.read(at, part, cause)?;
            rest = after;
        }
        // The last sector may have grown in memory since it was written.
        let sure = (end - offset) as usize / SECTOR * SECTOR;
        let begin = (offset - first) as usize;
        assert!(bytes[begin..begin + sure] == expected[..sure], "{name} at {offset}");
        Ok(())
    }

    fn remove(&self, name: FileName) -> Result<()> {
        let placed = self.places().files.remove(&name);
        for chunk in placed.unwrap_or_default().chunks {
            self.device.discard(chunk, CHUNK)?;
            self.places().free.insert(chunk);
        }
        Ok(())
    }

    /// The root or a note.
    fn write_small(&self, bytes: &[u8]) -> Result<()> {
        let mut sectors = bytes.to_vec();
        sectors.resize(bytes.len().next_multiple_of(SECTOR).clamp(SECTOR, CHUNK as usize), 0);
        self.device.write(0, &sectors, Cause::Housekeeping).map(drop)
    }
}

/// See the module.
pub struct DeviceStore {
    files: MemStore,
    disk: Arc<Disk>,
}

impl DeviceStore {
    pub fn new(device: Arc<dyn BlockDevice>, ledger: Arc<Ledger>) -> DeviceStore {
        let chunks = device.geometry().capacity_bytes / CHUNK;
        let free = (1..chunks).map(|chunk| chunk * CHUNK).collect();
        let places = Mutex::new(Places { files: HashMap::new(), free });
        DeviceStore { files: MemStore::new(ledger), disk: Arc::new(Disk { device, places }) }
    }

    fn file(&self, name: FileName, inner: Box<dyn AppendFile>) -> Result<Box<dyn AppendFile>> {
        let written = inner.len() / SECTOR as u64 * SECTOR as u64;
        let mut bytes = vec![0; (inner.len() - written) as usize];
        self.files.open(name, true)?.read_at(written, &mut bytes, Cause::Recovery)?;
        let tail = Mutex::new(Tail { written, bytes });
        let end = Arc::new(End { disk: self.disk.clone(), name, tail });
        Ok(Box::new(Appended { inner, end }))
    }
}

/// Whole sectors on the device, and what follows them.
struct Tail {
    written: u64,
    bytes: Vec<u8>,
}

/// Where a file grows.
struct End {
    disk: Arc<Disk>,
    name: FileName,
    tail: Mutex<Tail>,
}

impl End {
    fn append(&self, bytes: &[u8], cause: Cause) -> Result<()> {
        let mut tail = self.tail.lock().unwrap();
        tail.bytes.extend_from_slice(bytes);
        if tail.bytes.len() >= BUFFER {
            let whole = tail.bytes.len() / SECTOR * SECTOR;
            self.disk.write(self.name, tail.written, &tail.bytes[..whole], cause)?;
            tail.bytes.drain(..whole);
            tail.written += whole as u64;
        }
        Ok(())
    }

    fn sync(&self, cause: Cause) -> Result<()> {
        let tail = self.tail.lock().unwrap();
        let mut sectors = tail.bytes.clone();
        sectors.resize(sectors.len().next_multiple_of(SECTOR), 0);
        self.disk.write(self.name, tail.written, &sectors, cause)?;
        self.disk.device.flush(cause).map(drop)
    }
}

struct Appended {
    inner: Box<dyn AppendFile>,
    end: Arc<End>,
}

struct Synced {
    inner: Box<dyn SyncFile>,
    end: Arc<End>,
}

impl SyncFile for Synced {
    fn sync(&self, cause: Cause) -> Result<()> {
        self.end.sync(cause)?;
        self.inner.sync(cause)
    }
}

impl AppendFile for Appended {
    fn append(&mut self, bytes: &[u8], cause: Cause) -> Result<()> {
        self.inner.append(bytes, cause)?;
        self.end.append(bytes, cause)
    }

    fn sync(&mut self, cause: Cause) -> Result<()> {
        self.end.sync(cause)?;
        self.inner.sync(cause)
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        let inner = self.inner.syncer()?;
        Some(Box::new(Synced { inner, end: self.end.clone() }))
    }
}

struct Opened {
    inner: Arc<dyn ReadFile>,
    disk: Arc<Disk>,
}

impl ReadFile for Opened {
    fn read_at(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<()> {
        self.inner.read_at(offset, into, cause)?;
        self.disk.read(self.inner.name(), offset, into, cause)
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn prefetch(&self, _offset: u64, _bytes: u64) {}

    fn name(&self) -> FileName {
        self.inner.name()
    }
}

impl FileStore for DeviceStore {
    fn ledger(&self) -> &Arc<Ledger> {
        self.files.ledger()
    }

    fn create(&self, name: FileName, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.file(name, self.files.create(name, hint)?)
    }

    fn extend(&self, name: FileName, at: u64, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.file(name, self.files.extend(name, at, hint)?)
    }

    fn open(&self, name: FileName, background: bool) -> Result<Arc<dyn ReadFile>> {
        let inner = self.files.open(name, background)?;
        Ok(Arc::new(Opened { inner, disk: self.disk.clone() }))
    }

    fn remove(&self, name: FileName) -> Result<()> {
        self.files.remove(name)?;
        self.disk.remove(name)
    }

    fn list(&self) -> Result<Vec<FileSummary>> {
        self.files.list()
    }

    fn sync_names(&self) -> Result<()> {
        self.disk.device.flush(Cause::Housekeeping)?;
        self.files.sync_names()
    }

    fn root(&self) -> Result<Option<Vec<u8>>> {
        self.files.root()
    }

    fn set_root(&self, root: &[u8]) -> Result<()> {
        self.disk.write_small(root)?;
        self.disk.device.flush(Cause::Housekeeping)?;
        self.files.set_root(root)
    }

    fn lock(&self) -> Result<StoreLock> {
        self.files.lock()
    }

    fn space(&self) -> Option<Space> {
        None
    }

    fn note(&self, name: &str, bytes: &[u8], append: bool) -> Result<()> {
        self.disk.write_small(bytes)?;
        self.files.note(name, bytes, append)
    }

    fn read_note(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.files.read_note(name)
    }

    fn describe(&self) -> String {
        self.disk.device.describe()
    }

    fn share(&self, name: FileName, target: &Path, bytes: Option<u64>) -> Result<()> {
        self.files.share(name, target, bytes)
    }
}
