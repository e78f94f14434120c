//! The superblock: what the device is, and where its parts are.
//!
//! It is written when the device is formatted and never changes; copies stand at fixed places, so
//! that any one is found without the others. See `docs/format/direct.md`.

use crate::extent::Extent;
use crate::port::{Port, Unread};
use base::checksum::hash64_seeded;
use base::coding::{Reader, push_bytes};
use base::{Cause, Error, ErrorKind, Result};
use media::Geometry;
use media::block::Overwrite;

const MAGIC: [u8; 8] = *b"SHNGLDEV";
/// The version of stores that are formatted now.
pub const VERSION: u32 = 3;

/// The oldest version that is read and written.
const VERSION_MIN: u32 = 1;

const HASH_SEED: u64 = 0x5348_4e47_4c44_4556;

/// A metadata area is a 64th of the device, at least this.
const AREA_BYTES_MIN: u64 = 64 << 10;

/// At most this, or the [`AREA_SHARE_MIN`]th part of the device, whichever is more.
const AREA_BYTES_MAX: u64 = 16 << 20;

/// This part of the device takes the names and places of a device full of tables of 40 MiB in
/// pieces of 8 MiB. It is not more because an opening reads both areas.
const AREA_SHARE_MIN: u64 = 32_768;

/// Maximum bytes of an area. Before version 3 large devices had no more than others.
fn area_bytes_max(capacity_bytes: u64, version: u32) -> u64 {
    let share = if version >= 3 { capacity_bytes / AREA_SHARE_MIN } else { 0 };
    AREA_BYTES_MAX.max(share)
}

/// What a superblock says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The version of the format, which stays as long as the store.
    pub version: u32,
    /// Identifies everything that belongs to this store on this device.
    pub store: u64,
    /// The placement.
    pub placement: String,
    /// Its unit: see [`crate::placement::Ground`].
    pub unit_bytes: u64,
    /// The sector with which the device was formatted.
    pub sector_bytes: u32,
    /// The capacity with which the device was formatted.
    pub capacity_bytes: u64,
}

impl Superblock {
    /// A block behind each snapshot of metadata says that it was flushed.
    pub fn confirms_snapshots(&self) -> bool {
        self.version >= 2
    }

    /// One sector.
    pub fn encode(&self) -> Vec<u8> {
        let mut sector = MAGIC.to_vec();
        sector.extend(self.version.to_le_bytes());
        sector.extend(self.sector_bytes.to_le_bytes());
        sector.extend(self.capacity_bytes.to_le_bytes());
        sector.extend(self.store.to_le_bytes());
        sector.extend(self.unit_bytes.to_le_bytes());
        push_bytes(&mut sector, self.placement.as_bytes());
        sector.resize(self.sector_bytes as usize - 8, 0);
        sector.extend(hash64_seeded(&sector, HASH_SEED).to_le_bytes());
        sector
    }

    /// `Ok(None)`: no superblock, or a damaged one. `Incompatible`: a newer version's.
    fn decode(sector: &[u8]) -> Result<Option<Superblock>> {
        let Some((body, hash)) = sector.split_last_chunk::<8>() else { return Ok(None) };
        let mut reader = Reader::new(body);
        let is_ours = reader.take(MAGIC.len()) == Some(&MAGIC[..]);
        if !is_ours || hash64_seeded(body, HASH_SEED) != u64::from_le_bytes(*hash) {
            return Ok(None);
        }
        let version = reader.u32().unwrap_or(0);
        if !(VERSION_MIN..=VERSION).contains(&version) {
            let message = format!(
                "the device was formatted with version {version} of the direct format; this \
                 program knows versions {VERSION_MIN} to {VERSION}"
            );
            return Err(Error::new(ErrorKind::Incompatible, message));
        }
        let mut decoded = || {
            Some(Superblock {
                version,
                sector_bytes: reader.u32()?,
                capacity_bytes: reader.u64()?,
                store: reader.u64()?,
                unit_bytes: reader.u64()?,
                placement: String::from_utf8(reader.bytes()?.to_vec()).ok()?,
            })
        };
        Ok(decoded())
    }
}

/// Where things are on a device of some geometry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Copies of the superblock that are written once.
    pub fixed_copies: Vec<u64>,
    /// Two areas for metadata, used in turn; each begins with a copy of the superblock.
    pub areas: [Extent; 2],
    /// Where files lie.
    pub data: Extent,
}

impl Places {
    /// Of a store of this version. `NoSpace` if the device is too small.
    pub fn of(geometry: &Geometry, version: u32) -> Result<Places> {
        let sector_bytes = u64::from(geometry.sector_bytes);
        let area_bytes_max = area_bytes_max(geometry.capacity_bytes, version);
        let places = match geometry.zones {
            Some(zones) => zoned(geometry.capacity_bytes, zones, sector_bytes, area_bytes_max),
            None => plain(geometry, sector_bytes, area_bytes_max),
        };
        places.ok_or_else(|| {
            let message = format!(
                "a device of {} bytes is too small to be formatted",
                geometry.capacity_bytes
            );
            Error::new(ErrorKind::NoSpace, message)
        })
    }
}

/// Superblock, area, guard, superblock copy in the next area, area, guard, data, guard, superblock.
fn plain(geometry: &Geometry, sector_bytes: u64, area_bytes_max: u64) -> Option<Places> {
    let guard_bytes = match geometry.overwrite {
        Overwrite::DestroysDownstream { damage_bytes } => damage_bytes,
        _ => 0,
    }
    .next_multiple_of(sector_bytes);
    let area_bytes = (geometry.capacity_bytes / 64).clamp(AREA_BYTES_MIN, area_bytes_max);
    let area_bytes = area_bytes.next_multiple_of(sector_bytes);
    let first = Extent { start: sector_bytes, bytes: area_bytes };
    let second = Extent { start: first.end() + guard_bytes, bytes: area_bytes };
    let last_copy = geometry.capacity_bytes.checked_sub(sector_bytes)?;
    let data = Extent::between(second.end() + guard_bytes, last_copy.checked_sub(guard_bytes)?);
    (data.bytes >= AREA_BYTES_MIN).then(|| Places {
        fixed_copies: vec![0, last_copy],
        areas: [first, second],
        data,
    })
}

/// Areas in conventional zones, or, without those, two zones for them.
fn zoned(
    capacity: u64,
    zones: media::block::ZoneGeometry,
    sector_bytes: u64,
    area_bytes_max: u64,
) -> Option<Places> {
    let zone_bytes = zones.zone_bytes;
    let conventional = u64::from(zones.conventional_zones);
    let count = capacity / zone_bytes.max(1);
    if zone_bytes < AREA_BYTES_MIN || count < conventional.max(2) + 3 {
        return None;
    }
    let data_zone = if conventional > 0 { conventional } else { 2 };
    let data = Extent::between(data_zone * zone_bytes, count * zone_bytes);
    if conventional == 0 {
        let zone = |index: u64| Extent { start: index * zone_bytes, bytes: zone_bytes };
        return Some(Places { fixed_copies: Vec::new(), areas: [zone(0), zone(1)], data });
    }
    let room = (conventional * zone_bytes - sector_bytes) / 2;
    let area_bytes = room.min(area_bytes_max);
    let area_bytes = area_bytes - area_bytes % sector_bytes;
    let first = Extent { start: sector_bytes, bytes: area_bytes };
    let second = Extent { start: first.end(), bytes: area_bytes };
    Some(Places { fixed_copies: vec![0], areas: [first, second], data })
}

/// Finds the superblock by any of its copies. `Incompatible` where there is none.
pub fn find(port: &Port) -> Result<Superblock> {
    let message = "no superblock was found: this file or disk was not formatted as a store";
    let none = || Error::new(ErrorKind::Incompatible, message).in_file(port.describe());
    search(port)?.ok_or_else(none)
}

/// The superblock, by any of its copies; `None` on a device that holds no store. An error where a
/// store is, or may be, that cannot be opened; `Io` if no copy is good and one cannot be read.
pub fn search(port: &Port) -> Result<Option<Superblock>> {
    let geometry = port.geometry();
    let mut sector = vec![0; geometry.sector_bytes as usize];
    let (mut damaged, mut unread) = (None, Unread::default());
    for place in copies_of_any_version(&geometry) {
        unread.extend(port.salvage(place, &mut sector, Cause::Recovery)?);
        let decoded = Superblock::decode(&sector);
        let Some(found) = decoded.map_err(|error| error.in_file(port.describe()))? else {
            if sector.starts_with(&MAGIC) {
                damaged.get_or_insert(place);
            }
            continue;
        };
        if (found.sector_bytes, found.capacity_bytes)
            != (geometry.sector_bytes, geometry.capacity_bytes)
        {
            let message = format!(
                "the device was formatted with {} bytes in sectors of {}, it has {} in those of {}",
                found.capacity_bytes,
                found.sector_bytes,
                geometry.capacity_bytes,
                geometry.sector_bytes
            );
            return Err(Error::new(ErrorKind::Incompatible, message).in_file(port.describe()));
        }
        return Ok(Some(found));
    }
    if let Some(error) = unread.error {
        let message = format!("no copy of the superblock can be read, or is good: {error}");
        return Err(Error::new(ErrorKind::Io, message).in_file(port.describe()));
    }
    damaged.map_or(Ok(None), |place| {
        let message = "every copy of the superblock is damaged, or the device had sectors of \
                       another size when it was formatted";
        Err(Error::corruption(port.describe(), place, message))
    })
}

/// All places at which a copy stands.
pub fn copies(places: &Places) -> Vec<u64> {
    let mut copies = places.fixed_copies.clone();
    copies.extend(places.areas.map(|area| area.start));
    copies
}

/// Where copies stand, whatever the version; those of the present one first. None on a device that
/// is smaller than the smallest store: it was never formatted.
fn copies_of_any_version(geometry: &Geometry) -> Vec<u64> {
    let mut places = Vec::new();
    for version in (VERSION_MIN..=VERSION).rev() {
        let copies = Places::of(geometry, version).map_or(Vec::new(), |places| copies(&places));
        let more: Vec<u64> = copies.into_iter().filter(|place| !places.contains(place)).collect();
        places.extend(more);
    }
    places
}

/// Places at which no valid copy stands.
pub fn damaged_copies(port: &Port, expected: &Superblock) -> Result<Vec<u64>> {
    let mut damaged = Vec::new();
    let mut sector = vec![0; port.sector_bytes() as usize];
    for place in copies(&Places::of(&port.geometry(), expected.version)?) {
        port.salvage(place, &mut sector, Cause::Check)?;
        if Superblock::decode(&sector)?.as_ref() != Some(expected) {
            damaged.push(place);
        }
    }
    Ok(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Catalogue, FileRecord, Part, Record};
    use base::FileId;
    use media::FileName;

    fn area_bytes(capacity_bytes: u64, version: u32) -> u64 {
        let overwrite = Overwrite::InPlace;
        let geometry = Geometry {
            sector_bytes: 4096,
            atomic_bytes: 4096,
            capacity_bytes,
            overwrite,
            band_bytes: 0,
            zones: None,
        };
        Places::of(&geometry, version).unwrap().areas[0].bytes
    }

    /// A disk of any size took 26,000 of these tables, 1 TB.
    #[test]
    fn a_large_disk_takes_as_many_tables_as_it_has_space_for() {
        for capacity_bytes in [4 << 40, 16 << 40] {
            let mut catalogue = Catalogue::default();
            let part =
                |i: u64| Part { start: i << 23, bytes: 8 << 20, logical: i << 23, generation: 0 };
            for number in 0..capacity_bytes / (40 << 20) {
                let (name, bytes) = (FileName::table(FileId(number)), 40 << 20);
                let parts = (0..5).map(part).collect();
                let file = FileRecord { number, name, is_log: false, bytes, parts };
                catalogue.apply(&Record::File(file));
            }
            assert!(catalogue.has_room(area_bytes(capacity_bytes, VERSION), true));
            assert!(!catalogue.has_room(area_bytes(capacity_bytes, 2), true));
        }
    }

    #[test]
    fn only_large_devices_of_the_present_version_have_large_areas() {
        for (capacity_bytes, area) in [(1 << 28, 4 << 20), (1 << 34, 16 << 20), (1 << 39, 16 << 20)]
        {
            assert_eq!(
                (area_bytes(capacity_bytes, 2), area_bytes(capacity_bytes, 3)),
                (area, area)
            );
        }
        assert_eq!((area_bytes(4 << 40, 2), area_bytes(4 << 40, 3)), (16 << 20, 128 << 20));
    }
}
