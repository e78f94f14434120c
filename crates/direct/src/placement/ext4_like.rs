//! `ext4-like`: block groups, first fit, delayed allocation; what the papers call LevelDB on ext4.
//!
//! The device is divided in block groups, which no extent crosses. Logs take the first room from
//! the first group on. Tables are placed when their bytes arrive (delayed allocation is the
//! writer's buffer): behind the file's last extent if there is room, else first fit from the group
//! on in which the last table was placed, so that tables wander over the device as they do on ext4.

use super::{Descriptor, Ground, Placement, Request};
use crate::extent::{Extent, FreeMap};
use media::Geometry;
use media::block::Overwrite;

/// Bytes of a block group: 32768 blocks of 4 KiB, as ext4 has them.
const GROUP_BYTES: u64 = 128 << 20;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "ext4-like",
    summary: "block groups, first fit, delayed allocation, as a file system for disks does it",
    help: "Places a file behind itself where there is room, else first fit from the block group of \
           the last placement on. For media that take writes anywhere; on a drive-managed shingled \
           disk this is what the drive has to clean up after.",
    refuses,
    make: |ground| Box::new(Ext4Like::new(ground)),
};

fn refuses(geometry: &Geometry) -> Option<&'static str> {
    (geometry.overwrite != Overwrite::InPlace)
        .then_some("it overwrites freed room wherever that is, which only plain media take")
}

struct Ext4Like {
    free: FreeMap,
    data: Extent,
    group_bytes: u64,
    /// Where the last table was placed.
    last_table: u64,
}

impl Ext4Like {
    fn new(ground: &Ground) -> Ext4Like {
        let group_bytes = ground.unit(GROUP_BYTES);
        let (free, data) = (FreeMap::new(ground.data), ground.data);
        Ext4Like { free, data, group_bytes, last_table: data.start }
    }

    fn group_start(&self, at: u64) -> u64 {
        at - (at - self.data.start) % self.group_bytes
    }

    /// The first room of `bytes` in a group, from `from` on.
    fn first_fit(&self, from: u64, bytes: u64) -> Option<Extent> {
        let start = self.free.around(from).map_or(from, |free| free.start);
        self.free.from(start).find_map(|free| {
            let mut at = free.start.max(from);
            while at + bytes <= free.end() {
                let group_end = self.group_start(at) + self.group_bytes;
                if at + bytes <= group_end {
                    return Some(Extent { start: at, bytes });
                }
                at = group_end;
            }
            None
        })
    }

    fn find(&self, request: &Request) -> Option<Extent> {
        if let Some(goal) = request.goal.filter(|goal| *goal < self.data.end())
            && let Some(free) = self.free.around(goal)
        {
            let end = free.end().min(self.group_start(goal) + self.group_bytes);
            let bytes = request.wanted_bytes.min(end - goal);
            if bytes >= request.least_bytes {
                return Some(Extent { start: goal, bytes });
            }
        }
        let origin =
            if request.is_log { self.data.start } else { self.group_start(self.last_table) };
        let mut bytes = request.wanted_bytes.min(self.group_bytes);
        loop {
            let found =
                self.first_fit(origin, bytes).or_else(|| self.first_fit(self.data.start, bytes));
            if found.is_some() || bytes <= request.least_bytes {
                return found;
            }
            bytes = request.least_bytes.max(halved(bytes, request.least_bytes));
        }
    }
}

/// Half of `bytes` in multiples of `step`.
fn halved(bytes: u64, step: u64) -> u64 {
    let half = bytes / 2;
    half - half % step.max(1)
}

impl Placement for Ext4Like {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn allocate(&mut self, request: &Request) -> Option<Extent> {
        let least_bytes = request.least_bytes.min(self.group_bytes);
        // What is expected of a table counts for nothing: its bytes are placed when they are there.
        let wanted = if request.is_log { request.wanted_bytes } else { request.now_bytes };
        let wanted_bytes = wanted.max(least_bytes);
        let found = self.find(&Request { wanted_bytes, least_bytes, ..*request })?;
        if !request.is_log {
            self.last_table = found.start;
        }
        self.free.take(found).then_some(found)
    }

    fn close(&mut self, extent: Extent, used_bytes: u64) {
        self.free.give(Extent::between(extent.start + used_bytes, extent.end()));
    }

    fn free(&mut self, extent: Extent) {
        self.free.give(extent);
    }

    fn adopt(&mut self, extent: Extent) -> bool {
        self.free.take(extent)
    }

    fn free_extents(&self) -> Vec<Extent> {
        self.free.iter().collect()
    }

    fn free_bytes(&self) -> u64 {
        self.free.bytes()
    }
}
