//! Which files a crate is made of: from its roots along `mod name;`.

use crate::package::Package;
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// Rust files, by path.
pub type Sources = BTreeMap<String, Source>;

/// A file that a crate root reaches.
#[derive(Clone, Debug)]
pub struct Module {
    /// The file.
    pub path: String,
    /// The names from the root down; empty for the root itself.
    pub names: Vec<String>,
    /// It is compiled for tests only.
    pub is_test: bool,
}

/// The roots of a package: library, binaries, tests, examples, benchmarks, build script.
pub fn roots(package: &Package, sources: &Sources) -> BTreeSet<String> {
    let mut roots = BTreeSet::new();
    for path in sources.keys() {
        let Some(rest) = path.strip_prefix(&format!("{}/", package.folder)) else { continue };
        let parts: Vec<&str> = rest.split('/').collect();
        let is_root = matches!(
            parts[..],
            ["build.rs"]
                | ["src", "lib.rs" | "main.rs"]
                | ["src", "bin", _]
                | ["src", "bin", _, "main.rs"]
                | ["tests" | "examples" | "benches", _]
                | ["tests" | "examples" | "benches", _, "main.rs"]
        );
        if is_root {
            roots.insert(path.clone());
        }
    }
    roots.extend(named_roots(package));
    roots
}

/// Roots that the manifest names by `path`.
fn named_roots(package: &Package) -> Vec<String> {
    let kinds = ["lib", "bin", "test", "bench", "example"];
    let entries = kinds.iter().filter_map(|kind| package.manifest.get(*kind));
    let tables = entries.flat_map(|entry| match entry {
        toml::Value::Array(tables) => tables.clone(),
        table => vec![table.clone()],
    });
    let paths = tables.filter_map(|table| table.get("path")?.as_str().map(str::to_string));
    paths.map(|path| format!("{}/{path}", package.folder)).collect()
}

/// Every file that `root` reaches, itself first.
pub fn reach(sources: &Sources, root: &str) -> Vec<Module> {
    let first = Module { path: root.to_string(), names: Vec::new(), is_test: false };
    let mut found = vec![first];
    let mut next = 0;
    while next < found.len() {
        let module = found[next].clone();
        next += 1;
        let Some(source) = sources.get(&module.path) else { continue };
        for path in inclusions(source) {
            if sources.contains_key(&path) && found.iter().all(|other| other.path != path) {
                found.push(Module { path, ..module.clone() });
            }
        }
        for (names, line) in declarations(source) {
            let candidates = files_of(&module, &names);
            let Some(path) = candidates.into_iter().find(|p| sources.contains_key(p)) else {
                continue;
            };
            let is_test = module.is_test || source.is_test(line);
            let names = [module.names.clone(), names].concat();
            if found.iter().all(|other| other.path != path) {
                found.push(Module { path, names, is_test });
            }
        }
    }
    found
}

/// Files that every crate root which reaches them compiles for tests only.
pub fn test_only(packages: &[Package], sources: &Sources) -> Vec<String> {
    let mut test = BTreeSet::new();
    let mut production = BTreeSet::new();
    for package in packages {
        for root in roots(package, sources) {
            for module in reach(sources, &root) {
                let set = if module.is_test { &mut test } else { &mut production };
                set.insert(module.path);
            }
        }
    }
    test.difference(&production).cloned().collect()
}

/// The files that a file takes in with `include!("path")`, by their paths in the repository.
pub fn inclusions(source: &Source) -> Vec<String> {
    let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let strings = |at: usize| source.tokens[..at].iter().filter(|t| t.text == "\"\"").count();
    (0..source.tokens.len())
        .filter(|&at| source.spells(at, &["include", "!", "(", "\"\""]))
        .map(|at| joined(folder, &source.strings[strings(at)].text))
        .collect()
}

/// `path` seen from `folder`, without `..`.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Names (through inline modules) and lines of all `mod name;` of a file.
fn declarations(source: &Source) -> Vec<(Vec<String>, usize)> {
    fn collect(items: &[syn::Item], around: &[String], found: &mut Vec<(Vec<String>, usize)>) {
        for item in items {
            let syn::Item::Mod(module) = item else { continue };
            let names = [around, &[module.ident.to_string()]].concat();
            match &module.content {
                Some((_, items)) => collect(items, &names, found),
                None => found.push((names, module.ident.span().start().line)),
            }
        }
    }
    let mut found = Vec::new();
    let items = source.file.as_ref().map_or(&[][..], |file| &file.items);
    collect(items, &[], &mut found);
    found
}

/// Where Rust looks for the file of a module declared in `module`.
fn files_of(module: &Module, names: &[String]) -> [String; 2] {
    let (folder, file) = module.path.rsplit_once('/').unwrap_or(("", &module.path));
    let stem = file.trim_end_matches(".rs");
    let is_folder_owner = module.names.is_empty() || stem == "mod";
    let own = if is_folder_owner { folder.to_string() } else { format!("{folder}/{stem}") };
    let base = format!("{own}/{}", names.join("/"));
    [format!("{base}.rs"), format!("{base}/mod.rs")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Repository;

    #[test]
    fn modules_are_followed_through_folders_and_inline_modules() {
        let repository = Repository::of(&[
            ("crates/a/Cargo.toml", "[package]\nname = \"a\""),
            ("crates/a/src/lib.rs", "mod b;\nmod c { mod d; }\n#[cfg(test)]\nmod checks;"),
            ("crates/a/src/b/mod.rs", "mod e;"),
            ("crates/a/src/b/e.rs", "mod f;"),
            ("crates/a/src/b/e/f.rs", ""),
            ("crates/a/src/c/d.rs", ""),
            ("crates/a/src/checks.rs", "fn x() {}"),
        ]);
        let reached = reach(&repository.sources, "crates/a/src/lib.rs");
        let names: Vec<String> = reached.iter().map(|module| module.names.join("::")).collect();
        assert_eq!(names, ["", "b", "c::d", "checks", "b::e", "b::e::f"]);
        assert_eq!(
            test_only(&repository.packages, &repository.sources),
            ["crates/a/src/checks.rs"]
        );
        assert!(repository.sources["crates/a/src/checks.rs"].is_test(1));
    }

    #[test]
    fn an_included_file_belongs_to_the_module_that_includes_it() {
        let repository = Repository::of(&[
            ("crates/a/tests/page.rs", "const A: &str = \"x\";\ninclude!(\"../shown/one.rs\");"),
            ("crates/a/shown/one.rs", "fn main() {}"),
        ]);
        let reached = reach(&repository.sources, "crates/a/tests/page.rs");
        assert_eq!(reached[1].path, "crates/a/shown/one.rs");
        assert!(reached[1].names.is_empty());
    }
}
