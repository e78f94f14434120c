//! `bench ycsb`: YCSB's command line, `[load|run] -P FILE -p name=value -threads N -target N`.

use super::factory::{Factory, Place};
use super::recording::Recording;
use super::{Drive, end, options};
use crate::args::BenchArgs;
use crate::bench::watcher::Watcher;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use std::io::Write;
use std::path::Path;
use workloads::ycsb::{Phase, Properties, Workload};
use workloads::{Clock, StoreFactory};

/// The core workloads, under the names of YCSB's own files.
const CORE: [(&str, &str); 6] = [
    ("workloada", include_str!("../../workloads/workloada")),
    ("workloadb", include_str!("../../workloads/workloadb")),
    ("workloadc", include_str!("../../workloads/workloadc")),
    ("workloadd", include_str!("../../workloads/workloadd")),
    ("workloade", include_str!("../../workloads/workloade")),
    ("workloadf", include_str!("../../workloads/workloadf")),
];

/// A command line that was understood.
#[derive(Debug)]
struct Request {
    name: String,
    properties: Properties,
    phases: Vec<Phase>,
}

/// `shingle bench ycsb`.
pub fn run(context: &mut Context, args: &BenchArgs, flags: &[String]) -> Outcome {
    let request = parse(flags)?;
    let mut workload =
        Workload::new(&request.name, &request.properties).map_err(Failure::of_value)?;
    workload.json |= context.global.json;
    let place = Place::new(args, context.global.db.clone())?;
    let disable_wal = workload.write_options.disable_wal;
    let factory = Factory::new(options(context, args)?, place, disable_wal)?;
    let drive = Drive::before(args, &factory)?;
    let watcher = Watcher::new(context, factory.simulated().is_none());
    let recording = Recording::new(args, &factory)?;
    let clocks = || factory.clock();
    let outcome = recording.factory(&factory, |stores| {
        phases(&workload, &request.phases, stores, &clocks, &watcher, &mut *context.out)
    });
    let ended = end(context, &factory, args, drive, outcome);
    recording.finish().and(ended)
}

fn phases(
    workload: &Workload,
    phases: &[Phase],
    stores: &dyn StoreFactory,
    clocks: &dyn Fn() -> Box<dyn Clock>,
    watcher: &Watcher,
    out: &mut dyn Write,
) -> shingle::Result<()> {
    let store = stores.open()?;
    for phase in phases {
        let clock = clocks();
        workloads::ycsb::run(workload, *phase, store.as_ref(), &*clock, watcher, out)?;
    }
    store.close()
}

fn parse(flags: &[String]) -> Outcome<Request> {
    let mut request = Request {
        name: "workload".into(),
        properties: Properties::default(),
        phases: vec![Phase::Load, Phase::Run],
    };
    let mut words = flags.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let mut value = || {
            let missing =
                || Failure::usage(format!("{word}: no value"), "see `shingle bench --help`");
            words.next().ok_or_else(missing)
        };
        match word {
            "load" => request.phases = vec![Phase::Load],
            "run" => request.phases = vec![Phase::Run],
            "-P" => read_file(&mut request, value()?)?,
            "-p" => {
                let pair = value()?;
                let (name, value) = pair.split_once('=').ok_or_else(|| {
                    Failure::usage(format!("-p {pair}: no `=` in it"), "write -p name=value")
                })?;
                request.properties.set(name, value);
            }
            "-threads" | "--threads" => request.properties.set("threadcount", value()?),
            "-target" | "--target" => request.properties.set("target", value()?),
            "-s" => {}
            _ => {
                return Err(Failure::usage(
                    format!("ycsb: unknown word {word}"),
                    "ycsb [load|run] -P FILE -p name=value -threads N -target N",
                ));
            }
        }
    }
    Ok(request)
}

/// Reads a property file into `request`; a later one, or -p, wins.
fn read_file(request: &mut Request, path: &str) -> Outcome {
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    let core = CORE.iter().find(|(core, _)| *core == path);
    let text = match (std::fs::read_to_string(path), core) {
        (Ok(text), _) => text,
        (Err(_), Some((_, text))) => (*text).to_string(),
        (Err(error), None) => return Err(Failure::io(format!("read {path}"), &error)),
    };
    request.name = name.into_owned();
    Properties::parse(&text)?;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        if let Some((name, value)) = line.split_once(['=', ':']) {
            request.properties.set(name.trim(), value.trim());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Outcome<Request> {
        parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_core_workloads_are_workloads() {
        for (name, _) in CORE {
            let request = request(&format!("-P {name} -p recordcount=7")).unwrap();
            let workload = Workload::new(&request.name, &request.properties).unwrap();
            assert_eq!((workload.name.as_str(), workload.record_count), (name, 7));
            assert!((workload.proportions.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{name}");
        }
    }

    #[test]
    fn a_phase_may_be_asked_for() {
        assert_eq!(request("run -P workloadc -threads 2").unwrap().phases, [Phase::Run]);
        assert_eq!(request("load").unwrap().phases, [Phase::Load]);
        assert!(matches!(request("-p x"), Err(Failure::Usage { .. })));
        assert!(matches!(request("what"), Err(Failure::Usage { .. })));
    }
}
