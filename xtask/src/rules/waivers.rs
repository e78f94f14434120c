//! Exceptions from the limits: `tidy-waivers.toml`, each with a reason and a bound of its own, so
//! that what is waived does not grow. A waiver that waives nothing is a violation.

use super::Violation;
use super::limits::{self, Excess};
use crate::repository::Repository;

pub const NAME: &str = "limits";
const WAIVERS: &str = "tidy-waivers.toml";

struct Waiver {
    rule: String,
    path: String,
    item: String,
    max: usize,
    reason: String,
    line: usize,
}

impl Waiver {
    fn covers(&self, excess: &Excess) -> bool {
        let same_item = match excess.rule {
            "line-columns" => !self.item.is_empty() && excess.item.contains(&self.item),
            _ => self.item == excess.item,
        };
        self.rule == excess.rule && self.path == excess.path && same_item
    }
}

/// What is over a limit without a waiver, and waivers that are wrong.
pub fn check(repository: &Repository) -> Vec<Violation> {
    let excesses = limits::excesses(repository);
    let waivers = waivers(repository);
    let mut found = Vec::new();
    for excess in &excesses {
        let waiver = waivers.iter().find(|waiver| waiver.covers(excess));
        let allowed = waiver.map_or(excess.limit, |waiver| waiver.max);
        if excess.found > allowed {
            let message = message(excess, allowed);
            found.push(Violation::new(NAME, &excess.path, excess.line, message));
        }
    }
    for waiver in &waivers {
        let mut say = |message: String| {
            found.push(Violation::new(NAME, WAIVERS, waiver.line, message));
        };
        if waiver.reason.trim().is_empty() {
            say(format!("the waiver for {} gives no reason", waiver.path));
        }
        if !excesses.iter().any(|excess| waiver.covers(excess)) {
            let (path, item) = (&waiver.path, &waiver.item);
            say(format!("the waiver for {path} {item} waives nothing: remove it"));
        }
    }
    found
}

fn message(excess: &Excess, allowed: usize) -> String {
    let Excess { rule, item, found, .. } = excess;
    let what = match *rule {
        "function-lines" => format!(
            "function `{item}` has {found} lines, {allowed} at most: \
                                     divide it by subject"
        ),
        "file-lines" => format!(
            "{found} lines outside tests, {allowed} at most: \
                                 give its second subject a file of its own"
        ),
        _ => format!("{found} columns, {allowed} at most: break the line"),
    };
    format!("{what}; or add a `{rule}` waiver with its reason to {WAIVERS}")
}

fn waivers(repository: &Repository) -> Vec<Waiver> {
    let table = repository.toml(WAIVERS).unwrap_or_default();
    let list = table.get("waiver").and_then(toml::Value::as_array);
    let text = repository.text(WAIVERS).unwrap_or_default();
    let heads = text.lines().enumerate().filter(|(_, line)| line.trim() == "[[waiver]]");
    let entries = list.into_iter().flatten().zip(heads);
    entries
        .map(|(entry, (index, _))| {
            let field = |key: &str| {
                entry.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_string()
            };
            Waiver {
                rule: field("rule"),
                path: field("path"),
                item: field("item"),
                max: entry.get("max").and_then(toml::Value::as_integer).unwrap_or(0) as usize,
                reason: field("reason"),
                line: index + 1,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(waiver: &str) -> Vec<String> {
        let text = format!("fn f() {{\n{}}}\n", "x();\n".repeat(78));
        let files = [("crates/x/src/lib.rs", text.as_str()), (WAIVERS, waiver)];
        check(&Repository::of(&files)).iter().map(ToString::to_string).collect()
    }

    fn waiver(item: &str, max: usize, reason: &str) -> String {
        format!(
            "[[waiver]]\nrule = \"function-lines\"\npath = \"crates/x/src/lib.rs\"\n\
             item = \"{item}\"\nmax = {max}\nreason = \"{reason}\"\n"
        )
    }

    #[test]
    fn a_waiver_with_a_reason_allows_up_to_its_own_bound() {
        assert_eq!(found(&waiver("f", 80, "a table")), Vec::<String>::new());
        let grown = found(&waiver("f", 79, "a table"));
        assert!(grown[0].contains("`f` has 80 lines, 79 at most"), "{grown:?}");
    }

    #[test]
    fn unused_and_unexplained_waivers_are_found() {
        let unused = found(&waiver("g", 80, "a table"));
        assert_eq!(unused.len(), 2, "{unused:?}");
        assert!(unused[1].starts_with("tidy-waivers.toml:1: ") && unused[1].contains("nothing"));
        assert!(found(&waiver("f", 80, " "))[0].contains("gives no reason"));
    }
}
