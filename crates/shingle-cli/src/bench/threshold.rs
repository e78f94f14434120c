//! `bench threshold`: the separation threshold that fits this machine.

use super::factory::{Factory, Place};
use super::options;
use super::watcher::Watcher;
use crate::args::BenchArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::open::{Access, is_device};
use crate::units;
use clap::Parser;
use serde::Serialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use workloads::threshold::{Plan, Point, Side, crossover, measure};

/// Measure the separation threshold: the value size from which separation pays
#[derive(Parser, Debug)]
#[command(name = "shingle bench threshold", no_binary_name = true)]
struct Flags {
    /// Sizes of values, ascending
    #[arg(long, value_delimiter = ',', default_value = "64,128,256,512,1024,2048,4096,8192")]
    sizes: Vec<usize>,
    /// Bytes of keys and values that each load writes
    #[arg(long, default_value_t = 64 << 20)]
    bytes: u64,
    /// Bytes of a key
    #[arg(long, default_value_t = 24)]
    key_size: usize,
    /// Updates, as a multiple of the keys
    #[arg(long, default_value_t = 2.0)]
    updates: f64,
    /// Point reads, as a multiple of the keys
    #[arg(long, default_value_t = 1.0)]
    reads: f64,
    /// How often each point is measured
    #[arg(long, default_value_t = 1)]
    rounds: u64,
    /// Values compress to this share of their length
    #[arg(long, default_value_t = 0.5)]
    compression_ratio: f64,
    /// Seed of keys and values
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The layout that is compared with `inline` where none is named.
const LAYOUT: &str = "hashed";

/// `shingle bench threshold`.
pub fn run(context: &mut Context, args: &BenchArgs, flags: &[String]) -> Outcome {
    let flags = match Flags::try_parse_from(flags) {
        Ok(flags) => flags,
        Err(error) if !error.use_stderr() => return Ok(write!(context.out, "{error}")?),
        Err(error) => {
            return Err(Failure::usage(
                error.to_string().trim_end(),
                "see `shingle bench threshold --help`",
            ));
        }
    };
    let plan = Plan {
        sizes: flags.sizes,
        key_bytes: flags.key_size,
        load_bytes: flags.bytes,
        updates: flags.updates,
        reads: flags.reads,
        rounds: flags.rounds,
        compression_ratio: flags.compression_ratio,
        seed: flags.seed,
    };
    let layout = args.values.as_deref().unwrap_or(LAYOUT);
    if !(values::by_name(layout).map_err(Failure::of_value)?.make)().separates() {
        return Err(Failure::usage(
            format!("bench threshold: the layout {layout} keeps values in the runs"),
            "name one that does not with --values; `shingle schemes --values` has them",
        ));
    }
    let points = compare(context, args, &plan, layout)?;
    let threshold = crossover(&points);
    let is_kept = keep(context, args, threshold)?;
    if context.global.json {
        return context.json(&Report { layout, threshold_bytes: threshold, is_kept, points });
    }
    print(context, layout, &points)?;
    conclude(context, layout, threshold, is_kept)
}

/// Measures in a place beside the database that was named, which is not touched.
fn compare(
    context: &mut Context,
    args: &BenchArgs,
    plan: &Plan,
    layout: &str,
) -> Outcome<Vec<Point>> {
    let place = match &context.global.db {
        Some(path) if is_device(path) => {
            return Err(Failure::usage(
                "bench threshold measures in a directory, or on a model of a device",
                "leave --db out, or name a directory on the same disk",
            ));
        }
        Some(path) if args.device == "files" => Place::Temporary(beside(path)),
        _ => Place::new(args, None)?,
    };
    let options = options(context, args)?;
    let inline = Factory::new(options.clone().set("values", "inline")?, place, false)?;
    let apart = inline.under(options.set("values", layout)?.set("value_threshold", "1")?);
    let watcher = Watcher::new(context, inline.simulated().is_none());
    let measured = measure(plan, &inline, &apart, &*inline.clock(), &watcher);
    if measured.is_err() && inline.is_interrupted() {
        apart.unwatch();
        return Err(inline.end_early("no threshold was measured"));
    }
    Ok(measured?)
}

/// A directory of this process beside `path`.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or(OsStr::new("shingle")).to_string_lossy();
    path.with_file_name(format!(".{name}-threshold-{}", std::process::id()))
}

/// Notes the threshold with the database that was named, if there is one.
fn keep(context: &mut Context, args: &BenchArgs, threshold: Option<usize>) -> Outcome<bool> {
    let Some(threshold) = threshold.filter(|_| args.device == "files") else { return Ok(false) };
    let is_there = |path: &PathBuf| path.join("CURRENT").exists();
    if !context.global.db.as_ref().is_some_and(is_there) {
        return Ok(false);
    }
    let db = context.open(Access::Change)?;
    db.keep_value_threshold(threshold as u64)?;
    db.close()?;
    Ok(true)
}

#[derive(Serialize)]
struct Report<'a> {
    layout: &'a str,
    /// Null: separated values cost more at every size.
    threshold_bytes: Option<usize>,
    /// The database has it for `value_threshold=auto`.
    is_kept: bool,
    #[serde(serialize_with = "all")]
    points: Vec<Point>,
}

#[derive(Serialize)]
struct ShownPoint {
    value_bytes: usize,
    keys: u64,
    time_ratio: f64,
    inline: ShownSide,
    apart: ShownSide,
}

#[derive(Serialize)]
struct ShownSide {
    load_ns: u64,
    update_ns: u64,
    read_ns: u64,
    wa: f64,
    space_bytes: u64,
}

fn all<S: serde::Serializer>(points: &[Point], to: S) -> Result<S::Ok, S::Error> {
    let side = |side: &Side| ShownSide {
        load_ns: side.load_ns,
        update_ns: side.update_ns,
        read_ns: side.read_ns,
        wa: side.write_amplification(),
        space_bytes: side.space_bytes,
    };
    to.collect_seq(points.iter().map(|point| ShownPoint {
        value_bytes: point.value_bytes,
        keys: point.keys,
        time_ratio: point.ratio(),
        inline: side(&point.inline),
        apart: side(&point.apart),
    }))
}

fn print(context: &mut Context, layout: &str, points: &[Point]) -> Outcome {
    let (title, out) = (format!("{layout}: load"), &mut context.out);
    writeln!(
        out,
        "{:>8} {:>10} {:>12} {:>9} {:>9} {:>6} {:>12} {:>9} {:>9} {:>6} {:>7}",
        "value",
        "keys",
        "inline: load",
        "updates",
        "reads",
        "W-Amp",
        title,
        "updates",
        "reads",
        "W-Amp",
        "time",
    )?;
    for point in points {
        write!(out, "{:>8} {:>10}", point.value_bytes, units::count(point.keys))?;
        for side in [&point.inline, &point.apart] {
            let [load, update, read] =
                [side.load_ns, side.update_ns, side.read_ns].map(units::time);
            write!(out, " {load:>12} {update:>9} {read:>9}")?;
            write!(out, " {:>6.2}", side.write_amplification())?;
        }
        writeln!(out, " {:>6.2}x", point.ratio())?;
    }
    Ok(())
}

fn conclude(
    context: &mut Context,
    layout: &str,
    threshold: Option<usize>,
    is_kept: bool,
) -> Outcome {
    let out = &mut context.out;
    let Some(bytes) = threshold else {
        let what = "separated values cost more time at the largest size: keep values inline";
        return Ok(writeln!(out, "{what} (--option values=inline), or measure larger ones")?);
    };
    writeln!(out, "separated values of {bytes} bytes or more take no extra time ({layout})")?;
    let what = match is_kept {
        true => "kept with the database, for --option value_threshold=auto".to_string(),
        false => format!("use it with --option value_threshold={bytes}"),
    };
    Ok(writeln!(out, "{what}")?)
}
