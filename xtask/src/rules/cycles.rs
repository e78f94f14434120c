//! Inside a crate neither top-level modules nor files use each other in a circle. Tests are left
//! out, and so is the root of the crate as a module.
//!
//! Top-level modules have no cycles at all. Of files no more than two may use each other; what
//! `file-cycles.toml` lists with a reason stays for now, with a number of files that may only fall.

use super::Violation;
use crate::graph::{Component, Graph};
use crate::repository::{Repository, is_under};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

pub const NAME: &str = "cycles";
pub const LEFT: &str = "file-cycles.toml";

const HEADER: &str = "\
# Files that use each other in circles of more than two, as `cargo xtask cycles FOLDER` prints them
# with the names that make the edges. The number of such files below a folder may only fall:
# `cargo xtask tidy --lower` lowers it to that of today.
";

/// What stays for now.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Left {
    #[serde(default, rename = "cycle")]
    cycles: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The folder or file below which the circles lie, at least in part.
    under: String,
    /// How many files are in such circles.
    files: usize,
    reason: String,
}

pub fn check(repository: &Repository) -> Vec<Violation> {
    let left = match left(repository) {
        Ok(left) => left,
        Err(message) => return vec![Violation::new(NAME, LEFT, 1, message)],
    };
    let graphs = graphs(repository);
    let mut found: Vec<Violation> =
        graphs.iter().flat_map(|graph| cycles(&graph.modules)).collect();
    let mut counts = vec![0; left.cycles.len()];
    let mut listed: Vec<Vec<(&Graph, Component)>> = left.cycles.iter().map(|_| vec![]).collect();
    for graph in &graphs {
        for component in graph.components() {
            match entry_of(&left, &component) {
                Some(entry) => {
                    counts[entry] += component.files.len();
                    listed[entry].push((graph, component));
                }
                None => found.push(violation(graph, &component)),
            }
        }
    }
    for ((entry, count), listed) in left.cycles.iter().zip(counts).zip(listed) {
        let grown = listed.iter().filter(|_| count > entry.files);
        found.extend(grown.map(|(graph, component)| violation(graph, component)));
        found.extend(wrong_entry(repository, entry, count));
    }
    found
}

/// The longest entry below which a file of the component lies.
fn entry_of(left: &Left, component: &Component) -> Option<usize> {
    let entries = left.cycles.iter().enumerate();
    let found = entries
        .filter(|(_, entry)| component.files.iter().any(|file| file.starts_with(&entry.under)));
    found.max_by_key(|(_, entry)| entry.under.len()).map(|(index, _)| index)
}

/// Stands at the edge without which the fewest files are left in circles.
fn violation(graph: &Graph, component: &Component) -> Violation {
    let circle: Vec<&str> = component.cycle.iter().map(|file| short(file)).collect();
    let left = |from: &str, to: &str| graph.left_without(component, |a, b| (a, b) == (from, to));
    let weakest = graph.edges_in(component).min_by_key(|(from, to, _)| left(from, to));
    let (from, to, names) = weakest.expect("a circle has edges");
    let (name, line) = names.first_key_value().expect("an edge has a name");
    let message = format!(
        "{} files use each other, shortest: {}. Without {} -> {}, made by `{name}`, {} are left. \
         Move what both need to a file of its own, or pass it in; `cargo xtask cycles {}` lists \
         the edges",
        component.files.len(),
        circle.join(" -> "),
        short(from),
        short(to),
        left(from, to),
        from.split_once("/src/").map_or(from, |(package, _)| package),
    );
    Violation::new(NAME, from, *line, message)
}

fn wrong_entry(repository: &Repository, entry: &Entry, count: usize) -> Option<Violation> {
    let Entry { under, files, reason } = entry;
    let message = if reason.trim().is_empty() {
        format!("the circles below {under} stay without a reason")
    } else if count == 0 {
        format!("there is no circle of files below {under}: `cargo xtask tidy --lower` removes it")
    } else if count > *files {
        format!("{count} files below {under} are in circles, {files} at most")
    } else {
        return None;
    };
    let text = repository.text(LEFT).unwrap_or_default();
    let line = text.lines().position(|line| line.contains(under.as_str())).unwrap_or_default() + 1;
    Some(Violation::new(NAME, LEFT, line, message))
}

/// The part of a path after `src/`.
fn short(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(_, path)| path)
}

fn left(repository: &Repository) -> Result<Left, String> {
    let Some(text) = repository.text(LEFT) else { return Ok(Left::default()) };
    toml::from_str(text).map_err(|error| error.to_string())
}

/// The graphs of all crates: libraries and binaries.
fn graphs(repository: &Repository) -> Vec<Graph> {
    let files = ["lib.rs", "main.rs"];
    let roots = repository
        .members()
        .flat_map(|package| files.map(|file| format!("{}/src/{file}", package.folder)));
    let roots = roots.filter(|root| repository.sources.contains_key(root));
    roots.map(|root| Graph::of(repository, &root)).collect()
}

/// A note where `file-cycles.toml` allows more files than are in circles.
pub fn slack(repository: &Repository) -> Option<String> {
    let lowered: Left = toml::from_str(&lower(repository).ok()?).ok()?;
    let sum = |left: Left| left.cycles.iter().map(|entry| entry.files).sum::<usize>();
    let (allowed, lowered) = (sum(left(repository).ok()?), sum(lowered));
    let fewer = allowed.checked_sub(lowered).filter(|&fewer| fewer > 0)?;
    Some(format!(
        "{LEFT} allows {fewer} files more than are in circles: run `cargo xtask tidy --lower`"
    ))
}

/// `file-cycles.toml` with each number lowered to that of today.
pub fn lower(repository: &Repository) -> Result<String, String> {
    let left = left(repository)?;
    let mut counts = vec![0; left.cycles.len()];
    for component in graphs(repository).iter().flat_map(Graph::components) {
        if let Some(entry) = entry_of(&left, &component) {
            counts[entry] += component.files.len();
        }
    }
    let mut text = HEADER.to_string();
    for (entry, count) in left.cycles.iter().zip(counts).filter(|(_, count)| *count > 0) {
        let (Entry { under, reason, .. }, files) = (entry, count.min(entry.files));
        let _ =
            write!(text, "\n[[cycle]]\nunder = {under:?}\nfiles = {files}\nreason = {reason:?}\n");
    }
    Ok(text)
}

/// The circles of files below a folder, or all: their files, a shortest circle, and their edges
/// with the names that make them. What a cut would free is said where it frees a file.
pub fn listing(repository: &Repository, under: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for graph in graphs(repository) {
        for component in graph.components() {
            if component.files.iter().any(|file| is_under(file, under)) {
                lines.extend(list_component(&graph, &component));
            }
        }
    }
    lines
}

fn list_component(graph: &Graph, component: &Component) -> Vec<String> {
    let files = component.files.len();
    let joined = |paths: &[String], sign: &str| {
        paths.iter().map(|path| short(path)).collect::<Vec<_>>().join(sign)
    };
    let mut lines = vec![
        format!("{files} files use each other: {}", joined(&component.files, ", ")),
        format!("a shortest circle: {}", joined(&component.cycle, " -> ")),
    ];
    for file in &component.files {
        let left = graph.left_without(component, |from, to| from == file || to == file);
        if left + 1 < files {
            lines.push(format!("without {}: {left} files in circles", short(file)));
        }
    }
    let edges: Vec<_> = graph.edges_in(component).collect();
    lines.push(format!("{} edges, with the first line of each name:", edges.len()));
    for (from, to, names) in edges {
        let names: Vec<String> =
            names.iter().map(|(name, line)| format!("{name} {line}")).collect();
        let left = graph.left_without(component, |a, b| (a, b) == (from, to));
        let freed = match left < files {
            true => format!("  [without it: {left} files]"),
            false => String::new(),
        };
        let names = names.join(", ");
        lines.push(format!("  {} -> {}: {names}{freed}", short(from), short(to)));
    }
    lines.push(String::new());
    lines
}

/// From module to module, and one place that makes the arrow.
type Arrows = BTreeMap<String, BTreeMap<String, (String, usize)>>;

/// One violation for each arrow that closes a cycle.
fn cycles(graph: &Arrows) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut done = BTreeSet::new();
    for start in graph.keys() {
        visit(graph, start, &mut Vec::new(), &mut done, &mut found);
    }
    found
}

fn visit(
    graph: &Arrows,
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
            let found = found(a, "\nuse crate::{a::X};\npub struct Item;");
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

    /// A crate whose module `m` is a circle of three files.
    fn circle(left: &str) -> Repository {
        Repository::of(&[
            (LEFT, left),
            ("crates/x/Cargo.toml", "[package]\nname = \"x\""),
            ("crates/x/src/lib.rs", "mod m;"),
            ("crates/x/src/m/mod.rs", "mod a;\nmod b;\npub struct M;\nfn f(m: &M) {\n m.run() }"),
            ("crates/x/src/m/a.rs", "impl super::M { pub fn run(&self) { self.stop(); } }"),
            ("crates/x/src/m/b.rs", "impl super::M { pub fn stop(&self) {} }"),
            ("crates/x/src/m/c.rs", ""),
        ])
    }

    fn entry(under: &str, files: usize, reason: &str) -> String {
        format!("\n[[cycle]]\nunder = \"{under}\"\nfiles = {files}\nreason = \"{reason}\"\n")
    }

    #[test]
    fn a_circle_of_files_is_found_and_stays_only_with_a_reason() {
        let lines = |left: &str| -> Vec<String> {
            check(&circle(left)).iter().map(ToString::to_string).collect()
        };
        let found = lines("");
        assert!(found[0].contains("3 files use each other, shortest: m/"), "{found:?}");
        assert_eq!(lines(&entry("crates/x/src/m/", 3, "old")), [""; 0]);
        assert_eq!(lines(&entry("crates/x/src/m/", 4, "old")), [""; 0]);
        let grown = lines(&entry("crates/x/src/m/", 2, "old"));
        assert!(grown[1].contains("3 files below crates/x/src/m/ are in circles, 2 at most"));
        assert!(lines(&entry("crates/x/src/m/", 3, " "))[0].contains("without a reason"));
        assert!(lines(&entry("crates/x/src/n/", 3, "old"))[1].contains("no circle of files"));
    }

    #[test]
    fn numbers_of_files_are_lowered_and_never_raised() {
        let lower = |files: usize| lower(&circle(&entry("crates/x/src/m/", files, "old")));
        let text = |files: usize| Ok(format!("{HEADER}{}", entry("crates/x/src/m/", files, "old")));
        assert_eq!(lower(5), text(3));
        assert_eq!(lower(2), text(2));
        let slack = |files: usize| slack(&circle(&entry("crates/x/src/m/", files, "old")));
        assert!(slack(5).is_some_and(|note| note.contains("2 files more")));
        assert_eq!(slack(3), None);
        assert_eq!(super::lower(&circle(&entry("crates/y/", 3, "old"))), Ok(HEADER.to_string()));
    }

    #[test]
    fn edges_are_listed_with_their_names() {
        let lines = listing(&circle(""), "crates/x");
        assert_eq!(lines[0], "3 files use each other: m/a.rs, m/b.rs, m/mod.rs");
        assert!(
            lines.contains(&"  m/a.rs -> m/b.rs: .stop() 1  [without it: 0 files]".to_string())
        );
        assert!(lines.contains(&"without m/b.rs: 0 files in circles".to_string()), "{lines:?}");
        assert_eq!(listing(&circle(""), "crates/y"), [""; 0]);
    }
}
