//! Inside a crate the top-level modules have no cycles. Tests are left out.
//!
//! An arrow is a path `crate::x` or `super::x` from one top-level module to another, directly or
//! by a name that the crate root re-exports.

use super::Violation;
use crate::modules::{self, Module};
use crate::paths::{self, UsePath};
use crate::repository::Repository;
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};

pub const NAME: &str = "cycles";

/// From module to module, and one place that makes the arrow.
type Graph = BTreeMap<String, BTreeMap<String, (String, usize)>>;

pub fn check(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for package in repository.members() {
        for name in ["lib.rs", "main.rs"] {
            let root = format!("{}/src/{name}", package.folder);
            if repository.sources.contains_key(&root) {
                found.extend(cycles(&graph(repository, &root)));
            }
        }
    }
    found
}

fn graph(repository: &Repository, root: &str) -> Graph {
    let reached = modules::reach(&repository.sources, root);
    let top: BTreeSet<String> =
        reached.iter().filter_map(|module| module.names.first().cloned()).collect();
    let exports = exports(&repository.sources[root], &top);
    let mut graph = Graph::new();
    for module in reached.iter().filter(|module| !module.is_test && !module.names.is_empty()) {
        let source = &repository.sources[&module.path];
        for path in references(source, module) {
            let Some(first) = path.parts.first() else { continue };
            let to = if top.contains(first) { Some(first) } else { exports.get(first) };
            let from = &module.names[0];
            if let Some(to) = to.filter(|to| *to != from) {
                let arrows = graph.entry(from.clone()).or_default();
                arrows.entry(to.clone()).or_insert((module.path.clone(), path.line));
            }
        }
    }
    graph
}

/// Names that the root re-exports, and the top-level module of each.
fn exports(root: &Source, top: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for at in root.find(&["use"]) {
        for path in paths::expand(&root.tokens, at + 1) {
            let mut parts =
                path.parts.iter().skip_while(|part| ["self", "crate"].contains(&part.as_str()));
            if let Some(module) = parts.next().filter(|module| top.contains(*module)) {
                exports.insert(path.name().to_string(), module.clone());
            }
        }
    }
    exports
}

/// Paths into the crate from production code of a module, from the crate root on.
fn references(source: &Source, module: &Module) -> Vec<UsePath> {
    let inline = modules::inline_modules(&source.tokens);
    let mut found = Vec::new();
    let starts = source.find(&["crate"]).chain(source.find(&["super"]));
    for at in starts.filter(|&at| paths::begins_path(&source.tokens, at)) {
        let is_visibility = at >= 2 && source.spells(at - 2, &["(", "in"]);
        if is_visibility {
            continue;
        }
        let here = [module.names.clone(), modules::names_at(&inline, at)].concat();
        for path in paths::expand(&source.tokens, at) {
            let up = path.parts.iter().take_while(|part| *part == "super").count();
            let (kept, skipped) =
                if up == 0 { (0, 1) } else { (here.len().saturating_sub(up), up) };
            let parts = [&here[..kept], &path.parts[skipped..]].concat();
            found.push(UsePath { parts, ..path });
        }
    }
    found
}

/// One violation for each arrow that closes a cycle.
fn cycles(graph: &Graph) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut done = BTreeSet::new();
    for start in graph.keys() {
        visit(graph, start, &mut Vec::new(), &mut done, &mut found);
    }
    found
}

fn visit(
    graph: &Graph,
    module: &str,
    trail: &mut Vec<String>,
    done: &mut BTreeSet<String>,
    found: &mut Vec<Violation>,
) {
    if done.contains(module) {
        return;
    }
    trail.push(module.to_string());
    for (to, (path, line)) in graph.get(module).into_iter().flatten() {
        if let Some(first) = trail.iter().position(|name| name == to) {
            let circle = [&trail[first..], std::slice::from_ref(to)].concat().join(" -> ");
            let message = format!(
                "modules use each other: {circle}. Move what both need to a module of its own, \
                 or pass it in"
            );
            found.push(Violation::new(NAME, path, *line, message));
        } else {
            visit(graph, to, trail, done, found);
        }
    }
    trail.pop();
    done.insert(module.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(a: &str, b: &str) -> Vec<String> {
        let repository = Repository::of(&[
            ("crates/x/Cargo.toml", "[package]\nname = \"x\""),
            ("crates/x/src/lib.rs", "mod a;\nmod b;\npub use b::{Item as Thing};"),
            ("crates/x/src/a.rs", a),
            ("crates/x/src/b.rs", b),
        ]);
        check(&repository).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_cycle_is_found_directly_and_through_a_re_export() {
        let message = "[cycles] modules use each other: a -> b -> a.";
        for a in ["use crate::b::Item;", "use super::b;", "fn f(x: crate::Thing) {}"] {
            let found = found(a, "\nuse crate::{a::X};");
            assert!(found[0].starts_with("crates/x/src/b.rs:2: "), "{a}: {found:?}");
            assert!(found[0].contains(message), "{a}: {found:?}");
        }
        let inner = found("mod inner { use super::super::b; }", "use crate::a;");
        assert_eq!(inner.len(), 1);
    }

    #[test]
    fn one_direction_and_tests_are_no_cycle() {
        let test = "#[cfg(test)]\nmod tests { use crate::a; }";
        assert_eq!(found("use crate::b::Item;", test), Vec::<String>::new());
        assert_eq!(found("pub(in crate::b) fn f() {}", "use crate::a;"), Vec::<String>::new());
    }
}
