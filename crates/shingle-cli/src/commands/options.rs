//! `options`: the table that documentation, flags and config keys come from.

use crate::context::Context;
use crate::failure::Outcome;
use serde_json::json;
use shingle::options::TABLE;

/// `shingle options`.
pub fn options(context: &mut Context) -> Outcome {
    for entry in TABLE {
        if context.global.json {
            context.json(&json!({
                "key": entry.key,
                "unit": entry.unit,
                "default": entry.default.to_string(),
                "bounds": entry.bounds.to_string(),
                "help": entry.help,
            }))?;
            continue;
        }
        let unit = if entry.unit.is_empty() { String::new() } else { format!(" {}", entry.unit) };
        writeln!(context.out, "{} = {}{unit}", entry.key, entry.default)?;
        writeln!(context.out, "    {} ({})", entry.help, entry.bounds)?;
    }
    Ok(())
}
