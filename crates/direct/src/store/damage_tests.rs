//! Damage of a device: what one bad sector costs, and what says so.

use super::tests::{LOG, PLACEMENTS, TABLE, content, device, formatted, name, open, put, read};
use super::*;
use base::random::Random;
use media::mem::{MemDevice, PowerLoss};

#[test]
fn any_one_superblock_copy_is_enough_and_check_names_the_others() {
    let device = formatted("ext4-like", 32 << 20);
    put(&open(&device), 1, &TABLE, b"kept").unwrap();
    let layout = open(&device).layout();
    for place in [0, layout.metadata[0].start, (32 << 20) - 512] {
        device.overwrite(place, &[0xff; 512]);
    }
    let store = open(&device);
    assert_eq!(read(&store, 1).unwrap(), b"kept");
    assert_eq!(store.check(&mut |_| {}).unwrap().problems.len(), 3);
    drop(store);
    device.overwrite(layout.metadata[1].start, &[0xff; 512]);
    let options = DirectOptions::default();
    let error = DirectStore::open(device, Arc::default(), options).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Incompatible);
}

/// Whatever kept a store from being opened let a format without `force` write over it.
#[test]
fn a_store_that_does_not_open_is_not_formatted_over() {
    let formats = |device: &Arc<MemDevice>, force| {
        let options =
            FormatOptions { placement: "ext4-like".into(), unit_bytes: 0, store: 8, force };
        format(device.clone(), Arc::default(), &options)
    };
    // Of another version, another capacity, and damaged at every copy.
    let newer = device("ext4-like", 32 << 20);
    let options =
        FormatOptions { placement: "ext4-like".into(), unit_bytes: 0, store: 7, force: false };
    format::format_as(newer.clone(), Arc::default(), &options, 1000).unwrap();
    let (longer, written) = (device("ext4-like", 64 << 20), formatted("ext4-like", 32 << 20));
    longer.overwrite(0, &written.peek(0, 1 << 20));
    let damaged = formatted("ext4-like", 32 << 20);
    let places = open(&damaged).layout().metadata.map(|area| area.start);
    for place in places.into_iter().chain([0, (32 << 20) - 512]) {
        damaged.overwrite(place + 100, &[0xff; 8]);
    }
    for device in [newer, longer, damaged, formatted("ext4-like", 32 << 20)] {
        let (requests, first) = (device.requests(), device.peek(0, 1 << 20));
        let error = formats(&device, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
        assert!(error.to_string().contains("force"), "{error}");
        assert!(device.requests() == requests && device.peek(0, 1 << 20) == first);
        formats(&device, true).unwrap();
        put(&open(&device), 1, &TABLE, b"new").unwrap();
    }
    formats(&device("ext4-like", 32 << 20), false).unwrap();
}

#[test]
fn a_damaged_durable_block_of_metadata_is_not_taken_for_a_torn_one() {
    let device = formatted("ext4-like", 32 << 20);
    let store = open(&device);
    for id in 0..5 {
        put(&store, id, &TABLE, b"x").unwrap();
    }
    let area = store.layout().metadata[1];
    drop(store);
    // Superblock, snapshot, its confirmation, then a block for each sync: the third of them.
    device.overwrite(area.start + 5 * 512 + 100, &[0xff; 8]);
    let error = DirectStore::open(device, Arc::default(), DirectOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corruption);
}

/// A device that failed to read one sector of a copy kept the store from being opened by another.
#[test]
fn a_bad_sector_under_a_superblock_copy_costs_no_other_copy() {
    for placement in PLACEMENTS.into_iter().filter(|at| !at.starts_with("zones")) {
        let device = formatted(placement, 32 << 20);
        put(&open(&device), 1, &TABLE, b"kept").unwrap();
        let areas = open(&device).layout().metadata;
        for place in [0, areas[0].start, (32 << 20) - 512] {
            device.make_bad(place, 512);
        }
        let store = open(&device);
        assert_eq!(read(&store, 1).unwrap(), b"kept", "{placement}");
        assert_eq!(store.check(&mut |_| {}).unwrap().problems.len(), 3, "{placement}");
        drop(store);
        device.make_bad(areas[1].start, 512);
        let options = DirectOptions::default();
        let error = DirectStore::open(device.clone(), Arc::default(), options).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Io, "{placement}: {error}");
        assert!(error.to_string().contains("no copy of the superblock"), "{placement}: {error}");
        let placement = placement.to_string();
        let options = FormatOptions { placement, unit_bytes: 0, store: 8, force: false };
        let error = format(device, Arc::default(), &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    }
}

/// Of the metadata area that is not needed no sector is missed; of the other one, what was synced
/// is there or the opening fails.
#[test]
fn a_bad_sector_of_metadata_loses_nothing_in_silence() {
    for placement in PLACEMENTS {
        let device = formatted(placement, 32 << 20);
        let store = open(&device);
        put(&store, 1, &TABLE, b"older").unwrap();
        let areas = store.layout().metadata;
        drop(store);
        let store = open(&device);
        (0..6).for_each(|root| store.set_root(&[root]).unwrap());
        drop(store);
        let mut failures = [0, 0];
        let places = |area: Extent| (0..24).map(move |sector| area.start + sector * 512);
        for (index, place) in
            [0, 1].into_iter().flat_map(|at| places(areas[at]).map(move |p| (at, p)))
        {
            let image = device.crash_image(&mut Random::new(0), PowerLoss::KeepAll);
            image.make_bad(place, 512);
            match DirectStore::open(Arc::new(image), Arc::default(), DirectOptions::default()) {
                Ok(store) => {
                    assert_eq!(store.root().unwrap().unwrap(), [5], "{placement} {place}");
                    assert_eq!(read(&store, 1).unwrap(), b"older", "{placement} {place}");
                }
                Err(error) => {
                    failures[index] += 1;
                    assert_eq!(error.kind(), ErrorKind::Io, "{placement} {place}: {error}");
                    assert!(error.to_string().contains("metadata"), "{placement}: {error}");
                }
            }
        }
        // The snapshot, its confirmation, a block for each root but the first, and the end.
        assert!(failures[1] == 0 && (6..12).contains(&failures[0]), "{placement}: {failures:?}");
    }
}

#[test]
fn a_bad_sector_of_a_file_fails_its_readers_alone() {
    for placement in PLACEMENTS {
        let device = formatted(placement, 32 << 20);
        let bytes = content(1, 20_000);
        put(&open(&device), 1, &LOG, &bytes).unwrap();
        put(&open(&device), 2, &TABLE, &bytes).unwrap();
        put(&open(&device), 3, &TABLE, b"kept").unwrap();
        let files = open(&device).layout().files;
        // The first sector of the log, one in its middle, and the last one; one of the table.
        for (index, id, skip) in [(0, 1, 0), (0, 1, 20), (0, 1, 41), (1, 2, 9)] {
            let image = device.crash_image(&mut Random::new(0), PowerLoss::KeepAll);
            image.make_bad(files[index].extents[0].start + skip * 512, 512);
            let store = open(&Arc::new(image));
            let error = read(&store, id).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{placement} {id}: {error}");
            let file = FileStore::open(&store, name(id), false).unwrap();
            let mut first = vec![0; (skip * 480) as usize];
            file.read_at(0, &mut first, Cause::Get).unwrap();
            assert!(bytes.starts_with(&first), "{placement} {id} {skip}");
            if id == 1 && skip < 41 {
                let at = (skip + 1) * 480;
                let mut rest = vec![0; bytes.len() - at as usize];
                file.read_at(at, &mut rest, Cause::Get).unwrap();
                assert!(bytes.ends_with(&rest), "{placement} {id} {skip}");
            }
            assert_eq!(read(&store, 3).unwrap(), b"kept", "{placement}");
            let problems = store.check(&mut |_| {}).unwrap().problems;
            assert_eq!(problems.len(), 1, "{placement}: {problems:?}");
        }
    }
}

/// The bad sector failed every later write that needed space, and what had been moved before it was
/// neither in its old place nor in its new one for the metadata.
#[test]
fn a_bad_sector_does_not_stop_others_from_being_moved() {
    for placement in ["zones", "zones-only"] {
        let device = formatted(placement, 12 << 20);
        let store = open(&device);
        let long_lived = |id: u64| id.is_multiple_of(8);
        let mut ids = Vec::new();
        for id in 0..400 {
            if put(&store, id, &TABLE, &content(id, 100_000)).is_err() {
                break;
            }
            ids.push(id);
        }
        for &id in ids.iter().filter(|id| !long_lived(**id)) {
            store.remove(name(id)).unwrap();
        }
        store.sync_names().unwrap();
        // The only one that is left in its zone, so that this zone is the first to be emptied.
        let bad = store.layout().files.swap_remove(2);
        device.make_bad(bad.extents[0].start + 2048, 512);
        let bad_id = bad.name.id.0;
        let added: Vec<u64> = (1000..1060).collect();
        for &id in &added {
            put(&store, id, &TABLE, &content(id, 100_000)).unwrap();
        }
        let moved = store.ledger().snapshot().cause(Cause::Reclaim);
        assert!(moved.write_bytes > 0, "{placement}");
        drop(store);
        let store = open(&device);
        let kept = ids.into_iter().filter(|id| long_lived(*id) && *id != bad_id).chain(added);
        for id in kept {
            assert!(read(&store, id).unwrap() == content(id, 100_000), "{placement} {id}");
        }
        assert_eq!(read(&store, bad_id).unwrap_err().kind(), ErrorKind::Io, "{placement}");
    }
}
