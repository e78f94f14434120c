//! The answer in the terminal.

use crate::args::trace::TraceArgs;
use crate::commands::ledger::plain_table;
use crate::context::Context;
use crate::failure::Outcome;
use crate::text::{self, COLUMNS};
use crate::units;
use workloads::trace::{Answer, Candidate, DEVICES, Reading, Sizes, Summary};

pub(super) fn show(context: &mut Context, args: &TraceArgs, answer: &Answer) -> Outcome {
    bad_lines(context, &answer.reading);
    writeln!(context.out, "{}\n", workload(&answer.reading, &answer.summary))?;
    writeln!(context.out, "{}", candidates(&answer.advice.candidates, args.rows))?;
    let left = answer.advice.candidates.len().saturating_sub(args.rows);
    if left > 0 {
        writeln!(context.out, "and {left} more; --rows shows them")?;
    }
    writeln!(
        context.out,
        "\nwrite: bytes written for a byte of the user, without the log.\nread: places asked for a \
         get, filters aside: runs, and one more for a \
         separated value.\nspace: bytes of files for a \
         byte of live data, at the end.\nssd, hdd, smr: how long the device is busy, one request \
         at a time, without any cache.\n*: none is better both at writing and at reading.\nAll of \
         it is estimated."
    )?;
    for remark in &answer.advice.remarks {
        writeln!(context.out, "Note: {remark}.")?;
    }
    let recommendation = text::fold(&answer.advice.recommendation, COLUMNS);
    writeln!(context.out, "\n{recommendation}")?;
    Ok(())
}

fn bad_lines(context: &Context, reading: &Reading) {
    if reading.bad_lines == 0 {
        return;
    }
    let (bad, lines) = (units::count(reading.bad_lines), units::count(reading.lines));
    context.remark(&format!("{bad} of {lines} lines are no operations:"));
    for line in &reading.first_bad_lines {
        context.remark(&format!("  line {}: {}: {}", line.number, line.reason, line.text));
    }
}

/// What the workload is like, a line for each side of it.
fn workload(reading: &Reading, summary: &Summary) -> String {
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    let kinds = summary.operations_by_kind.iter().filter(|(_, count)| *count > 0);
    let kinds: Vec<String> = kinds
        .map(|(name, count)| format!("{name} {}", units::share(*count, summary.operations)))
        .collect();
    let about = if summary.keys_per_sampled_key > 1 { "about " } else { "" };
    let span = match summary.span_ns {
        Some(span_ns) => format!(" in {}", units::time(span_ns)),
        None => String::new(),
    };
    let lines = [
        ("format", format!("{}, {}", reading.format, units::bytes(reading.bytes))),
        ("operations", format!("{}{span}: {}", units::count(summary.operations), kinds.join(", "))),
        (
            "keys",
            format!(
                "{about}{}, {} of them there before; bytes {}",
                units::count(summary.distinct_keys),
                units::count(summary.old_keys),
                sizes(&summary.key_bytes)
            ),
        ),
        ("values", format!("bytes {}", sizes(&summary.value_bytes))),
        (
            "writes",
            format!(
                "{}; of puts {} update a key; of writes {} delete one; new keys ascend at {}",
                units::bytes(summary.write_bytes),
                percent(summary.update_share),
                percent(summary.delete_share),
                percent(summary.ascending_share)
            ),
        ),
        (
            "skew",
            format!(
                "as Zipf's law of exponent {:.2} (fitted); the hottest 1% of keys have {} of the \
                 operations, 10% have {}",
                summary.zipf_exponent,
                percent(summary.hot_1_percent_share),
                percent(summary.hot_10_percent_share)
            ),
        ),
        ("working set", format!("{about}{}", units::bytes(summary.working_set_bytes))),
    ];
    let rows = lines.map(|(name, text)| format!("{name:<12}{text}"));
    rows.join("\n")
}

fn sizes(sizes: &Sizes) -> String {
    let Sizes { mean, p50, p90, p99, max } = sizes;
    format!("mean {mean:.1}, median {p50}, 90% {p90}, 99% {p99}, most {max}")
}

fn candidates(candidates: &[Candidate], rows: usize) -> String {
    let mut header = vec!["scheme", "values", "fan-out", "write", "read", "space"];
    header.extend(DEVICES.iter().map(|device| device.name));
    header.push("");
    let mut table = plain_table(&header);
    for candidate in candidates.iter().take(rows) {
        let mut row = vec![candidate.scheme.to_string(), candidate.values.to_string()];
        row.push(candidate.fan_out.map_or_else(String::new, |fan_out| fan_out.to_string()));
        let figures = [
            candidate.write_amplification,
            candidate.read_amplification,
            candidate.space_amplification,
        ];
        row.extend(figures.map(|figure| format!("{figure:.2}")));
        row.extend(candidate.busy_seconds.map(|seconds| units::time((seconds * 1e9) as u64)));
        row.push(if candidate.is_on_front { "*".into() } else { String::new() });
        table.add_row(row);
    }
    table.to_string()
}
