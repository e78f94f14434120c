//! [`DirectStore`]: the file store on a block device.
//!
//! Order of locks: a log that gathers bytes, the state of the store, the state of one file.
//! Rules of durability:
//! - Bytes that durable metadata describes are not overwritten. The one exception keeps them: the
//!   last sector of a log is written again with more in it, on media that take it whole or not at
//!   all. On others that ends with a sync.
//! - An extent that is not needed any more is reusable once metadata without it is durable.
//! - Nothing is written into the data region before metadata of this opening is durable.

mod check;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod damage_tests;
mod format;
mod inner;
mod reclaim;
mod recover;
#[cfg(test)]
mod tests;
mod write;

pub use check::{CheckReport, Progress};
pub use format::{FormatOptions, format};
pub use inner::DirectOptions;

use crate::extent::Extent;
use crate::node::{Node, Reader};
use crate::port::Port;
use crate::record::Record;
use base::{Cause, Error, ErrorKind, Ledger, Result};
use inner::{Inner, State};
use media::block::BlockDevice;
use media::{
    AppendFile, Capacity, DeviceMap, FileHint, FileName, FileStore, FileSummary, Geometry, Notes,
    ReadFile, Space, StoreLock,
};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use write::Writer;

/// The longest root.
const ROOT_BYTES_MAX: usize = 32 << 10;

/// Files placed on a block device. A clone is a second handle on the same store.
#[derive(Clone)]
pub struct DirectStore {
    inner: Arc<Inner>,
}

/// A file on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLayout {
    /// Its name.
    pub name: FileName,
    /// Its bytes lie in frames.
    pub is_log: bool,
    /// Its length.
    pub bytes: u64,
    /// Where it is, in the order of the file.
    pub extents: Vec<Extent>,
}

/// What lies where on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What the device is like.
    pub geometry: Geometry,
    /// The placement.
    pub placement: String,
    /// The store's number.
    pub store: u64,
    /// Areas of metadata.
    pub metadata: [Extent; 2],
    /// Where files may lie.
    pub data: Extent,
    /// Files by name.
    pub files: Vec<FileLayout>,
    /// What is free, in order of place.
    pub free: Vec<Extent>,
}

impl DirectStore {
    /// Opens the store on a formatted device, and keeps others off the device as long as it lives;
    /// a read-only store keeps only writers off. `Incompatible` if the device was not formatted;
    /// `Locked` if another opener has it.
    pub fn open(
        device: Arc<dyn BlockDevice>,
        ledger: Arc<Ledger>,
        options: DirectOptions,
    ) -> Result<DirectStore> {
        let lock = if options.read_only { device.lock_shared()? } else { device.lock()? };
        let port = Arc::new(Port::new(device, ledger, options.read_only));
        let inner = Arc::new(recover::recover(port, options, lock)?);
        Ok(DirectStore { inner })
    }

    /// What lies where.
    pub fn layout(&self) -> Layout {
        let inner = &self.inner;
        let state = inner.state();
        let file = |node: &Arc<Node>| {
            let file = node.shared();
            FileLayout {
                name: node.name,
                is_log: node.is_log,
                bytes: file.len(),
                extents: file.held.iter().map(|held| held.extent).filter(|e| e.bytes > 0).collect(),
            }
        };
        Layout {
            geometry: inner.port.geometry(),
            placement: inner.superblock.placement.clone(),
            store: inner.superblock.store,
            metadata: inner.places.areas,
            data: inner.places.data,
            files: state.names.values().map(file).collect(),
            free: state.placement.free_extents(),
        }
    }

    fn node(&self, state: &State, name: FileName) -> Result<Arc<Node>> {
        state.names.get(&name).cloned().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "there is no such file").in_file(name.to_string())
        })
    }
}

impl FileStore for DirectStore {
    fn ledger(&self) -> &Arc<Ledger> {
        self.inner.port.ledger()
    }

    fn create(&self, name: FileName, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        let inner = &self.inner;
        inner.port.check_writable()?;
        let mut state = inner.state();
        if state.names.contains_key(&name) {
            let error = Error::new(ErrorKind::AlreadyExists, "cannot create: it exists");
            return Err(error.in_file(name.to_string()));
        }
        if !state.catalogue.has_room(state.journal.area_bytes(), state.reserve_bytes > 0) {
            let message = "cannot create: the metadata area has no space for more files";
            return Err(Error::new(ErrorKind::NoSpace, message).in_file(name.to_string()));
        }
        let number = state.catalogue.take_number();
        let (is_log, sector_bytes) = (!hint.background, inner.port.sector_bytes());
        let freed = inner.freed.clone();
        let node = Node::new(number, name, is_log, sector_bytes, Default::default(), freed);
        let node = Arc::new(node);
        state.queue_file(&node);
        state.names.insert(name, node.clone());
        drop(state);
        Ok(Writer::begin(inner.clone(), node, hint)?.into_file())
    }

    fn extend(&self, name: FileName, at: u64, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        let inner = &self.inner;
        inner.port.check_writable()?;
        let node = self.node(&inner.state(), name)?;
        let bytes = node.shared().len();
        if bytes < at {
            let message = format!("the file is to go on at byte {at} but has {bytes} bytes");
            return Err(Error::corruption(name.to_string(), bytes, message));
        }
        let writer = Writer::begin(inner.clone(), node, hint)?;
        writer.cut(at)?;
        Ok(writer.into_file())
    }

    fn open(&self, name: FileName, _background: bool) -> Result<Arc<dyn ReadFile>> {
        let node = self.node(&self.inner.state(), name)?;
        Ok(Arc::new(Reader { node, port: self.inner.port.clone() }))
    }

    fn remove(&self, name: FileName) -> Result<()> {
        self.inner.port.check_writable()?;
        let mut state = self.inner.state();
        let node = self.node(&state, name)?;
        node.is_removed.store(true, Ordering::Release);
        state.names.remove(&name);
        state.queue(Record::Remove(node.number));
        Ok(())
    }

    fn list(&self) -> Result<Vec<FileSummary>> {
        let state = self.inner.state();
        let summary = |(name, node): (&FileName, &Arc<Node>)| FileSummary {
            name: *name,
            bytes: node.shared().len(),
        };
        Ok(state.names.iter().map(summary).collect())
    }

    fn sync_names(&self) -> Result<()> {
        self.inner.commit(&mut self.inner.state(), Some(Cause::Housekeeping))
    }

    fn root(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.inner.state().catalogue.root.clone())
    }

    fn set_root(&self, root: &[u8]) -> Result<()> {
        self.inner.port.check_writable()?;
        if root.len() > ROOT_BYTES_MAX {
            return Err(Error::invalid(format!("a root of {} bytes is too long", root.len())));
        }
        let mut state = self.inner.state();
        let before = state.catalogue.root.clone();
        state.queue(Record::Root(root.to_vec()));
        let committed = self.inner.commit(&mut state, Some(Cause::Housekeeping));
        if let (Err(_), Some(before)) = (&committed, before) {
            // What was refused must not become durable with the next record.
            state.queue(Record::Root(before));
        }
        committed
    }

    fn lock(&self) -> Result<StoreLock> {
        if self.inner.is_locked.swap(true, Ordering::AcqRel) {
            let message = format!("{} is opened by this process", self.describe());
            return Err(Error::new(ErrorKind::Locked, message));
        }
        Ok(Box::new(HandleLock(self.inner.clone())))
    }

    fn describe(&self) -> String {
        format!("{} ({})", self.inner.port.describe(), self.inner.superblock.placement)
    }

    fn notes(&self) -> Option<&dyn Notes> {
        Some(self)
    }

    fn capacity(&self) -> Option<&dyn Capacity> {
        Some(self)
    }

    fn device_map(&self) -> Option<&dyn DeviceMap> {
        Some(self)
    }
}

impl Notes for DirectStore {
    fn write_note(&self, name: &str, bytes: &[u8], append: bool) -> Result<()> {
        self.inner.port.check_writable()?;
        media::check_note_name(name)?;
        let mut state = self.inner.state();
        let area_bytes = state.journal.area_bytes();
        let (mut bytes, mut append) = (bytes.to_vec(), append);
        if append && state.catalogue.trim_note(name, bytes.len(), area_bytes) {
            let mut kept = state.catalogue.notes.get(name).cloned().unwrap_or_default();
            kept.extend(bytes);
            (bytes, append) = (kept, false);
        }
        if bytes.len() as u64 > area_bytes / 8 {
            let message = format!("out of space for a note of {} bytes", bytes.len());
            return Err(Error::new(ErrorKind::NoSpace, message).in_file(name));
        }
        state.queue(Record::Note { name: name.to_owned(), bytes, append });
        Ok(())
    }

    fn read_note(&self, name: &str) -> Result<Option<Vec<u8>>> {
        media::check_note_name(name)?;
        Ok(self.inner.state().catalogue.notes.get(name).cloned())
    }
}

impl Capacity for DirectStore {
    fn space(&self) -> Option<Space> {
        let state = self.inner.state();
        let freed: u64 = self.inner.freed.lock().iter().map(|extent| extent.bytes).sum();
        let total_bytes = self.inner.places.data.bytes;
        let free_bytes = (state.placement.free_bytes() + freed).min(total_bytes);
        Some(Space { total_bytes, free_bytes })
    }

    fn set_reserve(&self, bytes: u64) -> Result<bool> {
        self.inner.port.check_writable()?;
        let mut state = self.inner.state();
        let bytes = if bytes > 0 { bytes.max(state.placement.reserve_bytes_min()) } else { 0 };
        if bytes > state.reserve_bytes {
            self.inner.spare(&mut state, bytes)?;
            if !state.catalogue.has_room(state.journal.area_bytes(), true) {
                let message = "cannot keep a part of the metadata area free: there are many files";
                return Err(Error::new(ErrorKind::NoSpace, message).in_file(self.describe()));
            }
        }
        state.reserve_bytes = bytes;
        Ok(true)
    }
}

impl DeviceMap for DirectStore {
    fn places(&self, name: FileName, range: Range<u64>) -> Vec<Range<u64>> {
        let node = self.inner.state().names.get(&name).cloned();
        node.map_or_else(Vec::new, |node| node.places(range))
    }
}

struct HandleLock(Arc<Inner>);

impl Drop for HandleLock {
    fn drop(&mut self) {
        self.0.is_locked.store(false, Ordering::Release);
    }
}
