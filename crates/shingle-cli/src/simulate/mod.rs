//! `simulate`: what schemes and value layouts would cost, without data.
//!
//! The policies and layouts are the engine's own; what they work on are summaries: a run is a set
//! of numbers, each of which stands for a group of records of equal size.

mod policies;
mod value_layouts;

use crate::args::{KeyOrder, SimulateArgs};
use crate::context::Context;
use crate::failure::Outcome;
use crate::units;
use std::time::Duration;
use workloads::simulate::Keys;

/// `shingle simulate`.
pub fn simulate(context: &mut Context, args: &SimulateArgs) -> Outcome {
    if args.values.is_empty() {
        policies::simulate(context, args)
    } else {
        value_layouts::simulate(context, args)
    }
}

fn keys(args: &SimulateArgs) -> Keys {
    match args.keys {
        KeyOrder::Uniform => Keys::Uniform,
        KeyOrder::Zipf => Keys::ZIPF,
        KeyOrder::Sequential => Keys::Sequential,
    }
}

fn keys_count(args: &SimulateArgs) -> u64 {
    args.keys_count.unwrap_or(args.writes)
}

fn record_bytes(args: &SimulateArgs) -> u64 {
    args.key_size + args.value_size
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
