//! Value layouts under updates.

use super::{keys, keys_count, rate, record_bytes};
use crate::args::SimulateArgs;
use crate::commands::ledger::plain_table;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::progress::Bar;
use base::random::Random;
use serde_json::json;
use std::time::Instant;
use values::simulate::Simulation;
use values::{Descriptor, ValueLimits, by_name};
use workloads::simulate::{checked_scale, records_of};

/// Simulated records in a log segment.
const RECORDS_IN_SEGMENT: u64 = 16;
/// Writes between two moves of the bar.
const WRITES_PER_STEP: u64 = 4096;

/// What a layout cost at one reserved ratio.
struct Cost {
    user_bytes: u64,
    written_bytes: u64,
    lookups: u64,
    /// Bytes of all segments for a byte of live values, at the end.
    space_amplification: f64,
}

pub(super) fn simulate(context: &mut Context, args: &SimulateArgs) -> Outcome {
    let layouts: Vec<&Descriptor> = args
        .values
        .iter()
        .map(|name| by_name(name))
        .collect::<base::Result<_>>()
        .map_err(Failure::of_value)?;
    if let Some(layout) = layouts.iter().find(|layout| !(layout.make)().separates()) {
        let message = format!("{} keeps values in the runs: no value store", layout.name);
        return Err(Failure::usage(message, "`shingle simulate --scheme NAME` shows its cost"));
    }
    if args.reserved_ratio.iter().any(|ratio| !(0.0..=1.0).contains(ratio)) {
        return Err(Failure::usage("a ratio is a number from 0 to 1", "0.3 is 30 %"));
    }
    let segment_bytes = ValueLimits::default().log_segment_bytes;
    let fits = records_of(segment_bytes, RECORDS_IN_SEGMENT, record_bytes(args));
    let scale = checked_scale(args.scale.unwrap_or(fits), keys_count(args).max(args.writes))
        .map_err(Failure::of_value)?;
    let mut table =
        plain_table(&["layout", "reserved", "value WA", "space", "look-ups for a write"]);
    let (begun, mut user, mut written) = (Instant::now(), 0, 0);
    for layout in layouts {
        for &ratio in &args.reserved_ratio {
            let cost = run(context, args, layout, ratio, scale);
            let (wa, lookups) = (cost.write_amplification(), cost.lookups_for_a_write(args, scale));
            let space = cost.space_amplification;
            user += cost.user_bytes;
            written += cost.written_bytes;
            if context.global.json {
                context.json(&json!({
                    "values": layout.name, "reserved_ratio": ratio, "write_amplification": wa,
                    "space_amplification": space, "lookups_per_write": lookups, "scale": scale,
                }))?;
                continue;
            }
            let name = layout.name.to_string();
            let figures = [ratio, wa, space, lookups].map(|figure| format!("{figure:.2}"));
            table.add_row(std::iter::once(name).chain(figures).collect::<Vec<_>>());
        }
    }
    if !context.global.json {
        writeln!(context.out, "{table}\n")?;
        writeln!(
            context.out,
            "value WA: bytes written to segments for a byte of values, in the second half of the \
             updates.\nspace: bytes of segments for a byte of live values, at the end."
        )?;
        writeln!(context.out, "{}", rate(user, written, scale, begun.elapsed()))?;
    }
    Ok(())
}

fn run(
    context: &Context,
    args: &SimulateArgs,
    layout: &Descriptor,
    ratio: f64,
    scale: u64,
) -> Cost {
    let record_bytes = record_bytes(args) * scale;
    let keys_count = (keys_count(args) / scale).max(1);
    let writes = (args.writes / scale).max(2);
    let limits = ValueLimits { reserved_ratio: ratio, ..ValueLimits::default() };
    let mut store = Simulation::new((layout.make)(), limits, keys_count as u32, record_bytes, 0);
    let bar = context.bar(layout.name, (keys_count + writes) * record_bytes);
    let mut random = Random::new(1);
    let order = keys(args);
    let mut step = |store: &mut Simulation, from: u64, to: u64, is_load: bool| {
        for write in from..to {
            let key =
                if is_load { write as u32 } else { order.draw(&mut random, write + 1, keys_count) };
            store.put(key);
            tick(&bar, write, record_bytes);
        }
    };
    step(&mut store, 0, keys_count, true);
    step(&mut store, 0, writes / 2, false);
    let (user, written, lookups) = (store.user_bytes, store.written_bytes, store.lookups);
    step(&mut store, writes / 2, writes, false);
    Cost {
        user_bytes: store.user_bytes - user,
        written_bytes: store.written_bytes - written,
        lookups: store.lookups - lookups,
        space_amplification: store.usage().total_bytes as f64 / (keys_count * record_bytes) as f64,
    }
}

fn tick(bar: &Bar, write: u64, record_bytes: u64) {
    if (write + 1).is_multiple_of(WRITES_PER_STEP) {
        bar.add(WRITES_PER_STEP * record_bytes);
    }
}

impl Cost {
    fn write_amplification(&self) -> f64 {
        self.written_bytes as f64 / self.user_bytes.max(1) as f64
    }

    fn lookups_for_a_write(&self, args: &SimulateArgs, scale: u64) -> f64 {
        self.lookups as f64 * (record_bytes(args) * scale) as f64 / self.user_bytes.max(1) as f64
    }
}
