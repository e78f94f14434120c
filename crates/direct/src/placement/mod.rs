//! Placements: where on a device the bytes of files go.
//!
//! A [`Placement`] is bookkeeping without I/O: it hands out extents and takes them back. An extent
//! is *open* from [`Placement::allocate`] to [`Placement::close`]; while it is, its writer fills it
//! from its start on. Invariants:
//! - No two extents that were handed out overlap, and none leaves the data region.
//! - What was freed is handed out again; neighbours that are free are one free extent.
//! - On a medium that destroys downstream, nothing that may be written into an open extent reaches
//!   an allocated one.

pub mod band_per_table;
pub mod dynamic_bands;
pub mod ext4_like;
mod registry;
#[cfg(test)]
mod tests;
pub mod zones;

use crate::extent::Extent;
use media::Geometry;
use media::block::{Overwrite, Zone};

pub use registry::{Chosen, find, registry, suited};

/// A request for space.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// As many bytes in one piece as the file is expected to need; whole sectors.
    pub wanted_bytes: u64,
    /// Bytes that wait to be written; whole sectors.
    pub now_bytes: u64,
    /// Fewer are of no use; whole sectors.
    pub least_bytes: u64,
    /// Bytes of the file that have their places.
    pub before_bytes: u64,
    /// Where the file's last extent ends.
    pub goal: Option<u64>,
    /// Files of one group die together.
    pub group: Option<u64>,
    /// The file is a log: it stays open for long and grows in small steps.
    pub is_log: bool,
    /// The bytes are moved to reclaim space: a reserve may be used.
    pub is_reclaim: bool,
    /// Where they must not go: it is being emptied.
    pub avoid: Extent,
}

/// What a device with zones has to be told before the next write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneCommand {
    /// Empty the zone that begins here.
    Reset(u64),
    /// Fill up the zone that begins here.
    Finish(u64),
}

/// A way of placing files.
pub trait Placement: Send {
    /// The registered name.
    fn name(&self) -> &'static str;

    /// An extent, now open, of at least the least bytes; `None` where there is no space.
    fn allocate(&mut self, request: &Request) -> Option<Extent>;

    /// The writer of an open extent is done and used its first `used_bytes`; the rest is free.
    fn close(&mut self, extent: Extent, used_bytes: u64);

    /// A part of a closed extent is not needed any more.
    fn free(&mut self, extent: Extent);

    /// Whether extents of a file that lie behind each other may be adopted and freed as `whole`.
    fn joins(&self, whole: Extent) -> bool {
        let _ = whole;
        true
    }

    /// An extent that recovery found in use. False if it cannot be: it overlaps another.
    fn adopt(&mut self, extent: Extent) -> bool;

    /// What is free, in order of place.
    fn free_extents(&self) -> Vec<Extent>;

    /// Bytes that can still be written, at most.
    fn free_bytes(&self) -> u64;

    /// Bytes that a file of any kind finds without moving others. They count for a reserve.
    fn spare_bytes(&self) -> u64 {
        self.free_bytes()
    }

    /// [`Placement::spare_bytes`] after the least that `request` takes.
    fn spare_bytes_after(&self, request: &Request) -> u64 {
        self.spare_bytes().saturating_sub(request.least_bytes)
    }

    /// A smaller reserve is of no use.
    fn reserve_bytes_min(&self) -> u64 {
        0
    }

    /// Learns the state of a zone.
    fn observe(&mut self, zone: &Zone) {
        let _ = zone;
    }

    /// What the device has to be told before anything is written; each is given out once.
    fn commands(&mut self) -> Vec<ZoneCommand> {
        Vec::new()
    }

    /// Ranges that hold garbage among live bytes, most garbage first, with their live bytes: moving
    /// these reclaims space.
    fn victims(&self) -> Vec<(Extent, u64)> {
        Vec::new()
    }

    /// Whether a victim should be moved although there is free space.
    fn is_fragmented(&self) -> bool {
        false
    }
}

/// What a placement has to know.
#[derive(Clone, Copy, Debug)]
pub struct Ground {
    /// What the medium is like.
    pub geometry: Geometry,
    /// Where files may lie.
    pub data: Extent,
    /// Bytes of a block group, band or size class where the placement has one and the geometry
    /// does not give it; 0 takes the placement's own.
    pub unit_bytes: u64,
    /// What fragments may be of all up to the last live byte, as a share; beyond, live bytes are
    /// moved. None: fragments stay until a neighbour goes.
    pub fragment_share_max: Option<f64>,
}

impl Ground {
    fn sector_bytes(&self) -> u64 {
        u64::from(self.geometry.sector_bytes)
    }

    /// Bytes behind a write that have to be free.
    fn guard_bytes(&self) -> u64 {
        match self.geometry.overwrite {
            Overwrite::DestroysDownstream { damage_bytes } => {
                damage_bytes.next_multiple_of(self.sector_bytes())
            }
            _ => 0,
        }
    }

    /// `own` or what was asked for, in whole sectors, and not more than a part of the device.
    fn unit(&self, own: u64) -> u64 {
        let unit = if self.unit_bytes > 0 { self.unit_bytes } else { own };
        let most = (self.data.bytes / 8).max(self.sector_bytes());
        let unit = unit.min(most);
        (unit - unit % self.sector_bytes()).max(self.sector_bytes())
    }
}

/// A placement as the registry lists it.
pub struct Descriptor {
    /// The name that a format is asked for by, and that the superblock keeps.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// A paragraph: how it works, for which media.
    pub help: &'static str,
    /// Why it cannot work on such a medium; `None` if it can.
    refuses: fn(&Geometry) -> Option<&'static str>,
    make: fn(&Ground) -> Box<dyn Placement>,
}
