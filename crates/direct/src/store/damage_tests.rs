//! Damage of a device: what one bad sector costs, and what says so.

use super::tests::{TABLE, device, formatted, open, put, read};
use super::*;
use media::mem::MemDevice;

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
