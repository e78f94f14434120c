//! The door below the file stores: a [`BlockDevice`] is a range of sectors on one medium.
//!
//! Real disks, plain files and models of drives implement it; the direct store places files on it.
//! What a medium demands stands in its [`Geometry`]; what breaks it is an error, never silence.
//!
//! Invariants that every device keeps:
//! - Requests begin and end at sector boundaries; a request past the end is an error.
//! - A completed write may be lost, torn ([`Geometry::atomic_bytes`]), or overtaken by a later one
//!   until [`BlockDevice::flush`] returned.
//! - Every request returns what the medium itself moved ([`Moved`]), work of its own included that
//!   it did since the request before, so that sums over requests are the medium's true bytes.

use base::{Cause, Result};
use std::any::Any;
use std::sync::Arc;

/// What a write over bytes that were written before does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// It replaces them.
    InPlace,
    /// It replaces them, and destroys up to `damage_bytes` that follow its end: the medium is
    /// shingled, and no translation layer stands between it and the host.
    DestroysDownstream {
        /// Bytes after the end of a write that it may destroy at most, wherever in a track it ends.
        damage_bytes: u64,
    },
    /// It is refused: a zone takes writes at its write pointer alone.
    AtWritePointer,
}

/// How a zoned medium is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneGeometry {
    /// Bytes of a zone, all alike.
    pub zone_bytes: u64,
    /// Zones at the beginning that take writes anywhere.
    pub conventional_zones: u32,
    /// Zones that may be open at a time.
    pub open_zones_max: u32,
}

/// What a medium is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// The unit of requests, a power of two.
    pub sector_bytes: u32,
    /// What power loss leaves old or new, never a mixture: a sector, or a part of one.
    pub atomic_bytes: u32,
    /// Bytes of the medium, a multiple of the sector.
    pub capacity_bytes: u64,
    /// What overwriting does.
    pub overwrite: Overwrite,
    /// The unit within which overwriting is cheap, where the medium has one: a band of a
    /// drive-managed shingled disk. For placement; 0 where there is none.
    pub band_bytes: u64,
    /// Zones, where [`Overwrite::AtWritePointer`].
    pub zones: Option<ZoneGeometry>,
}

/// What a zone may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneState {
    /// Takes writes anywhere.
    Conventional,
    /// Nothing is in it.
    Empty,
    /// Takes writes at its write pointer.
    Open,
    /// Partly written, and not among the open ones.
    Closed,
    /// Takes no more writes until it is reset.
    Full,
}

/// A zone as the medium reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its first byte.
    pub start: u64,
    /// Where the next write goes; meaningless for conventional zones.
    pub write_pointer: u64,
    /// Its state.
    pub state: ZoneState,
}

/// Bytes that the medium itself moved, beyond what the host sees; nothing where a device, as those
/// of an operating system, does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes written to the medium; host bytes where there is no amplification.
    pub write_bytes: u64,
    /// Bytes read from the medium.
    pub read_bytes: u64,
}

/// The use of a device, exclusive or shared, for as long as it lives.
pub type DeviceLock = Box<dyn Any + Send + Sync>;

/// A range of sectors.
pub trait BlockDevice: Send + Sync {
    /// What the medium is like; never changes while it is open.
    fn geometry(&self) -> Geometry;

    /// Fills `into` from byte `offset`. Bytes never written read as zeros; bytes that a write
    /// nearby destroyed are a `Corruption` error.
    fn read(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<Moved>;

    /// Tells the device that `bytes` from `offset` will be read soon, so that it may begin. May do
    /// nothing.
    fn prefetch(&self, _offset: u64, _bytes: u64) {}

    /// Writes `bytes` at `offset`.
    fn write(&self, offset: u64, bytes: &[u8], cause: Cause) -> Result<Moved>;

    /// Makes every write that returned durable.
    fn flush(&self, cause: Cause) -> Result<Moved>;

    /// The bytes are not needed any more: a hint (TRIM). Afterwards they read as anything.
    fn discard(&self, offset: u64, bytes: u64) -> Result<Moved>;

    /// Empties the zone that begins at `start`. `Unsupported` without zones.
    fn reset_zone(&self, start: u64) -> Result<Moved>;

    /// Makes the zone that begins at `start` full: nothing more is written to it.
    fn finish_zone(&self, start: u64) -> Result<()>;

    /// The zone that `offset` lies in; `None` without zones.
    fn zone(&self, offset: u64) -> Result<Option<Zone>>;

    /// Keeps other openers out. `Locked` if another opener holds the lock.
    fn lock(&self) -> Result<DeviceLock>;

    /// Keeps writers out and lets other readers in. A device that cannot tell readers from writers
    /// lets one of either in.
    fn lock_shared(&self) -> Result<DeviceLock> {
        self.lock()
    }

    /// A name for people.
    fn describe(&self) -> String;
}

/// A device that several parts share.
pub type SharedDevice = Arc<dyn BlockDevice>;
