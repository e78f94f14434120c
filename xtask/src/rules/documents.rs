//! Every Markdown file has one title, and its relative links lead somewhere.

use super::Violation;
use crate::repository::Repository;

pub const NAME: &str = "documents";

pub fn check(repository: &Repository) -> Vec<Violation> {
    let documents = repository.texts.iter().filter(|(path, _)| path.ends_with(".md"));
    documents.flat_map(|(path, text)| check_document(repository, path, text)).collect()
}

fn check_document(repository: &Repository, path: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut say = |line: usize, message: String| {
        found.push(Violation::new(NAME, path, line, message));
    };
    let prose = prose(text);
    let mut titles = prose.iter().filter(|(_, line)| line.starts_with("# "));
    if titles.next().is_none() {
        say(1, "no title: begin with one line `# Title`".into());
    }
    for (line, _) in titles {
        say(*line, "a second title: one document has one subject; use `##`".into());
    }
    for (line, text) in &prose {
        for link in links(text) {
            if let Some(target) = target(path, link).filter(|target| !exists(repository, target)) {
                say(*line, format!("the link `{link}` leads to `{target}`, which does not exist"));
            }
        }
    }
    found
}

/// Lines outside fenced blocks, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut is_fenced = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// The targets of `[text](target)` outside inline code.
fn links(line: &str) -> Vec<&str> {
    let outside_code = line.split('`').step_by(2);
    let bare = outside_code.flat_map(|part| part.split("](").skip(1));
    bare.filter_map(|part| part.split(')').next()).collect()
}

/// The file that a relative link means, from the root; `None` for other links.
fn target(from: &str, link: &str) -> Option<String> {
    let file = link.split(['#', ' ']).next().unwrap_or(link);
    if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn exists(repository: &Repository, target: &str) -> bool {
    let folder = format!("{target}/");
    let inside = repository.files.range(folder.clone()..).next();
    target.is_empty()
        || repository.files.contains(target)
        || inside.is_some_and(|path| path.starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_second_titles_and_dead_links_are_found() {
        let repository = Repository::of(&[
            ("docs/a.md", "text\n[x](../b.md#part) [y](gone.md) `[z](code.md)`"),
            ("b.md", "# B\n```\n# not a title\n```\n# Second\n[d](docs) [w](https://x.y/z)"),
        ]);
        let found: Vec<_> = check(&repository).into_iter().map(|v| (v.path, v.line)).collect();
        let expected = [("b.md", 5), ("docs/a.md", 1), ("docs/a.md", 2)];
        assert_eq!(found, expected.map(|(path, line)| (path.to_string(), line)));
    }

    #[test]
    fn a_link_with_code_as_its_text_is_checked() {
        let repository = Repository::of(&[("b.md", "# B\n[`a`](gone.md)")]);
        assert_eq!(check(&repository).len(), 1);
    }
}
