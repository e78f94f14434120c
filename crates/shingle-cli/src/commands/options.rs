//! `options`: the tables that documentation, flags and configuration files come from, and the
//! parameters of the scheme and of the value layout.

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use serde_json::json;
use shingle::options::{OptionEntry, ParameterEntry};

/// `shingle options`.
pub fn options(context: &mut Context) -> Outcome {
    let options = context.options()?;
    for entry in OptionEntry::all() {
        let value = options.value(entry.name).unwrap_or_default();
        show(context, entry.name, &value, entry.unit, entry.help)?;
    }
    let parameters = options.parameters().map_err(Failure::of_value)?;
    for ParameterEntry { name, unit, help, value } in &parameters {
        show(context, name, value, unit, help)?;
    }
    Ok(())
}

fn show(context: &mut Context, name: &str, value: &str, unit: &str, help: &str) -> Outcome {
    if context.global.json {
        let line = json!({ "name": name, "value": value, "unit": unit, "help": help });
        return context.json(&line);
    }
    writeln!(context.out, "{name} = {value}")?;
    writeln!(context.out, "    {help} ({unit})")?;
    Ok(())
}
