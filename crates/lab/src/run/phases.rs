//! What a phase does: the workloads of the lab by name, with the numbers of its settings.

use super::machine::{self, Machine};
use super::metrics::{Values, measure};
use super::{Metrics, probe::Calls, replay};
use crate::experiment::Phase;
use crate::settings::Settings;
use base::random::Random;
use base::{Cause, Error, Result};
use media::block::BlockDevice;
use std::io::sink;
use workloads::dbbench::{self, Config};
use workloads::values::ValueSize;
use workloads::ycsb;
use workloads::{Clock, Record, Silent};

/// Between the seeds of two phases of a run, and of two runs; both are prime.
const PHASE_STRIDE: u64 = 7919;
const RUN_STRIDE: u64 = 15_485_863;

/// Runs a phase, the `index`-th of its run, and measures it.
pub fn run(machine: &mut Machine, settings: &Settings, index: u64) -> Result<Values> {
    let before = machine.look();
    machine.watched().watcher().take();
    let what = settings.get("do").unwrap_or_default();
    let mut metadata_bytes = None;
    let record = match what {
        "renew" => {
            machine.renew()?;
            None
        }
        "ycsb" => Some(ycsb(machine, settings, index)?),
        "replay" => Some(replay::replay(machine, settings, seed(settings, 1000, index)?)?),
        "check" => {
            metadata_bytes = Some(machine.metadata_bytes()?);
            None
        }
        _ => db_bench(machine, settings, what, index)?,
    };
    let calls: Calls = machine.watched().watcher().take();
    // Counters began anew where the database was opened.
    let before = (what != "renew").then_some(before);
    let mut values = measure(machine, settings, before, record, &calls)?;
    values.extend(metadata_bytes.map(|bytes| ("metadata_bytes", bytes as f64)));
    Ok(values)
}

/// A read or write phase under db_bench's name for it.
fn db_bench(
    machine: &Machine,
    settings: &Settings,
    what: &str,
    index: u64,
) -> Result<Option<Record>> {
    let mut config = Config {
        num: settings.pairs("data")?,
        key_size: settings.key_bytes()?,
        value_size: value_size(settings)?,
        seed: seed(settings, 1000, index)?,
        zipf: settings.get("zipf").map(|_| settings.number("zipf", 0.99)).transpose()?,
        compression_ratio: 1.0,
        disable_wal: settings.is_on("no_wal"),
        json: true,
        rate: settings.rate()?,
        ..Config::default()
    };
    let (writes, requests) = (writes(settings)?, settings.requests("count")?.max(1));
    let name = match what {
        "fillrandom" | "fillseq" | "filluniquerandom" | "overwrite" => {
            config.writes = Some(writes);
            if what == "fillseq" || what == "filluniquerandom" {
                config.num = config.num.max(writes);
            }
            what
        }
        "readrandom" | "readseq" => {
            config.reads = Some(requests);
            what
        }
        "seekrandom" => {
            config.reads = Some(requests);
            config.seek_nexts = scan_pairs(settings)?.saturating_sub(1);
            what
        }
        "mix" => {
            config.writes = Some(requests);
            config.read_percent = (settings.number("reads", 0.5)? * 100.0).round() as u64;
            "readrandomwriterandom"
        }
        "settle" => "waitforcompaction",
        _ => return Err(Error::invalid(format!("no phase does `{what}`"))),
    };
    let clock = machine.clock();
    dbbench::run_on(&config, name, machine.watched(), &clock, &Silent, &mut sink())
}

/// The seed of the `index`-th phase: `first` in the first one of a run with the seed 1.
fn seed(settings: &Settings, first: u64, index: u64) -> Result<u64> {
    let runs = (settings.seed()? - 1).wrapping_mul(RUN_STRIDE);
    Ok(first.wrapping_add(PHASE_STRIDE * index).wrapping_add(runs))
}

/// Pairs that a phase writes: those of `write`, or as many as the data has.
fn writes(settings: &Settings) -> Result<u64> {
    settings.pairs(if settings.get("write").is_some() { "write" } else { "data" })
}

/// Of the keys that a phase writes to fill a database, the share that differ: 1 but where keys are
/// drawn with repetition. None for other phases. `settings` are those of the phase.
pub fn distinct_share(settings: &Settings) -> Result<Option<f64>> {
    let all = settings.pairs("data")?;
    Ok(match settings.get("do") {
        Some("fillrandom") => {
            let drawn = writes(settings)? as f64 / all as f64;
            Some((1.0 - (-drawn).exp()) / drawn)
        }
        Some("fillseq" | "filluniquerandom") => Some(1.0),
        Some("ycsb") if settings.is_on("load") => Some(1.0),
        _ => None,
    })
}

fn value_size(settings: &Settings) -> Result<ValueSize> {
    let large = settings.value_bytes()?;
    let Some(_) = settings.get("small_value") else { return Ok(ValueSize::Fixed(large)) };
    let small = settings.scale().value_bytes(settings.bytes("small_value")?);
    let percent = settings.number("small_share", 0.5)? * 100.0;
    Ok(ValueSize::ByKey(small, large, percent.round() as u8))
}

/// Pairs of a scan: a number, or as many as have these bytes in the paper. They do not shrink.
pub fn scan_pairs(settings: &Settings) -> Result<usize> {
    if settings.get("scan_bytes").is_none() {
        return settings.number("scan", 100.0).map(|pairs| pairs as usize);
    }
    let (pair, _) = settings.pair_bytes()?;
    Ok((settings.bytes("scan_bytes")? / pair).ceil().max(2.0) as usize)
}

fn ycsb(machine: &Machine, settings: &Settings, index: u64) -> Result<Record> {
    let records = settings.pairs("data")?;
    let phase = if settings.is_on("load") { ycsb::Phase::Load } else { ycsb::Phase::Run };
    let mut properties = ycsb::Properties::default();
    let mut set = |name: &str, value: String| properties.set(name, &value);
    let shares = [
        ("read", "read"),
        ("update", "update"),
        ("insert", "insert"),
        ("scan", "scans"),
        ("readmodifywrite", "readmodifywrite"),
    ];
    for (name, setting) in shares {
        set(&format!("{name}proportion"), settings.number(setting, 0.0)?.to_string());
    }
    if phase == ycsb::Phase::Load {
        // A load inserts and asks for no mix, but a workload has to have one.
        set("insertproportion", "1".into());
    }
    set("recordcount", records.to_string());
    set("operationcount", settings.requests("count")?.max(1).to_string());
    set("requestdistribution", settings.get("distribution").unwrap_or("zipfian").to_string());
    set("valuebytes", settings.value_bytes()?.to_string());
    set("zeropadding", settings.key_bytes()?.saturating_sub(4).to_string());
    set("compressionratio", "1.0".into());
    set("flavour", "c".into());
    set("seed", seed(settings, 17, index)?.to_string());
    set("target", settings.rate()?.to_string());
    // Uniform lengths: their mean is that of the setting.
    let scan = settings.number("scan", 50.0)? as u64;
    set("minscanlength", "1".into());
    set("maxscanlength", (2 * scan).saturating_sub(1).max(1).to_string());
    let workload = ycsb::Workload::new("ycsb", &properties)?;
    ycsb::run(&workload, phase, machine.watched(), &machine.clock(), &Silent, &mut sink())
}

/// Requests to the device itself, without an engine: `writeseq` and `writerandom` of `request`
/// bytes over the device, `write` bytes in all.
pub fn raw(settings: &Settings, phases: &[Phase]) -> Result<Metrics> {
    let mut metrics = Metrics::new();
    for phase in phases {
        let settings = settings.with(&phase.settings)?;
        let (simulation, device) = machine::device(&settings)?;
        let clock = workloads::VirtualClock(std::sync::Arc::new(simulation));
        let request = settings.by_size(settings.bytes("request")? as u64).next_multiple_of(4096);
        let capacity = device.geometry().capacity_bytes / request * request;
        let requests = (settings.bytes("write")? * settings.scale().data) as u64 / request;
        let is_random = settings.get("do") == Some("writerandom");
        let mut random = Random::new(settings.seed()?);
        let bytes = vec![0; request as usize];
        let start_ns = clock.now_ns();
        for number in 0..requests {
            let place = if is_random { random.below(capacity / request) } else { number };
            device.write(place * request % capacity, &bytes, Cause::Flush)?;
        }
        device.flush(Cause::Flush)?;
        let seconds = (clock.now_ns() - start_ns) as f64 / 1e9;
        let counts = device.counts();
        let written = counts.write_bytes as f64;
        let mut add = |name: &str, value: f64| {
            metrics.insert(format!("{}.{name}", phase.name), value);
        };
        add("seconds", seconds);
        add("mb_per_second", written / 1e6 / seconds);
        add("awa", counts.moved.write_bytes as f64 / written);
    }
    Ok(metrics)
}
