//! Nothing unfinished stays: no `todo!`, `unimplemented!`, `dbg!`, no commented-out module.

use super::Violation;
use crate::repository::Repository;
use crate::source::Source;

pub const NAME: &str = "leftovers";
const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

pub fn check(repository: &Repository) -> Vec<Violation> {
    repository.sources.values().flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    for (at, token) in source.tokens.iter().enumerate() {
        if MACROS.contains(&token.text.as_str()) && source.spells(at + 1, &["!"]) {
            let message = format!("`{}!`: finish it or remove it", token.text);
            found.push(Violation::new(NAME, &source.path, token.line, message));
        }
    }
    for comment in source.comments.iter().filter(|comment| is_module(&comment.text)) {
        let message = "a module in a comment: declare it, or remove it with its file".to_string();
        found.push(Violation::new(NAME, &source.path, comment.line, message));
    }
    found
}

/// The comment is nothing but `mod name;`, with a visibility or without.
fn is_module(comment: &str) -> bool {
    let text = comment.trim_start_matches('/').trim();
    let text = text.split_once("mod ").filter(|(before, _)| {
        before.is_empty() || before.starts_with("pub") && before.ends_with(' ')
    });
    let Some((_, name)) = text else { return false };
    let is_word = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
    name.strip_suffix(';').is_some_and(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_code_and_dead_declarations_are_found() {
        let text = "fn a() { todo!() }\n// mod old;\n// pub(crate) mod older;\n\
                    fn b() { dbg!(x); }\n// a mod is a module;\nlet dbg = \"todo!\";";
        let found = check(&Repository::of(&[("a.rs", text)]));
        assert_eq!(found.iter().map(|v| v.line).collect::<Vec<_>>(), [1, 4, 2, 3]);
    }
}
