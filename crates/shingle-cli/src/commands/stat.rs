//! `stat`.

use crate::args::StatArgs;
use crate::commands::ledger;
use crate::context::{Access, Context};
use crate::failure::{Failure, Outcome};
use serde_json::json;

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
    if context.global.json {
        writeln!(context.out, "{}", stats.to_json())?;
        return Ok(());
    }
    writeln!(context.out, "{}", stats.to_string().trim_end())?;
    writeln!(context.out, "\nBytes by cause, since this opening")?;
    writeln!(context.out, "{}", ledger::table(&ledger::rows(&stats.ledger)))?;
    Ok(())
}
