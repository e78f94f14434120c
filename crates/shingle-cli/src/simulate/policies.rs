//! Schemes on a workload.

use super::{keys, rate, record_bytes};
use crate::args::SimulateArgs;
use crate::commands::ledger::plain_table;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::units;
use std::time::{Duration, Instant};
use workloads::simulate::{Question, Report, Run, to_json};

/// What a scheme cost, and how long that took to find out.
struct Answer {
    report: Report,
    taken: Duration,
}

pub(super) fn simulate(context: &mut Context, args: &SimulateArgs) -> Outcome {
    let question = Question {
        schemes: args.scheme.clone(),
        keys: keys(args),
        writes: args.writes,
        keys_count: args.keys_count,
        record_bytes: record_bytes(args),
        memtable_bytes: args.memtable_bytes,
        table_bytes: args.table_bytes,
        fan_out: args.fan_out,
        reads_share: args.reads_share,
        scale: args.scale,
    };
    let (mut results, mut scale) = (Vec::new(), 1);
    for run in question.runs().map_err(Failure::of_value)? {
        let result = answer(context, &run)?;
        scale = run.workload.scale;
        if context.global.json {
            let mut row = to_json(&run, &result.report);
            row["simulation_ns"] = (result.taken.as_nanos() as u64).into();
            context.json(&row)?;
        }
        results.push(result);
    }
    if !context.global.json {
        show(context, scale, &results)?;
    }
    Ok(())
}

fn answer(context: &Context, run: &Run) -> Outcome<Answer> {
    let entry_bytes = run.workload.entry_bytes;
    let bar = context.bar(run.scheme.name, run.workload.writes * entry_bytes);
    let begun = Instant::now();
    let report = run.run(&mut |writes| bar.add(writes * entry_bytes))?;
    Ok(Answer { report, taken: begun.elapsed() })
}

fn written_bytes(report: &Report) -> u64 {
    report.flushed_bytes + report.written_bytes.iter().sum::<u64>()
}

fn show(context: &mut Context, scale: u64, results: &[Answer]) -> Outcome {
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
    writeln!(context.out, "{}", rate(user, written, scale, taken))?;
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
