//! The engine executes plans without knowing who made them: no name of a registered policy, value
//! layout or device stands in its code. Names are read from the registries.

use super::Violation;
use crate::repository::Repository;
use crate::source::{Source, after_group};
use crate::words;
use std::collections::BTreeSet;

pub const NAME: &str = "blind-engine";

/// Where names are registered: `name: "..."` in a `Descriptor`. Absent files are skipped.
const REGISTRIES: [&str; 6] = [
    "crates/tree/src/policy.rs",
    "crates/tree/src/policy/",
    "crates/values/src/registry.rs",
    "crates/values/src/registry/",
    "crates/values/src/lib.rs",
    "crates/devices/src/models/",
];

/// The engine, and its files that turn the user's choice into a policy or layout.
const ENGINE: &str = "crates/shingle/src/";
const WIRING: [&str; 3] = ["options", "presets", "registry"];

/// Answers to property names that people know from other stores, such as `leveldb.stats`: there a
/// name is that store's, not a scheme's.
const PROPERTIES: &str = "crates/shingle/src/api/property.rs";

/// Registered names that mean something else in the engine too: the write-ahead log, and the
/// attribute of functions. As whole strings they are found nevertheless.
const AMBIGUOUS: [&str; 2] = ["log", "inline"];

pub fn check(repository: &Repository) -> Vec<Violation> {
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    for source in repository.sources.values() {
        if is_registry(&source.path) {
            names.extend(registered(source));
        }
    }
    for source in repository.sources.values() {
        let registry = source.find(&["fn", "registry"]).next();
        if let Some(at) = registry.filter(|_| names.is_empty() && is_registry(&source.path)) {
            let message = "no name is found in the registries: give each `Descriptor` its \
                           `name: \"...\"`, or correct the list in this rule";
            let line = source.tokens[at].line;
            found.push(Violation::new(NAME, &source.path, line, message.to_string()));
        }
        if is_engine(&source.path) {
            found.extend(check_source(source, &names));
        }
    }
    found
}

fn is_registry(path: &str) -> bool {
    REGISTRIES.iter().any(|registry| path.starts_with(registry))
}

fn is_engine(path: &str) -> bool {
    let Some(rest) = path.strip_prefix(ENGINE) else { return false };
    let module = rest.split(['/', '.']).next().unwrap_or(rest);
    !WIRING.contains(&module) && path != PROPERTIES
}

/// Strings after `name:` in the descriptors of a file.
fn registered(source: &Source) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let strings = |at: usize| source.tokens[..at].iter().filter(|t| t.text == "\"\"").count();
    for open in source.find(&["Descriptor", "{"]) {
        for at in open..after_group(&source.tokens, open + 1) {
            if source.spells(at, &["name", ":", "\"\""]) {
                names.insert(source.strings[strings(at)].text.clone());
            }
        }
    }
    names
}

fn check_source(source: &Source, names: &BTreeSet<String>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut say = |line: usize, name: &str, text: &str| {
        let message = format!(
            "`{text}` names `{name}`: the executor matches on moves, never on who chose them. \
             Express the difference in the plan, or wire it in options, presets or registry"
        );
        found.push(Violation::new(NAME, &source.path, line, message));
    };
    for token in source.tokens.iter().filter(|token| !source.is_test(token.line)) {
        let words = words::parts(&token.text);
        let named = words.iter().find(|w| names.contains(*w) && !AMBIGUOUS.contains(&w.as_str()));
        if let Some(name) = named {
            say(token.line, name, &token.text);
        }
    }
    for string in source.strings.iter().filter(|string| !source.is_test(string.line)) {
        if let Some(name) = names.get(string.text.trim()) {
            say(string.line, name, &string.text);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: &str = "pub const ALL: [Descriptor; 2] = [\n\
        Descriptor { help: \"x\", name: \"ldc\" }, Descriptor { name: \"log\", help: \"y\" }];\n\
        const OPTION: Entry = Entry { name: \"fanout\" };";

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let files = [("crates/tree/src/policy/registry.rs", REGISTRY), (path, text)];
        check(&Repository::of(&files)).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn names_are_found_as_identifiers_and_as_strings() {
        let text = "use tree::policy::ldc;\nstruct LdcState;\nlet ldc_links = 1;\n\
                    if name == \"ldc\" {}\nmatch layout { \"log\" => x }";
        assert_eq!(lines("crates/shingle/src/execute.rs", text), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn wiring_tests_comments_and_other_meanings_are_free() {
        assert!(lines("crates/shingle/src/presets/mod.rs", "let a = \"ldc\";").is_empty());
        assert!(lines(PROPERTIES, "let a = \"ldc\";").is_empty());
        let text = "// ldc\nlet log = 1; let fanout = 2;\n#[inline]\nfn f() {}\n\
                    #[cfg(test)]\nmod t { ldc() }";
        assert!(lines("crates/shingle/src/execute.rs", text).is_empty());
    }

    #[test]
    fn a_registry_whose_names_are_not_understood_is_found() {
        let text = "pub fn registry() -> &'static [Policy] { &[leveled::NEW] }";
        let found = check(&Repository::of(&[("crates/tree/src/policy/mod.rs", text)]));
        assert_eq!(found.len(), 1);
    }
}
