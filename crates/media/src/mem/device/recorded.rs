//! A device that remembers every change, so that power can be lost over devices that keep no copy
//! of what they were, as models of drives: what survived is sent to a new one.
//!
//! The fault model is that of [`MemDevice`](super::MemDevice).

use super::crash::{Fate, draw};
use super::{DeviceLock, Geometry, Moved, PowerLoss, RawTraffic, Zone};
use crate::block::{BlockDevice, SharedDevice};
use base::checksum::hash64_seeded;
use base::random::Random;
use base::{Cause, Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Makes an empty device, always of the same kind.
pub type MakeDevice = Arc<dyn Fn() -> SharedDevice + Send + Sync>;

/// Is called before each change: writes, flushes, discards and zone commands.
pub type BeforeChange = Arc<dyn Fn(&RecordedDevice) + Send + Sync>;

#[derive(Clone)]
enum Change {
    Write(u64, Arc<[u8]>),
    Discard(u64, u64),
    Reset(u64),
    Finish(u64),
}

impl Change {
    fn offset(&self) -> u64 {
        match self {
            Change::Write(offset, _) | Change::Discard(offset, _) => *offset,
            Change::Reset(start) | Change::Finish(start) => *start,
        }
    }

    fn send(&self, device: &dyn BlockDevice) -> Result<()> {
        match self {
            Change::Write(offset, bytes) => device.write(*offset, bytes, Cause::Recovery).map(drop),
            Change::Discard(offset, bytes) => device.discard(*offset, *bytes).map(drop),
            Change::Reset(start) => device.reset_zone(*start).map(drop),
            Change::Finish(start) => device.finish_zone(*start),
        }
    }

    /// Sends some of the parts of a write that are whole.
    fn send_torn(&self, device: &dyn BlockDevice, seed: u64) {
        let Change::Write(offset, bytes) = self else { return };
        let mut random = Random::new(seed);
        let bias = random.below(101);
        let Geometry { sector_bytes, atomic_bytes, .. } = device.geometry();
        for (index, sector) in bytes.chunks(sector_bytes as usize).enumerate() {
            let at = offset + index as u64 * u64::from(sector_bytes);
            let parts: Vec<_> = sector.chunks(atomic_bytes as usize).collect();
            let survive: Vec<bool> = parts.iter().map(|_| random.below(100) < bias).collect();
            if !survive.contains(&true) {
                continue;
            }
            let mut torn = sector.to_vec();
            if survive.contains(&false) && device.read(at, &mut torn, Cause::Recovery).is_ok() {
                let into = torn.chunks_mut(atomic_bytes as usize).zip(parts).zip(survive);
                let kept = into.filter(|(_, survives)| *survives);
                kept.for_each(|((into, part), _)| into.copy_from_slice(part));
            }
            // In a zone, what follows a missing sector is refused.
            let _ = Change::Write(at, torn.into()).send(device);
        }
    }

    fn hash(&self, seed: u64) -> u64 {
        let (kind, place, bytes): (u64, u64, &[u8]) = match self {
            Change::Write(offset, bytes) => (0, *offset, bytes),
            Change::Discard(offset, bytes) => (1, *offset, &bytes.to_le_bytes()),
            Change::Reset(start) => (2, *start, &[]),
            Change::Finish(start) => (3, *start, &[]),
        };
        hash64_seeded(bytes, hash64_seeded(&place.to_le_bytes(), seed.wrapping_mul(4) ^ kind))
    }
}

/// What was sent to a device since it was made.
#[derive(Clone, Default)]
struct History {
    changes: Vec<Change>,
    /// The number of them that are durable.
    flushed: usize,
    /// Of the changes.
    hash: u64,
    /// Changes that a failed flush dropped, though reads see them.
    dropped: BTreeSet<usize>,
    flushes: u64,
    /// The flush of this number fails.
    failing_flush: Option<u64>,
    requests: u64,
    raw: RawTraffic,
    is_stopped: bool,
}

impl History {
    /// A flush failed: the pending changes are lost at power loss, whatever is flushed later.
    fn drop_pending(&mut self) {
        self.dropped.extend(self.flushed..self.changes.len());
    }
}

/// A device with its history. A clone is a second handle on the same.
#[derive(Clone)]
pub struct RecordedDevice {
    device: SharedDevice,
    make: MakeDevice,
    history: Arc<Mutex<History>>,
    before: Option<BeforeChange>,
}

impl RecordedDevice {
    /// An empty device that `make` makes.
    pub fn new(make: MakeDevice) -> RecordedDevice {
        RecordedDevice { device: make(), make, history: Arc::default(), before: None }
    }

    /// A handle on the same device that calls `before` ahead of each change.
    #[must_use]
    pub fn calling(&self, before: BeforeChange) -> RecordedDevice {
        RecordedDevice { before: Some(before), ..self.clone() }
    }

    /// Changes and flushes so far.
    pub fn requests(&self) -> u64 {
        self.history.lock().requests
    }

    /// What the device received, of reads too: the other side of a ledger.
    pub fn raw(&self) -> RawTraffic {
        self.history.lock().raw
    }

    /// Every request from now on fails with `Io`. Images can still be taken.
    pub fn stop(&self) {
        self.history.lock().is_stopped = true;
    }

    /// Flushes so far.
    pub fn flushes(&self) -> u64 {
        self.history.lock().flushes
    }

    /// Lets one flush fail, the first, or the one after `after` others from now on: sentence 6. Not
    /// for devices with zones, whose write pointers would not be what they were.
    pub fn fail_flush_after(&self, after: u64) {
        let mut history = self.history.lock();
        history.failing_flush = Some(history.flushes + after);
    }

    /// Equal for devices that took the same changes and have as many of them durable.
    pub fn content_hash(&self) -> u64 {
        let history = self.history.lock();
        hash64_seeded(&history.flushed.to_le_bytes(), history.hash)
    }

    /// A new device as power loss would leave this one, which goes on untouched. All of the image
    /// is durable, unless the process alone died ([`PowerLoss::KeepAll`]): then what was not
    /// flushed can still be lost. Discards are durable at once.
    pub fn crash_image(&self, random: &mut Random, loss: PowerLoss) -> RecordedDevice {
        let History { changes, flushed, dropped, .. } = self.history.lock().clone();
        let image = RecordedDevice::new(self.make.clone());
        let (durable, pending) = changes.split_at(flushed);
        let is_lost = |at: usize| loss != PowerLoss::KeepAll && dropped.contains(&at);
        for (at, change) in durable.iter().enumerate() {
            if !is_lost(at) || matches!(change, Change::Discard(..)) {
                let _ = change.send(&image);
            }
        }
        image.all_is_durable();
        let fates = draw(pending.len(), loss, random);
        let mut ended_zones = BTreeSet::new();
        for ((at, change), fate) in (flushed..).zip(pending).zip(fates) {
            let fate = if is_lost(at) { Fate::Lost } else { fate };
            let zone = image.sequential_zone_of(change.offset());
            if zone.is_some_and(|zone| ended_zones.contains(&zone)) {
                continue;
            }
            if fate != Fate::Kept {
                ended_zones.extend(zone);
            }
            match (fate, change) {
                (Fate::Kept, _) | (_, Change::Discard(..)) => drop(change.send(&image)),
                (Fate::Torn(seed), _) => change.send_torn(&image, seed),
                (Fate::Lost, _) => {}
            }
        }
        match loss {
            PowerLoss::KeepAll => image.history.lock().dropped = dropped,
            _ => image.all_is_durable(),
        }
        image
    }

    /// The zone at `offset` if it takes writes at its write pointer alone: what follows a change
    /// that did not survive whole is lost.
    fn sequential_zone_of(&self, offset: u64) -> Option<u64> {
        let zones = self.device.geometry().zones?;
        let zone = offset / zones.zone_bytes;
        (zone >= u64::from(zones.conventional_zones)).then_some(zone)
    }

    fn all_is_durable(&self) {
        let mut history = self.history.lock();
        history.flushed = history.changes.len();
    }

    fn check_running(&self) -> Result<()> {
        if self.history.lock().is_stopped {
            return Err(Error::new(ErrorKind::Io, "the machine stopped"));
        }
        Ok(())
    }

    /// Announces a request.
    fn begin(&self) -> Result<()> {
        self.check_running()?;
        if let Some(before) = &self.before {
            before(self);
        }
        self.history.lock().requests += 1;
        Ok(())
    }

    /// Takes note of what the device did.
    fn changed(&self, change: Change) {
        let mut history = self.history.lock();
        history.hash = change.hash(history.hash);
        history.changes.push(change);
    }
}

impl BlockDevice for RecordedDevice {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<Moved> {
        self.check_running()?;
        let moved = self.device.read(offset, into, cause)?;
        self.history.lock().raw.read_bytes += into.len() as u64;
        Ok(moved)
    }

    fn prefetch(&self, offset: u64, bytes: u64) {
        self.device.prefetch(offset, bytes);
    }

    fn write(&self, offset: u64, bytes: &[u8], cause: Cause) -> Result<Moved> {
        self.begin()?;
        let moved = self.device.write(offset, bytes, cause)?;
        self.changed(Change::Write(offset, bytes.into()));
        self.history.lock().raw.write_bytes += bytes.len() as u64;
        Ok(moved)
    }

    fn flush(&self, cause: Cause) -> Result<Moved> {
        self.begin()?;
        let mut history = self.history.lock();
        history.flushes += 1;
        if history.failing_flush == Some(history.flushes - 1) {
            history.drop_pending();
            return Err(Error::new(ErrorKind::Io, "cannot flush: the device refused"));
        }
        drop(history);
        let moved = self.device.flush(cause)?;
        self.all_is_durable();
        self.history.lock().raw.sync_ops += 1;
        Ok(moved)
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<Moved> {
        self.begin()?;
        let moved = self.device.discard(offset, bytes)?;
        self.changed(Change::Discard(offset, bytes));
        Ok(moved)
    }

    fn reset_zone(&self, start: u64) -> Result<Moved> {
        self.begin()?;
        let moved = self.device.reset_zone(start)?;
        self.changed(Change::Reset(start));
        Ok(moved)
    }

    fn finish_zone(&self, start: u64) -> Result<()> {
        self.begin()?;
        self.device.finish_zone(start)?;
        self.changed(Change::Finish(start));
        Ok(())
    }

    fn zone(&self, offset: u64) -> Result<Option<Zone>> {
        self.check_running()?;
        self.device.zone(offset)
    }

    fn lock(&self) -> Result<DeviceLock> {
        self.check_running()?;
        self.device.lock()
    }

    fn describe(&self) -> String {
        self.device.describe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Overwrite, ZoneGeometry};
    use crate::mem::MemDevice;

    const SECTOR: usize = 512;
    const ZONE: u64 = 64 << 10;

    fn recorded(overwrite: Overwrite) -> RecordedDevice {
        let zones = ZoneGeometry { zone_bytes: ZONE, conventional_zones: 1, open_zones_max: 2 };
        let zones = (overwrite == Overwrite::AtWritePointer).then_some(zones);
        let capacity_bytes = 1 << 20;
        let geometry = Geometry {
            sector_bytes: 512,
            atomic_bytes: 512,
            capacity_bytes,
            overwrite,
            band_bytes: 0,
            zones,
        };
        RecordedDevice::new(Arc::new(move || Arc::new(MemDevice::new(geometry))))
    }

    fn write(device: &RecordedDevice, offset: u64, value: u8, sectors: usize) {
        device.write(offset, &vec![value; sectors * SECTOR], Cause::Flush).unwrap();
    }

    /// The first byte of each of the first sectors from `offset`; `None` where it cannot be read.
    fn values(device: &RecordedDevice, offset: u64, count: u64) -> Vec<Option<u8>> {
        let mut sector = [0; SECTOR];
        let mut value = |index: u64| {
            let read = device.read(offset + index * SECTOR as u64, &mut sector, Cause::Get);
            read.is_ok().then_some(sector[0])
        };
        (0..count).map(&mut value).collect()
    }

    /// Everything that power loss may leave, as [`values`].
    fn outcomes(device: &RecordedDevice, offset: u64, count: u64) -> BTreeSet<Vec<Option<u8>>> {
        let images = (0..400).map(|seed| {
            let loss = PowerLoss::ALL[seed as usize % PowerLoss::ALL.len()];
            device.crash_image(&mut Random::new(seed), loss)
        });
        images.map(|image| values(&image, offset, count)).collect()
    }

    #[test]
    fn flushed_changes_survive_and_of_others_any_sectors() {
        let device = recorded(Overwrite::InPlace);
        write(&device, 0, 1, 2);
        device.flush(Cause::Flush).unwrap();
        write(&device, 512, 2, 2);
        write(&device, 1536, 3, 1);
        let found = outcomes(&device, 0, 4);
        let either = |lost, kept| [Some(lost), Some(kept)];
        let mut expected = BTreeSet::new();
        for second in either(1, 2) {
            for third in either(0, 2) {
                for last in either(0, 3) {
                    expected.insert(vec![Some(1), second, third, last]);
                }
            }
        }
        assert_eq!(found, expected);
        assert_eq!((device.requests(), values(&device, 1536, 1)), (4, vec![Some(3)]));
    }

    #[test]
    fn what_a_failed_flush_dropped_no_later_flush_saves() {
        let device = recorded(Overwrite::InPlace);
        write(&device, 0, 1, 2);
        device.flush(Cause::Flush).unwrap();
        write(&device, 512, 2, 1);
        device.fail_flush_after(0);
        assert!(device.flush(Cause::Flush).is_err());
        write(&device, 1024, 3, 1);
        device.flush(Cause::Flush).unwrap();
        let seen = vec![Some(1), Some(2), Some(3)];
        let kept = vec![Some(1), Some(1), Some(3)];
        assert_eq!((values(&device, 0, 3), device.flushes()), (seen.clone(), 3));
        assert_eq!(outcomes(&device, 0, 3), BTreeSet::from([seen, kept.clone()]));
        let alive = device.crash_image(&mut Random::new(1), PowerLoss::KeepAll);
        alive.flush(Cause::Flush).unwrap();
        let lost = alive.crash_image(&mut Random::new(1), PowerLoss::LoseUnflushed);
        assert_eq!(values(&lost, 0, 3), kept);
        write(&device, 512, 4, 1);
        device.flush(Cause::Flush).unwrap();
        let lost = device.crash_image(&mut Random::new(1), PowerLoss::LoseUnflushed);
        assert_eq!(values(&lost, 0, 3), vec![Some(1), Some(4), Some(3)], "written anew");
    }

    #[test]
    fn a_zone_keeps_a_prefix() {
        let device = recorded(Overwrite::AtWritePointer);
        write(&device, ZONE, 1, 1);
        device.flush(Cause::Flush).unwrap();
        device.reset_zone(ZONE).unwrap();
        for sector in 0..3 {
            write(&device, ZONE + sector * 512, 10 + sector as u8, 1);
        }
        let written = |values: &Vec<Option<u8>>| -> Vec<u8> {
            values.iter().flatten().copied().filter(|value| *value > 0).collect()
        };
        let found: BTreeSet<Vec<u8>> = outcomes(&device, ZONE, 4).iter().map(written).collect();
        let prefix = |count: usize| [10, 11, 12][..count].to_vec();
        let expected = [vec![1]].into_iter().chain((0..=3).map(prefix));
        assert_eq!(found, expected.collect());
    }

    #[test]
    fn what_a_surviving_write_destroys_is_destroyed_in_the_image() {
        let device = recorded(Overwrite::DestroysDownstream { damage_bytes: 512 });
        for sector in 0..4 {
            write(&device, sector * 512, 1, 1);
        }
        device.flush(Cause::Flush).unwrap();
        write(&device, 512, 2, 1);
        let lost = [Some(1), Some(1), Some(1), Some(1)].to_vec();
        let kept = [Some(1), Some(2), None, Some(1)].to_vec();
        assert_eq!(outcomes(&device, 0, 4), BTreeSet::from([lost, kept]));
    }

    #[test]
    fn hashes_differ_with_what_is_durable_and_the_machine_stops_where_told() {
        let device = recorded(Overwrite::InPlace);
        write(&device, 0, 1, 1);
        let mut random = Random::new(1);
        let alive = device.crash_image(&mut random, PowerLoss::KeepAll);
        assert_eq!(alive.content_hash(), device.content_hash());
        let lost = alive.crash_image(&mut random, PowerLoss::LoseUnflushed);
        assert_eq!(values(&lost, 0, 1), [Some(0)]);
        device.flush(Cause::Flush).unwrap();
        assert_ne!(alive.content_hash(), device.content_hash());
        device.stop();
        assert!(device.flush(Cause::Flush).is_err() && values(&device, 0, 1) == [None]);
    }
}
