//! `device bench`: the phases that the models are calibrated by, on a model or on a real device.

use super::is_model;
use crate::args::device::BenchDeviceArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::open;
use base::random::Random;
use devices::calibration::{Bench, Rate};
use devices::{Access, models};
use media::block::{BlockDevice, Overwrite};
use media::os::FileDevice;
use serde_json::json;
use shingle::Cause;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Random writes before those that are measured: they fill a write cache.
const WARM_UP: u64 = 1000;

const SEQUENTIAL_BYTES: usize = 1 << 20;
const SEQUENTIAL_COUNT: u64 = 1024;
const RANDOM_BYTES: usize = 4096;

/// What was measured; `None`: the device cannot, or may not, do that.
#[derive(Default)]
struct Rates {
    read: Option<Rate>,
    write: Option<Rate>,
    random_read: Option<Rate>,
    random_write: Option<Rate>,
}

/// `shingle device bench`.
pub fn bench(context: &mut Context, args: &BenchDeviceArgs) -> Outcome {
    let rates = if is_model(&args.device) { of_model(args)? } else { of_device(args)? };
    let phases = [
        ("sequential read", rates.read),
        ("sequential write", rates.write),
        ("random read", rates.random_read),
        ("random write", rates.random_write),
    ];
    for (name, rate) in phases {
        let Some(Rate { megabytes, requests }) = rate else { continue };
        if context.global.json {
            let facts = json!({ "phase": name, "megabytes": megabytes, "requests": requests });
            context.json(&facts)?;
        } else {
            writeln!(context.out, "{name:<17} {megabytes:9.1} MB/s {requests:10.1} requests/s")?;
        }
    }
    Ok(())
}

/// Streams go first where reads of what was never written, or writes over it, break a rule.
fn of_model(args: &BenchDeviceArgs) -> Outcome<Rates> {
    let mut bench = Bench::new(models::make(&args.device)?);
    let is_plain = bench.model().geometry().overwrite == Overwrite::InPlace;
    if !is_plain {
        let write = Some(bench.sequential(Access::Write)?);
        let read = Some(bench.sequential(Access::Read)?);
        return Ok(Rates { read, write, ..Rates::default() });
    }
    let read = Some(bench.sequential(Access::Read)?);
    let write = Some(bench.sequential(Access::Write)?);
    let random_read = Some(bench.random(Access::Read, args.count)?);
    bench.random(Access::Write, WARM_UP)?;
    let random_write = Some(bench.random(Access::Write, args.count)?);
    Ok(Rates { read, write, random_read, random_write })
}

fn of_device(args: &BenchDeviceArgs) -> Outcome<Rates> {
    let path = Path::new(&args.device);
    if !open::is_device(path) {
        let names: Vec<&str> = models::registry().iter().map(|model| model.name).collect();
        return Err(Failure::said(
            format!("{} is neither a file nor a disk nor a model", args.device),
            format!("models: {}", names.join(", ")),
        ));
    }
    let mut bench =
        DeviceBench { device: open::device(path, !args.overwrite)?, random: Random::new(1) };
    let device = &bench.device;
    let _lock = if args.overwrite { device.lock()? } else { device.lock_shared()? };
    let read = Some(bench.sequential(Access::Read)?);
    let random_read = Some(bench.random(Access::Read, args.count)?);
    if !args.overwrite {
        return Ok(Rates { read, random_read, ..Rates::default() });
    }
    let write = Some(bench.sequential(Access::Write)?);
    bench.random(Access::Write, WARM_UP)?;
    let random_write = Some(bench.random(Access::Write, args.count)?);
    Ok(Rates { read, write, random_read, random_write })
}

/// The same phases on a device, past the page cache where it can be passed.
struct DeviceBench {
    device: Arc<FileDevice>,
    random: Random,
}

impl DeviceBench {
    fn sequential(&mut self, access: Access) -> Outcome<Rate> {
        let places = self.device.geometry().capacity_bytes / SEQUENTIAL_BYTES as u64;
        let places = (0..places.min(SEQUENTIAL_COUNT)).map(|at| at * SEQUENTIAL_BYTES as u64);
        self.phase(access, SEQUENTIAL_BYTES, &places.collect::<Vec<_>>())
    }

    fn random(&mut self, access: Access, count: u64) -> Outcome<Rate> {
        let all = (self.device.geometry().capacity_bytes / RANDOM_BYTES as u64).max(1);
        let places = (0..count).map(|_| self.random.below(all) * RANDOM_BYTES as u64);
        let places: Vec<u64> = places.collect();
        self.phase(access, RANDOM_BYTES, &places)
    }

    /// A request of `bytes` at each of `places`; written bytes are durable at the end.
    fn phase(&self, access: Access, bytes: usize, places: &[u64]) -> Outcome<Rate> {
        let mut buffer = vec![0; bytes];
        Random::new(2).fill(&mut buffer);
        let begin = Instant::now();
        for at in places {
            match access {
                Access::Write => self.device.write(*at, &buffer, Cause::Compaction(0))?,
                _ => self.device.read(*at, &mut buffer, Cause::Compaction(0))?,
            };
        }
        if access == Access::Write {
            self.device.flush(Cause::Compaction(0))?;
        }
        let (seconds, count) = (begin.elapsed().as_secs_f64().max(1e-9), places.len() as f64);
        Ok(Rate { megabytes: count * bytes as f64 / 1e6 / seconds, requests: count / seconds })
    }
}
