//! Placements against a plain list of extents: nothing overlaps, guards are kept, nothing leaks.

mod scenario;

use super::*;
use crate::extent::FreeMap;
use base::ErrorKind;
use base::random::Random;
use media::block::ZoneGeometry;

const SECTOR: u64 = 512;
const ZONE: u64 = 64 << 10;
const GUARD: u64 = 4 << 10;

fn ground(name: &str) -> Ground {
    let (overwrite, zones) = match name {
        "zones" => {
            let zones = ZoneGeometry { zone_bytes: ZONE, conventional_zones: 1, open_zones_max: 6 };
            (Overwrite::AtWritePointer, Some(zones))
        }
        "ext4-like" => (Overwrite::InPlace, None),
        _ => (Overwrite::DestroysDownstream { damage_bytes: GUARD }, None),
    };
    let capacity_bytes = 33 * ZONE;
    let geometry = Geometry {
        sector_bytes: 512,
        atomic_bytes: 512,
        capacity_bytes,
        overwrite,
        band_bytes: 0,
        zones,
    };
    let data = Extent::between(ZONE, capacity_bytes);
    Ground { geometry, data, unit_bytes: ZONE, fragment_share_max: None }
}

fn make(text: &str, ground: &Ground) -> Box<dyn Placement> {
    find(text, &ground.geometry).unwrap().make(ground.geometry, ground.data, ground.unit_bytes)
}

/// What a placement promised, kept in the plainest way.
struct Oracle {
    ground: Ground,
    /// Extents in use, and whether they are open.
    used: Vec<(Extent, bool)>,
    write_pointers: Vec<u64>,
}

impl Oracle {
    fn check_new(&self, extent: Extent) {
        assert!(extent.bytes > 0 && self.ground.data.contains(extent), "{extent:?}");
        assert!(extent.start.is_multiple_of(SECTOR) && extent.bytes.is_multiple_of(SECTOR));
        for (other, _) in &self.used {
            assert!(!other.overlaps(extent), "{extent:?} overlaps {other:?}");
        }
        if let Some(zones) = self.ground.geometry.zones {
            let zone = (extent.start / zones.zone_bytes) as usize;
            assert_eq!(extent.start, self.write_pointers[zone], "not at the write pointer");
            let end = (zone as u64 + 1) * zones.zone_bytes;
            assert!(extent.end() <= end, "{extent:?} leaves its zone");
        }
    }

    /// The writer of an open extent is done.
    fn close(&mut self, extent: Extent, used_bytes: u64) {
        if let Some(zones) = self.ground.geometry.zones {
            let zone = (extent.start / zones.zone_bytes) as usize;
            self.write_pointers[zone] = extent.start + used_bytes;
        }
        self.used.retain(|(other, _)| *other != extent);
        if used_bytes > 0 {
            self.used.push((Extent { start: extent.start, bytes: used_bytes }, false));
        }
    }

    /// Nothing that an open extent may still be written into reaches a used one.
    fn check_guards(&self) {
        let guard_bytes = self.ground.guard_bytes();
        for (open, _) in self.used.iter().filter(|(_, is_open)| *is_open) {
            let reach = Extent { start: open.end(), bytes: guard_bytes };
            let hit = self.used.iter().find(|(other, _)| guard_bytes > 0 && other.overlaps(reach));
            assert_eq!(hit, None, "{open:?} may destroy it");
        }
    }

    fn obey(&mut self, commands: &[ZoneCommand]) {
        let bytes = self.ground.geometry.zones.map_or(1, |zones| zones.zone_bytes);
        for &command in commands {
            match command {
                ZoneCommand::Reset(start) => {
                    let zone = Extent { start, bytes };
                    assert!(self.used.iter().all(|(used, _)| !used.overlaps(zone)), "{start}");
                    self.write_pointers[(start / bytes) as usize] = start;
                }
                ZoneCommand::Finish(start) => {
                    self.write_pointers[(start / bytes) as usize] = start + bytes;
                }
            }
        }
    }
}

fn history(name: &str, seed: u64) {
    let ground = ground(name);
    let mut placement = make(name, &ground);
    let before = (placement.free_bytes(), placement.free_extents());
    let write_pointers = (0..33).map(|zone| zone * ZONE).collect();
    let mut oracle = Oracle { ground, used: Vec::new(), write_pointers };
    let mut random = Random::new(seed);
    for _ in 0..400 {
        let pick = random.below(oracle.used.len().max(1) as u64) as usize;
        match (random.below(3), oracle.used.get(pick).copied()) {
            (0, Some((extent, true))) => {
                let used_bytes = random.below(extent.bytes / SECTOR + 1) * SECTOR;
                oracle.close(extent, used_bytes);
                placement.close(extent, used_bytes);
            }
            (1, Some((extent, false))) => {
                oracle.used.remove(pick);
                placement.free(extent);
            }
            _ => {
                let wanted_bytes = (random.below(100) + 1) * SECTOR;
                let victims = if random.one_in(4) { placement.victims() } else { Vec::new() };
                let victim = victims.first().map(|(range, _)| *range);
                let request = Request {
                    wanted_bytes,
                    now_bytes: wanted_bytes,
                    least_bytes: SECTOR,
                    before_bytes: random.below(200) * SECTOR,
                    goal: oracle.used.get(pick).map(|(extent, _)| extent.end()),
                    group: Some(random.below(4)),
                    is_log: random.one_in(4),
                    is_reclaim: victim.is_some(),
                    avoid: victim.unwrap_or_default(),
                };
                let found = placement.allocate(&request);
                oracle.obey(&placement.commands());
                if let Some(extent) = found {
                    assert!(!extent.overlaps(request.avoid), "{name} moves into what it empties");
                    oracle.check_new(extent);
                    oracle.used.push((extent, true));
                }
            }
        }
        oracle.obey(&placement.commands());
        oracle.check_guards();
    }
    for (extent, is_open) in std::mem::take(&mut oracle.used) {
        if is_open { placement.close(extent, 0) } else { placement.free(extent) }
    }
    assert_eq!(placement.free_bytes(), before.0, "{name} leaks, seed {seed}");
    if name != "zones" {
        assert_eq!(placement.free_extents(), before.1, "{name} does not coalesce, seed {seed}");
    }
}

#[test]
fn no_placement_overlaps_breaks_a_guard_or_leaks() {
    for descriptor in registry() {
        for seed in 0..60 {
            history(descriptor.name, seed);
        }
    }
}

/// Each segment of a table that grew took a band of its own.
#[test]
fn a_file_goes_on_in_the_rest_of_its_band() {
    let ground = ground("band-per-table");
    let mut bands = make("band-per-table", &ground);
    let request =
        |goal| Request { wanted_bytes: SECTOR, least_bytes: SECTOR, goal, ..Request::default() };
    let first = bands.allocate(&request(None)).unwrap();
    bands.close(first, SECTOR);
    let other = bands.allocate(&request(None)).unwrap();
    assert!(other.start >= first.end());
    bands.close(other, SECTOR);
    let second = bands.allocate(&request(Some(first.start + SECTOR))).unwrap();
    assert_eq!(second, Extent::between(first.start + SECTOR, first.end()));
    bands.close(second, second.bytes);
    let third = bands.allocate(&request(Some(first.end()))).unwrap();
    assert!(third.start >= other.end(), "a full band is left");
    bands.close(third, 0);
    let free = bands.free_bytes();
    bands.free(Extent { start: first.start, bytes: SECTOR });
    assert_eq!(bands.free_bytes(), free, "a part of the file is there");
    bands.free(second);
    assert_eq!(bands.free_bytes(), free + first.bytes);
}

#[test]
fn the_registry_refuses_media_that_a_placement_cannot_serve() {
    let kind = |name: &str, on: &str| find(name, &ground(on).geometry).err().map(|e| e.kind());
    assert_eq!(kind("ext4-like", "dynamic-bands"), Some(ErrorKind::Unsupported));
    assert_eq!(kind("ext4-like", "zones"), Some(ErrorKind::Unsupported));
    assert_eq!(kind("zones", "ext4-like"), Some(ErrorKind::Unsupported));
    assert_eq!(kind("dynamic-bands", "ext4-like"), None);
    assert_eq!(kind("none", "zones"), Some(ErrorKind::InvalidArgument));
    assert_eq!(kind("dynamic-bands:fragments=0.05", "dynamic-bands"), None);
    for bad in ["dynamic-bands:fragments=2", "dynamic-bands:holes=0.1", "zones:fragments=0.1"] {
        let medium = bad.split(':').next().unwrap();
        assert_eq!(kind(bad, medium), Some(ErrorKind::InvalidArgument), "{bad}");
    }
}

#[test]
fn the_free_map_agrees_with_a_row_of_sectors() {
    let mut random = Random::new(3);
    let mut map = FreeMap::new(Extent { start: 0, bytes: 64 });
    let mut row = [true; 64];
    for _ in 0..2000 {
        let start = random.below(64) as usize;
        let end = (start + 1 + random.below(10) as usize).min(64);
        let extent = Extent::between(start as u64, end as u64);
        if row[start..end].iter().all(|free| !free) {
            map.give(extent);
            row[start..end].fill(true);
        } else {
            let is_free = row[start..end].iter().all(|free| *free);
            assert_eq!(map.take(extent), is_free);
            if is_free {
                row[start..end].fill(false);
            }
        }
        assert_eq!(map.bytes(), row.iter().filter(|free| **free).count() as u64);
        let extents: Vec<Extent> = map.iter().collect();
        assert!(extents.windows(2).all(|pair| pair[0].end() < pair[1].start), "coalesced");
        assert!(extents.iter().all(|e| (e.start..e.end()).all(|at| row[at as usize])));
    }
}
