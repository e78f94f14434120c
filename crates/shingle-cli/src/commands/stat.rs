//! `stat`.

use crate::args::{MetricsFormat, StatArgs};
use crate::commands::history::History;
use crate::commands::{ledger, levels};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::text::{self, COLUMNS};
use serde_json::{Value, json};
use shingle::Stats;
use shingle_metrics::{Scope, families_of, text as metrics_text, with_label};

/// `shingle stat`.
pub fn stat(context: &mut Context, args: StatArgs) -> Outcome {
    if args.format.is_some() && context.global.json {
        return Err(Failure::usage(
            "stat: --format and --json are two formats",
            "leave one of them out",
        ));
    }
    let (db, assumed) = context.open_as_last()?;
    if let Some(name) = args.property {
        let value = db.property(&name).ok_or_else(|| {
            Failure::said(
                format!("there is no property {name}"),
                "`shingle.stats` and `rocksdb.levelstats` are two that exist",
            )
        })?;
        if context.global.json {
            return context.json(&json!({ "name": name, "value": value }));
        }
        writeln!(context.out, "{name}: {value}")?;
        return Ok(());
    }
    let stats = db.stats();
    if let Some(format) = args.format {
        return metrics(context, &stats, format);
    }
    let history = History::of(&*context.place()?.files()?)?;
    if context.global.json {
        let invalid = |error| Failure::said(format!("statistics: {error}"), "this is a bug");
        let mut all: Value = serde_json::from_str(&stats.to_json()).map_err(invalid)?;
        all["history"] = json!(history);
        all["options"] = assumed.json();
        return context.json(&all);
    }
    // A command alone reads: all that counts from its own opening would be zero.
    let counts = context.session.as_ref().is_some_and(|session| !session.only_reads());
    let (table, summary) = match counts {
        true => (levels::table(&stats.levels), stats.summary()),
        false => (levels::shape(&stats.levels), stats.state_summary()),
    };
    writeln!(context.out, "{table}\n")?;
    let assumed = assumed.line(!context.global.option.is_empty());
    for line in summary.trim_end().lines().chain([&*assumed]) {
        writeln!(context.out, "{}", text::fold(line, COLUMNS))?;
    }
    if counts {
        writeln!(context.out, "\nBytes by cause, since this opening")?;
        writeln!(context.out, "{}", ledger::table(&ledger::rows(&stats.ledger)))?;
    }
    if let Some(recorded) = &history.recorded {
        writeln!(context.out, "\nAmplification by interval, from the event log")?;
        writeln!(context.out, "{}", history.table())?;
        writeln!(context.out, "{}", text::fold(&recorded.stall_line(), COLUMNS))?;
    }
    Ok(())
}

/// Prints what describes the database. The other metrics would describe this command.
fn metrics(context: &mut Context, stats: &Stats, format: MetricsFormat) -> Outcome {
    let mut families = families_of(stats, Scope::Database);
    with_label(&mut families, "db", &context.place()?.path.display().to_string());
    let text = match format {
        MetricsFormat::Prometheus => metrics_text::prometheus(&families),
        MetricsFormat::Openmetrics => metrics_text::openmetrics(&families),
    };
    Ok(context.out.write_all(text.as_bytes())?)
}
