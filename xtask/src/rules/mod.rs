//! The rules. Each is a module with a `NAME`, a `check`, and a test on text that breaks it.

mod ambient;
mod arrows;
mod blind_engine;
mod crate_map;
mod cycles;
mod documents;
mod file_access;
mod headers;
mod leftovers;
mod licences;
mod limits;
mod reachable;
mod readme_commands;
mod unsafe_code;
mod waivers;
pub mod words;

use crate::repository::Repository;
use std::fmt;

/// A place that breaks a rule, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// From the root of the repository.
    pub path: String,
    /// From 1.
    pub line: usize,
    /// The rule.
    pub rule: &'static str,
    /// What is wrong and what to do instead.
    pub message: String,
}

impl Violation {
    /// A violation of `rule` in `path`.
    pub fn new(rule: &'static str, path: &str, line: usize, message: String) -> Violation {
        Violation { path: path.to_string(), line, rule, message }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: [{}] {}", self.path, self.line, self.rule, self.message)
    }
}

/// What the rules found.
#[derive(Debug, Default)]
pub struct Report {
    /// In order of place.
    pub violations: Vec<Violation>,
    /// What could not be checked, and why.
    pub notes: Vec<String>,
}

/// What every rule is.
pub type Check = fn(&Repository) -> Vec<Violation>;

/// The rules that look at the repository alone.
pub const ALL: [(&str, Check); 15] = [
    (ambient::NAME, ambient::check),
    (arrows::NAME, arrows::check),
    (blind_engine::NAME, blind_engine::check),
    (crate_map::NAME, crate_map::check),
    (cycles::NAME, cycles::check),
    (documents::NAME, documents::check),
    (file_access::NAME, file_access::check),
    (headers::NAME, headers::check),
    (leftovers::NAME, leftovers::check),
    (licences::NAME, licences::check),
    (waivers::NAME, waivers::check),
    (reachable::NAME, reachable::check),
    (readme_commands::NAME, readme_commands::check),
    (unsafe_code::NAME, unsafe_code::check),
    (words::NAME, words::check),
];

/// Runs every rule.
pub fn check(repository: &Repository) -> Report {
    let mut report = Report::default();
    for (_, rule) in ALL {
        report.violations.extend(rule(repository));
    }
    report.notes.extend(licences::unavailable(repository));
    report.notes.extend(words::slack(repository));
    report.violations.sort();
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_names_place_rule_and_remedy() {
        let violation = Violation::new("limits", "a.rs", 7, "too long; divide it".into());
        assert_eq!(violation.to_string(), "a.rs:7: [limits] too long; divide it");
    }

    #[test]
    fn names_are_distinct_and_an_empty_repository_is_tidy() {
        let names: std::collections::BTreeSet<&str> = ALL.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), ALL.len());
        assert_eq!(check(&Repository::of(&[])).violations, []);
    }
}
