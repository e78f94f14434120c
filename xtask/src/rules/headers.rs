//! Every Rust file begins with `//!`: what it is and what it keeps true.

use super::Violation;
use crate::repository::Repository;

pub const NAME: &str = "headers";

pub fn check(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for source in repository.sources.values() {
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
        ]);
        let paths: Vec<String> = check(&repository).into_iter().map(|v| v.path).collect();
        assert_eq!(paths, ["a.rs", "c.rs"]);
    }
}
