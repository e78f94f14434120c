//! `unsafe` stands only in the files that `layers.toml` lists under `[unsafe]`, each with a reason,
//! and every block says in a `// SAFETY:` comment why it is sound. `#[unsafe(no_mangle)]`, which
//! names a function for other languages, is not counted.

use super::Violation;
use crate::repository::Repository;
use crate::source::Source;

pub const NAME: &str = "unsafe";
const LAYERS: &str = "layers.toml";

pub fn check(repository: &Repository) -> Vec<Violation> {
    let layers = repository.toml(LAYERS).unwrap_or_default();
    let listed = layers.get("unsafe").and_then(toml::Value::as_table);
    let listed = listed.cloned().unwrap_or_default();
    let mut found = Vec::new();
    for source in repository.sources.values() {
        for line in uses(source) {
            let reason = listed.get(&source.path).and_then(toml::Value::as_str);
            if reason.is_none_or(|reason| reason.trim().is_empty()) {
                let message = format!(
                    "`unsafe` in a file that {LAYERS} does not list with a reason: write it safely"
                );
                found.push(Violation::new(NAME, &source.path, line, message));
            }
        }
        for line in blocks(source).into_iter().filter(|&line| !is_explained(source, line)) {
            let message = "an unsafe block without `// SAFETY:` above it".to_string();
            found.push(Violation::new(NAME, &source.path, line, message));
        }
    }
    for path in listed.keys() {
        if repository.sources.get(path).is_none_or(|source| uses(source).is_empty()) {
            let line = repository.line_of(LAYERS, path);
            let message = format!("{path} has no `unsafe`: remove the line");
            found.push(Violation::new(NAME, LAYERS, line, message));
        }
    }
    found
}

fn uses(source: &Source) -> Vec<usize> {
    let is_use = |at: usize| {
        source.tokens[at].text == "unsafe" && !source.spells(at, &["unsafe", "(", "no_mangle", ")"])
    };
    let found = (0..source.tokens.len()).filter(|&at| is_use(at));
    found.map(|at| source.tokens[at].line).collect()
}

/// Lines of `unsafe {` and `unsafe impl`; an `unsafe fn` has its `# Safety` from a lint.
fn blocks(source: &Source) -> Vec<usize> {
    let opens = |at: usize| source.spells(at, &["unsafe", "{"]);
    let implements = |at: usize| source.spells(at, &["unsafe", "impl"]);
    let found = (0..source.tokens.len()).filter(|&at| opens(at) || implements(at));
    found.map(|at| source.tokens[at].line).collect()
}

/// A comment block with `SAFETY:` ends right above the statement that contains the line.
fn is_explained(source: &Source, line: usize) -> bool {
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let mut above = lines[..line - 1].iter().rev().peekable();
    while above.peek().is_some_and(|text| continues(text)) {
        above.next();
    }
    let mut comment = above.take_while(|text| text.starts_with("//"));
    comment.any(|text| text.starts_with("// SAFETY:"))
}

/// The line belongs to a statement that goes on below it.
fn continues(line: &str) -> bool {
    !line.is_empty() && !line.starts_with("//") && !line.ends_with([';', '{', '}', ','])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(listed: &str, text: &str) -> Vec<String> {
        let files = [("layers.toml", listed), ("a.rs", text)];
        check(&Repository::of(&files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn unlisted_files_and_unexplained_blocks_are_found() {
        let found = found("", "fn f() {\n    let x =\n        unsafe { g() };\n}");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|line| line.starts_with("a.rs:3: ")));
    }

    #[test]
    fn listed_and_explained_blocks_are_fine() {
        let text = "fn f() {\n    // SAFETY: g has\n    // no rules.\n    let x =\n        \
                    unsafe { g() };\n}\n#![allow(unsafe_code)]";
        assert_eq!(found("[unsafe]\n\"a.rs\" = \"an arena\"", text), Vec::<String>::new());
        assert_eq!(found("[unsafe]\n\"a.rs\" = \"\"", text).len(), 1);
    }

    #[test]
    fn a_name_for_other_languages_is_no_use() {
        assert!(found("", "#[unsafe(no_mangle)]\npub extern \"C\" fn f() {}").is_empty());
    }

    #[test]
    fn a_listed_file_without_unsafe_is_found() {
        let found = found("[unsafe]\n\"a.rs\" = \"an arena\"", "fn f() {}");
        assert!(found[0].starts_with("layers.toml:2: "), "{found:?}");
    }
}
