//! Paths like `crate::a::{b, c as d}` in code, written out one by one.

use crate::source::Token;

/// One path, written out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsePath {
    /// Its parts; a glob ends in `*`.
    pub parts: Vec<String>,
    /// The line where it ends.
    pub line: usize,
}

impl UsePath {
    /// It begins with these parts.
    pub fn starts_with(&self, parts: &[&str]) -> bool {
        self.parts.len() >= parts.len() && self.parts.iter().zip(parts).all(|(a, b)| a == b)
    }
}

/// The paths that begin with the word at `at`.
pub fn expand(tokens: &[Token], at: usize) -> Vec<UsePath> {
    let mut out = Vec::new();
    let mut at = at;
    walk(tokens, &mut at, Vec::new(), &mut out);
    out
}

/// A path begins with the word at `at`: it follows no `::`, and a `::` follows it.
pub fn begins_path(tokens: &[Token], at: usize) -> bool {
    let text = |index: usize| tokens.get(index).map_or("", |t| t.text.as_str());
    text(at + 1) == "::" && (at == 0 || text(at - 1) != "::")
}

fn walk(tokens: &[Token], at: &mut usize, mut parts: Vec<String>, out: &mut Vec<UsePath>) {
    while let Some(token) = tokens.get(*at) {
        if token.text == "{" {
            return walk_group(tokens, at, &parts, out);
        }
        if !token.is_word() && token.text != "*" {
            break;
        }
        parts.push(token.text.clone());
        *at += 1;
        if tokens.get(*at).is_none_or(|next| next.text != "::") {
            break;
        }
        *at += 1;
    }
    if tokens.get(*at).is_some_and(|t| t.text == "as") {
        *at += 2;
    }
    let line = tokens.get(at.saturating_sub(1)).map_or(1, |t| t.line);
    out.push(UsePath { parts, line });
}

fn walk_group(tokens: &[Token], at: &mut usize, parts: &[String], out: &mut Vec<UsePath>) {
    *at += 1;
    while let Some(token) = tokens.get(*at) {
        match token.text.as_str() {
            "}" => {
                *at += 1;
                return;
            }
            "," => *at += 1,
            "{" | "*" => walk(tokens, at, parts.to_vec(), out),
            _ if token.is_word() => walk(tokens, at, parts.to_vec(), out),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    #[test]
    fn groups_aliases_and_globs_are_written_out() {
        let text = "use crate::{a::{self, B as C}, d::*};";
        let source = Source::new("x.rs".into(), text.into());
        let paths = expand(&source.tokens, 1);
        let spelled: Vec<String> = paths.iter().map(|path| path.parts.join("::")).collect();
        assert_eq!(spelled, ["crate::a::self", "crate::a::B", "crate::d::*"]);
    }
}
