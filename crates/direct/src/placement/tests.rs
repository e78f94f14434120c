//! Placements against a plain list of extents: nothing overlaps, guards are kept, nothing leaks.

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
    let geometry = Geometry { sector_bytes: 512, capacity_bytes, overwrite, band_bytes: 0, zones };
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
        if self.ground.geometry.zones.is_some() {
            let zone = (extent.start / ZONE) as usize;
            assert_eq!(extent.start, self.write_pointers[zone], "not at the write pointer");
            assert!(extent.end() <= (zone as u64 + 1) * ZONE, "{extent:?} leaves its zone");
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

    fn obey(&mut self, commands: Vec<ZoneCommand>) {
        for command in commands {
            match command {
                ZoneCommand::Reset(start) => {
                    let zone = Extent { start, bytes: ZONE };
                    assert!(self.used.iter().all(|(used, _)| !used.overlaps(zone)), "{start}");
                    self.write_pointers[(start / ZONE) as usize] = start;
                }
                ZoneCommand::Finish(start) => {
                    self.write_pointers[(start / ZONE) as usize] = start + ZONE;
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
                if name == "zones" {
                    let zone = (extent.start / ZONE) as usize;
                    oracle.write_pointers[zone] = extent.start + used_bytes;
                }
                oracle.used.remove(pick);
                if used_bytes > 0 {
                    oracle.used.push((Extent { start: extent.start, bytes: used_bytes }, false));
                }
                placement.close(extent, used_bytes);
            }
            (1, Some((extent, false))) => {
                oracle.used.remove(pick);
                placement.free(extent);
            }
            _ => {
                let wanted_bytes = (random.below(100) + 1) * SECTOR;
                let request = Request {
                    wanted_bytes,
                    now_bytes: wanted_bytes,
                    least_bytes: SECTOR,
                    before_bytes: random.below(200) * SECTOR,
                    goal: oracle.used.get(pick).map(|(extent, _)| extent.end()),
                    group: Some(random.below(4)),
                    is_log: random.one_in(4),
                    ..Request::default()
                };
                let found = placement.allocate(&request);
                oracle.obey(placement.commands());
                if let Some(extent) = found {
                    oracle.check_new(extent);
                    oracle.used.push((extent, true));
                }
            }
        }
        oracle.obey(placement.commands());
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

/// A group of ext4 has 128 MiB, here as many sectors, so that tables have 5 MiB.
#[test]
fn tables_lie_on_ext4_as_its_buddies_do() {
    let ground = ground("ext4-like");
    let mut placement = make("ext4-like", &ground);
    let mut table = || {
        let mut extents = Vec::new();
        for (before, now) in [(0, 5), (4, 1)] {
            let goal = extents.last().map(|extent: &Extent| extent.end());
            let (now_bytes, before_bytes) = (now * SECTOR, before * SECTOR);
            let request = Request {
                wanted_bytes: now_bytes,
                now_bytes,
                least_bytes: SECTOR,
                before_bytes,
                goal,
                ..Request::default()
            };
            extents.push(placement.allocate(&request).unwrap());
        }
        let sectors = |extent: &Extent| (extent.bytes / SECTOR, (extent.start - ZONE) / SECTOR);
        extents.iter().map(sectors).collect::<Vec<_>>()
    };
    assert_eq!(table(), [(4, 0), (1, 4)], "a chunk, and the rest behind it");
    assert_eq!(table(), [(4, 8), (1, 12)], "behind the rest is no buddy of a chunk");
    assert_eq!(table(), [(4, 16), (1, 20)]);
    assert_eq!(table(), [(4, 24), (1, 28)], "half of the buddy that the last one left");
    for (at, sectors) in [(8, 4), (12, 1)] {
        placement.free(Extent { start: ZONE + at * SECTOR, bytes: sectors * SECTOR });
    }
    let small = Request {
        wanted_bytes: SECTOR,
        now_bytes: SECTOR,
        least_bytes: SECTOR,
        ..Request::default()
    };
    let found = placement.allocate(&small).unwrap();
    assert_eq!((found.start - ZONE) / SECTOR, 5, "the smallest buddy that there is");
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
fn dynamic_bands_insert_with_one_guard_for_two_neighbours() {
    // The example of the paper's figure 7, in units of the guard.
    let ground = Ground { unit_bytes: GUARD, ..ground("dynamic-bands") };
    let mut bands = make("dynamic-bands", &ground);
    let put = |bands: &mut Box<dyn Placement>, units: u64| {
        let (wanted_bytes, least_bytes) = (units * GUARD, units * GUARD);
        let request = Request { wanted_bytes, least_bytes, ..Request::default() };
        let extent = bands.allocate(&request).unwrap();
        bands.close(extent, extent.bytes);
        extent.start
    };
    let base = ground.data.start;
    let at = |unit: u64| base + unit * GUARD;
    assert_eq!([put(&mut bands, 4), put(&mut bands, 5)], [at(0), at(4)], "appended side by side");
    bands.free(Extent { start: at(0), bytes: 4 * GUARD });
    assert_eq!(put(&mut bands, 4), at(9), "no guard would be left before valid data");
    assert_eq!(put(&mut bands, 1), at(0), "an insert splits");
    assert_eq!(put(&mut bands, 2), at(1), "the second needs no guard before itself");
    assert_eq!(put(&mut bands, 1), at(13), "what is left is the guard");
    bands.free(Extent { start: at(4), bytes: 5 * GUARD });
    assert_eq!(bands.free_extents()[0], Extent { start: at(3), bytes: 6 * GUARD }, "coalesced");
}

#[test]
fn dynamic_bands_name_what_lies_between_fragments() {
    let ground = Ground { unit_bytes: GUARD, ..ground("dynamic-bands") };
    let mut bands = make("dynamic-bands:fragments=0.1", &ground);
    let put = |bands: &mut Box<dyn Placement>, units: u64, avoid: Extent| {
        let (wanted_bytes, least_bytes) = (units * GUARD, units * GUARD);
        let request = Request { wanted_bytes, least_bytes, avoid, ..Request::default() };
        let extent = bands.allocate(&request).unwrap();
        bands.close(extent, extent.bytes);
        extent
    };
    let nowhere = Extent::default();
    let places: Vec<Extent> =
        [9, 4, 1, 3, 20, 2, 9].map(|units| put(&mut bands, units, nowhere)).into();
    assert!(!bands.is_fragmented(), "there are no holes");
    bands.free(places[1]);
    assert!(bands.victims().is_empty(), "a hole alone wins nothing");
    bands.free(places[3]);
    let around = Extent::between(places[1].start, places[3].end());
    assert_eq!(bands.victims(), [(around, GUARD)], "holes of 4 and 3 around a file of 1");
    assert!(bands.is_fragmented(), "7 of 48");
    // A file of three would fit where one of the holes is.
    let moved = put(&mut bands, 1, around);
    assert!(!moved.overlaps(around), "{moved:?}");
    bands.free(places[2]);
    assert_eq!(bands.free_extents()[0], around, "one hole");
    assert!(bands.victims().is_empty(), "the rest stays for one hole");
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
