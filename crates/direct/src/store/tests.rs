//! The store on the device in memory: the contract for every placement.

use super::*;
use base::random::Random;
use media::block::{Overwrite, ZoneGeometry};
use media::conformance;
use media::mem::{MemDevice, PowerLoss};
use std::collections::BTreeMap;

pub(super) const PLACEMENTS: [&str; 6] = [
    "ext4-like",
    "band-per-table",
    "dynamic-bands",
    "dynamic-bands:fragments=0",
    "zones",
    "zones-only",
];

/// Power loss leaves a sector half written, as in a file on a disk of small sectors.
pub(super) const TEARING: &str = "ext4-like-tearing";

/// A device for a placement: what it is meant for.
pub(super) fn device(placement: &str, capacity_bytes: u64) -> Arc<MemDevice> {
    let sector_bytes = if placement == TEARING { 4096 } else { 512 };
    device_of_sectors(placement, capacity_bytes, sector_bytes)
}

fn device_of_sectors(placement: &str, capacity_bytes: u64, sector_bytes: u32) -> Arc<MemDevice> {
    let zones = |conventional_zones| {
        Some(ZoneGeometry { zone_bytes: 1 << 20, conventional_zones, open_zones_max: 8 })
    };
    let (overwrite, band_bytes, zones) = match placement.split(':').next().unwrap_or_default() {
        "zones" => (Overwrite::AtWritePointer, 0, zones(1)),
        "zones-only" => (Overwrite::AtWritePointer, 0, zones(0)),
        "dynamic-bands" => (Overwrite::DestroysDownstream { damage_bytes: 16 << 10 }, 0, None),
        "band-per-table" => (Overwrite::InPlace, 1 << 20, None),
        _ => (Overwrite::InPlace, 0, None),
    };
    let atomic_bytes = if placement == TEARING { 512 } else { sector_bytes };
    let geometry =
        Geometry { sector_bytes, atomic_bytes, capacity_bytes, overwrite, band_bytes, zones };
    Arc::new(MemDevice::new(geometry))
}

pub(super) fn formatted(placement: &str, capacity_bytes: u64) -> Arc<MemDevice> {
    let device = device(placement, capacity_bytes);
    format_in_units(&device, placement, 0);
    device
}

pub(super) fn format_in_units(
    device: &Arc<impl BlockDevice + 'static>,
    placement: &str,
    unit_bytes: u64,
) {
    let options = FormatOptions {
        placement: placement.trim_end_matches("-only").trim_end_matches("-tearing").into(),
        unit_bytes,
        store: 7,
        force: false,
    };
    format(device.clone(), Arc::default(), &options).unwrap();
}

pub(super) fn open(device: &Arc<MemDevice>) -> DirectStore {
    DirectStore::open(device.clone(), Arc::default(), DirectOptions::default()).unwrap()
}

/// Version 2 had smaller metadata areas on large devices; its stores keep them.
#[test]
fn a_large_device_of_an_earlier_version_is_read_and_written() {
    let device = device("ext4-like", 4 << 40);
    let options =
        FormatOptions { placement: "ext4-like".into(), unit_bytes: 0, store: 7, force: false };
    format::format_as(device.clone(), Arc::default(), &options, 2).unwrap();
    for round in 0..2 {
        let store = open(&device);
        put(&store, round, &TABLE, &content(round, 70_000)).unwrap();
        assert_eq!(store.layout().metadata[0].bytes, 16 << 20);
    }
    // Every copy but that at the second area is lost.
    for lost in [0, 512, (4 << 40) - 512] {
        device.write(lost, &[0; 512], Cause::StoreMetadata).unwrap();
    }
    let store = open(&device);
    for round in 0..2 {
        assert!(read(&store, round).unwrap() == content(round, 70_000));
    }
}

#[test]
fn conforms() {
    for placement in PLACEMENTS {
        // In small units the files of the suite lie in many extents.
        for (sector_bytes, unit_bytes) in [(512, 0), (4096, 64 << 10)] {
            conformance::check(&|| {
                let device = device_of_sectors(placement, 32 << 20, sector_bytes);
                format_in_units(&device, placement, unit_bytes);
                Arc::new(open(&device))
            });
        }
    }
}

pub(super) const LOG: FileHint = FileHint::NONE;
pub(super) const TABLE: FileHint = FileHint { background: true, ..LOG };

pub(super) fn name(id: u64) -> FileName {
    FileName::table(base::FileId(id))
}

pub(super) fn content(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::new(seed).fill(&mut bytes);
    bytes
}

pub(super) fn read(store: &DirectStore, id: u64) -> Result<Vec<u8>> {
    let file = FileStore::open(store, name(id), false)?;
    let mut bytes = vec![0; file.len()? as usize];
    file.read_at(0, &mut bytes, Cause::Get)?;
    Ok(bytes)
}

pub(super) fn put(store: &DirectStore, id: u64, hint: &FileHint, bytes: &[u8]) -> Result<()> {
    let mut file = store.create(name(id), hint)?;
    file.append(bytes, Cause::Flush)?;
    file.sync(Cause::Flush)
}

/// The areas are used in turn: a snapshot goes over the blocks of an older one, of which some say
/// that others are durable. Half of the snapshot over half of those is not damage.
#[test]
fn a_torn_snapshot_over_an_older_journal_does_not_stop_the_store_from_opening() {
    for placement in PLACEMENTS {
        let device = formatted(placement, 12 << 20);
        for round in 0..3u64 {
            let store = open(&device);
            store.write_note("long", &content(round, 5000), false).unwrap();
            for root in 0..6 {
                store.set_root(&[root]).unwrap();
            }
        }
        for stop in 0..4 {
            let device = Arc::new(device.crash_image(&mut Random::new(0), PowerLoss::KeepAll));
            device.stop_after(device.requests() + stop);
            let is_set = open(&device).set_root(&[9]).is_ok();
            for (index, image) in device.crash_images(60, stop).into_iter().enumerate() {
                let store = open(&Arc::new(image));
                let root = store.root().unwrap().unwrap()[0];
                assert!(root == 9 || root == 5 && !is_set, "{placement} {stop} {index}: {root}");
                let notes = store.read_note("long").unwrap().unwrap();
                assert!(notes == content(2, 5000), "{placement} {stop} {index}");
            }
        }
    }
}

#[test]
fn places_are_where_the_bytes_of_a_table_lie() {
    for placement in PLACEMENTS {
        let device = formatted(placement, 32 << 20);
        let store = open(&device);
        let mut file = store.create(name(1), &TABLE).unwrap();
        let bytes = content(1, 3_000_000);
        for part in bytes.chunks(70_001) {
            file.append(part, Cause::Flush).unwrap();
        }
        file.sync(Cause::Flush).unwrap();
        for range in [0..3_000_000, 512..1024, 700..701, 2_000_000..2_500_000] {
            let places = store.places(name(1), range.clone());
            let read =
                |place: &Range<u64>| device.peek(place.start, (place.end - place.start) as usize);
            let found: Vec<u8> = places.iter().flat_map(read).collect();
            let skip = (range.start % 512) as usize;
            let expected = &bytes[range.start as usize..range.end as usize];
            assert!(found[skip..].starts_with(expected), "{placement} {range:?}");
            assert!(found.len() < skip + expected.len() + 512, "{placement} {range:?}");
        }
        assert_eq!(store.places(name(1), 5_000_000..6_000_000), []);
        assert_eq!(store.places(name(1), 700..700), [], "nothing lies nowhere");
        assert_eq!(store.places(name(2), 0..10), []);
    }
}

/// A file that was extended goes on in a sector of its own, at any byte of the file: reads that
/// ended at multiples of 4096 had the next one begin with the same sector, for which a disk waits a
/// turn.
#[test]
fn reads_up_to_a_boundary_share_no_sector_with_the_next() {
    for placement in PLACEMENTS {
        let device = formatted(placement, 32 << 20);
        let store = open(&device);
        let mut bytes = 0;
        for part in [36, 70_001, 5000, 12_345, 100_000] {
            let mut file = match bytes {
                0 => store.create(name(1), &TABLE).unwrap(),
                _ => store.extend(name(1), bytes, &TABLE).unwrap(),
            };
            file.append(&content(1, part), Cause::Flush).unwrap();
            file.sync(Cause::Flush).unwrap();
            bytes += part as u64;
        }
        let file = store.open(name(1), false).unwrap();
        let mut shifted = 0;
        for offset in (1..bytes).step_by(777) {
            let boundary = file.boundary(offset);
            assert!((offset..offset + 512).contains(&boundary), "{placement} {offset}: {boundary}");
            assert_eq!(file.boundary(boundary), boundary);
            let before = store.places(name(1), offset - 1..boundary);
            let behind = store.places(name(1), boundary..(boundary + 1).min(bytes));
            let last = before.last().map(|before| before.end - 512);
            assert_ne!(last, behind.first().map(|behind| behind.start), "{placement} {offset}");
            shifted += u64::from(boundary % 512 > 0);
        }
        assert!(shifted > 50, "{placement}: {shifted}");
        assert!(file.boundary(bytes + 5) >= bytes, "behind the file");
    }
}

#[test]
fn a_closed_store_opens_to_the_same() {
    for placement in PLACEMENTS {
        let device = formatted(placement, 32 << 20);
        for round in 0..4 {
            let store = open(&device);
            for (id, hint) in [(round * 10, LOG), (round * 10 + 1, TABLE)] {
                let mut file = store.create(name(id), &hint).unwrap();
                file.append(&content(id, 70_000), Cause::Flush).unwrap();
                file.append(&content(id, 77), Cause::Flush).unwrap();
            }
            if round > 0 {
                let last = (round - 1) * 10;
                let mut file = store.extend(name(last), 1001, &LOG).unwrap();
                file.append(b"after the cut", Cause::Wal).unwrap();
                store.remove(name(last + 1)).unwrap();
            }
            store.write_note("events", b"line\n", true).unwrap();
            store.set_root(&[round as u8]).unwrap();
        }
        let store = open(&device);
        assert_eq!(store.root().unwrap().unwrap(), [3]);
        assert_eq!(store.read_note("events").unwrap().unwrap(), b"line\n".repeat(4));
        let names: Vec<u64> = store.list().unwrap().iter().map(|file| file.name.id.0).collect();
        assert_eq!(names, [0, 10, 20, 30, 31], "{placement}");
        for id in [0, 10, 20] {
            let expected = [&content(id, 70_000)[..1001], b"after the cut"].concat();
            assert!(read(&store, id).unwrap() == expected, "{placement} {id}");
        }
        let expected = [content(30, 70_000), content(30, 77)].concat();
        assert!(read(&store, 30).unwrap() == expected, "{placement}");
        let report = store.check(&mut |_| {}).unwrap();
        assert_eq!((report.problems, report.files), (Vec::<String>::new(), 5), "{placement}");
        let layout = store.layout();
        let used = layout.files.iter().flat_map(|file| &file.extents);
        for extent in used {
            assert!(layout.free.iter().all(|free| !free.overlaps(*extent)), "{placement}");
        }
    }
}

/// Extents that lie behind each other were one piece, and a cut in it gave all but the first back.
#[test]
fn a_cut_keeps_the_extents_before_it() {
    for placement in PLACEMENTS {
        for hint in [LOG, TABLE] {
            let store = open(&formatted(placement, 32 << 20));
            let bytes = content(1, 3_000_000);
            put(&store, 1, &hint, &bytes).unwrap();
            drop(store.extend(name(1), 2_999_000, &hint).unwrap());
            store.sync_names().unwrap();
            for id in 2..6 {
                put(&store, id, &hint, &content(id, 3_000_000)).unwrap();
            }
            assert!(read(&store, 1).unwrap() == bytes[..2_999_000], "{placement} {hint:?}");
        }
    }
}

/// Metadata described such a file as one part, which no placement of bands or zones takes.
#[test]
fn a_store_with_a_file_longer_than_a_band_or_a_zone_opens_again() {
    for placement in PLACEMENTS {
        let device = formatted(placement, 32 << 20);
        for (id, hint) in [(1, TABLE), (2, LOG)] {
            put(&open(&device), id, &hint, &content(id, 3_000_000)).unwrap();
        }
        let store = open(&device);
        for id in [1, 2] {
            assert!(read(&store, id).unwrap() == content(id, 3_000_000), "{placement} {id}");
        }
    }
}

/// A file that is written in many steps is one part in the metadata where the medium and the
/// placement let it be: chunks as on ext4 fill the small buddies of a group first.
#[test]
fn extents_behind_each_other_are_one_part() {
    for (placement, parts) in PLACEMENTS.into_iter().zip([4, 3, 1, 1, 3, 3]) {
        let device = formatted(placement, 32 << 20);
        let store = open(&device);
        put(&store, 1, &TABLE, &content(1, 3_000_000)).unwrap();
        let before = store.layout().files;
        assert_eq!(before[0].extents.len(), parts, "{placement}");
        drop(store);
        assert_eq!(open(&device).layout().files, before, "{placement}");
    }
}

#[test]
fn unsynced_appends_of_a_log_survive_the_death_of_the_process() {
    for placement in PLACEMENTS {
        let device = formatted(placement, 32 << 20);
        let store = open(&device);
        let mut log = store.create(name(1), &LOG).unwrap();
        let mut all = Vec::new();
        for n in 0..300 {
            let record = content(n, n as usize % 97);
            log.append(&record, Cause::Wal).unwrap();
            all.extend(record);
        }
        let mut random = Random::new(0);
        let image = device.crash_image(&mut random, PowerLoss::KeepAll);
        assert!(read(&open(&Arc::new(image)), 1).unwrap() == all, "{placement}");
    }
}

#[test]
fn the_second_handle_of_a_log_syncs_what_the_first_has_gathered() {
    let device = formatted("ext4-like", 8 << 20);
    let options = DirectOptions { log_buffer_bytes: 1 << 20, ..DirectOptions::default() };
    let store = DirectStore::open(device.clone(), Arc::default(), options).unwrap();
    let mut log = store.create(name(1), &LOG).unwrap();
    let syncer = log.syncer().unwrap();
    store.sync_names().unwrap();
    let requests = device.requests();
    log.append(b"one", Cause::Wal).unwrap();
    assert_eq!(device.requests(), requests, "it gathers");
    syncer.sync(Cause::Wal).unwrap();
    log.append(b"two", Cause::Wal).unwrap();
    let image = Arc::new(device.crash_images(1, 0).remove(0));
    assert_eq!(read(&open(&image), 1).unwrap(), b"one");
}

#[test]
fn a_log_that_gathers_writes_each_sector_once() {
    for placement in PLACEMENTS {
        let device = formatted(placement, 64 << 20);
        let options = DirectOptions { log_buffer_bytes: 4096, ..DirectOptions::default() };
        let store = DirectStore::open(device.clone(), Arc::default(), options).unwrap();
        let mut log = store.create(name(1), &LOG).unwrap();
        let bytes = content(3, 3000);
        (0..1000).for_each(|_| log.append(&bytes, Cause::Wal).unwrap());
        let traffic = store.ledger().snapshot();
        let written_bytes = traffic.cause(Cause::Wal).write_bytes;
        // A frame has 480 bytes of a sector of 512. The buffer holds the rest.
        let all_bytes = 3_000_000u64.div_ceil(480) * 512;
        let range = all_bytes - 4096 - 512..=all_bytes;
        assert!(range.contains(&written_bytes), "{placement}: {written_bytes} of {all_bytes}");
        log.sync(Cause::Wal).unwrap();
        drop((log, store));
        assert!(read(&open(&device), 1).unwrap() == bytes.repeat(1000), "{placement}");
    }
}

#[test]
fn the_ledger_equals_what_the_device_received() {
    for placement in PLACEMENTS {
        let device = formatted(placement, 32 << 20);
        let before = device.raw();
        let store = open(&device);
        for id in 0..6u64 {
            let hint = if id.is_multiple_of(2) { LOG } else { TABLE };
            put(&store, id, &hint, &content(id, 50_001)).unwrap();
            read(&store, id).unwrap();
        }
        store.extend(name(2), 333, &LOG).unwrap().append(b"more", Cause::Wal).unwrap();
        store.remove(name(1)).unwrap();
        store.set_root(b"root").unwrap();
        let (raw, host) = (device.raw(), store.ledger().snapshot().host());
        assert_eq!(host.write_bytes, raw.write_bytes - before.write_bytes, "{placement}");
        assert_eq!(host.read_bytes, raw.read_bytes - before.read_bytes, "{placement}");
        assert_eq!(host.sync_ops, raw.sync_ops - before.sync_ops, "{placement}");
        assert_eq!(host.media_write_bytes, host.write_bytes, "{placement}");
        assert_eq!(host.media_read_bytes, host.read_bytes, "{placement}");
    }
}

#[test]
fn files_that_are_synced_together_share_a_flush_and_a_block_of_metadata() {
    for placement in PLACEMENTS {
        let device = formatted(placement, 64 << 20);
        let store = open(&device);
        let mut files: Vec<_> = (0..6).map(|id| store.create(name(id), &TABLE).unwrap()).collect();
        let append = |file: &mut Box<dyn AppendFile>| {
            file.append(&content(1, 9000), Cause::ValueWrite).unwrap();
            file.begin_sync().unwrap();
        };
        files.iter_mut().for_each(append);
        files[0].sync(Cause::ValueWrite).unwrap();
        let before = device.raw();
        files.iter_mut().for_each(append);
        for file in &mut files[..5] {
            file.sync(Cause::ValueWrite).unwrap();
        }
        let raw = device.raw();
        assert_eq!(raw.sync_ops - before.sync_ops, 1, "{placement}");
        let written_bytes = raw.write_bytes - before.write_bytes;
        assert!((6 * 9000..6 * 12288 + 4097).contains(&written_bytes), "{written_bytes}");
        // What came since has to be flushed.
        files[5].append(b"more", Cause::ValueWrite).unwrap();
        files[5].sync(Cause::ValueWrite).unwrap();
        assert_eq!(device.raw().sync_ops - raw.sync_ops, 1, "{placement}");
    }
}

#[test]
fn a_full_device_says_so_and_goes_on_with_room() {
    for placement in PLACEMENTS {
        let store = open(&formatted(placement, 10 << 20));
        let mut id = 0;
        let full = loop {
            id += 1;
            match put(&store, id, &TABLE, &content(id, 300_000)) {
                Ok(()) => assert!(id < 100),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), ErrorKind::NoSpace, "{placement}: {full}");
        assert!(read(&store, 1).unwrap() == content(1, 300_000), "{placement}");
        store.remove(name(id)).unwrap();
        for id in 1..4 {
            store.remove(name(id)).unwrap();
        }
        put(&store, 200, &TABLE, &content(200, 300_000)).unwrap();
        assert!(read(&store, 200).unwrap() == content(200, 300_000), "{placement}");
    }
}

#[test]
fn zones_win_room_back_by_moving_what_lives() {
    for placement in ["zones", "zones-only"] {
        let device = formatted(placement, 12 << 20);
        let store = open(&device);
        let mut live = std::collections::VecDeque::new();
        for id in 0..400u64 {
            let hint = if id.is_multiple_of(5) { LOG } else { TABLE };
            put(&store, id, &hint, &content(id, 100_000)).unwrap();
            live.push_back(id);
            // Every tenth file stays for long, between files that go soon.
            if live.len() > 30 {
                let at = live.iter().position(|id| !id.is_multiple_of(10)).unwrap_or(0);
                store.remove(name(live.remove(at).unwrap())).unwrap();
            }
        }
        let moved = store.ledger().snapshot().cause(Cause::Reclaim);
        assert!(moved.write_bytes > 0, "{placement}");
        for id in &live {
            assert!(read(&store, *id).unwrap() == content(*id, 100_000), "{placement} {id}");
        }
        store.sync_names().unwrap();
        drop(store);
        let store = open(&device);
        for id in &live {
            assert!(read(&store, *id).unwrap() == content(*id, 100_000), "{placement} {id}");
        }
    }
}

/// Files of many sizes come and go, and some stay: what lies between small holes is moved.
#[test]
fn dynamic_bands_collect_fragments_if_asked_to() {
    let fragments = |placement: &str| {
        let device = device("dynamic-bands", 64 << 20);
        format_in_units(&device, placement, 64 << 10);
        let store = open(&device);
        let mut random = Random::new(3);
        let mut live = BTreeMap::new();
        let mut shares = Vec::new();
        for id in 0..600u64 {
            let bytes = 10_000 + random.below(300_000) as usize;
            put(&store, id, &TABLE, &content(id, bytes)).unwrap();
            live.insert(id, bytes);
            if live.len() > 60 {
                let at = random.below(live.len() as u64) as usize;
                let gone = *live.keys().nth(at).unwrap();
                live.remove(&gone);
                store.remove(name(gone)).unwrap();
            }
            shares.push(share_of_holes(&store.layout(), 160_000));
        }
        store.sync_names().unwrap();
        let moved = store.ledger().snapshot().cause(Cause::Reclaim).write_bytes;
        let problems = store.check(&mut |_| {}).unwrap().problems;
        assert!(problems.is_empty(), "{problems:?}");
        drop(store);
        let store = open(&device);
        for (&id, &bytes) in &live {
            assert!(read(&store, id).unwrap() == content(id, bytes), "{placement} {id}");
        }
        let late = &shares[300..];
        (late.iter().sum::<f64>() / late.len() as f64, moved)
    };
    let (left, none) = fragments("dynamic-bands");
    let (kept, moved) = fragments("dynamic-bands:fragments=0.05");
    println!("{left:.3} without, {kept:.3} with {moved} bytes moved");
    assert!(none == 0 && moved > 0);
    assert!(kept < left * 0.7, "{left} without, {kept} with");
}

/// Free space in pieces below `bytes_max`, as a share of all up to the last live byte.
fn share_of_holes(layout: &Layout, bytes_max: u64) -> f64 {
    let end = layout.free.last().unwrap().start;
    let holes = layout.free.iter().filter(|free| free.end() <= end && free.bytes < bytes_max);
    let bytes: u64 = holes.map(|free| free.bytes).sum();
    bytes as f64 / (end - layout.data.start).max(1) as f64
}

/// The writer of a log that met a full device wrote the rest of the refused record when it was
/// dropped and there was space again: a record that had failed was in the log.
#[test]
fn what_an_append_was_refused_is_never_written() {
    for placement in PLACEMENTS {
        let device = formatted(placement, 10 << 20);
        let store = open(&device);
        let log = FileName::wal(base::FileId(1000));
        let mut writer = store.create(log, &LOG).unwrap();
        writer.append(&content(1, 3000), Cause::Wal).unwrap();
        let full = (1..100).find_map(|id| put(&store, id, &TABLE, &content(id, 300_000)).err());
        assert_eq!(full.unwrap().kind(), ErrorKind::NoSpace, "{placement}");
        let (mut accepted, mut refused) = (content(1, 3000), 0);
        for id in 2..40_000 {
            let record = content(id, 3000);
            match writer.append(&record, Cause::Wal) {
                Ok(()) => accepted.extend(record),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NoSpace, "{placement}: {error}");
                    refused = record.len();
                    break;
                }
            }
        }
        assert!(refused > 0, "{placement}: the log never met the full device");
        for id in 1..8 {
            store.remove(name(id)).unwrap();
        }
        store.sync_names().unwrap();
        drop(writer);
        store.sync_names().unwrap();
        drop(store);
        let found = open(&device).open(log, false).unwrap();
        let bytes = found.len().unwrap() as usize;
        assert!(bytes >= accepted.len(), "{placement}: {bytes} of {} bytes", accepted.len());
        assert!(bytes < accepted.len() + refused, "{placement}: the refused record is there");
        let mut content = vec![0; accepted.len()];
        found.read_at(0, &mut content, Cause::Check).unwrap();
        assert!(content == accepted, "{placement}");
    }
}

/// The file was one piece, which was moved whole though half of it was not.
#[test]
fn a_file_in_two_zones_is_read_where_its_halves_are_after_one_is_moved() {
    for placement in ["zones", "zones-only"] {
        let store = open(&formatted(placement, 12 << 20));
        put(&store, 1, &TABLE, &content(1, 600_000)).unwrap();
        put(&store, 2, &TABLE, &content(2, 900_000)).unwrap();
        assert_eq!(store.layout().files[1].extents.len(), 2, "{placement}");
        store.remove(name(1)).unwrap();
        let fill = |id| put(&store, id, &TABLE, &content(id, 1 << 20));
        let full = (3..30).find_map(|id| fill(id).err()).unwrap();
        assert_eq!(full.kind(), ErrorKind::NoSpace, "{placement}: {full}");
        let moved = store.ledger().snapshot().cause(Cause::Reclaim);
        assert!(moved.write_bytes > 0, "{placement}");
        assert!(read(&store, 2).unwrap() == content(2, 900_000), "{placement}");
    }
}

#[test]
fn a_store_opened_read_only_writes_nothing() {
    let device = formatted("dynamic-bands", 32 << 20);
    put(&open(&device), 1, &LOG, b"kept").unwrap();
    let requests = device.requests();
    let options = DirectOptions { read_only: true, ..DirectOptions::default() };
    let store = DirectStore::open(device.clone(), Arc::default(), options).unwrap();
    assert_eq!(read(&store, 1).unwrap(), b"kept");
    assert!(store.create(name(2), &LOG).is_err() && store.set_root(b"").is_err());
    assert!(store.remove(name(1)).is_err() && store.write_note("n", b"", true).is_err());
    store.check(&mut |_| {}).unwrap();
    assert!(DirectStore::open(device.clone(), Arc::default(), options).is_err(), "locked");
    drop(store);
    assert_eq!(device.requests(), requests);
}

/// A table of 4 MB kept 2 MB of memory for as long as it lived.
#[test]
fn a_file_that_was_written_keeps_no_buffer() {
    for placement in PLACEMENTS {
        let device = formatted(placement, 32 << 20);
        let store = open(&device);
        for (id, hint) in [(1, TABLE), (2, LOG)] {
            let mut file = store.create(name(id), &hint).unwrap();
            (0..13).for_each(|_| file.append(&content(id, 250_000), Cause::Flush).unwrap());
            file.sync(Cause::Flush).unwrap();
            drop(file);
            let node = store.node(&store.inner.state(), name(id)).unwrap();
            assert_eq!(node.shared().tail.capacity(), 0, "{placement}");
        }
    }
}
