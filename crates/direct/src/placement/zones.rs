//! `zones`: a host-managed zoned medium: writes at write pointers, resets of empty zones only.
//!
//! - An open extent has its zone for itself, so that several files are written at once. When it is
//!   closed, the next file goes on at the write pointer.
//! - A zone without a live byte is reset before it is written again; no other zone ever is.
//! - Files of equal lifetime or group fill one zone where they can, so that zones die whole.
//! - One empty zone is kept back, so that live files of the zone with the most garbage can be
//!   moved when no zone is empty otherwise.
//! - When too many zones would be open, the partly written one with the least space is finished.

use super::{Descriptor, Ground, Placement, Request, ZoneCommand};
use crate::extent::Extent;
use media::Geometry;
use media::block::{Overwrite, Zone, ZoneState};

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "zones",
    summary: "a zoned disk: sequential zones, resets of empty zones, space won back by copying",
    help: "Writes each zone from its start on and resets it when nothing in it is needed. When \
           zones are full of garbage among live bytes, live bytes are copied to a zone kept back; \
           these bytes are counted as `reclaim`. For zoned media.",
    refuses,
    make: |ground| Box::new(Zones::new(ground)),
};

fn refuses(geometry: &Geometry) -> Option<&'static str> {
    (geometry.overwrite != Overwrite::AtWritePointer || geometry.zones.is_none())
        .then_some("it has no zones")
}

#[derive(Clone, Copy, Debug, Default)]
struct ZoneUse {
    /// Bytes before the write pointer.
    written_bytes: u64,
    /// Bytes of them that are allocated.
    live_bytes: u64,
    is_held: bool,
    group: Option<u64>,
}

impl ZoneUse {
    fn is_empty(&self) -> bool {
        self.written_bytes == 0 && !self.is_held
    }
}

struct Zones {
    first: u64,
    zone_bytes: u64,
    open_zones_max: usize,
    zones: Vec<ZoneUse>,
    commands: Vec<ZoneCommand>,
}

impl Zones {
    fn new(ground: &Ground) -> Zones {
        let zones = ground.geometry.zones;
        let zone_bytes = zones.map_or(ground.data.bytes.max(1), |zones| zones.zone_bytes);
        let count = ground.data.bytes / zone_bytes;
        // Metadata in sequential zones keeps each of them open.
        let metadata_zones = zones.map_or(0, |zones| {
            (ground.data.start / zone_bytes).saturating_sub(u64::from(zones.conventional_zones))
        });
        let open_zones_max = zones.map_or(1, |zones| zones.open_zones_max as usize);
        Zones {
            first: ground.data.start,
            zone_bytes,
            open_zones_max: open_zones_max.saturating_sub(metadata_zones as usize).max(1),
            zones: vec![ZoneUse::default(); count as usize],
            commands: Vec::new(),
        }
    }

    fn zone_of(&self, at: u64) -> Option<usize> {
        let zone = at.checked_sub(self.first)? / self.zone_bytes;
        usize::try_from(zone).ok().filter(|zone| *zone < self.zones.len())
    }

    fn start(&self, zone: usize) -> u64 {
        self.first + zone as u64 * self.zone_bytes
    }

    fn range(&self, zone: usize) -> Extent {
        Extent { start: self.start(zone), bytes: self.zone_bytes }
    }

    fn room(&self, zone: usize) -> u64 {
        self.zone_bytes.saturating_sub(self.zones[zone].written_bytes)
    }

    /// Resets the zone if nothing in it is needed.
    fn settle(&mut self, zone: usize) {
        let state = self.zones[zone];
        if state.live_bytes == 0 && state.written_bytes > 0 && !state.is_held {
            self.zones[zone] = ZoneUse::default();
            self.commands.push(ZoneCommand::Reset(self.start(zone)));
        }
    }

    /// A partly written zone with space for the request: of its group first, then the fullest.
    fn partly_written(&self, request: &Request) -> Option<usize> {
        let fits = |zone: &usize| {
            let state = &self.zones[*zone];
            !state.is_held
                && state.written_bytes > 0
                && !self.range(*zone).overlaps(request.avoid)
                && self.room(*zone) >= request.least_bytes
                && (request.is_reclaim
                    || self.room(*zone) >= request.wanted_bytes.min(self.zone_bytes / 8))
        };
        let rank = |zone: &usize| {
            let state = &self.zones[*zone];
            let other_group = request.group.is_none() || state.group != request.group;
            (other_group, self.room(*zone) < request.wanted_bytes, self.room(*zone))
        };
        (0..self.zones.len()).filter(fits).min_by_key(rank)
    }

    /// An empty zone, if one may be taken.
    fn empty(&self, request: &Request) -> Option<usize> {
        let mut empty = (0..self.zones.len()).filter(|zone| self.zones[*zone].is_empty());
        let first = empty.next()?;
        (request.is_reclaim || empty.next().is_some()).then_some(first)
    }

    /// Finishes a partly written zone if one more would be too many.
    fn limit_open(&mut self) {
        let is_open = |zone: &usize| {
            let state = &self.zones[*zone];
            state.is_held || (state.written_bytes > 0 && self.room(*zone) > 0)
        };
        let open = (0..self.zones.len()).filter(is_open).count();
        let idle = (0..self.zones.len()).filter(is_open).filter(|zone| !self.zones[*zone].is_held);
        if open >= self.open_zones_max
            && let Some(fullest) = idle.min_by_key(|zone| self.room(*zone))
        {
            self.zones[fullest].written_bytes = self.zone_bytes;
            self.commands.push(ZoneCommand::Finish(self.start(fullest)));
        }
    }
}

impl Placement for Zones {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn allocate(&mut self, request: &Request) -> Option<Extent> {
        if request.least_bytes > self.zone_bytes {
            return None;
        }
        let partly = self.partly_written(request);
        let zone = match partly.or_else(|| self.empty(request)) {
            Some(zone) => zone,
            // No fresh zone: the last bytes of one that was passed over are better than nothing.
            None => self.partly_written(&Request { is_reclaim: true, ..*request })?,
        };
        if self.zones[zone].is_empty() {
            self.limit_open();
        }
        let bytes = request.wanted_bytes.min(self.room(zone));
        let start = self.start(zone) + self.zones[zone].written_bytes;
        let state = &mut self.zones[zone];
        state.is_held = true;
        state.live_bytes += bytes;
        state.group = request.group.or(state.group);
        Some(Extent { start, bytes })
    }

    fn close(&mut self, extent: Extent, used_bytes: u64) {
        let Some(zone) = self.zone_of(extent.start) else { return };
        let written = extent.start - self.start(zone) + used_bytes;
        let state = &mut self.zones[zone];
        state.is_held = false;
        state.live_bytes = state.live_bytes.saturating_sub(extent.bytes - used_bytes);
        state.written_bytes = state.written_bytes.max(written);
        self.settle(zone);
    }

    fn free(&mut self, extent: Extent) {
        let Some(zone) = self.zone_of(extent.start) else { return };
        let live_bytes = &mut self.zones[zone].live_bytes;
        *live_bytes = live_bytes.saturating_sub(extent.bytes);
        self.settle(zone);
    }

    fn joins(&self, whole: Extent) -> bool {
        self.zone_of(whole.start).is_some_and(|zone| self.zone_of(whole.end() - 1) == Some(zone))
    }

    fn adopt(&mut self, extent: Extent) -> bool {
        let Some(zone) = self.zone_of(extent.start) else { return false };
        let state = &mut self.zones[zone];
        let end = extent.end() - (self.first + zone as u64 * self.zone_bytes);
        if end > self.zone_bytes || state.live_bytes + extent.bytes > self.zone_bytes {
            return false;
        }
        state.live_bytes += extent.bytes;
        state.written_bytes = state.written_bytes.max(end);
        true
    }

    fn free_extents(&self) -> Vec<Extent> {
        let rest = |zone: usize| {
            let start = self.start(zone);
            Extent::between(start + self.zones[zone].written_bytes, start + self.zone_bytes)
        };
        (0..self.zones.len()).map(rest).filter(|rest| rest.bytes > 0).collect()
    }

    fn free_bytes(&self) -> u64 {
        // Garbage among live bytes counts: it is won back when it is needed. The reserve does not.
        let live: u64 = self.zones.iter().map(|zone| zone.live_bytes).sum();
        let all = self.zones.len() as u64 * self.zone_bytes;
        all.saturating_sub(live).saturating_sub(self.zone_bytes)
    }

    /// Whole zones: a partly written one takes no log.
    fn spare_bytes(&self) -> u64 {
        let empty = self.zones.iter().filter(|zone| zone.is_empty()).count() as u64;
        empty.saturating_sub(1) * self.zone_bytes
    }

    fn spare_bytes_after(&self, request: &Request) -> u64 {
        let taken_bytes = if self.partly_written(request).is_some() { 0 } else { self.zone_bytes };
        self.spare_bytes().saturating_sub(taken_bytes)
    }

    /// A log, a manifest and a table are written at a time.
    fn reserve_bytes_min(&self) -> u64 {
        3 * self.zone_bytes
    }

    fn observe(&mut self, zone: &Zone) {
        let Some(index) = self.zone_of(zone.start) else { return };
        let written = zone.write_pointer.saturating_sub(zone.start).min(self.zone_bytes);
        let state = &mut self.zones[index];
        if !state.is_held {
            let is_full = zone.state == ZoneState::Full;
            state.written_bytes = if is_full { self.zone_bytes } else { written };
            self.settle(index);
        }
    }

    fn commands(&mut self) -> Vec<ZoneCommand> {
        std::mem::take(&mut self.commands)
    }

    fn victims(&self) -> Vec<(Extent, u64)> {
        let garbage = |zone: usize| self.zones[zone].written_bytes - self.zones[zone].live_bytes;
        let is_victim = |zone: &usize| {
            let state = &self.zones[*zone];
            !state.is_held && state.live_bytes > 0 && garbage(*zone) > 0
        };
        let mut victims: Vec<usize> = (0..self.zones.len()).filter(is_victim).collect();
        victims.sort_by_key(|zone| std::cmp::Reverse(garbage(*zone)));
        victims.into_iter().map(|zone| (self.range(zone), self.zones[zone].live_bytes)).collect()
    }
}
