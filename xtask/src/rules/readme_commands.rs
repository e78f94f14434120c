//! The commands of README.md are run by a test, so that they stay true.

use super::Violation;
use crate::readme;
use crate::repository::Repository;

pub const NAME: &str = "readme-commands";
const README: &str = "README.md";
const RUNNER: &str = "crates/shingle-cli/tests/readme/main.rs";
const PROGRAMS: [&str; 3] = ["cargo ", "shingle ", "git "];

pub fn check(repository: &Repository) -> Vec<Violation> {
    let Some(text) = repository.text(README) else { return Vec::new() };
    let mut found = Vec::new();
    for command in readme::commands(text) {
        if !PROGRAMS.iter().any(|program| command.text.starts_with(program)) {
            let message = format!(
                "`{}` begins with none of `cargo`, `shingle`, `git`: the test that runs this page \
                 cannot run it. Rewrite it, or mark the block as ```sh no-run",
                command.text
            );
            found.push(Violation::new(NAME, README, command.line, message));
        }
    }
    let runner = repository.sources.get(RUNNER);
    if !runner.is_some_and(|source| source.strings.iter().any(|s| s.text.contains(README))) {
        let message = format!("no test runs these commands: write {RUNNER}, which reads {README}");
        found.push(Violation::new(NAME, README, 1, message));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_commands_and_a_missing_test_are_found() {
        let page = "# S\n```sh\n$ cargo test\n```\n```sh no-run\nsudo x\n```\n";
        let lines: Vec<usize> =
            check(&Repository::of(&[(README, page)])).iter().map(|v| v.line).collect();
        assert_eq!(lines, [3, 1]);
    }

    #[test]
    fn a_page_with_its_test_is_fine() {
        let page = "# S\n```sh\ncargo test\nshingle --help\n```\n";
        let test = "const PAGE: &str = include_str!(\"../../../../README.md\");";
        assert_eq!(check(&Repository::of(&[(README, page), (RUNNER, test)])), []);
    }
}
