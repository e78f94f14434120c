//! `schemes`: the registries of policies and of value layouts, as a manual.

use crate::args::SchemesArgs;
use crate::context::Context;
use crate::failure::Outcome;
use crate::units;
use serde_json::{Value, json};
use tree::policy::{LIMIT_FIELDS, LimitField, Limits};

const COLUMNS: usize = 96;
/// Defaults are shown for a write buffer of this size.
const MEMTABLE_BYTES: u64 = 64 << 20;

/// What there is to say about a scheme or a layout.
struct Page {
    name: &'static str,
    summary: &'static str,
    help: &'static str,
    paper: &'static str,
    /// The numbers that it works with, and their defaults.
    options: Vec<(&'static LimitField, String)>,
}

fn policy(scheme: &tree::policy::Descriptor) -> Page {
    let limits: Limits = (scheme.limits)(MEMTABLE_BYTES);
    let fields = LIMIT_FIELDS.iter().filter(|field| scheme.options.contains(&field.name));
    Page {
        name: scheme.name,
        summary: scheme.summary,
        help: scheme.help,
        paper: scheme.paper,
        options: fields.map(|field| (field, field.text(&limits))).collect(),
    }
}

fn layout(layout: &values::Descriptor) -> Page {
    let (name, summary) = (layout.name, layout.summary);
    Page { name, summary, help: layout.help, paper: layout.paper, options: Vec::new() }
}

/// `shingle schemes`.
pub fn schemes(context: &mut Context, args: &SchemesArgs) -> Outcome {
    if let Some(name) = &args.name {
        let page = if args.values {
            layout(values::by_name(name)?)
        } else {
            policy(tree::policy::by_name(name)?)
        };
        return show(context, &page);
    }
    let pages: Vec<Page> = if args.values {
        values::registry().iter().map(layout).collect()
    } else {
        tree::policy::registry().iter().map(policy).collect()
    };
    for page in pages {
        if context.global.json {
            context.json(&as_json(&page))?;
        } else {
            writeln!(context.out, "{:<11} {}", page.name, page.summary)?;
        }
    }
    Ok(())
}

fn as_json(page: &Page) -> Value {
    let option = |(field, value): &(&'static LimitField, String)| {
        let (name, unit, help) = (field.name, field.unit, field.help);
        json!({ "name": name, "unit": unit, "value": value, "help": help })
    };
    json!({
        "name": page.name,
        "summary": page.summary,
        "help": wrap(page.help, usize::MAX),
        "paper": page.paper,
        "options": page.options.iter().map(option).collect::<Vec<_>>(),
    })
}

fn show(context: &mut Context, page: &Page) -> Outcome {
    if context.global.json {
        return context.json(&as_json(page));
    }
    writeln!(context.out, "{}: {}\n", page.name, page.summary)?;
    writeln!(context.out, "{}\n\nAfter {}", wrap(page.help, COLUMNS), page.paper)?;
    if page.options.is_empty() {
        return Ok(());
    }
    let buffer = units::bytes(MEMTABLE_BYTES);
    writeln!(context.out, "\nIts numbers, as they are for a write buffer of {buffer}:\n")?;
    for (field, value) in &page.options {
        writeln!(context.out, "{} = {value} ({})\n    {}", field.name, field.unit, field.help)?;
    }
    Ok(())
}

/// `text` in lines of at most so many characters, whatever its own lines were.
fn wrap(text: &str, columns: usize) -> String {
    let mut wrapped = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        let separator = match column {
            0 => "",
            _ if column + 1 + length > columns => "\n",
            _ => " ",
        };
        column = if separator == " " { column + 1 + length } else { length };
        wrapped.push_str(separator);
        wrapped.push_str(word);
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn manual(page: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manual").join(page);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    #[test]
    fn every_scheme_has_a_page_with_the_numbers_that_it_reads_and_their_defaults() {
        let index = manual("schemes.md");
        for scheme in tree::policy::registry() {
            let name = scheme.name;
            assert!(index.contains(&format!("[`{name}`]({name}.md)")), "schemes.md: {name}");
            let page = manual(&format!("{name}.md"));
            assert!(page.starts_with(&format!("# Scheme `{name}`\n")), "{name}");
            for part in ["**What it does.**", "**When to choose it.**", "**What it costs.**"] {
                assert!(page.contains(part), "{name}: {part}");
            }
            let limits = (scheme.limits)(MEMTABLE_BYTES);
            for field in LIMIT_FIELDS {
                let cells = format!("| `{}` |", field.name);
                let row = format!("{cells} {} | {} |", field.unit, field.text(&limits));
                let expected = if scheme.options.contains(&field.name) { row } else { cells };
                let is_there = page.contains(&expected);
                assert_eq!(is_there, scheme.options.contains(&field.name), "{name}: {expected}");
            }
        }
    }

    #[test]
    fn lines_are_filled_and_not_longer() {
        assert_eq!(wrap("a bb\nccc  d", 4), "a bb\nccc\nd");
        assert_eq!(wrap("toolong a", 4), "toolong\na");
    }
}
