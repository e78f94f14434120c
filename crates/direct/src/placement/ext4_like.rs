//! `ext4-like`: block groups, buddies, delayed allocation; what the papers call LevelDB on ext4.
//!
//! The device is divided in block groups, which no extent crosses. Logs take the first free space,
//! from the first group on. Tables are placed when their bytes arrive (delayed allocation is the
//! writer's buffer), as ext4's multi-block allocator places a file: in chunks that follow from the
//! size of the file, behind what there is of the file where the rest of its chunk is free, else in
//! the first of the smallest buddies that take one, in the group of the last chunk or the next that
//! has any. So tables wander over the device, and a table a little longer than a chunk leaves most
//! of another chunk unused behind it. What no buddy takes goes where it fits first.

use super::{Descriptor, Ground, Placement, Request};
use crate::extent::{Extent, FreeMap};
use media::Geometry;
use media::block::Overwrite;

/// Bytes of a block group: 32768 blocks of 4 KiB, as ext4 has them.
const GROUP_BYTES: u64 = 128 << 20;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "ext4-like",
    summary: "block groups, buddies, delayed allocation, as a file system for disks does it",
    help: "Places a file behind itself where there is space, else in a buddy of the block group of \
           the last placement or of the next that has one. For media that take writes anywhere; \
           on a drive-managed shingled disk this is what the drive has to clean up after.",
    refuses,
    make: |ground| Box::new(Ext4Like::new(ground)),
};

fn refuses(geometry: &Geometry) -> Option<&'static str> {
    (geometry.overwrite != Overwrite::InPlace)
        .then_some("it overwrites freed space anywhere, which only plain media allow")
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

    /// The first free extent of `bytes` in a group, from `from` on.
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

    /// Bytes of the chunks in which a file of `file_bytes` is placed, a power of two: all of it up
    /// to 1 MiB, 2 MiB up to 4, 4 MiB up to 8, else 8 MiB; parts of a group, if that is smaller.
    fn chunk_bytes(&self, file_bytes: u64) -> u64 {
        let mib = (self.group_bytes / 128).max(1);
        let bytes = match file_bytes.div_ceil(mib) {
            0..=1 => return file_bytes.next_power_of_two(),
            2..=4 => 2 * mib,
            5..=8 => 4 * mib,
            _ => 8 * mib,
        };
        1 << bytes.ilog2()
    }

    /// The first of the smallest buddies of a group that take `bytes`. A buddy is free, as long as
    /// a power of two times `bytes`, and aligned to that; it is not half of a larger one.
    fn buddy(&self, group: u64, bytes: u64) -> Option<u64> {
        let group_end = (group + self.group_bytes).min(self.data.end());
        let first = self.free.around(group).map_or(group, |free| free.start);
        let mut best: Option<(u64, u64)> = None;
        for free in self.free.from(first).take_while(|free| free.start < group_end) {
            let (low, high) = (free.start.max(group) - group, free.end().min(group_end) - group);
            let mut at = low.next_multiple_of(bytes);
            while at + bytes <= high {
                let mut buddy_bytes = bytes;
                while at.is_multiple_of(2 * buddy_bytes) && at + 2 * buddy_bytes <= high {
                    buddy_bytes *= 2;
                }
                if best.is_none_or(|(least, _)| buddy_bytes < least) {
                    best = Some((buddy_bytes, group + at));
                }
                at += buddy_bytes;
            }
        }
        best.map(|(_, at)| at)
    }

    /// Where a chunk of a table goes, and as much of it as there are bytes.
    fn chunk(&self, request: &Request) -> Option<Extent> {
        let file_bytes = request.before_bytes + request.wanted_bytes;
        let chunk_bytes = self.chunk_bytes(file_bytes).max(request.least_bytes);
        let rest_bytes = chunk_bytes - request.before_bytes % chunk_bytes;
        let bytes = rest_bytes.min(request.wanted_bytes);
        if let Some(goal) = request.goal.filter(|goal| *goal < self.data.end())
            && let Some(free) = self.free.around(goal)
            && goal + rest_bytes <= free.end().min(self.group_start(goal) + self.group_bytes)
        {
            return Some(Extent { start: goal, bytes });
        }
        let origin = self.group_start(self.last_table);
        self.groups(origin, self.data.end(), chunk_bytes)
            .chain(self.groups(self.data.start, origin, chunk_bytes))
            .find_map(|group| self.buddy(group, chunk_bytes))
            .map(|start| Extent { start, bytes })
    }

    /// Groups between two others in which `bytes` are free in one piece or might be, in order.
    fn groups(&self, from: u64, to: u64, bytes: u64) -> impl Iterator<Item = u64> + '_ {
        let first = self.free.around(from).map_or(from, |free| free.start);
        let rooms = self.free.from(first).take_while(move |free| free.start < to);
        rooms.filter(move |free| free.bytes >= bytes).flat_map(move |free| {
            let group = self.group_start(free.start.max(from));
            (group..free.end().min(to)).step_by(self.group_bytes as usize)
        })
    }

    fn find(&self, request: &Request) -> Option<Extent> {
        let chunk = if request.is_log { None } else { self.chunk(request) };
        if chunk.is_some() {
            return chunk;
        }
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
