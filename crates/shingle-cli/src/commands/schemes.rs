//! `schemes`: the registries of policies and of value layouts, as a manual.

use crate::args::SchemesArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::units;
use serde_json::{Value, json};
use tree::policy::{LIMIT_FIELDS, Limits};
use values::ValueLimits;

const COLUMNS: usize = 96;
/// Defaults are shown for a write buffer of this size.
const MEMTABLE_BYTES: u64 = 64 << 20;

/// What there is to say about a scheme or a layout.
struct Page {
    name: &'static str,
    summary: &'static str,
    help: &'static str,
    paper: &'static str,
    /// The numbers that it works with.
    options: Vec<Number>,
    /// What their defaults depend on.
    basis: String,
}

/// A number that a scheme or a layout works with.
struct Number {
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    default: String,
}

fn policy(scheme: &tree::policy::Descriptor) -> Page {
    let limits: Limits = (scheme.limits)(MEMTABLE_BYTES);
    let fields = LIMIT_FIELDS.iter().filter(|field| scheme.options.contains(&field.name));
    Page {
        name: scheme.name,
        summary: scheme.summary,
        help: scheme.help,
        paper: scheme.paper,
        options: fields
            .map(|field| Number {
                name: field.name,
                unit: field.unit,
                help: field.help(),
                default: field.text(&limits),
            })
            .collect(),
        basis: format!(", as they are for a write buffer of {}", units::bytes(MEMTABLE_BYTES)),
    }
}

fn layout(layout: &values::Descriptor) -> Page {
    let limits = ValueLimits::default();
    let fields = values::LIMIT_FIELDS.iter().filter(|field| layout.options.contains(&field.name));
    Page {
        name: layout.name,
        summary: layout.summary,
        help: layout.help,
        paper: layout.paper,
        options: fields
            .map(|field| Number {
                name: field.name,
                unit: field.unit,
                help: field.help(),
                default: field.text(&limits),
            })
            .collect(),
        basis: String::new(),
    }
}

/// `shingle schemes`.
pub fn schemes(context: &mut Context, args: &SchemesArgs) -> Outcome {
    if let Some(name) = &args.name {
        let page = if args.values {
            layout(values::by_name(name).map_err(Failure::of_value)?)
        } else {
            policy(tree::policy::by_name(name).map_err(Failure::of_value)?)
        };
        return show(context, &page);
    }
    let pages: Vec<Page> = if args.values {
        values::registry().iter().map(layout).collect()
    } else {
        tree::policy::registry().iter().map(policy).collect()
    };
    let name_columns = pages.iter().map(|page| page.name.len()).max().unwrap_or(0);
    for page in pages {
        if context.global.json {
            context.json(&as_json(&page))?;
        } else {
            writeln!(context.out, "{:<name_columns$}  {}", page.name, page.summary)?;
        }
    }
    Ok(())
}

fn as_json(page: &Page) -> Value {
    let option = |number: &Number| {
        let Number { name, unit, help, default } = number;
        json!({ "name": name, "unit": unit, "value": default, "help": help })
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
    writeln!(context.out, "\nIts numbers{}:\n", page.basis)?;
    for Number { name, unit, help, default } in &page.options {
        let help = wrap(help, COLUMNS - 4).replace('\n', "\n    ");
        writeln!(context.out, "{name} = {default} ({unit})\n    {help}")?;
    }
    Ok(())
}

/// `text` in lines of at most this many characters, whatever its own lines were.
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

    fn document(path: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn manual(page: &str) -> String {
        document(&format!("docs/manual/{page}"))
    }

    #[test]
    fn documents_say_how_many_schemes_there_are() {
        const WORDS: [&str; 13] = [
            "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
            "eleven", "twelve",
        ];
        let count = tree::policy::registry().len();
        let (all, others) = (WORDS[count], WORDS[count - 2]);
        for (path, phrase) in [
            ("README.md", format!("Choose among {all} [compaction schemes]")),
            ("crates/shingle/README.md", format!("Choose among {all} compaction schemes")),
            ("docs/manual/schemes.md", format!("## The {all} schemes")),
            ("docs/manual/features.md", format!("leveled, tiered and {others} other schemes")),
        ] {
            let text = document(path).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(&phrase), "{path} does not say: {phrase}");
        }
    }

    #[test]
    fn lists_of_documents_have_every_scheme() {
        let (index, operate) = (document("docs/README.md"), manual("operate.md"));
        let disk = operate.split("\n## ").find(|part| part.starts_with("Disk\n"));
        let disk = disk.expect("operate.md has a section Disk");
        for name in tree::policy::registry().iter().map(|scheme| scheme.name) {
            assert!(index.contains(&format!("[{name}](manual/{name}.md)")), "README.md: {name}");
            assert!(disk.contains(&format!("`{name}`")), "operate.md, Disk: {name}");
        }
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
