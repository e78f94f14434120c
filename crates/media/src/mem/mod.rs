//! A store in memory that loses power on demand: the disk of every crash test. [`MemDevice`] is the
//! same for block devices, with a fault model of its own.
//!
//! # Fault model
//!
//! What power loss may do, sentence by sentence; each has a test in `tests.rs` that carries its
//! number. It is the disk that an operating system promises and not a kinder one.
//!
//! 1. Bytes, and a length, for which a `sync` returned are there after power loss.
//! 2. Bytes for which no `sync` returned may be missing, all of them, although reads saw them.
//! 3. Death of the process alone loses nothing that was appended.
//! 4. Files are independent: a later write of one may survive an earlier write of another.
//! 5. Within a file, any subset of the writes since its last sync may survive, in units of sectors
//!    of 512 bytes, so that a write may be torn; the length is that of the last surviving byte, and
//!    what is missing before it is zeros.
//! 6. A length may survive without its data: then the bytes are zeros, noise, or bytes that
//!    were written elsewhere, in this file or another.
//! 7. A synced byte in the same sector as an unsynced one is safe.
//! 8. A created file whose name was not synced may be gone, its synced bytes with it.
//! 9. A removed file whose removal was not synced may be back.
//! 10. Creations and removals may survive in any combination until `sync_names`.
//! 11. `set_root` is atomic and durable when it returns, and so is every name created before.
//! 12. Bytes cut away by `extend` may be back unless a sync came after.
//! 13. After a failed sync, the pending bytes are lost at power loss even if a later sync succeeds;
//!     until then reads see them.
//! 14. Notes may be gone.
//! 15. A file of [`FileHint::zeros_at_end`] that was synced may have zeros behind its end, also
//!     after the death of the process alone.
//!
//! Outside the model: synced bytes that decay (tests damage them with [`MemStore::overwrite`]) and
//! a device that lies about a sync.

mod content;
mod crash;
mod device;
mod disk;
#[cfg(test)]
mod strength;
#[cfg(test)]
mod tests;

pub use crash::{CrashImages, Personality};
pub use device::{BeforeChange, MakeDevice, MemDevice, PowerLoss, RecordedDevice};
pub use disk::RawTraffic;

use crate::{
    AppendFile, Capacity, FileHint, FileName, FileStore, FileSummary, Notes, ReadFile, Space,
    StoreLock, SyncFile, check_note_name, past_end,
};
use base::{Cause, Error, ErrorKind, Ledger, Result};
use disk::{Disk, NodeRef};
use parking_lot::Mutex;
use std::sync::Arc;

/// Files in memory. A clone is a second handle on the same files.
#[derive(Clone)]
pub struct MemStore {
    disk: Arc<Mutex<Disk>>,
    ledger: Arc<Ledger>,
    title: Arc<str>,
}

impl MemStore {
    /// An empty store of unlimited capacity.
    pub fn new(ledger: Arc<Ledger>) -> MemStore {
        MemStore { disk: Arc::default(), ledger, title: "memory".into() }
    }

    /// The same files, written to another ledger: a restart.
    pub fn with_ledger(&self, ledger: Arc<Ledger>) -> MemStore {
        MemStore { ledger, ..self.clone() }
    }

    /// Mutating operations that took effect so far: creations, extensions, appends, syncs,
    /// removals, root switches and notes.
    pub fn operations(&self) -> u64 {
        self.disk.lock().operations
    }

    /// Stops the machine when `operations` mutating operations took effect: the next one, and every
    /// operation after it, fails with `Io`. Crash images can still be taken.
    pub fn stop_after(&self, operations: u64) {
        self.disk.lock().stop_after = Some(operations);
    }

    /// Limits the bytes of all files together; `None` is no limit.
    pub fn set_capacity_bytes(&self, capacity: Option<u64>) {
        self.disk.lock().capacity_bytes = capacity;
    }

    /// What the store received, counted apart from the ledger.
    pub fn raw(&self) -> RawTraffic {
        self.disk.lock().raw
    }

    /// Bytes that writes passed in, counted apart from the ledger.
    pub fn raw_write_bytes(&self) -> u64 {
        self.raw().write_bytes
    }

    /// Bytes that reads took out, counted apart from the ledger.
    pub fn raw_read_bytes(&self) -> u64 {
        self.raw().read_bytes
    }

    /// Lets the next sync of `name` fail as systems fail them: see sentence 13.
    pub fn fail_next_sync(&self, name: FileName) {
        self.disk.lock().fail_next_sync(name);
    }

    /// Does to `name` what a failed sync does, for a wrapper that reports the failure itself.
    pub fn drop_pending(&self, name: FileName) {
        self.disk.lock().drop_pending(name);
    }

    /// Damages a file as a bad medium would: `bytes` lie at `offset` from now on, durably. Past the
    /// end, nothing happens.
    pub fn overwrite(&self, name: FileName, offset: u64, bytes: &[u8]) -> Result<()> {
        let disk = self.disk.lock();
        let mut node = disk.node(name)?.lock();
        let node = &mut *node;
        for content in [&mut node.content, &mut node.durable] {
            let room = content.len().saturating_sub(offset).min(bytes.len() as u64) as usize;
            if room > 0 {
                content.write_at(offset, &bytes[..room]);
            }
        }
        Ok(())
    }
}

impl MemStore {
    fn locked(&self) -> Error {
        Error::new(ErrorKind::Locked, format!("{} is opened by this process", self.title))
    }
}

impl FileStore for MemStore {
    fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    fn create(&self, name: FileName, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        let mut disk = self.disk.lock();
        disk.operate()?;
        let node = disk.create(name)?;
        node.lock().may_be_ahead = hint.zeros_at_end;
        Ok(Box::new(MemFile { store: self.clone(), name, node, len: 0 }))
    }

    fn extend(&self, name: FileName, at: u64, _hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        let mut disk = self.disk.lock();
        disk.operate()?;
        let node = disk.cut(name, at)?;
        Ok(Box::new(MemFile { store: self.clone(), name, node, len: at }))
    }

    fn open(&self, name: FileName, _background: bool) -> Result<Arc<dyn ReadFile>> {
        let disk = self.disk.lock();
        disk.check_running()?;
        let node = disk.node(name)?.clone();
        let len = node.lock().content.len();
        Ok(Arc::new(MemFile { store: self.clone(), name, node, len }))
    }

    fn recalls_writes(&self) -> bool {
        true
    }

    /// A few, so that tests of crashes and faults meet files that are complete and not durable.
    fn files_synced_together(&self) -> usize {
        4
    }

    fn remove(&self, name: FileName) -> Result<()> {
        let mut disk = self.disk.lock();
        disk.operate()?;
        disk.remove(name)
    }

    fn list(&self) -> Result<Vec<FileSummary>> {
        let disk = self.disk.lock();
        disk.check_running()?;
        let summary = |(name, node): (&FileName, &NodeRef)| FileSummary {
            name: *name,
            bytes: node.lock().content.len(),
        };
        Ok(disk.names.iter().map(summary).collect())
    }

    fn sync_names(&self) -> Result<()> {
        let mut disk = self.disk.lock();
        disk.operate()?;
        self.ledger.synced(Cause::Housekeeping);
        disk.sync_names();
        Ok(())
    }

    fn root(&self) -> Result<Option<Vec<u8>>> {
        let mut disk = self.disk.lock();
        disk.check_running()?;
        let Some(root) = disk.root.clone() else { return Ok(None) };
        disk.raw.read_bytes += root.len() as u64;
        self.ledger.read(Cause::Housekeeping, root.len() as u64);
        Ok(Some(root.to_vec()))
    }

    fn set_root(&self, root: &[u8]) -> Result<()> {
        let mut disk = self.disk.lock();
        disk.operate()?;
        disk.raw.write_bytes += root.len() as u64;
        self.ledger.wrote(Cause::Housekeeping, root.len() as u64);
        self.ledger.synced(Cause::Housekeeping);
        disk.sync_names();
        disk.root = Some(root.into());
        Ok(())
    }

    fn lock(&self) -> Result<StoreLock> {
        let mut disk = self.disk.lock();
        disk.check_running()?;
        if disk.is_locked || disk.readers > 0 {
            return Err(self.locked());
        }
        disk.is_locked = true;
        Ok(Box::new(MemLock { disk: self.disk.clone(), is_shared: false }))
    }

    fn lock_shared(&self) -> Result<StoreLock> {
        let mut disk = self.disk.lock();
        disk.check_running()?;
        if disk.is_locked {
            return Err(self.locked());
        }
        disk.readers += 1;
        Ok(Box::new(MemLock { disk: self.disk.clone(), is_shared: true }))
    }

    fn describe(&self) -> String {
        self.title.to_string()
    }

    fn notes(&self) -> Option<&dyn Notes> {
        Some(self)
    }

    fn capacity(&self) -> Option<&dyn Capacity> {
        Some(self)
    }
}

impl Notes for MemStore {
    fn write_note(&self, name: &str, bytes: &[u8], append: bool) -> Result<()> {
        check_note_name(name)?;
        let mut disk = self.disk.lock();
        disk.operate()?;
        disk.raw.write_bytes += bytes.len() as u64;
        self.ledger.wrote(Cause::Housekeeping, bytes.len() as u64);
        let note = disk.notes.entry(name.to_owned()).or_default();
        if !append {
            note.clear();
        }
        note.extend(bytes);
        Ok(())
    }

    fn read_note(&self, name: &str) -> Result<Option<Vec<u8>>> {
        check_note_name(name)?;
        let mut disk = self.disk.lock();
        disk.check_running()?;
        let Some(note) = disk.notes.get(name).cloned() else { return Ok(None) };
        disk.raw.read_bytes += note.len() as u64;
        self.ledger.read(Cause::Housekeeping, note.len() as u64);
        Ok(Some(note))
    }
}

impl Capacity for MemStore {
    fn space(&self) -> Option<Space> {
        let disk = self.disk.lock();
        let total_bytes = disk.capacity_bytes?;
        Some(Space { total_bytes, free_bytes: total_bytes.saturating_sub(disk.used_bytes) })
    }
}

struct MemLock {
    disk: Arc<Mutex<Disk>>,
    is_shared: bool,
}

impl Drop for MemLock {
    fn drop(&mut self) {
        let mut disk = self.disk.lock();
        if self.is_shared {
            disk.readers = disk.readers.saturating_sub(1);
        } else {
            disk.is_locked = false;
        }
    }
}

/// An open file: writer, syncer and reader in one.
#[derive(Clone)]
struct MemFile {
    store: MemStore,
    name: FileName,
    node: NodeRef,
    /// Bytes appended, for a writer.
    len: u64,
}

impl AppendFile for MemFile {
    fn append(&mut self, bytes: &[u8], cause: Cause) -> Result<()> {
        let mut disk = self.store.disk.lock();
        disk.operate()?;
        let count = disk.append(&self.node, bytes);
        self.len += count as u64;
        if count > 0 {
            self.store.ledger.wrote(cause, count as u64);
        }
        if count < bytes.len() {
            let error = Error::new(ErrorKind::NoSpace, "cannot append: the medium is full");
            return Err(error.in_file(self.name.to_string()).at(self.len));
        }
        Ok(())
    }

    fn sync(&mut self, cause: Cause) -> Result<()> {
        SyncFile::sync(self, cause)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        Some(Box::new(self.clone()))
    }
}

impl SyncFile for MemFile {
    fn sync(&self, cause: Cause) -> Result<()> {
        let mut disk = self.store.disk.lock();
        disk.operate()?;
        self.store.ledger.synced(cause);
        disk.sync(self.name, &self.node)
    }
}

impl ReadFile for MemFile {
    fn read_at(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<()> {
        let mut disk = self.store.disk.lock();
        disk.check_running()?;
        let node = self.node.lock();
        let bytes = node.content.len();
        if offset.checked_add(into.len() as u64).is_none_or(|end| end > bytes) {
            return Err(past_end(self.name, offset, into.len(), bytes));
        }
        node.content.read_at(offset, into);
        disk.raw.read_bytes += into.len() as u64;
        self.store.ledger.read(cause, into.len() as u64);
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        self.store.disk.lock().check_running()?;
        Ok(self.node.lock().content.len())
    }

    fn prefetch(&self, _offset: u64, _bytes: u64) {}

    fn name(&self) -> FileName {
        self.name
    }
}
