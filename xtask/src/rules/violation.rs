//! What a rule reports.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_names_place_rule_and_remedy() {
        let violation = Violation::new("limits", "a.rs", 7, "too long; divide it".into());
        assert_eq!(violation.to_string(), "a.rs:7: [limits] too long; divide it");
    }
}
