//! The one place where requests to the device are issued, and counted.
//!
//! Invariants:
//! - Every request is in the ledger with its cause, as are the bytes that the medium moved for it.
//! - After a failed flush, or a failed write of metadata, nothing becomes durable any more: a later
//!   flush may succeed without having written.

use crate::extent::Extent;
use base::{Cause, Error, ErrorKind, Ledger, Result};
use media::block::{BlockDevice, Geometry, Moved, Zone, ZoneState};
use parking_lot::Mutex;
use std::sync::Arc;

/// After this many bad sectors in one range, the rest of it is not tried: a device that fails
/// takes seconds for each.
const UNREAD_SECTORS_MAX: u64 = 64;

/// Sectors that the device failed to read.
#[derive(Debug, Default)]
pub struct Unread {
    extents: Vec<Extent>,
    /// The first failure.
    pub error: Option<Error>,
}

impl Unread {
    fn add(&mut self, extent: Extent, error: Error) {
        self.extents.push(extent);
        self.error.get_or_insert(error);
    }

    /// Takes those of another range in.
    pub fn extend(&mut self, other: Unread) {
        self.extents.extend(other.extents);
        self.error = self.error.take().or(other.error);
    }

    pub fn bytes(&self) -> u64 {
        self.extents.iter().map(|extent| extent.bytes).sum()
    }

    /// Whether any of `range` was not read.
    pub fn overlaps(&self, range: Extent) -> bool {
        self.extents.iter().any(|extent| extent.overlaps(range))
    }
}

/// A device with the ledger of its store.
pub struct Port {
    device: Arc<dyn BlockDevice>,
    ledger: Arc<Ledger>,
    is_read_only: bool,
    failure: Mutex<Option<Error>>,
}

impl Port {
    pub fn new(device: Arc<dyn BlockDevice>, ledger: Arc<Ledger>, is_read_only: bool) -> Port {
        Port { device, ledger, is_read_only, failure: Mutex::new(None) }
    }

    pub fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    pub fn sector_bytes(&self) -> u64 {
        u64::from(self.device.geometry().sector_bytes)
    }

    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    pub fn describe(&self) -> String {
        self.device.describe()
    }

    /// Refuses everything that would change a device opened for reading.
    pub fn check_writable(&self) -> Result<()> {
        if self.is_read_only {
            let message = format!("{} is opened read-only", self.device.describe());
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(())
    }

    /// Refuses to promise anything after a failure that left the medium unknown.
    pub fn check_trusted(&self) -> Result<()> {
        let failure = self.failure.lock();
        failure.clone().map_or(Ok(()), |error| Err(Error::poisoned(error)))
    }

    /// Remembers a failure that leaves the medium unknown.
    pub fn distrust(&self, error: Error) -> Error {
        let mut failure = self.failure.lock();
        failure.get_or_insert_with(|| error.clone());
        error
    }

    fn moved(&self, cause: Cause, moved: Moved) {
        if moved.write_bytes > 0 {
            self.ledger.media_wrote(cause, moved.write_bytes);
        }
        if moved.read_bytes > 0 {
            self.ledger.media_read(cause, moved.read_bytes);
        }
    }

    pub fn read(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<()> {
        let moved = self.device.read(offset, into, cause)?;
        self.ledger.read(cause, into.len() as u64);
        self.moved(cause, moved);
        Ok(())
    }

    /// Reads what can be read: other sectors become zeros. Damaged ones do, and what lies behind
    /// the write pointer of a zone, which strict devices refuse to read. Sectors that the device
    /// failed to read are returned: what they hold is not known.
    pub fn salvage(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<Unread> {
        let mut unread = Unread::default();
        self.salvage_into(offset, into, cause, &mut unread)?;
        Ok(unread)
    }

    fn salvage_into(
        &self,
        offset: u64,
        into: &mut [u8],
        cause: Cause,
        unread: &mut Unread,
    ) -> Result<()> {
        let written_bytes = match self.zone(offset)? {
            Some(zone) if !matches!(zone.state, ZoneState::Conventional | ZoneState::Full) => {
                zone.write_pointer.saturating_sub(offset).min(into.len() as u64)
            }
            _ => into.len() as u64,
        };
        let (into, unwritten) = into.split_at_mut(written_bytes as usize);
        unwritten.fill(0);
        if into.is_empty() {
            return Ok(());
        }
        let sector_bytes = self.sector_bytes();
        let is_given_up = unread.bytes() >= UNREAD_SECTORS_MAX * sector_bytes;
        let error = match unread.error.clone().filter(|_| is_given_up) {
            Some(error) => error,
            None => match self.read(offset, into, cause) {
                Err(error) if matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Io) => {
                    error
                }
                result => return result,
            },
        };
        if is_given_up || into.len() as u64 <= sector_bytes {
            if error.kind() == ErrorKind::Io {
                unread.add(Extent { start: offset, bytes: into.len() as u64 }, error);
            }
            into.fill(0);
            return Ok(());
        }
        let half = (into.len() as u64 / sector_bytes / 2).max(1) * sector_bytes;
        let (first, second) = into.split_at_mut(half as usize);
        self.salvage_into(offset, first, cause, unread)?;
        self.salvage_into(offset + half, second, cause, unread)
    }

    pub fn prefetch(&self, offset: u64, bytes: u64) {
        self.device.prefetch(offset, bytes);
    }

    pub fn write(&self, offset: u64, bytes: &[u8], cause: Cause) -> Result<()> {
        self.check_writable()?;
        let moved = self.device.write(offset, bytes, cause)?;
        self.ledger.wrote(cause, bytes.len() as u64);
        self.moved(cause, moved);
        Ok(())
    }

    /// Makes all writes durable.
    pub fn flush(&self, cause: Cause) -> Result<()> {
        self.check_writable()?;
        self.check_trusted()?;
        self.ledger.synced(cause);
        let moved = self.device.flush(cause).map_err(|error| self.distrust(error))?;
        self.moved(cause, moved);
        Ok(())
    }

    /// A hint: a device that cannot take it loses nothing.
    pub fn discard(&self, offset: u64, bytes: u64) {
        if let Ok(moved) = self.device.discard(offset, bytes) {
            self.moved(Cause::StoreMetadata, moved);
        }
    }

    pub fn reset_zone(&self, start: u64) -> Result<()> {
        self.check_writable()?;
        let moved = self.device.reset_zone(start).map_err(|error| self.distrust(error))?;
        self.moved(Cause::StoreMetadata, moved);
        Ok(())
    }

    pub fn finish_zone(&self, start: u64) -> Result<()> {
        self.check_writable()?;
        self.device.finish_zone(start).map_err(|error| self.distrust(error))
    }

    pub fn zone(&self, offset: u64) -> Result<Option<Zone>> {
        self.device.zone(offset)
    }
}
