//! `simulate`: what schemes and value layouts would cost, without data.
//!
//! The policies and layouts are the engine's own; what they work on are summaries: a run is a set
//! of numbers, each of which stands for a group of records of equal size.

mod policies;
mod value_layouts;

use crate::args::{KeyOrder, SimulateArgs};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::units;
use std::time::Duration;
use tree::simulate::Keys;

const ZIPF_EXPONENT: f64 = 0.99;

/// `shingle simulate`.
pub fn simulate(context: &mut Context, args: &SimulateArgs) -> Outcome {
    let shares = std::iter::once(args.reads_share).chain(args.reserved_ratio.iter().copied());
    if shares.clone().any(|share| !(0.0..=1.0).contains(&share)) {
        return Err(Failure::usage("a share is a number from 0 to 1", "0.3 is 30 %"));
    }
    if args.fan_out.is_some_and(|fan_out| !(1.5..=10_000.0).contains(&fan_out)) {
        return Err(Failure::usage("--fan-out is a number from 1.5 to 10000", "10 is usual"));
    }
    if args.values.is_empty() {
        policies::simulate(context, args)
    } else {
        value_layouts::simulate(context, args)
    }
}

fn keys(args: &SimulateArgs) -> Keys {
    match args.keys {
        KeyOrder::Uniform => Keys::Uniform,
        KeyOrder::Zipf => Keys::Zipf(ZIPF_EXPONENT),
        KeyOrder::Sequential => Keys::Sequential,
    }
}

fn keys_count(args: &SimulateArgs) -> u64 {
    args.keys_count.unwrap_or(args.writes)
}

fn record_bytes(args: &SimulateArgs) -> u64 {
    args.key_size + args.value_size
}

/// Of how many records one simulated record is made, so that `unit_bytes`, the smallest size that
/// matters, are `in_unit` of them.
fn scale(args: &SimulateArgs, unit_bytes: u64, in_unit: u64) -> Outcome<u64> {
    let scale = args.scale.unwrap_or((unit_bytes / in_unit / record_bytes(args).max(1)).max(1));
    let simulated = keys_count(args).max(args.writes) / scale;
    if simulated > u64::from(u32::MAX) {
        return Err(Failure::usage(
            format!("{} simulated records are too many", units::count(simulated)),
            "give a larger --scale, or larger tables",
        ));
    }
    Ok(scale)
}

/// How fast it was, for people.
fn rate(user_bytes: u64, written_bytes: u64, scale: u64, taken: Duration) -> String {
    let per_second = |bytes: u64| units::bytes(units::per_second(bytes, taken.as_nanos() as u64));
    format!(
        "{} of writes in {}: {} a second, as if a device wrote {} a second; one record stands \
         for {scale}",
        units::bytes(user_bytes),
        units::time(taken.as_nanos() as u64),
        per_second(user_bytes),
        per_second(written_bytes)
    )
}
