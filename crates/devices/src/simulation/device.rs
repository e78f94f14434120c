//! A device of a simulation: a model, the bytes that lie on it, and the ranges that it destroyed.
//!
//! Invariant: bytes, errors and what the medium moved follow the order of calls; time alone is
//! decided by the timeline.

use super::Shared;
use super::content::Content;
use super::page_cache::PageCache;
use super::poison::Poison;
use crate::model::{Access, Model, Served};
use base::{Cause, Error, ErrorKind, Result};
use media::block::{BlockDevice, DeviceLock, Geometry, Moved, Zone};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a device was asked for, and what its medium moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Discards, and resets and finishes of zones.
    pub hints: u64,
    /// Bytes that reads took out.
    pub read_bytes: u64,
    /// Bytes that writes passed in.
    pub write_bytes: u64,
    /// What the medium moved.
    pub moved: Moved,
}

/// A write, for the watcher of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// When it was sent.
    pub at_ns: u64,
    /// Its first byte.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Why.
    pub cause: Cause,
}

/// Is told of every write.
pub type Watch = Box<dyn Fn(Write) + Send + Sync>;

struct Stored {
    content: Content,
    poison: Poison,
    cached: PageCache,
    counts: Counts,
    /// Reads that began before the bytes were requested, by their first byte.
    begun: BTreeMap<u64, Begun>,
    /// What the medium moved, and no answer has told yet.
    untold: Moved,
}

/// A read that began ahead.
#[derive(Clone, Copy)]
struct Begun {
    end: u64,
    done_ns: u64,
}

/// Maximum number of begun reads that a host remembers; it forgets all when there are more.
const BEGUN_MAX: usize = 256;

impl Stored {
    /// What the medium moved since the last answer.
    fn tell(&mut self) -> Moved {
        mem::take(&mut self.untold)
    }

    /// The read that has all of a range; forgotten once its end was asked for.
    fn begun(&mut self, offset: u64, bytes: u64) -> Option<Begun> {
        let (&first, begun) = self.begun.range(..=offset).next_back()?;
        let end = offset + bytes;
        if begun.end <= end {
            return if begun.end == end { self.begun.remove(&first) } else { None };
        }
        Some(*begun)
    }
}

/// A model with content, in the time of a simulation.
pub struct SimulatedDevice {
    shared: Arc<Shared>,
    index: usize,
    name: &'static str,
    geometry: Geometry,
    stored: Mutex<Stored>,
    locked: Arc<AtomicBool>,
    watch: Option<Watch>,
}

/// Lets the next opener in when it goes.
struct Lock(Arc<AtomicBool>);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl SimulatedDevice {
    pub(super) fn new(shared: Arc<Shared>, model: Box<dyn Model>) -> SimulatedDevice {
        let (name, geometry) = (model.name(), model.geometry());
        let index = shared.lock().timeline.add_device(model);
        let stored = Stored {
            content: Content::new(),
            poison: Poison::default(),
            cached: PageCache::new(shared.options.page_cache_bytes),
            counts: Counts::default(),
            begun: BTreeMap::new(),
            untold: Moved::default(),
        };
        let locked = Arc::default();
        SimulatedDevice {
            shared,
            index,
            name,
            geometry,
            stored: Mutex::new(stored),
            locked,
            watch: None,
        }
    }

    /// The same, and `watch` is told of every write that succeeded, in the order of calls.
    pub fn watched(self, watch: Watch) -> SimulatedDevice {
        SimulatedDevice { watch: Some(watch), ..self }
    }

    /// What it was asked for so far.
    pub fn counts(&self) -> Counts {
        self.stored().counts
    }

    /// What the model says about its state.
    pub fn facts(&self) -> Vec<(&'static str, f64)> {
        self.shared.lock().timeline.model(self.index).facts()
    }

    /// Bytes of memory that the content takes, compressed.
    pub fn memory_bytes(&self) -> u64 {
        self.stored().content.stored_bytes()
    }

    fn stored(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock()
    }

    /// Sends a request, and takes note of what it moved and destroyed.
    fn send(&self, stored: &mut Stored, access: Access, offset: u64, bytes: u64) -> Result<()> {
        let mut state = self.shared.lock();
        let served = state.timeline.send(self.index, access, offset, bytes)?;
        if matches!(access, Access::Read | Access::Write) {
            state.spend_background(&self.shared.options, bytes);
        }
        drop(state);
        note(stored, access, offset, bytes, served);
        Ok(())
    }

    /// Has a write of the foreground begin that a page cache takes. `false`: it is no such write.
    fn leave(&self, stored: &mut Stored, offset: u64, bytes: u64, cause: Cause) -> Result<bool> {
        let is_cached = matches!(cause, Cause::Wal | Cause::ValueWrite);
        let mut state = self.shared.lock();
        let is_foreground = state.timeline.current() == super::FOREGROUND;
        if !(self.shared.options.writes_behind && is_cached && is_foreground) {
            return Ok(false);
        }
        let served = state.timeline.send_behind(self.index, offset, bytes)?;
        drop(state);
        note(stored, Access::Write, offset, bytes, served);
        Ok(true)
    }

    /// Reads from the device what the page cache does not have. The processor copies all of it.
    fn read_missing(&self, stored: &mut Stored, offset: u64, bytes: u64) -> Result<()> {
        let missing = stored.cached.missing(offset, bytes);
        let missing_bytes = missing.as_ref().map_or(0, |range| range.end - range.start);
        self.shared.lock().spend_background(&self.shared.options, bytes - missing_bytes);
        let Some(range) = missing else { return Ok(()) };
        self.send(stored, Access::Read, range.start, missing_bytes)?;
        stored.counts.reads += 1;
        stored.counts.read_bytes += missing_bytes;
        Ok(())
    }

    fn reset(&self, stored: &mut Stored, access: Access, start: u64) -> Result<()> {
        let Some(zones) = self.geometry.zones else {
            let message = format!("{} has no zones", self.describe());
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        self.send(stored, access, start, 0)?;
        stored.counts.hints += 1;
        if access == Access::ResetZone {
            stored.content.forget(start, zones.zone_bytes);
            stored.cached.forget(start, zones.zone_bytes);
            stored.poison.remove(&(start..start + zones.zone_bytes));
        }
        Ok(())
    }
}

/// Takes note of what a request moved and destroyed.
fn note(stored: &mut Stored, access: Access, offset: u64, bytes: u64, served: Served) {
    if access != Access::Read {
        stored.poison.remove(&(offset..offset + bytes));
        stored.begun.retain(|first, begun| begun.end <= offset || offset + bytes <= *first);
    }
    for range in served.destroyed {
        stored.poison.add(range);
    }
    for moved in [&mut stored.counts.moved, &mut stored.untold] {
        moved.write_bytes += served.moved.write_bytes;
        moved.read_bytes += served.moved.read_bytes;
    }
}

impl BlockDevice for SimulatedDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&self, offset: u64, into: &mut [u8], _cause: Cause) -> Result<Moved> {
        let mut guard = self.stored();
        let stored = &mut *guard;
        let bytes = into.len() as u64;
        match stored.begun(offset, bytes) {
            Some(begun) => {
                let timeline = &mut self.shared.lock().timeline;
                timeline.advance(timeline.current(), begun.done_ns);
            }
            None => self.read_missing(stored, offset, bytes)?,
        }
        stored.cached.note(offset, bytes);
        if let Some(lost) = stored.poison.first_in(&(offset..offset + bytes)) {
            let message = "bytes that a later write nearby destroyed";
            return Err(Error::corruption(self.describe(), lost, message));
        }
        stored.content.read(offset, into)?;
        Ok(stored.tell())
    }

    fn prefetch(&self, offset: u64, bytes: u64) {
        let mut guard = self.stored();
        let stored = &mut *guard;
        let is_known = stored.begun.range(..=offset).next_back();
        if bytes == 0 || is_known.is_some_and(|(_, begun)| offset + bytes <= begun.end) {
            return;
        }
        let Some(missing) = stored.cached.missing(offset, bytes) else { return };
        let missing_bytes = missing.end - missing.start;
        let mut state = self.shared.lock();
        let sent = state.timeline.send_ahead(self.index, missing.start, missing_bytes);
        drop(state);
        // What the model refuses is for the read to say.
        let Ok(Some((served, done_ns))) = sent else { return };
        stored.counts.reads += 1;
        stored.counts.read_bytes += missing_bytes;
        // A prefetch has no answer: the next request tells what it moved.
        note(stored, Access::Read, missing.start, missing_bytes, served);
        if stored.begun.len() >= BEGUN_MAX {
            stored.begun.clear();
        }
        stored.begun.insert(offset, Begun { end: offset + bytes, done_ns });
    }

    fn write(&self, offset: u64, bytes: &[u8], cause: Cause) -> Result<Moved> {
        let mut guard = self.stored();
        let stored = &mut *guard;
        let length = bytes.len() as u64;
        if !self.leave(stored, offset, length, cause)? {
            self.send(stored, Access::Write, offset, length)?;
        }
        stored.counts.writes += 1;
        stored.counts.write_bytes += bytes.len() as u64;
        stored.content.write(offset, bytes)?;
        stored.cached.note(offset, length);
        let moved = stored.tell();
        drop(guard);
        if let Some(watch) = &self.watch {
            let timeline = &self.shared.lock().timeline;
            let at_ns = timeline.now_ns(timeline.current());
            watch(Write { at_ns, offset, bytes: bytes.len() as u64, cause });
        }
        Ok(moved)
    }

    fn flush(&self, _cause: Cause) -> Result<Moved> {
        let mut guard = self.stored();
        let stored = &mut *guard;
        self.send(stored, Access::Flush, 0, 0)?;
        stored.counts.flushes += 1;
        Ok(stored.tell())
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<Moved> {
        let mut guard = self.stored();
        let stored = &mut *guard;
        self.send(stored, Access::Discard, offset, bytes)?;
        stored.counts.hints += 1;
        stored.content.forget(offset, bytes);
        stored.cached.forget(offset, bytes);
        Ok(stored.tell())
    }

    fn reset_zone(&self, start: u64) -> Result<Moved> {
        let mut stored = self.stored();
        self.reset(&mut stored, Access::ResetZone, start)?;
        Ok(stored.tell())
    }

    fn finish_zone(&self, start: u64) -> Result<()> {
        self.reset(&mut self.stored(), Access::FinishZone, start)
    }

    fn zone(&self, offset: u64) -> Result<Option<Zone>> {
        Ok(self.shared.lock().timeline.model(self.index).zone(offset))
    }

    fn lock(&self) -> Result<DeviceLock> {
        if self.locked.swap(true, Ordering::AcqRel) {
            let message = format!("{} is in use", self.describe());
            return Err(Error::new(ErrorKind::Locked, message));
        }
        Ok(Box::new(Lock(self.locked.clone())))
    }

    fn describe(&self) -> String {
        format!("simulated {} of {} bytes", self.name, self.geometry.capacity_bytes)
    }
}
