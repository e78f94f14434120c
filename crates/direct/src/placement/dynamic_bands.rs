//! `dynamic-bands`: SEALDB's management of a raw shingled disk (papers: SEALDB, III-B and III-C).
//!
//! - Freed extents stand in a list by size class, in steps of a table. A request takes the first of
//!   the smallest class that fits: an *insert*. What it leaves goes back to the list: a *split*.
//!   Neighbours that are free are one: *coalescing*.
//! - An insert needs space for itself and a guard before the next valid byte, `S_free >= S_req +
//!   S_guard`. A guard is free space that is never large enough to be written: it is in no list of
//!   its own, two inserts side by side need one, and it coalesces like everything else.
//! - Where nothing fits, the request is *appended* behind the last valid byte, where nothing
//!   follows and no guard is needed.
//! - *Fragments* are free extents that are smaller than the recent sets: they wait for a neighbour
//!   to go. The conference paper leaves them; its journal version collects them. Here the live
//!   bytes between two free extents are moved where that joins fragments of more bytes: when there
//!   is no space otherwise, and, on request, before they exceed a share.
//!
//! The paper writes a set at once. Here files are open side by side, so a guard also follows an
//! extent as long as it is open; a file whose group's last file is closed goes right behind that
//! one, which makes a set of the files of one merge.

use super::{Descriptor, Ground, Placement, Request};
use crate::extent::{Extent, FreeMap};
use media::Geometry;
use media::block::Overwrite;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The step of size classes: a table of the papers.
const CLASS_BYTES: u64 = 4 << 20;

/// Groups whose last place is remembered.
const GROUPS_MAX: usize = 1024;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "dynamic-bands",
    summary: "SEALDB's bands of varying size on a raw shingled disk: append, insert, guards",
    help: "Appends files behind the valid data, and inserts them into freed space that is larger \
           by a guard region, so that no write destroys valid data behind it and the disk never \
           rewrites anything. Files of one group lie side by side. With `:fragments=0.05` live \
           bytes between holes that no file fits in are moved once these are more than \
           5 % of the space in use; these bytes are counted as `reclaim`. For raw shingled \
           disks, where the geometry says how far a write reaches; works on plain media too, \
           without guards.",
    refuses,
    make: |ground| Box::new(DynamicBands::new(ground)),
};

fn refuses(geometry: &Geometry) -> Option<&'static str> {
    (geometry.overwrite == Overwrite::AtWritePointer)
        .then_some("a zone cannot be written in its middle; use the placement `zones`")
}

struct DynamicBands {
    free: FreeMap,
    /// Starts of free extents by size class.
    classes: BTreeMap<u64, BTreeSet<u64>>,
    data: Extent,
    class_bytes: u64,
    guard_bytes: u64,
    /// Open extents by their end, and whether their sizes say how large files are: those of logs
    /// and of what is moved do not.
    open_ends: BTreeMap<u64, bool>,
    /// Where the last file of a group ends.
    groups: HashMap<u64, u64>,
    /// Mean bytes of the files of late; logs do not count. 0 before the first.
    file_bytes_mean: u64,
    /// See [`Ground::fragment_share_max`].
    fragment_share_max: Option<f64>,
}

/// A file moves the mean of sizes by one part in this many.
const MEAN_FILES: u64 = 16;

/// Bytes that may be moved to win one.
const MOVED_PER_WON_MAX: u64 = 2;

impl DynamicBands {
    fn new(ground: &Ground) -> DynamicBands {
        let mut bands = DynamicBands {
            free: FreeMap::default(),
            classes: BTreeMap::new(),
            data: ground.data,
            class_bytes: ground.unit(CLASS_BYTES),
            guard_bytes: ground.guard_bytes(),
            open_ends: BTreeMap::new(),
            groups: HashMap::new(),
            file_bytes_mean: 0,
            fragment_share_max: ground.fragment_share_max,
        };
        bands.give(ground.data);
        bands
    }

    fn class(&self, bytes: u64) -> u64 {
        bytes / self.class_bytes
    }

    fn list(&mut self, extent: Extent) {
        self.classes.entry(self.class(extent.bytes)).or_default().insert(extent.start);
    }

    fn unlist(&mut self, extent: Extent) {
        let class = self.class(extent.bytes);
        if let Some(starts) = self.classes.get_mut(&class) {
            starts.remove(&extent.start);
            if starts.is_empty() {
                self.classes.remove(&class);
            }
        }
    }

    /// Coalesces `extent` with its free neighbours.
    fn give(&mut self, extent: Extent) {
        if extent.bytes == 0 {
            return;
        }
        for neighbour in [extent.start.checked_sub(1), Some(extent.end())].into_iter().flatten() {
            if let Some(free) = self.free.around(neighbour) {
                self.unlist(free);
            }
        }
        let merged = self.free.give(extent);
        self.list(merged);
    }

    /// Splits `extent` off the free extent it lies in.
    fn take(&mut self, extent: Extent) -> bool {
        let Some(free) = self.free.around(extent.start) else { return false };
        if !self.free.take(extent) {
            return false;
        }
        self.unlist(free);
        for at in [free.start, extent.end()] {
            if let Some(rest) = self.free.around(at).filter(|rest| free.contains(*rest)) {
                self.list(rest);
            }
        }
        true
    }

    /// The part of a free extent that may be written: behind the guard of an open extent before it,
    /// and before the guard of valid data behind it.
    fn writable(&self, free: Extent) -> Extent {
        let reaches = self.open_ends.range(..=free.start).next_back();
        let start = reaches.map_or(free.start, |(end, _)| free.start.max(end + self.guard_bytes));
        let guard_bytes = if free.end() < self.data.end() { self.guard_bytes } else { 0 };
        Extent::between(start, free.end().saturating_sub(guard_bytes))
    }

    /// The writable part, unless it is to be avoided.
    fn room(&self, free: Extent, avoid: Extent) -> Extent {
        let writable = self.writable(free);
        if writable.overlaps(avoid) { Extent::default() } else { writable }
    }

    /// The free space behind the last valid byte, which is not banded yet.
    fn residual(&self) -> Option<Extent> {
        self.free.iter().next_back().filter(|free| free.end() == self.data.end())
    }

    /// The first of the smallest class that fits; not the residual space.
    fn insert(&self, bytes: u64, avoid: Extent) -> Option<Extent> {
        let residual = self.residual().map(|free| free.start);
        let starts = self.classes.range(self.class(bytes)..).flat_map(|(_, starts)| starts);
        let fits = |start: &u64| {
            let room = self.room(self.free.around(*start)?, avoid);
            (room.bytes >= bytes).then_some(Extent { start: room.start, bytes })
        };
        starts.filter(|start| Some(**start) != residual).find_map(fits)
    }

    fn append(&self, bytes: u64, avoid: Extent) -> Option<Extent> {
        let room = self.room(self.residual()?, avoid);
        (room.bytes >= bytes).then_some(Extent { start: room.start, bytes })
    }

    /// Right behind `goal`.
    fn follow(&self, goal: u64, bytes: u64, avoid: Extent) -> Option<Extent> {
        let room = self.room(self.free.around(goal)?, avoid);
        let behind = Extent { start: goal, bytes };
        room.contains(behind).then_some(behind)
    }

    fn find(&self, request: &Request) -> Option<Extent> {
        let (bytes, group) = (request.wanted_bytes, request.group);
        let goal = request.goal.or_else(|| self.groups.get(&group?).copied());
        goal.and_then(|goal| self.follow(goal, bytes, request.avoid))
            .or_else(|| self.insert(bytes, request.avoid))
            .or_else(|| self.append(bytes, request.avoid))
            .or_else(|| self.largest(request))
    }

    /// The largest free extent, when none holds the whole request.
    fn largest(&self, request: &Request) -> Option<Extent> {
        let rooms = self.free.iter().map(|free| self.room(free, request.avoid));
        let room = rooms.max_by_key(|room| room.bytes)?;
        let bytes = room.bytes.min(request.wanted_bytes);
        (bytes >= request.least_bytes && bytes > 0).then_some(Extent { start: room.start, bytes })
    }

    fn is_fragment(&self, free: Extent) -> bool {
        free.bytes < self.file_bytes_mean && free.end() < self.data.end()
    }
}

impl Placement for DynamicBands {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn allocate(&mut self, request: &Request) -> Option<Extent> {
        let found = self.find(request)?;
        if !self.take(found) {
            return None;
        }
        self.open_ends.insert(found.end(), !request.is_log && !request.is_reclaim);
        if let Some(group) = request.group {
            if self.groups.len() >= GROUPS_MAX {
                self.groups.clear();
            }
            self.groups.insert(group, found.end());
        }
        Some(found)
    }

    fn close(&mut self, extent: Extent, used_bytes: u64) {
        if self.open_ends.remove(&extent.end()) == Some(true) {
            self.file_bytes_mean = match self.file_bytes_mean {
                0 => used_bytes,
                before => (before * (MEAN_FILES - 1) + used_bytes) / MEAN_FILES,
            };
        }
        for end in self.groups.values_mut().filter(|end| **end == extent.end()) {
            *end = extent.start + used_bytes;
        }
        self.give(Extent::between(extent.start + used_bytes, extent.end()));
    }

    fn free(&mut self, extent: Extent) {
        self.give(extent);
    }

    fn adopt(&mut self, extent: Extent) -> bool {
        self.take(extent)
    }

    fn free_extents(&self) -> Vec<Extent> {
        self.free.iter().collect()
    }

    fn free_bytes(&self) -> u64 {
        self.free.iter().map(|free| self.writable(free).bytes).sum()
    }

    /// What lies between two free extents, with both, where a fragment is won at a fair price.
    fn victims(&self) -> Vec<(Extent, u64)> {
        let frees: Vec<Extent> = self.free.iter().collect();
        let between = frees.windows(2).filter_map(|pair| {
            let live = Extent::between(pair[0].end(), pair[1].start);
            let fragments = pair.iter().filter(|free| self.is_fragment(**free));
            let won_bytes: u64 = fragments.map(|fragment| fragment.bytes).sum();
            let is_open = self.open_ends.range(live.start..=live.end()).next().is_some();
            let range = Extent::between(pair[0].start, pair[1].end());
            let is_fair = live.bytes < won_bytes * MOVED_PER_WON_MAX;
            let won_per_moved = (won_bytes << 16) / live.bytes.max(1);
            (is_fair && !is_open).then_some((won_per_moved, range, live.bytes))
        });
        let mut victims: Vec<(u64, Extent, u64)> = between.collect();
        victims.sort_by_key(|&(won_per_moved, range, _)| (Reverse(won_per_moved), range.start));
        victims.into_iter().map(|(_, range, live_bytes)| (range, live_bytes)).collect()
    }

    fn is_fragmented(&self) -> bool {
        let Some(share_max) = self.fragment_share_max else { return false };
        let fragments = self.free.iter().filter(|free| self.is_fragment(*free));
        let fragment_bytes: u64 = fragments.map(|fragment| fragment.bytes).sum();
        let end = self.residual().map_or(self.data.end(), |free| free.start);
        fragment_bytes as f64 > share_max * (end - self.data.start) as f64
    }
}
