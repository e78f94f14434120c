//! The rules. Each is a module with a `NAME`, a `check`, and a test on text that breaks it.

mod ambient;
mod arrows;
mod blind_engine;
mod crate_map;
pub mod cycles;
mod documents;
mod file_access;
mod headers;
mod interface;
mod leftovers;
mod limits;
mod packages;
pub mod publishable;
mod reachable;
mod readme_commands;
mod unsafe_code;
mod violation;
mod waivers;
pub mod words;

use crate::repository::Repository;
pub use violation::Violation;

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
pub const ALL: [(&str, Check); 17] = [
    (ambient::NAME, ambient::check),
    (arrows::NAME, arrows::check),
    (blind_engine::NAME, blind_engine::check),
    (crate_map::NAME, crate_map::check),
    (cycles::NAME, cycles::check),
    (documents::NAME, documents::check),
    (file_access::NAME, file_access::check),
    (headers::NAME, headers::check),
    (interface::NAME, interface::check),
    (leftovers::NAME, leftovers::check),
    (waivers::NAME, waivers::check),
    (packages::NAME, packages::check),
    (publishable::NAME, publishable::check),
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
    report.notes.extend(packages::unavailable(repository));
    report.notes.extend(cycles::slack(repository));
    report.notes.extend(words::slack(repository));
    report.violations.sort();
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_an_empty_repository_is_tidy() {
        let names: std::collections::BTreeSet<&str> = ALL.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), ALL.len());
        assert_eq!(check(&Repository::of(&[])).violations, []);
    }
}
