//! The engine in the simulation: the same seed gives the same history, to the nanosecond.

mod store;

use base::Ledger;
use base::env::Runtime;
use base::random::Random;
use devices::simulation::Counts;
use devices::{SimulatedDevice, Simulation, SimulationOptions, models};
use shingle::{Db, Options};
use std::sync::Arc;
use store::DeviceStore;

/// What a run was like.
#[derive(Clone, Debug, PartialEq)]
struct History {
    trace_hash: u64,
    requests: u64,
    counts: Counts,
    end_ns: u64,
    /// Of each operation, in their order.
    latencies_ns: Vec<u64>,
    stall_ns: u64,
}

fn options() -> Options {
    Options::new().memory_bytes(8 << 20).write_buffer_bytes(1 << 20).expert(|expert| {
        expert.table_bytes = Some(256 << 10);
        expert.memtable_bytes = Some(128 << 10);
        expert.level_bytes_base = Some(1 << 20);
        expert.fan_out = Some(4.0);
    })
}

fn open(model: &str, seed: u64) -> (Simulation, Arc<SimulatedDevice>, Db) {
    let simulation = Simulation::new(SimulationOptions { seed, ..SimulationOptions::default() });
    let device = Arc::new(simulation.device(models::make(model).unwrap()));
    let store = Arc::new(DeviceStore::new(device.clone(), Arc::new(Ledger::default())));
    let db = options().open_in(store, Arc::new(simulation.clone())).unwrap();
    (simulation, device, db)
}

/// Writes with reads between them; every hundredth is synced.
fn run(model: &str, seed: u64, operations: u64) -> History {
    let (simulation, device, db) = open(model, seed);
    let mut random = Random::new(1);
    let mut latencies_ns = Vec::new();
    for round in 0..operations {
        let begin_ns = simulation.now_ns();
        let key = random.below(20_000).to_be_bytes();
        if round % 4 == 3 {
            db.get(key).unwrap();
            simulation.turn();
        } else {
            let mut value = [0; 200];
            random.fill(&mut value[..100]);
            db.put(key, value).unwrap();
            if round % 100 == 0 {
                db.sync().unwrap();
            }
        }
        latencies_ns.push(simulation.now_ns() - begin_ns);
    }
    let stall_ns = db.stats().stall_ns();
    db.close().unwrap();
    History {
        trace_hash: simulation.trace_hash(),
        requests: simulation.requests(),
        counts: device.counts(),
        end_ns: simulation.now_ns(),
        latencies_ns,
        stall_ns,
    }
}

const SSD: &str = "ssd:capacity=64MiB,superblock=1MiB,op=15%,wear=steady";

#[test]
fn the_same_seed_gives_the_same_history() {
    let first = run(SSD, 1, 60_000);
    let again = run(SSD, 1, 60_000);
    assert!(first == again, "{first:?}\n{again:?}");
    let other = run(SSD, 2, 60_000);
    assert_ne!(first.trace_hash, other.trace_hash);
    println!("{:#x} {:?} {}", first.trace_hash, first.counts, first.end_ns);
}
