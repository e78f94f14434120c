//! Functions fit a screen, files have one subject, lines fit two side by side.
//!
//! What is over a limit needs a line in `tidy-waivers.toml` (see [`super::waivers`]).

use crate::repository::Repository;
use crate::source::{Source, after_item};

/// Lines of a function, from `fn` to its closing brace.
pub const FUNCTION_LINES_MAX: usize = 70;
/// Lines of a file that do not belong to tests.
pub const FILE_LINES_MAX: usize = 600;
/// Characters of a line.
pub const LINE_COLUMNS_MAX: usize = 100;

/// Something over its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// `function-lines`, `file-lines` or `line-columns`.
    pub rule: &'static str,
    /// The file.
    pub path: String,
    /// Where it begins.
    pub line: usize,
    /// The function's name, nothing for a file, the text of a line.
    pub item: String,
    /// How big it is.
    pub found: usize,
    /// How big it may be.
    pub limit: usize,
}

/// Everything over its limit.
pub fn excesses(repository: &Repository) -> Vec<Excess> {
    repository.sources.values().flat_map(|s| [functions(s), file(s), columns(s)].concat()).collect()
}

fn functions(source: &Source) -> Vec<Excess> {
    let tokens = &source.tokens;
    let mut found = Vec::new();
    for at in (0..tokens.len()).filter(|&at| tokens[at].text == "fn") {
        let Some(name) = tokens.get(at + 1).filter(|token| token.is_word()) else { continue };
        let end = after_item(tokens, at + 1);
        let lines = tokens[end - 1].line + 1 - tokens[at].line;
        if lines > FUNCTION_LINES_MAX {
            found.push(Excess {
                rule: "function-lines",
                path: source.path.clone(),
                line: tokens[at].line,
                item: name.text.clone(),
                found: lines,
                limit: FUNCTION_LINES_MAX,
            });
        }
    }
    found
}

fn file(source: &Source) -> Vec<Excess> {
    let lines = (1..=source.text.lines().count()).filter(|&line| !source.is_test(line)).count();
    if lines <= FILE_LINES_MAX {
        return Vec::new();
    }
    vec![Excess {
        rule: "file-lines",
        path: source.path.clone(),
        line: 1,
        item: String::new(),
        found: lines,
        limit: FILE_LINES_MAX,
    }]
}

fn columns(source: &Source) -> Vec<Excess> {
    let mut found = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > LINE_COLUMNS_MAX {
            found.push(Excess {
                rule: "line-columns",
                path: source.path.clone(),
                line: index + 1,
                item: line.trim().to_string(),
                found: columns,
                limit: LINE_COLUMNS_MAX,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&'static str, usize, usize)> {
        let repository = Repository::of(&[("crates/x/src/lib.rs", text)]);
        excesses(&repository).iter().map(|e| (e.rule, e.line, e.found)).collect()
    }

    #[test]
    fn long_functions_files_and_lines_are_found_and_exact_ones_are_not() {
        let function = |lines: usize| format!("\nfn f() {{\n{}}}\n", "x();\n".repeat(lines - 2));
        assert_eq!(found(&function(71)), [("function-lines", 2, 71)]);
        assert_eq!(found(&function(70)), []);
        assert_eq!(found(&"//\n".repeat(601)), [("file-lines", 1, 601)]);
        assert_eq!(found(&"//\n".repeat(600)), []);
        assert_eq!(found(&format!("\n//{}\n", "é".repeat(99))), [("line-columns", 2, 101)]);
        assert_eq!(found(&format!("\n//{}\n", "é".repeat(98))), []);
    }

    #[test]
    fn tests_do_not_count_for_the_file() {
        let text = format!("//!\n#[cfg(test)]\nmod tests {{\n{}}}\n", "//\n".repeat(601));
        assert_eq!(found(&text), []);
    }
}
