//! YCSB's core workloads as benchmarks: `ycsb-load`, then `ycsb-a` to `ycsb-f`.
//!
//! `--num` records are loaded, and each workload does `--reads` operations (`--num` unless given).
//! Keys are YCSB's own: `user` and a hash in decimal digits. Values have `--value_size` bytes, and
//! an update writes all of one.

use crate::engine::Place;
use crate::peak::SpacePeak;
use crate::run::{Mark, Phase};
use base::{Error, Result};
use workloads::dbbench::Config;
use workloads::store::StoreFactory;
use workloads::values::ValueSize;
use workloads::ycsb::{self, Properties, Workload};
use workloads::{Clock, Record, Silent, WallClock};

const LOAD: &str = "ycsb-load";

/// Names and property files.
const WORKLOADS: [(&str, &str); 6] = [
    ("ycsb-a", include_str!("../../workloads/workloada.properties")),
    ("ycsb-b", include_str!("../../workloads/workloadb.properties")),
    ("ycsb-c", include_str!("../../workloads/workloadc.properties")),
    ("ycsb-d", include_str!("../../workloads/workloadd.properties")),
    ("ycsb-e", include_str!("../../workloads/workloade.properties")),
    ("ycsb-f", include_str!("../../workloads/workloadf.properties")),
];

/// Whether `config` asks for YCSB. A step is either that or db_bench.
pub fn is_asked(config: &Config) -> bool {
    config.benchmarks.iter().any(|name| name.starts_with("ycsb-"))
}

/// Runs the benchmarks of `config` on the store at `place`, each until the store is idle.
pub fn step(place: &Place, config: &Config, peak: &SpacePeak) -> Result<Vec<Phase>> {
    let store = place.open()?;
    let clock = WallClock::default();
    let mut phases = Vec::new();
    for name in &config.benchmarks {
        let (workload, half) = workload(name, config)?;
        let start = Mark::now(peak);
        let out = &mut std::io::sink();
        let record = ycsb::run(&workload, half, store.as_ref(), &clock, &Silent, out)?;
        let settle_ns = clock.now_ns();
        store.wait_idle()?;
        let settle_seconds = (clock.now_ns() - settle_ns) as f64 / 1e9;
        let space = store.counters()?.space_bytes;
        let record = Record { benchmark: name.clone(), ..record };
        let mut phase = Phase::new(record);
        phase.settle(settle_seconds, space, start, Mark::now(peak));
        phases.push(phase);
    }
    store.close()?;
    Ok(phases)
}

/// The workload called `name`, with the sizes of `config`.
fn workload(name: &str, config: &Config) -> Result<(Workload, ycsb::Phase)> {
    let is_load = name == LOAD;
    let wanted = if is_load { "ycsb-a" } else { name };
    let Some((_, text)) = WORKLOADS.iter().find(|(known, _)| *known == wanted) else {
        let known: Vec<&str> = WORKLOADS.iter().map(|(known, _)| *known).collect();
        let all = known.join(", ");
        return Err(Error::invalid(format!("no benchmark '{name}'; YCSB has {LOAD}, {all}")));
    };
    let ValueSize::Fixed(value_bytes) = config.value_size else {
        return Err(Error::invalid("YCSB's values have one size: give --value_size"));
    };
    let mut properties = Properties::parse(text)?;
    for (property, value) in [
        ("recordcount", config.num),
        ("operationcount", config.reads.unwrap_or(config.num)),
        ("valuebytes", value_bytes as u64),
        ("threadcount", config.threads as u64),
        ("seed", config.seed),
    ] {
        properties.set(property, &value.to_string());
    }
    properties.set("compressionratio", &config.compression_ratio.to_string());
    let half = if is_load { ycsb::Phase::Load } else { ycsb::Phase::Run };
    Ok((Workload::new(name, &properties)?, half))
}
