//! The device in memory: every sentence of its fault model, and the rules of every geometry.

use super::*;
use crate::block::ZoneGeometry;
use base::random::Random;
use std::collections::BTreeSet;

const SECTOR: usize = 512;

fn geometry(overwrite: Overwrite) -> Geometry {
    let capacity_bytes = 1 << 20;
    Geometry {
        sector_bytes: 512,
        atomic_bytes: 512,
        capacity_bytes,
        overwrite,
        band_bytes: 0,
        zones: None,
    }
}

fn device() -> MemDevice {
    MemDevice::new(geometry(Overwrite::InPlace))
}

fn zoned() -> MemDevice {
    let zones = ZoneGeometry { zone_bytes: 64 << 10, conventional_zones: 1, open_zones_max: 2 };
    MemDevice::new(Geometry { zones: Some(zones), ..geometry(Overwrite::AtWritePointer) })
}

fn write(device: &MemDevice, offset: u64, value: u8, sectors: usize) {
    device.write(offset, &vec![value; sectors * SECTOR], Cause::Flush).unwrap();
}

fn value(device: &MemDevice, offset: u64) -> u8 {
    let mut sector = [0; SECTOR];
    device.read(offset, &mut sector, Cause::Get).unwrap();
    assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is whole");
    sector[0]
}

#[test]
fn sentence_1_flushed_writes_survive() {
    let device = device();
    write(&device, 512, 7, 3);
    device.flush(Cause::Flush).unwrap();
    write(&device, 0, 8, 1);
    for loss in PowerLoss::ALL {
        for seed in 0..50 {
            assert_eq!(value(&device.crash_image(&mut Random::new(seed), loss), 512), 7);
        }
    }
}

#[test]
fn sentences_2_and_3_any_sectors_of_any_writes_survive() {
    let device = device();
    write(&device, 0, 1, 2);
    write(&device, 4096, 2, 1);
    let mut seen = BTreeSet::new();
    for image in device.crash_images(200, 1) {
        seen.insert([value(&image, 0), value(&image, 512), value(&image, 4096)]);
    }
    assert_eq!(seen.len(), 8, "every subset of three sectors");
    assert_eq!(device.pending_changes(), 2);
}

#[test]
fn sentence_3_a_zone_keeps_a_prefix() {
    let device = zoned();
    let start = 64 << 10;
    write(&device, start, 1, 1);
    device.flush(Cause::Flush).unwrap();
    device.reset_zone(start).unwrap();
    for sector in 0..4 {
        write(&device, start + sector * 512, 10 + sector as u8, 1);
    }
    let mut seen = BTreeSet::new();
    for image in device.crash_images(300, 2) {
        let zone = image.zone(start).unwrap().unwrap();
        let written = ((zone.write_pointer - start) / 512) as usize;
        let found: Vec<u8> = (0..written).map(|i| value(&image, start + i as u64 * 512)).collect();
        assert!(found == [1] || [10, 11, 12, 13].starts_with(&found), "{found:?}");
        write(&image, zone.write_pointer, 5, 1);
        seen.insert(found);
    }
    assert_eq!(seen.len(), 6);
}

#[test]
fn sentence_4_the_death_of_the_process_loses_nothing_yet() {
    let device = device();
    write(&device, 0, 3, 1);
    let image = device.crash_image(&mut Random::new(0), PowerLoss::KeepAll);
    assert_eq!(value(&image, 0), 3);
    assert_eq!(image.pending_changes(), 1, "what was not flushed can still be lost");
}

#[test]
fn sentence_5_discarded_bytes_are_noise() {
    let device = device();
    write(&device, 0, 3, 4);
    device.discard(512, 1024).unwrap();
    assert_ne!(device.peek(512, 1024), vec![3; 1024]);
    assert_eq!((value(&device, 0), value(&device, 1536)), (3, 3));
}

#[test]
fn sentence_6_what_a_failed_flush_dropped_no_later_flush_saves() {
    let device = device();
    write(&device, 0, 3, 1);
    device.fail_next_flush();
    assert_eq!(device.flush(Cause::Flush).unwrap_err().kind(), ErrorKind::Io);
    device.flush(Cause::Flush).unwrap();
    assert_eq!(value(&device, 0), 3);
    assert_eq!(value(&device.crash_image(&mut Random::new(0), PowerLoss::Subset), 0), 0);
}

#[test]
fn a_shingled_medium_destroys_downstream_and_says_so() {
    let device = MemDevice::new(geometry(Overwrite::DestroysDownstream { damage_bytes: 4 * 512 }));
    for sector in 0..8 {
        write(&device, sector * 512, 1, 1);
    }
    write(&device, 512, 2, 1);
    assert_eq!((value(&device, 0), value(&device, 512)), (1, 2));
    for sector in 2..6 {
        let error = device.read(sector * 512, &mut [0; SECTOR], Cause::Get).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(sector * 512)));
    }
    assert_eq!((value(&device, 6 * 512), value(&device, 7 * 512)), (1, 1));
    write(&device, 2 * 512, 3, 1);
    assert_eq!(value(&device, 2 * 512), 3);
}

#[test]
fn a_zone_takes_writes_at_its_write_pointer() {
    let device = zoned();
    let zone_bytes = 64 << 10;
    write(&device, 512, 1, 1);
    write(&device, zone_bytes, 1, 2);
    let sectors = |count: usize| vec![0; count * SECTOR];
    for (offset, count) in [(zone_bytes, 1), (zone_bytes + 2048, 1), (zone_bytes + 1024, 127)] {
        assert!(device.write(offset, &sectors(count), Cause::Flush).is_err(), "{offset} {count}");
    }
    let state = |zone: u64| device.zone(zone * zone_bytes).unwrap().unwrap().state;
    write(&device, 2 * zone_bytes, 1, 1);
    write(&device, 3 * zone_bytes, 1, 1);
    use ZoneState::*;
    assert_eq!([0, 1, 2, 3, 4].map(state), [Conventional, Closed, Open, Open, Empty]);
    device.finish_zone(zone_bytes).unwrap();
    assert_eq!(state(1), Full);
    assert!(device.write(zone_bytes + 1024, &sectors(1), Cause::Flush).is_err());
    device.reset_zone(zone_bytes).unwrap();
    assert_eq!((state(1), value(&device, zone_bytes)), (Empty, 0));
    assert!(device.reset_zone(0).is_err() && device.reset_zone(zone_bytes + 512).is_err());
}

#[test]
fn requests_are_whole_sectors_of_the_device() {
    let device = device();
    for (offset, bytes) in [(1, 512), (0, 100), (1 << 20, 512), (u64::MAX - 511, 512)] {
        let mut into = vec![0; bytes];
        assert!(device.read(offset, &mut into, Cause::Get).is_err());
        assert!(device.write(offset, &into, Cause::Flush).is_err());
        assert!(device.discard(offset, bytes as u64).is_err());
    }
    assert_eq!(device.reset_zone(0).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(device.requests(), 0);
}

#[test]
fn one_opener_at_a_time_and_the_machine_stops_where_told() {
    let device = device();
    let lock = device.lock().unwrap();
    assert_eq!(device.lock().err().unwrap().kind(), ErrorKind::Locked);
    drop(lock);
    device.lock().unwrap();
    device.stop_after(1);
    write(&device, 0, 1, 1);
    assert!(device.flush(Cause::Flush).is_err());
    assert!(device.read(0, &mut [0; SECTOR], Cause::Get).is_err());
    assert_eq!(device.requests(), 1);
}
