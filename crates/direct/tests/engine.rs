//! The engine on a device: power lost at the requests of short histories, for every placement and
//! every scheme.

#![allow(clippy::unwrap_used)]

use direct::{DirectOptions, DirectStore, FormatOptions, format};
use media::Geometry;
use media::block::{Overwrite, ZoneGeometry};
use media::mem::MemDevice;
use shingle::runtime::Stepped;
use shingle::{Db, Durability, Options, WriteBatch, WriteOptions};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything lost, everything kept, and a draw of every kind: some lost, torn, reordered.
const IMAGES: usize = 5;

const WRITES: u64 = 24;

fn formatted(placement: &str) -> Arc<MemDevice> {
    let zones = ZoneGeometry { zone_bytes: 1 << 20, conventional_zones: 1, open_zones_max: 14 };
    let (overwrite, zones) = match placement {
        "zones" => (Overwrite::AtWritePointer, Some(zones)),
        "dynamic-bands" => (Overwrite::DestroysDownstream { damage_bytes: 16 << 10 }, None),
        _ => (Overwrite::InPlace, None),
    };
    let geometry =
        Geometry { sector_bytes: 512, capacity_bytes: 48 << 20, overwrite, band_bytes: 0, zones };
    let device = Arc::new(MemDevice::new(geometry));
    let placement = placement.to_string();
    let options = FormatOptions { placement, unit_bytes: 1 << 20, store: 5, force: false };
    format(device.clone(), Arc::default(), &options).unwrap();
    device
}

fn store(device: &Arc<MemDevice>) -> shingle::Result<DirectStore> {
    DirectStore::open(device.clone(), Arc::default(), DirectOptions::default())
}

/// Memtables of a few records, so that a short history has moves.
fn open(device: &Arc<MemDevice>, scheme: &str) -> shingle::Result<Db> {
    Options::new()
        .scheme(scheme)
        .write_buffer_bytes(64 << 10)
        .expert(|e| {
            e.memtable_bytes = Some(32 << 10);
            e.table_bytes = Some(32 << 10);
            e.level_bytes_base = Some(64 << 10);
            e.level0_runs_trigger = Some(2);
            e.fan_out = Some(2.0);
            e.stack_max = Some(2);
        })
        .open_in(Arc::new(store(device)?), Arc::new(Stepped::new(1, 3)))
}

/// The scheme whose turn it is.
fn scheme(turn: u64) -> &'static str {
    let schemes = tree::policy::registry();
    schemes[(turn % schemes.len() as u64) as usize].name
}

fn key(n: u64) -> Vec<u8> {
    format!("key{n:03}").into_bytes()
}

fn value(n: u64) -> Vec<u8> {
    vec![n as u8; 9000]
}

fn put(db: &Db, n: u64) -> shingle::Result<()> {
    let mut batch = WriteBatch::new();
    batch.put(key(n), value(n))?;
    db.write(batch, &WriteOptions { durability: Some(Durability::Synced), wait: true })
}

/// Synced writes until the machine stops; gives what was acknowledged, and whether all went well.
fn run(device: &Arc<MemDevice>, scheme: &str) -> (u64, bool) {
    let Ok(db) = open(device, scheme) else { return (0, false) };
    for n in 0..WRITES {
        if put(&db, n).is_err() {
            return (n, false);
        }
    }
    (WRITES, db.close().is_ok())
}

/// What was acknowledged is there, with at most one write more; the database goes on, and after
/// closing and opening it every checksum of the engine and of the store is right. Under the next
/// scheme: each goes on from what another left.
fn verify(device: &Arc<MemDevice>, turn: u64, acknowledged: u64, is_thorough: bool, what: &str) {
    let next = scheme(turn + 1);
    let db = open(device, next).unwrap_or_else(|error| panic!("{what}: {error}"));
    let found: BTreeMap<Vec<u8>, Vec<u8>> =
        db.iter().map(|pair| pair.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
    for n in 0..acknowledged {
        assert!(found.get(&key(n)) == Some(&value(n)), "{what}: write {n} is lost");
    }
    assert!(found.len() as u64 <= acknowledged + 1, "{what}: {} records", found.len());
    if !is_thorough {
        return;
    }
    put(&db, acknowledged).unwrap();
    db.close().unwrap();
    let db = open(device, next).unwrap();
    let report = db.check(&mut |_| {}).unwrap();
    assert!(report.is_clean(), "{what}: {:?}", report.problems);
    assert_eq!(db.get(key(acknowledged)).unwrap().as_deref(), Some(&value(acknowledged)[..]));
    db.close().unwrap();
    let report = store(device).unwrap().check(&mut |_| {}).unwrap();
    assert!(report.files > 1 && report.problems.is_empty(), "{what}: {:?}", report.problems);
}

/// Each scheme stops at every so many requests, each at others.
#[test]
fn acknowledged_writes_survive_power_loss_under_every_placement_and_scheme() {
    let schemes = tree::policy::registry().len() as u64;
    for descriptor in direct::placement::registry() {
        for turn in 0..schemes {
            let name = scheme(turn);
            let mut stops = 0;
            for stop in (turn..).step_by(schemes as usize) {
                let device = formatted(descriptor.name);
                device.stop_after(device.requests() + stop);
                let (acknowledged, is_finished) = run(&device, name);
                let images = device.crash_images(IMAGES, stop);
                for (index, image) in images.into_iter().enumerate() {
                    let what =
                        format!("{}, {name}, request {stop}, image {index}", descriptor.name);
                    let is_thorough = index as u64 == stop % 5;
                    verify(&Arc::new(image), turn, acknowledged, is_thorough, &what);
                }
                if is_finished {
                    break;
                }
                stops += 1;
            }
            assert!(stops >= 8, "{}, {name}: only {stops} stops", descriptor.name);
        }
    }
}
