//! The state that a store and its writers share, and the space that they take from it.

use crate::extent::Extent;
use crate::journal::Journal;
use crate::node::{Freed, Node};
use crate::placement::{Placement, Request, ZoneCommand};
use crate::port::Port;
use crate::record::{Catalogue, Record};
use crate::superblock::{Places, Superblock};
use base::{Cause, Error, ErrorKind, Result};
use media::block::{DeviceLock, Overwrite};
use media::{FileName, Geometry};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a [`DirectStore`](super::DirectStore) is opened.
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

pub(super) struct Inner {
    pub(super) port: Arc<Port>,
    pub(super) superblock: Superblock,
    pub(super) places: Places,
    pub(super) options: DirectOptions,
    /// Logs may write their last sector again.
    pub(super) rewrites_sectors: bool,
    /// They may not if it was synced.
    pub(super) tears_sectors: bool,
    pub(super) freed: Freed,
    pub(super) state: Mutex<State>,
    pub(super) is_locked: AtomicBool,
    pub(super) _lock: DeviceLock,
}

pub(super) struct State {
    pub(super) names: BTreeMap<FileName, Arc<Node>>,
    pub(super) catalogue: Catalogue,
    /// Records that the journal does not have yet.
    pub(super) pending: Vec<Record>,
    /// How often everything before was made durable.
    pub(super) flushes: u64,
    pub(super) journal: Journal,
    pub(super) placement: Box<dyn Placement>,
    /// Bytes that stay free.
    pub(super) reserve_bytes: u64,
}

impl State {
    /// `request` leaves less to spare than is to be kept free.
    pub(super) fn takes_reserve(&self, request: &Request) -> bool {
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

    pub(super) fn queue(&mut self, record: Record) {
        self.catalogue.apply(&record);
        self.pending.push(record);
    }

    /// Describes `node` as it is on the device now, unless its removal was queued.
    pub(super) fn queue_file(&mut self, node: &Node) {
        if !node.is_removed.load(Ordering::Acquire) {
            self.queue(Record::File(node.record()));
        }
    }
}

impl Inner {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Writes queued records; with `flush`, makes them and everything before durable, and then
    /// gives freed extents back.
    pub(super) fn commit(&self, state: &mut State, flush: Option<Cause>) -> Result<()> {
        self.port.check_writable()?;
        let mut freed = Vec::new();
        if flush.is_some() {
            std::mem::swap(&mut freed, &mut *self.freed.lock());
        }
        let result = self.commit_records(state, flush);
        if result.is_err() {
            self.freed.lock().extend(freed);
            return result;
        }
        self.give_back(state, freed)
    }

    /// Durable metadata does not need `extents` any more, and the medium hears of it.
    pub(super) fn give_back(&self, state: &mut State, extents: Vec<Extent>) -> Result<()> {
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
    pub(super) fn allocate(&self, state: &mut State, request: &Request) -> Result<Extent> {
        if !state.journal.is_relied_on() {
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
                let (free, all) = (state.placement.free_bytes(), self.places.data.bytes);
                let message = match is_refused {
                    true => format!(
                        "out of space: the {free} free bytes of {all} are kept for deletions and \
                         compactions"
                    ),
                    false => format!(
                        "out of space: {free} of {all} bytes are free, but in no place that takes \
                         the next {} in one piece",
                        request.least_bytes
                    ),
                };
                return Err(Error::new(ErrorKind::NoSpace, message).in_file(self.port.describe()));
            }
        }
    }

    /// Makes sure that `bytes` are to spare: commits what was freed, and reclaims, before
    /// `NoSpace`.
    pub(super) fn spare(&self, state: &mut State, bytes: u64) -> Result<()> {
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
    pub(super) fn reclaim_spare(&self, state: &mut State, bytes: u64) -> Result<bool> {
        let before_bytes = state.placement.spare_bytes();
        let may_win = state.placement.free_bytes() >= bytes;
        Ok(may_win && self.reclaim(state)? && state.placement.spare_bytes() > before_bytes)
    }

    /// Gives what a writer did not use of its extent back.
    pub(super) fn close_extent(
        &self,
        state: &mut State,
        extent: Extent,
        used_bytes: u64,
    ) -> Result<()> {
        state.placement.close(extent, used_bytes);
        if let Some(zone) = self.port.zone(extent.start)? {
            state.placement.observe(&zone);
        }
        self.run_commands(state)
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

/// Whether logs on such a medium may write their last sector again.
pub(super) fn rewrites_sectors(geometry: &Geometry) -> bool {
    geometry.overwrite == Overwrite::InPlace
}
