//! Every byte has one cause: what the ledger says is what the device got, on every model.

use crate::options;
use crate::setup::Setup;
use base::Cause;
use base::env::Runtime;
use base::random::Random;
use devices::models;
use media::block::{BlockDevice, DeviceLock, Geometry, Moved, Zone};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Each model, small.
const MODELS: [&str; 6] = [
    "hdd:capacity=256MiB",
    "smr-banded:capacity=256MiB,band=1MiB",
    "smr-raw:capacity=256MiB,track=64KiB",
    "zoned:capacity=256MiB,zone=4MiB",
    "raid:members=3,member=hdd:capacity=128MiB",
    "ssd:capacity=64MiB,superblock=1MiB,op=15%,wear=steady",
];

/// Puts, deletions, reads, syncs, and the database closed and opened again between them.
fn history(setup: &Setup, device: &Arc<dyn BlockDevice>, seed: u64) {
    setup.format(None, 0);
    let mut random = Random::new(seed);
    for _ in 0..3 {
        let db = setup.open_on(device.clone(), options(), 0);
        for _ in 0..2500 {
            let key = random.below(3000).to_be_bytes();
            let mut value = [0; 200];
            random.fill(&mut value);
            match random.below(20) {
                0..13 => db.put(key, value).unwrap(),
                13..15 => db.delete(key).unwrap(),
                15..19 => {
                    db.get(key).unwrap();
                    setup.simulation.turn();
                }
                _ => db.sync().unwrap(),
            }
        }
        db.close().unwrap();
    }
}

/// What the ledger says, and what the device got.
fn sums(setup: &Setup) -> [[u64; 4]; 2] {
    let snapshot = setup.ledger.snapshot();
    let causes = Cause::all().map(|cause| snapshot.cause(cause));
    let ledger = causes.fold([0; 4], |sum, traffic| {
        let more = [
            traffic.write_bytes,
            traffic.read_bytes,
            traffic.media_write_bytes,
            traffic.media_read_bytes,
        ];
        std::array::from_fn(|i| sum[i] + more[i])
    });
    let counts = setup.device.counts();
    let moved = counts.moved;
    [ledger, [counts.write_bytes, counts.read_bytes, moved.write_bytes, moved.read_bytes]]
}

#[test]
fn bytes_by_cause_are_the_bytes_of_the_device_on_every_model() {
    assert_eq!(MODELS.len(), models::registry().len(), "a model has no history here");
    for (seed, model) in MODELS.iter().enumerate() {
        let setup = Setup::new(model, seed as u64);
        let device: Arc<dyn BlockDevice> = setup.device.clone();
        history(&setup, &device, seed as u64);
        let [ledger, counted] = sums(&setup);
        println!("{model}: {ledger:?}");
        assert_eq!(ledger, counted, "{model}: written, read, written and read by the medium");
        assert!(counted[0] > 1 << 20 && counted[2] > 0, "{model}: {counted:?}");
    }
}

/// Writes one sector twice.
struct Stutter {
    device: Arc<dyn BlockDevice>,
    writes: AtomicU64,
}

impl BlockDevice for Stutter {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read(&self, offset: u64, into: &mut [u8], cause: Cause) -> shingle::Result<Moved> {
        self.device.read(offset, into, cause)
    }

    fn write(&self, offset: u64, bytes: &[u8], cause: Cause) -> shingle::Result<Moved> {
        if self.writes.fetch_add(1, Relaxed) == 100 {
            self.device.write(offset, &bytes[..4096], cause)?;
        }
        self.device.write(offset, bytes, cause)
    }

    fn flush(&self, cause: Cause) -> shingle::Result<Moved> {
        self.device.flush(cause)
    }

    fn discard(&self, offset: u64, bytes: u64) -> shingle::Result<Moved> {
        self.device.discard(offset, bytes)
    }

    fn reset_zone(&self, start: u64) -> shingle::Result<Moved> {
        self.device.reset_zone(start)
    }

    fn finish_zone(&self, start: u64) -> shingle::Result<()> {
        self.device.finish_zone(start)
    }

    fn zone(&self, offset: u64) -> shingle::Result<Option<Zone>> {
        self.device.zone(offset)
    }

    fn lock(&self) -> shingle::Result<DeviceLock> {
        self.device.lock()
    }

    fn describe(&self) -> String {
        self.device.describe()
    }
}

#[test]
fn a_sector_without_an_account_shows_in_the_sums() {
    let setup = Setup::new(MODELS[0], 1);
    let (device, writes) = (setup.device.clone(), AtomicU64::new(0));
    let stutter: Arc<dyn BlockDevice> = Arc::new(Stutter { device, writes });
    history(&setup, &stutter, 1);
    let [ledger, counted] = sums(&setup);
    assert_eq!(counted[0], ledger[0] + 4096, "one sector more than the ledger has");
}
