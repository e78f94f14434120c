//! [`DirectStore`]: the file store on a block device.
//!
//! Order of locks: a log that gathers bytes, the state of the store, the state of one file.
//! Rules of durability:
//! - Bytes that durable metadata describes are not overwritten. The one exception keeps them: the
//!   last sector of a log is written again with more in it, on media that take it, whole or not.
//! - An extent that is not needed any more is reusable once metadata without it is durable.
//! - Nothing is written into the data region before metadata of this opening is durable.

mod check;
#[cfg(test)]
mod crash_tests;
mod format;
mod reclaim;
mod recover;
#[cfg(test)]
mod tests;
mod write;

pub use check::{CheckReport, Progress};
pub use format::{FormatOptions, format};

use crate::extent::Extent;
use crate::journal::Journal;
use crate::node::{Freed, Node, Reader};
use crate::placement::{Placement, Request, ZoneCommand};
use crate::port::Port;
use crate::record::{Catalogue, Record};
use crate::superblock::{Places, Superblock};
use base::{Cause, Error, ErrorKind, Ledger, Result};
use media::block::{BlockDevice, DeviceLock, Overwrite};
use media::{
    AppendFile, FileHint, FileName, FileStore, FileSummary, Geometry, Part, ReadFile, Space,
    StoreLock,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use write::Writer;

/// The longest root.
const ROOT_BYTES_MAX: usize = 32 << 10;

/// How a [`DirectStore`] is opened.
#[derive(Clone, Copy, Debug)]
pub struct DirectOptions {
    /// Write nothing at all.
    pub read_only: bool,
    /// Bytes that a background file gathers before it writes.
    pub background_buffer_bytes: usize,
    /// Bytes that other files gather before they write. With 0 every append reaches the device
    /// before it returns, and survives the death of the process; with more, the last of them are
    /// lost with the process unless they were synced.
    pub log_buffer_bytes: usize,
    /// Bytes that a log asks for at a time; 0 for a part of the device.
    pub log_extent_bytes: u64,
}

impl Default for DirectOptions {
    fn default() -> DirectOptions {
        DirectOptions {
            read_only: false,
            background_buffer_bytes: 1 << 20,
            log_buffer_bytes: 0,
            log_extent_bytes: 0,
        }
    }
}

/// Files placed on a block device. A clone is a second handle on the same store.
#[derive(Clone)]
pub struct DirectStore {
    inner: Arc<Inner>,
}

struct Inner {
    port: Arc<Port>,
    superblock: Superblock,
    places: Places,
    options: DirectOptions,
    /// Logs may write their last sector again.
    rewrites_sectors: bool,
    freed: Freed,
    state: Mutex<State>,
    is_locked: AtomicBool,
    _lock: DeviceLock,
}

struct State {
    names: BTreeMap<FileName, Arc<Node>>,
    catalogue: Catalogue,
    /// Records that the journal does not have yet.
    pending: Vec<Record>,
    /// How often everything before was made durable.
    flushes: u64,
    journal: Journal,
    placement: Box<dyn Placement>,
    /// Bytes that stay free.
    reserve_bytes: u64,
}

impl State {
    /// `request` leaves less to spare than is to be kept free.
    fn takes_reserve(&self, request: &Request) -> bool {
        let spare_bytes = self.placement.spare_bytes_after(request);
        spare_bytes < self.reserve_bytes && spare_bytes < self.placement.spare_bytes()
    }

    /// `request`, which wants no more than the reserve leaves.
    fn within_reserve(&self, request: &Request) -> Request {
        let spare_bytes = self.placement.spare_bytes().saturating_sub(self.reserve_bytes);
        // The least are whole sectors.
        let spare_bytes = spare_bytes - spare_bytes % request.least_bytes.max(1);
        let is_bounded = self.reserve_bytes > 0 && !request.is_reclaim;
        let most_bytes = if is_bounded { spare_bytes.max(request.least_bytes) } else { u64::MAX };
        Request { wanted_bytes: request.wanted_bytes.min(most_bytes), ..*request }
    }

    fn queue(&mut self, record: Record) {
        self.catalogue.apply(&record);
        self.pending.push(record);
    }

    /// Describes `node` as it is on the device now, unless its removal was queued.
    fn queue_file(&mut self, node: &Node) {
        if !node.is_removed.load(Ordering::Acquire) {
            self.queue(Record::File(node.record()));
        }
    }
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

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes queued records; with `flush`, makes them and everything before durable, and then
    /// gives freed extents back.
    fn commit(&self, state: &mut State, flush: Option<Cause>) -> Result<()> {
        self.port.check_writable()?;
        let mut freed = Vec::new();
        if flush.is_some() {
            std::mem::swap(&mut freed, &mut *hold(&self.freed));
        }
        let result = self.commit_records(state, flush);
        if result.is_err() {
            hold(&self.freed).extend(freed);
            return result;
        }
        self.give_back(state, freed)
    }

    /// Durable metadata does not need `extents` any more, and the medium hears of it.
    fn give_back(&self, state: &mut State, extents: Vec<Extent>) -> Result<()> {
        for extent in extents {
            if self.places.data.contains(extent) && self.port.geometry().zones.is_none() {
                self.port.discard(extent.start, extent.bytes);
            }
            state.placement.free(extent);
        }
        self.run_commands(state)
    }

    fn commit_records(&self, state: &mut State, flush: Option<Cause>) -> Result<()> {
        let State { journal, catalogue, pending, flushes, .. } = state;
        journal.write(&self.port, catalogue, pending)?;
        pending.clear();
        if let Some(cause) = flush {
            self.port.flush(cause)?;
            journal.flushed();
            *flushes += 1;
        }
        Ok(())
    }

    fn run_commands(&self, state: &mut State) -> Result<()> {
        for command in state.placement.commands() {
            match command {
                ZoneCommand::Reset(start) => self.port.reset_zone(start)?,
                ZoneCommand::Finish(start) => self.port.finish_zone(start)?,
            }
        }
        Ok(())
    }

    /// Space for a file. Waits for freed space, and reclaims zones, before it returns `NoSpace`.
    fn allocate(&self, state: &mut State, request: &Request) -> Result<Extent> {
        if !state.journal.is_begun() {
            // What recovery found may not be durable, and what it found free is overwritten now.
            self.commit(state, Some(Cause::StoreMetadata))?;
        }
        let mut has_waited = false;
        // The writer of a log must not wait for this.
        if !request.is_log && !request.is_reclaim && state.placement.is_fragmented() {
            self.reclaim(state)?;
        }
        loop {
            let request = &state.within_reserve(request);
            let is_refused = !request.is_reclaim && state.takes_reserve(request);
            let found = if is_refused { None } else { state.placement.allocate(request) };
            self.run_commands(state)?;
            if let Some(extent) = found {
                return Ok(extent);
            }
            if !has_waited {
                has_waited = true;
                self.commit(state, Some(Cause::StoreMetadata))?;
                continue;
            }
            let is_won = match is_refused {
                _ if request.is_reclaim => false,
                true => self.reclaim_spare(state, state.reserve_bytes + request.least_bytes)?,
                false => self.reclaim(state)?,
            };
            if !is_won {
                let message = format!(
                    "out of space: {} of {} bytes are free, and none of them can take the next {}",
                    state.placement.free_bytes(),
                    self.places.data.bytes,
                    request.least_bytes
                );
                return Err(Error::new(ErrorKind::NoSpace, message).in_file(self.port.describe()));
            }
        }
    }

    /// Makes sure that `bytes` are to spare: commits what was freed, and reclaims, before
    /// `NoSpace`.
    fn spare(&self, state: &mut State, bytes: u64) -> Result<()> {
        if state.placement.spare_bytes() < bytes {
            self.commit(state, Some(Cause::StoreMetadata))?;
        }
        while state.placement.spare_bytes() < bytes {
            if !self.reclaim_spare(state, bytes)? {
                let spare_bytes = state.placement.spare_bytes();
                let message = format!("cannot keep {bytes} bytes free: {spare_bytes} are free");
                return Err(Error::new(ErrorKind::NoSpace, message).in_file(self.port.describe()));
            }
        }
        Ok(())
    }

    /// Reclaims where that can lead to `bytes` to spare. False if it won nothing: copies that win
    /// nothing would go on without end.
    fn reclaim_spare(&self, state: &mut State, bytes: u64) -> Result<bool> {
        let before_bytes = state.placement.spare_bytes();
        let may_win = state.placement.free_bytes() >= bytes;
        Ok(may_win && self.reclaim(state)? && state.placement.spare_bytes() > before_bytes)
    }

    /// Gives what a writer did not use of its extent back.
    fn close_extent(&self, state: &mut State, extent: Extent, used_bytes: u64) -> Result<()> {
        state.placement.close(extent, used_bytes);
        if let Some(zone) = self.port.zone(extent.start)? {
            state.placement.observe(&zone);
        }
        self.run_commands(state)
    }
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

    fn space(&self) -> Option<Space> {
        let state = self.inner.state();
        let freed: u64 = hold(&self.inner.freed).iter().map(|extent| extent.bytes).sum();
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

    fn places(&self, name: FileName, range: Range<u64>) -> Vec<Range<u64>> {
        let node = self.inner.state().names.get(&name).cloned();
        node.map_or_else(Vec::new, |node| node.places(range))
    }

    fn note(&self, name: &str, bytes: &[u8], append: bool) -> Result<()> {
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

    fn describe(&self) -> String {
        format!("{} ({})", self.inner.port.describe(), self.inner.superblock.placement)
    }

    /// A copy: a directory cannot share what lies on a device.
    fn share(&self, name: FileName, target: &Path, part: Part) -> Result<()> {
        use media::os::{OsOptions, OsStore};
        // The copy's bytes are not the device's, so they stay out of its ledger.
        let options = OsOptions { create: false, ..OsOptions::default() };
        let target = OsStore::open(target, Arc::default(), options)?;
        let source = FileStore::open(self, name, true)?;
        let bytes = part.of(source.len()?);
        let hint = FileHint { bytes_max: Some(bytes), background: true, ..FileHint::default() };
        let mut copy = target.create(name, &hint)?;
        let mut piece = vec![0; 1 << 20];
        while copy.len() < bytes {
            let count = (bytes - copy.len()).min(piece.len() as u64) as usize;
            source.read_at(copy.len(), &mut piece[..count], Cause::Checkpoint)?;
            copy.append(&piece[..count], Cause::Checkpoint)?;
        }
        copy.sync(Cause::Checkpoint)?;
        target.sync_names()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut state = self.state();
        if !state.pending.is_empty() && self.port.check_writable().is_ok() {
            // A caller that must know whether the records arrived has synced.
            let _ = self.commit(&mut state, None);
        }
    }
}

struct HandleLock(Arc<Inner>);

impl Drop for HandleLock {
    fn drop(&mut self) {
        self.0.is_locked.store(false, Ordering::Release);
    }
}

/// Locks `mutex`. Every holder leaves the state whole, so a panic elsewhere does not spoil it.
fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether logs on such a medium may write their last sector again.
fn rewrites_sectors(geometry: &Geometry) -> bool {
    geometry.overwrite == Overwrite::InPlace
}
