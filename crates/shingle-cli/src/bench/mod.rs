//! `bench`: the workloads of the lab on a database of the engine.

mod factory;
mod help;
mod recording;
mod simulated;
mod threshold;
mod watcher;
mod ycsb;

use crate::args::{BenchArgs, PresetName};
use crate::context::Context;
use crate::device::smart;
use crate::failure::{Failure, Outcome};
use factory::{Factory, Place};
use recording::Recording;
use shingle::Options;
use std::path::{Path, PathBuf};
use watcher::Watcher;
use workloads::StoreFactory;
use workloads::dbbench;

/// db_bench's flags about the engine, and our options of the same meaning.
const ENGINE_FLAGS: [(&str, &str); 6] = [
    ("bloom_bits", "filter_bits_per_key"),
    ("cache_size", "cache_bytes"),
    ("compression_type", "compression"),
    ("max_background_jobs", "background_threads"),
    ("rate_limiter_bytes_per_sec", "background_bytes_per_second"),
    ("write_buffer_size", "write_buffer_bytes"),
];

/// `shingle bench`.
pub fn bench(context: &mut Context, args: BenchArgs) -> Outcome {
    let (name, flags) = args.workload.split_first().expect("the parser asks for a workload");
    if context.global.cold_store.is_some() && name != "threshold" {
        let what = "a benchmark makes a database without a cold store";
        return Err(Failure::usage(what, "leave --cold-store and SHINGLE_COLD_STORE out"));
    }
    match name.as_str() {
        "db" | "db_bench" if help::is_asked(flags) => Ok(write!(context.out, "{}", help::db())?),
        "ycsb" if help::is_asked(flags) => Ok(write!(context.out, "{}", help::ycsb())?),
        "db" | "db_bench" => db(context, &args, flags),
        "ycsb" => ycsb::run(context, &args, flags),
        "threshold" => threshold::run(context, &args, flags),
        _ => Err(Failure::usage(
            format!("bench: unknown workload {name}"),
            "there are `db` (db_bench), `ycsb` and `threshold`; the engine's flags stand before it",
        )),
    }
}

/// Options as the flags before the workload ask for them.
fn options(context: &Context, args: &BenchArgs) -> Outcome<Options> {
    let preset = match args.preset {
        PresetName::Leveldb => "leveldb",
        PresetName::Modern => "modern",
    };
    let mut options = Options::new().set("preset", preset)?;
    if let Some(scheme) = &args.scheme {
        options = options.set("scheme", scheme).map_err(Failure::of_value)?;
    }
    if let Some(values) = &args.values {
        options = options.set("values", values).map_err(Failure::of_value)?;
    }
    context.set_options(options)
}

fn db(context: &mut Context, args: &BenchArgs, flags: &[String]) -> Outcome {
    let parsed = dbbench::parse(flags).map_err(Failure::of_value)?;
    let mut config = parsed.config;
    config.json |= context.global.json;
    for warning in &parsed.warnings {
        context.remark(warning);
    }
    let mut options = options(context, args)?;
    for (flag, option) in ENGINE_FLAGS {
        let given = config.engine.get(flag).filter(|value| !value.starts_with('-'));
        if let Some(value) = given {
            options = options.set(option, value).map_err(Failure::of_value)?;
        }
    }
    let named = config.db.as_ref().map(PathBuf::from);
    let place = Place::new(args, context.global.db.clone().or(named))?;
    let factory = Factory::new(options, place, config.disable_wal)?;
    let drive = Drive::before(args, &factory)?;
    let watcher = Watcher::new(context, factory.simulated().is_none());
    let clock = factory.clock();
    let recording = Recording::new(args, &factory)?;
    let outcome = recording.factory(&factory, |factory| {
        dbbench::run(&config, factory, &*clock, &watcher, &mut *context.out)
    });
    let ended = end(context, &factory, args, drive, outcome.map(|_| ()));
    recording.finish().and(ended)
}

/// The drive below a run, and its counters when the run began.
struct Drive<'a> {
    name: &'a str,
    before: smart::Counters,
}

impl<'a> Drive<'a> {
    /// The drive that `--smart` names.
    fn before(args: &'a BenchArgs, factory: &Factory) -> Outcome<Option<Drive<'a>>> {
        let Some(name) = args.smart.smart.as_deref() else { return Ok(None) };
        if !factory.is_on_files() {
            return Err(Failure::usage(
                "--smart reads the counters of a drive, and the database is on none",
                "leave --smart out, or --device",
            ));
        }
        Ok(Some(Drive { name, before: smart::read(&args.smart, name)? }))
    }

    /// What it did since, beside what the run wrote.
    fn tell(&self, context: &mut Context, args: &BenchArgs, own_bytes: u64) -> Outcome {
        let after = smart::read(&args.smart, self.name)?;
        let interval = smart::Interval::new(&self.before, &after, own_bytes)?;
        if context.global.json {
            return context.json(&interval.json(&after));
        }
        Ok(write!(context.out, "{}", interval.text(&after))?)
    }
}

/// Tells and draws what was asked for, and removes a database that was only for this run.
fn end(
    context: &mut Context,
    factory: &Factory,
    args: &BenchArgs,
    drive: Option<Drive<'_>>,
    outcome: shingle::Result<()>,
) -> Outcome {
    if outcome.is_err() && factory.is_interrupted() {
        return Err(factory.end_early("the results above are those of the benchmarks that ended"));
    }
    if let (Some(drive), Ok(())) = (drive, &outcome) {
        drive.tell(context, args, factory.write_bytes())?;
    }
    if let (Some(simulated), Some(path), Ok(())) = (factory.simulated(), &args.map, &outcome) {
        simulated.draw(path)?;
    }
    let removed = if factory.is_temporary() { factory.destroy() } else { Ok(()) };
    // The results going nowhere is how a reader ends a run early.
    match outcome {
        Err(error) if is_broken_pipe(&error) => Err(Failure::OutputClosed),
        outcome => Ok(outcome.and(removed)?),
    }
}

fn is_broken_pipe(error: &shingle::Error) -> bool {
    let source = std::error::Error::source(error);
    let source = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|source| source.kind() == std::io::ErrorKind::BrokenPipe)
}

/// A directory of this process below the system's temporary one.
fn temporary() -> PathBuf {
    Path::new(&std::env::temp_dir()).join(format!("shingle-bench-{}", std::process::id()))
}
