//! No dead files: every Rust file of a package is reached from one of its roots.

use super::Violation;
use crate::modules;
use crate::repository::Repository;
use std::collections::BTreeSet;

pub const NAME: &str = "reachable";

pub fn check(repository: &Repository) -> Vec<Violation> {
    let mut reached = BTreeSet::new();
    for package in &repository.packages {
        for root in modules::roots(package, &repository.sources) {
            let modules = modules::reach(&repository.sources, &root);
            reached.extend(modules.into_iter().map(|module| module.path));
        }
    }
    let dead = repository.sources.keys().filter(|path| !reached.contains(*path));
    dead.map(|path| {
        let message = "no crate root reaches this file: declare it with `mod`, or remove it";
        Violation::new(NAME, path, 1, message.to_string())
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_declared_is_found() {
        let repository = Repository::of(&[
            ("crates/a/Cargo.toml", "[package]\nname = \"a\"\n[[bin]]\npath = \"src/x.rs\""),
            ("crates/a/src/lib.rs", "mod used;\n// mod unused;"),
            ("crates/a/src/used.rs", ""),
            ("crates/a/src/unused.rs", ""),
            ("crates/a/src/x.rs", ""),
            ("crates/a/tests/it.rs", "mod common;"),
            ("crates/a/tests/common/mod.rs", ""),
        ]);
        let paths: Vec<String> = check(&repository).into_iter().map(|v| v.path).collect();
        assert_eq!(paths, ["crates/a/src/unused.rs"]);
    }
}
