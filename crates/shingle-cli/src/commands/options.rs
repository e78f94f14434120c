//! `options`: the table that documentation, flags and configuration files come from.

use crate::context::Context;
use crate::failure::Outcome;
use serde_json::json;
use shingle::options::TABLE;

/// `shingle options`.
pub fn options(context: &mut Context) -> Outcome {
    let options = context.options()?;
    for entry in TABLE {
        let value = options.value(entry.name).unwrap_or_default();
        if context.global.json {
            let (name, unit, help) = (entry.name, entry.unit, entry.help);
            let line = json!({ "name": name, "value": value, "unit": unit, "help": help });
            context.json(&line)?;
            continue;
        }
        writeln!(context.out, "{} = {value}", entry.name)?;
        writeln!(context.out, "    {} ({})", entry.help, entry.unit)?;
    }
    Ok(())
}
