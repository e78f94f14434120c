//! `stat`.

use crate::args::StatArgs;
use crate::commands::history::History;
use crate::commands::{ledger, levels};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::open::Access;
use crate::text;
use serde_json::{Value, json};

/// The widest line.
const COLUMNS: usize = 80;

/// `shingle stat`.
pub fn stat(context: &mut Context, args: StatArgs) -> Outcome {
    let db = context.open(Access::Read)?;
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
    let history = History::of(&*context.place()?.files()?)?;
    if context.global.json {
        let invalid = |error| Failure::said(format!("statistics: {error}"), "this is a bug");
        let mut all: Value = serde_json::from_str(&stats.to_json()).map_err(invalid)?;
        all["history"] = json!(history);
        return context.json(&all);
    }
    writeln!(context.out, "{}\n", levels::table(&stats.levels))?;
    for line in stats.summary().trim_end().lines() {
        writeln!(context.out, "{}", text::fold(line, COLUMNS))?;
    }
    writeln!(context.out, "\nBytes by cause, since this opening")?;
    writeln!(context.out, "{}", ledger::table(&ledger::rows(&stats.ledger)))?;
    if history.recorded.is_some() {
        writeln!(context.out, "\nAmplification by interval, from the event log")?;
        writeln!(context.out, "{}", history.table())?;
    }
    Ok(())
}
