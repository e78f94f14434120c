//! Every Rust file begins with `//!`: what it is and what it keeps true. A file that another takes
//! in with `include!` is a part of that one, and the language forbids a header there.

use super::Violation;
use crate::modules;
use crate::repository::Repository;
use std::collections::BTreeSet;

pub const NAME: &str = "headers";

pub fn check(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    let parts: BTreeSet<String> =
        repository.sources.values().flat_map(modules::inclusions).collect();
    for source in repository.sources.values().filter(|source| !parts.contains(&source.path)) {
        let mut lines = source.text.lines().map(str::trim);
        let first = lines.find(|line| !line.is_empty() && !line.starts_with("#!"));
        if !first.is_some_and(|line| line.starts_with("//!")) {
            let message =
                "no `//!` at the top: say what the module is, and its invariants".to_string();
            found.push(Violation::new(NAME, &source.path, 1, message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_header_is_found() {
        let repository = Repository::of(&[
            ("a.rs", "fn a() {}\n//! late"),
            ("b.rs", "//! Fine.\nfn b() {}"),
            ("c.rs", ""),
            ("d.rs", "//! Shows e.\ninclude!(\"e.rs\");"),
            ("e.rs", "fn main() {}"),
        ]);
        let paths: Vec<String> = check(&repository).into_iter().map(|v| v.path).collect();
        assert_eq!(paths, ["a.rs", "c.rs"]);
    }
}
