//! The contract of file stores, kept by the direct store on every model of a drive under every
//! placement that works there.

use crate::setup::Setup;
use devices::models;
use devices::simulation::Counts;
use direct::{DirectOptions, DirectStore, placement};
use media::conformance;
use parking_lot::Mutex;
use std::sync::Arc;

/// Every model, small; `smr-banded` once for each kind of cache.
const MODELS: [&str; 8] = [
    "hdd:capacity=64MiB",
    "smr-banded:capacity=64MiB,band=1MiB",
    "smr-banded:capacity=64MiB,band=1MiB,media-cache=set-associative",
    "smr-banded:capacity=64MiB,band=1MiB,media-cache=none",
    "smr-raw:capacity=64MiB,track=16KiB",
    "zoned:capacity=64MiB,zone=1MiB",
    "raid:members=3,member=hdd:capacity=32MiB",
    "ssd:capacity=64MiB,superblock=1MiB",
];

/// What the suite asks of a device at least, in each cell, about half of what it does ask: the
/// bytes came from there.
const WRITES_MIN: u64 = 400;
const READS_MIN: u64 = 400;
const FLUSHES_MIN: u64 = 80;

/// Runs the suite; the sum of what was asked of the devices.
fn check(model: &str, placement: &str) -> Counts {
    let setups = Mutex::new(Vec::new());
    conformance::check(&|| {
        let setup = Setup::new(model, 1);
        setup.format(Some(placement), 64 << 10);
        let options = DirectOptions::default();
        let store = DirectStore::open(setup.device.clone(), setup.ledger.clone(), options);
        setups.lock().push(setup);
        Arc::new(store.unwrap())
    });
    let mut sum = Counts::default();
    for setup in setups.into_inner() {
        let counts = setup.device.counts();
        assert_eq!(setup.ledger.snapshot().host().write_bytes, counts.write_bytes);
        sum.writes += counts.writes;
        sum.reads += counts.reads;
        sum.flushes += counts.flushes;
    }
    sum
}

#[test]
fn direct_storage_conforms_on_every_model_under_every_placement() {
    let mut placements = Vec::new();
    for model in MODELS {
        let geometry = models::make(model).unwrap().geometry();
        let names = placement::registry().iter().map(|descriptor| descriptor.name);
        let fitting: Vec<_> =
            names.filter(|name| placement::find(name, &geometry).is_ok()).collect();
        assert!(fitting.contains(&placement::suited(&geometry)), "{model}");
        for name in fitting {
            let counts = check(model, name);
            assert!(counts.writes >= WRITES_MIN, "{model}, {name}: {counts:?}");
            assert!(counts.reads >= READS_MIN, "{model}, {name}: {counts:?}");
            assert!(counts.flushes >= FLUSHES_MIN, "{model}, {name}: {counts:?}");
            placements.push(name);
        }
    }
    // Nothing that has a name was left out.
    for descriptor in models::registry() {
        assert!(MODELS.iter().any(|model| model.split(':').next() == Some(descriptor.name)));
    }
    assert!(placement::registry().iter().all(|of| placements.contains(&of.name)));
}
