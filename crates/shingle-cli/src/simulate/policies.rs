//! Schemes on a workload.

use super::{keys, keys_count, rate, record_bytes, scale};
use crate::args::SimulateArgs;
use crate::commands::ledger::plain_table;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::units;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tree::policy::{Descriptor, Limits, by_name, registry};
use tree::simulate::{Report, Workload};

/// Simulated records in a table or a memtable, whichever is smaller.
const RECORDS_IN_TABLE: u64 = 64;

/// What a scheme cost, and how long that took to find out.
struct Answer {
    report: Report,
    taken: Duration,
}

pub(super) fn simulate(context: &mut Context, args: &SimulateArgs) -> Outcome {
    let schemes: Vec<&Descriptor> = match args.scheme.is_empty() {
        true => registry().iter().collect(),
        false => args
            .scheme
            .iter()
            .map(|name| by_name(name))
            .collect::<base::Result<_>>()
            .map_err(Failure::of_value)?,
    };
    let tables = schemes.iter().map(|scheme| limits(args, scheme).table_bytes_max);
    let unit_bytes = tables.fold(args.memtable_bytes, u64::min);
    let workload = Workload {
        keys: keys(args),
        writes: args.writes,
        keys_count: keys_count(args),
        entry_bytes: record_bytes(args),
        memtable_bytes: args.memtable_bytes,
        scale: scale(args, unit_bytes, RECORDS_IN_TABLE)?.min(args.writes),
        moves_per_flush: None,
        reads_share: args.reads_share,
    };
    let mut results = Vec::new();
    for scheme in schemes {
        let result = run(context, &workload, scheme, limits(args, scheme))?;
        if context.global.json {
            context.json(&as_json(&workload, &result))?;
        }
        results.push(result);
    }
    if !context.global.json {
        show(context, &workload, &results)?;
    }
    Ok(())
}

fn limits(args: &SimulateArgs, scheme: &Descriptor) -> Limits {
    let limits = (scheme.limits)(args.memtable_bytes);
    Limits {
        table_bytes_max: args.table_bytes.unwrap_or(limits.table_bytes_max),
        fan_out: args.fan_out.unwrap_or(limits.fan_out),
        ..limits
    }
}

fn run(
    context: &Context,
    workload: &Workload,
    scheme: &Descriptor,
    limits: Limits,
) -> Outcome<Answer> {
    let bar = context.bar(scheme.name, workload.writes * workload.entry_bytes);
    let begun = Instant::now();
    let mut watch = |writes| bar.add(writes * workload.entry_bytes);
    let report = workload.run_watched(scheme, limits, &mut watch)?;
    Ok(Answer { report, taken: begun.elapsed() })
}

fn written_bytes(report: &Report) -> u64 {
    report.flushed_bytes + report.written_bytes.iter().sum::<u64>()
}

fn as_json(workload: &Workload, Answer { report, taken }: &Answer) -> Value {
    json!({
        "scheme": report.name,
        "write_amplification": report.write_amplification(),
        "user_bytes": report.user_bytes,
        "flushed_bytes": report.flushed_bytes,
        "written_bytes_by_level": report.written_bytes,
        "level_bytes": report.level_bytes,
        "level_nodes": report.level_nodes,
        "moves": report.moves,
        "level0_runs_max": report.level0_runs_max,
        "stack_max": report.stack_max,
        "file_bytes_max": report.file_bytes_max,
        "sets": report.sets.0,
        "tables_in_sets": report.sets.1,
        "space_amplification": report.space_amplification,
        "space_amplification_max": report.space_amplification_max,
        "slices_per_get": report.slices_per_get,
        "slices_per_get_read_only": report.slices_per_get_read_only,
        "scale": workload.scale,
        "simulation_ns": taken.as_nanos() as u64,
    })
}

fn show(context: &mut Context, workload: &Workload, results: &[Answer]) -> Outcome {
    writeln!(context.out, "{}", costs(results))?;
    writeln!(context.out, "\n{}", trees(results))?;
    writeln!(
        context.out,
        "\nWA: bytes written for a byte of the user, without the log; then by the level written \
         to.\nspace: bytes of files for a byte of distinct keys, at the end and at most.\nslices: \
         asked for a get, filters aside, at the end and after reads alone."
    )?;
    let user = results.iter().map(|result| result.report.user_bytes).sum();
    let written = results.iter().map(|result| written_bytes(&result.report)).sum();
    let taken = results.iter().map(|result| result.taken).sum();
    writeln!(context.out, "{}", rate(user, written, workload.scale, taken))?;
    Ok(())
}

/// What each scheme wrote, keeps and asks.
fn costs(results: &[Answer]) -> String {
    let is_used = |level: &usize| {
        results.iter().any(|r| r.report.written_bytes.get(*level).is_some_and(|&bytes| bytes > 0))
    };
    let used: Vec<usize> = (0..usize::from(base::cause::LEVELS_MAX)).filter(is_used).collect();
    let names: Vec<String> = used.iter().map(|level| format!("L{level}")).collect();
    let mut header = vec!["scheme", "WA", "flush"];
    header.extend(names.iter().map(String::as_str));
    header.extend(["space", "at most", "slices", "settled", "stack", "moves"]);
    let mut table = plain_table(&header);
    for Answer { report, .. } in results {
        let of_user = |bytes| units::ratio(bytes, report.user_bytes);
        let mut row = vec![report.name.to_string(), format!("{:.2}", report.write_amplification())];
        row.push(of_user(report.flushed_bytes));
        row.extend(used.iter().map(|&level| match report.written_bytes.get(level) {
            Some(&bytes) if bytes > 0 => of_user(bytes),
            _ => String::new(),
        }));
        let figures = [
            report.space_amplification,
            report.space_amplification_max,
            report.slices_per_get,
            report.slices_per_get_read_only,
        ];
        row.extend(figures.map(|figure| format!("{figure:.2}")));
        row.extend([units::count(report.stack_max as u64), units::count(report.moves)]);
        table.add_row(row);
    }
    table.to_string()
}

/// The trees at the end: bytes and nodes of each level that has any.
fn trees(results: &[Answer]) -> String {
    let mut table = plain_table(&["scheme", "the tree at the end: bytes of each level, nodes"]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for Answer { report, .. } in results {
        let levels = report.level_bytes.iter().zip(&report.level_nodes).enumerate();
        let used = levels.filter(|(_, (bytes, _))| **bytes > 0);
        let texts = used.map(|(level, (&bytes, &nodes))| {
            format!("L{level} {} in {}", units::bytes(bytes), units::count(nodes as u64))
        });
        table.add_row([report.name.to_string(), texts.collect::<Vec<_>>().join(", ")]);
    }
    table.to_string()
}
