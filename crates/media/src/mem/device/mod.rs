//! A block device in memory that loses power on demand, and keeps every rule of its geometry.
//!
//! # Fault model
//!
//! 1. Writes for which a later `flush` returned are there after power loss.
//! 2. Other writes survive, are lost, or are torn: any of their parts of
//!    [`Geometry::atomic_bytes`] survive. Such a part, mostly a sector, is whole.
//! 3. They do so in any combination; in a zone, a prefix of its writes and resets survives.
//! 4. Death of the process alone loses nothing.
//! 5. Discarded bytes are noise at once, and durably so.
//! 6. After a failed flush, the pending writes are lost at power loss even if a later flush
//!    succeeds; until then reads see them.
//! 7. A sector that went bad fails reads with `Io` until it is written again.
//!
//! A shingled medium ([`Overwrite::DestroysDownstream`]) destroys what the geometry lets it
//! destroy, all of it; reading that is a `Corruption` error. A zoned one refuses what breaks its
//! rules, and closes the zone written longest ago when too many are open.

mod crash;
mod plate;
mod recorded;
#[cfg(test)]
mod tests;

pub use crash::PowerLoss;
pub use recorded::{BeforeChange, MakeDevice, RecordedDevice};

use super::disk::RawTraffic;
use crate::block::{BlockDevice, DeviceLock, Geometry, Moved, Overwrite, Zone, ZoneState};
use base::{Cause, Error, ErrorKind, Result};
use parking_lot::Mutex;
use plate::Plate;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// A change that power loss may undo.
#[derive(Clone, Debug)]
enum Change {
    Write(u64, Arc<[u8]>),
    Reset(u64),
    Finish(u64),
}

impl Change {
    fn offset(&self) -> u64 {
        match self {
            Change::Write(offset, _) | Change::Reset(offset) | Change::Finish(offset) => *offset,
        }
    }
}

/// Bytes and write pointers.
#[derive(Clone, Debug)]
struct Medium {
    geometry: Geometry,
    plate: Plate,
    /// Write pointers relative to the zone's start, and whether it was finished.
    zones: Vec<(u64, bool)>,
}

impl Default for Medium {
    fn default() -> Medium {
        Medium::new(Geometry {
            sector_bytes: 512,
            atomic_bytes: 512,
            capacity_bytes: 0,
            overwrite: Overwrite::InPlace,
            band_bytes: 0,
            zones: None,
        })
    }
}

impl Medium {
    fn new(geometry: Geometry) -> Medium {
        let zones = geometry.zones.map_or(0, |zones| geometry.capacity_bytes / zones.zone_bytes);
        Medium { geometry, plate: Plate::default(), zones: vec![(0, false); zones as usize] }
    }

    /// The zone at `offset` if it takes writes at its write pointer alone.
    fn sequential_zone_of(&self, offset: u64) -> Option<usize> {
        let zones = self.geometry.zones?;
        let zone = (offset / zones.zone_bytes) as usize;
        (zone >= zones.conventional_zones as usize && zone < self.zones.len()).then_some(zone)
    }

    fn zone_range(&self, zone: usize) -> Range<u64> {
        let bytes = self.geometry.zones.map_or(0, |zones| zones.zone_bytes);
        zone as u64 * bytes..(zone as u64 + 1) * bytes
    }

    fn apply(&mut self, change: &Change) {
        let zone = self.sequential_zone_of(change.offset());
        let sector_bytes = u64::from(self.geometry.sector_bytes);
        match change {
            Change::Write(offset, bytes) => {
                let end = offset + bytes.len() as u64;
                self.plate.write(*offset, bytes);
                if let Overwrite::DestroysDownstream { damage_bytes } = self.geometry.overwrite {
                    let reach = (end + damage_bytes).min(self.geometry.capacity_bytes);
                    self.plate.destroy(end..reach, sector_bytes);
                }
                if let Some(zone) = zone {
                    self.zones[zone].0 = end - self.zone_range(zone).start;
                }
            }
            Change::Reset(_) => {
                if let Some(zone) = zone {
                    self.plate.clear(self.zone_range(zone), sector_bytes);
                    self.zones[zone] = (0, false);
                }
            }
            Change::Finish(_) => {
                if let Some(zone) = zone {
                    self.zones[zone].1 = true;
                }
            }
        }
    }
}

#[derive(Default)]
struct State {
    /// What reads see.
    medium: Medium,
    /// What the last flush left.
    durable: Medium,
    /// What happened since, in order.
    pending: Vec<Change>,
    /// Sequential zones written and neither full nor closed, the one written longest ago first.
    open_zones: Vec<usize>,
    raw: RawTraffic,
    requests: u64,
    stop_after: Option<u64>,
    is_stopped: bool,
    is_locked: bool,
    fails_next_flush: bool,
    /// First bytes of sectors that went bad.
    bad_sectors: BTreeSet<u64>,
}

impl State {
    fn check_running(&self) -> Result<()> {
        if self.is_stopped {
            return Err(Error::new(ErrorKind::Io, "the machine stopped"));
        }
        Ok(())
    }

    /// Counts a mutating request, which may be the one at which the machine stops.
    fn request(&mut self) -> Result<()> {
        self.is_stopped |= self.stop_after.is_some_and(|after| self.requests >= after);
        self.check_running()?;
        self.requests += 1;
        Ok(())
    }

    fn change(&mut self, change: Change) {
        self.medium.apply(&change);
        self.pending.push(change);
    }

    /// Refuses a range that is not made of sectors of this device.
    fn check_range(&self, offset: u64, bytes: u64) -> Result<()> {
        let geometry = self.medium.geometry;
        let sector_bytes = u64::from(geometry.sector_bytes);
        let is_whole = offset.is_multiple_of(sector_bytes) && bytes.is_multiple_of(sector_bytes);
        let end = offset.checked_add(bytes);
        if !is_whole || end.is_none_or(|end| end > geometry.capacity_bytes) {
            let message = format!(
                "{bytes} bytes are not whole sectors of {sector_bytes} bytes within the {} bytes \
                 of the device",
                geometry.capacity_bytes
            );
            return Err(Error::invalid(message).at(offset));
        }
        Ok(())
    }

    /// Refuses a write that is not at the write pointer, or leaves the zone.
    fn check_zone(&self, offset: u64, bytes: u64) -> Result<()> {
        let first = self.medium.sequential_zone_of(offset);
        let last = self.medium.sequential_zone_of(offset + bytes.max(1) - 1);
        let Some(zone) = first.or(last) else { return Ok(()) };
        let (write_pointer, is_full) = self.medium.zones[zone];
        let start = self.medium.zone_range(zone).start;
        if first != last || is_full || offset != start + write_pointer {
            let message = format!(
                "the write is not at the write pointer of one zone: zone {zone} takes byte {}{}",
                start + write_pointer,
                if is_full { ", and is full" } else { "" }
            );
            return Err(Error::new(ErrorKind::Io, message).at(offset));
        }
        Ok(())
    }

    /// Keeps the list of open zones after a write to `zone`.
    fn opened(&mut self, zone: usize) {
        self.open_zones.retain(|open| *open != zone);
        let range = self.medium.zone_range(zone);
        if self.medium.zones[zone].0 < range.end - range.start {
            self.open_zones.push(zone);
        }
        let most = self.medium.geometry.zones.map_or(0, |zones| zones.open_zones_max as usize);
        if self.open_zones.len() > most.max(1) {
            self.open_zones.remove(0);
        }
    }

    /// The zone that begins at `start`, for a command on it.
    fn zone_at(&self, start: u64) -> Result<usize> {
        if self.medium.geometry.zones.is_none() {
            return Err(Error::new(ErrorKind::Unsupported, "the device has no zones"));
        }
        match self.medium.sequential_zone_of(start) {
            Some(zone) if self.medium.zone_range(zone).start == start => Ok(zone),
            _ => Err(Error::invalid("no zone with a write pointer begins here").at(start)),
        }
    }
}

/// A device in memory. A clone is a second handle on the same medium.
#[derive(Clone)]
pub struct MemDevice {
    state: Arc<Mutex<State>>,
    title: Arc<str>,
}

impl MemDevice {
    /// A device on which nothing was written. Memory is taken for what is written alone.
    pub fn new(geometry: Geometry) -> MemDevice {
        let medium = Medium::new(geometry);
        let state = State { durable: medium.clone(), medium, ..State::default() };
        MemDevice { state: Arc::new(Mutex::new(state)), title: "memory".into() }
    }

    /// Mutating requests that took effect so far: writes, flushes, discards, and zone commands.
    pub fn requests(&self) -> u64 {
        self.state.lock().requests
    }

    /// Stops the machine when `requests` mutating requests took effect: the next one, and every
    /// request after it, fails with `Io`. Crash images can still be taken.
    pub fn stop_after(&self, requests: u64) {
        self.state.lock().stop_after = Some(requests);
    }

    /// Lets the next flush fail: see sentence 6.
    pub fn fail_next_flush(&self) {
        self.state.lock().fails_next_flush = true;
    }

    /// Lets the sectors of a range go bad: see sentence 7. Images have none of them.
    pub fn make_bad(&self, offset: u64, bytes: u64) {
        let mut state = self.state.lock();
        let sector_bytes = state.medium.geometry.sector_bytes as usize;
        state.bad_sectors.extend((offset..offset + bytes).step_by(sector_bytes));
    }

    /// What the device received: the other side of a ledger.
    pub fn raw(&self) -> RawTraffic {
        self.state.lock().raw
    }

    /// Damages the medium: `bytes` lie at `offset` from now on, durably. No rule is checked.
    pub fn overwrite(&self, offset: u64, bytes: &[u8]) {
        let mut state = self.state.lock();
        state.medium.plate.write(offset, bytes);
        state.durable.plate.write(offset, bytes);
    }

    /// The bytes at `offset`, past every rule and counter.
    pub fn peek(&self, offset: u64, bytes: usize) -> Vec<u8> {
        let mut into = vec![0; bytes];
        self.state.lock().medium.plate.read(offset, &mut into);
        into
    }
}

impl BlockDevice for MemDevice {
    fn geometry(&self) -> Geometry {
        self.state.lock().medium.geometry
    }

    fn read(&self, offset: u64, into: &mut [u8], _cause: Cause) -> Result<Moved> {
        let mut state = self.state.lock();
        state.check_running()?;
        let bytes = into.len() as u64;
        state.check_range(offset, bytes)?;
        if let Some(sector) = state.bad_sectors.range(offset..offset + bytes).next() {
            let error = Error::new(ErrorKind::Io, "cannot read: the sector is bad");
            return Err(error.in_file(self.title.as_ref()).at(*sector));
        }
        if let Some(sector) = state.medium.plate.first_destroyed(offset..offset + bytes) {
            let message = "the sector was destroyed by a write before it";
            return Err(Error::corruption(self.title.as_ref(), sector, message));
        }
        state.medium.plate.read(offset, into);
        state.raw.read_bytes += bytes;
        Ok(Moved { read_bytes: bytes, write_bytes: 0 })
    }

    fn write(&self, offset: u64, bytes: &[u8], _cause: Cause) -> Result<Moved> {
        let mut state = self.state.lock();
        let count = bytes.len() as u64;
        state.check_range(offset, count)?;
        state.check_zone(offset, count)?;
        state.request()?;
        state.bad_sectors.retain(|sector| !(offset..offset + count).contains(sector));
        state.change(Change::Write(offset, bytes.into()));
        if let Some(zone) = state.medium.sequential_zone_of(offset) {
            state.opened(zone);
        }
        state.raw.write_bytes += count;
        Ok(Moved { write_bytes: count, read_bytes: 0 })
    }

    fn flush(&self, _cause: Cause) -> Result<Moved> {
        let mut state = self.state.lock();
        state.request()?;
        state.raw.sync_ops += 1;
        let pending = std::mem::take(&mut state.pending);
        if std::mem::take(&mut state.fails_next_flush) {
            return Err(Error::new(ErrorKind::Io, "cannot flush: the device refused"));
        }
        for change in &pending {
            state.durable.apply(change);
        }
        Ok(Moved::default())
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<Moved> {
        let mut state = self.state.lock();
        state.check_range(offset, bytes)?;
        state.request()?;
        state.medium.plate.scramble(offset..offset + bytes);
        state.durable.plate.scramble(offset..offset + bytes);
        Ok(Moved::default())
    }

    fn reset_zone(&self, start: u64) -> Result<Moved> {
        let mut state = self.state.lock();
        let zone = state.zone_at(start)?;
        state.request()?;
        state.change(Change::Reset(start));
        state.open_zones.retain(|open| *open != zone);
        Ok(Moved::default())
    }

    fn finish_zone(&self, start: u64) -> Result<()> {
        let mut state = self.state.lock();
        let zone = state.zone_at(start)?;
        state.request()?;
        state.change(Change::Finish(start));
        state.open_zones.retain(|open| *open != zone);
        Ok(())
    }

    fn zone(&self, offset: u64) -> Result<Option<Zone>> {
        let state = self.state.lock();
        state.check_running()?;
        let Some(zones) = state.medium.geometry.zones else { return Ok(None) };
        let index = offset / zones.zone_bytes;
        let start = index * zones.zone_bytes;
        let Some((written, is_finished)) = state.medium.zones.get(index as usize).copied() else {
            return Err(Error::invalid("there is no zone past the end of the device").at(offset));
        };
        let zone_state = match written {
            _ if state.medium.sequential_zone_of(start).is_none() => ZoneState::Conventional,
            _ if is_finished || written == zones.zone_bytes => ZoneState::Full,
            0 => ZoneState::Empty,
            _ if state.open_zones.contains(&(index as usize)) => ZoneState::Open,
            _ => ZoneState::Closed,
        };
        Ok(Some(Zone { start, write_pointer: start + written, state: zone_state }))
    }

    fn lock(&self) -> Result<DeviceLock> {
        let mut state = self.state.lock();
        state.check_running()?;
        if std::mem::replace(&mut state.is_locked, true) {
            let message = format!("{} is opened by this process", self.title);
            return Err(Error::new(ErrorKind::Locked, message));
        }
        Ok(Box::new(MemDeviceLock(self.state.clone())))
    }

    fn describe(&self) -> String {
        self.title.to_string()
    }
}

struct MemDeviceLock(Arc<Mutex<State>>);

impl Drop for MemDeviceLock {
    fn drop(&mut self) {
        self.0.lock().is_locked = false;
    }
}
