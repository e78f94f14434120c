//! The engine executes plans without knowing which policy made them: no name of a registered
//! policy, value layout or device stands in its code. Names are read from the registries.

use super::Violation;
use crate::repository::Repository;
use crate::source::{Source, after_group};
use crate::words;
use std::collections::BTreeSet;

pub const NAME: &str = "blind-engine";

/// Where names are registered: `name: "..."` in a `Descriptor`.
const REGISTRIES: [&str; 3] =
    ["crates/tree/src/policy/", "crates/values/src/", "crates/devices/src/models/"];

/// The engine, and its files that turn the user's choice into a policy or layout.
const ENGINE: &str = "crates/shingle/src/";
const WIRING: [&str; 2] = ["options", "presets"];

/// Answers to property names that people know from other stores, such as `leveldb.stats`: there a
/// name is that store's, not a scheme's.
const PROPERTIES: &str = "crates/shingle/src/api/property.rs";

/// Registered names that mean something else in the engine too: the write-ahead log, and the
/// attribute of functions. As whole strings they are found nevertheless.
const AMBIGUOUS: [&str; 2] = ["log", "inline"];

pub fn check(repository: &Repository) -> Vec<Violation> {
    let mut found = check_lists(repository);
    let sources = repository.sources.values();
    let registries = sources.clone().filter(|source| is_registry(&source.path));
    let names: BTreeSet<String> = registries.flat_map(registered).collect();
    for source in sources.filter(|source| is_engine(&source.path)) {
        found.extend(check_source(source, &names));
    }
    found
}

/// What this rule reads is there: the engine, every registry with its names, and every exception.
fn check_lists(repository: &Repository) -> Vec<Violation> {
    let below = |path: &str| repository.sources.range(path.to_string()..).next();
    let is_there = |path: &str| below(path).is_some_and(|(file, _)| file.starts_with(path));
    if !is_there(ENGINE) && !REGISTRIES.into_iter().any(is_there) {
        return Vec::new(); // Another repository.
    }
    let mut found = Vec::new();
    let mut say = |path: &str, what: &str| {
        let message = format!("{path} {what}: correct the list in xtask/src/rules/blind_engine.rs");
        found.push(Violation::new(NAME, path, 1, message));
    };
    let wiring = WIRING.map(|module| format!("{ENGINE}{module}"));
    let exceptions = wiring.iter().map(String::as_str).chain([ENGINE, PROPERTIES]);
    for path in exceptions.chain(REGISTRIES).filter(|path| !is_there(path)) {
        say(path, "is not there");
    }
    for registry in REGISTRIES.into_iter().filter(|registry| is_there(registry)) {
        let mut sources = repository.sources.values().filter(|s| s.path.starts_with(registry));
        if sources.all(|source| registered(source).is_empty()) {
            say(registry, "has no name in a `Descriptor`");
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

    /// All lists that the rule reads, each with names, and one more file.
    fn found(path: &str, text: &str) -> Vec<Violation> {
        let lists = REGISTRIES.map(|list| match list.strip_suffix('/') {
            Some(folder) => format!("{folder}/mod.rs"),
            None => list.to_string(),
        });
        let mut files: Vec<(&str, &str)> =
            vec![("crates/shingle/src/lib.rs", ""), (PROPERTIES, "")];
        let wiring = WIRING.map(|module| format!("{ENGINE}{module}.rs"));
        files.extend(wiring.iter().map(|path| (path.as_str(), "")));
        files.extend(lists.iter().map(|list| (list.as_str(), REGISTRY)));
        files.retain(|(other, _)| *other != path);
        files.push((path, text));
        files.retain(|(_, text)| *text != "absent");
        check(&Repository::of(&files))
    }

    fn lines(path: &str, text: &str) -> Vec<usize> {
        found(path, text).iter().map(|violation| violation.line).collect()
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
    fn a_list_that_is_absent_or_has_no_names_is_found() {
        for absent in ["crates/tree/src/policy/mod.rs", "crates/values/src/mod.rs"] {
            let found = found(absent, "absent");
            assert_eq!(found.len(), 1, "{absent}: {found:?}");
            assert!(found[0].message.contains("is not there"), "{found:?}");
        }
        let text = "pub fn registry() -> &'static [Policy] { &[leveled::NEW] }";
        let found = found("crates/tree/src/policy/mod.rs", text);
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("has no name"), "{found:?}");
    }

    #[test]
    fn an_exception_and_an_engine_that_are_absent_are_found() {
        assert!(found(PROPERTIES, "absent")[0].message.contains(PROPERTIES));
        assert!(found("crates/shingle/src/options.rs", "absent")[0].message.contains("options"));
        let registries = [("crates/values/src/log.rs", REGISTRY)];
        let found = check(&Repository::of(&registries));
        assert!(found.iter().any(|violation| violation.path == ENGINE), "{found:?}");
    }
}
