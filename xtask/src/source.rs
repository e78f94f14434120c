//! A Rust file as the rules see it: its syntax tree, and its tokens, comments and strings.
//!
//! [`Source::tokens`] are the words and signs of the code alone: a name in a comment or in a string
//! never looks like one in code. Lines count from 1. What belongs to `#[cfg(test)]` is marked.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use std::ops::Range;

/// A word or a sign of the code; `::` is one sign.
#[derive(Debug)]
pub struct Token {
    /// The characters.
    pub text: String,
    /// The line it stands on.
    pub line: usize,
}

impl Token {
    /// It is a name, a keyword or a number.
    pub fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphanumeric() || c == '_')
    }
}

/// A comment or the inside of a string.
#[derive(Debug)]
pub struct Piece {
    /// The characters; a comment keeps its slashes.
    pub text: String,
    /// The line where it begins.
    pub line: usize,
}

/// A Rust file.
pub struct Source {
    /// From the root of the repository.
    pub path: String,
    /// As it is.
    pub text: String,
    /// The code without comments, strings and white space.
    pub tokens: Vec<Token>,
    /// Comments, in order.
    pub comments: Vec<Piece>,
    /// Strings, in order.
    pub strings: Vec<Piece>,
    /// The syntax tree; `None` for a text that is no whole file.
    pub file: Option<syn::File>,
    test_lines: Vec<bool>,
}

impl Source {
    /// Splits `text`.
    pub fn new(path: String, text: String) -> Source {
        let stream: TokenStream = text.parse().unwrap_or_default();
        let mut reader = Reader::new(&text);
        reader.read(stream.clone());
        reader.take_comments(text.len());
        let Reader { tokens, comments, strings, .. } = reader;
        let mut test_lines = vec![is_test_path(&path); text.lines().count() + 2];
        for (first, last) in test_items(&tokens) {
            test_lines[first..=last].fill(true);
        }
        let file = syn::parse2(stream).ok();
        Source { path, text, tokens, comments, strings, file, test_lines }
    }

    /// The line belongs to tests.
    pub fn is_test(&self, line: usize) -> bool {
        self.test_lines.get(line).copied().unwrap_or(false)
    }

    /// The whole file is compiled for tests only.
    pub fn mark_all_test(&mut self) {
        self.test_lines.fill(true);
    }

    /// The indexes of tokens outside tests that spell `words` one after another.
    pub fn find<'a>(&'a self, words: &'a [&'a str]) -> impl Iterator<Item = usize> + 'a {
        (0..self.tokens.len()).filter(|&at| self.spells(at, words)).filter(|&at| {
            let line = self.tokens[at].line;
            !self.is_test(line)
        })
    }

    /// The tokens from `at` on spell `words`.
    pub fn spells(&self, at: usize, words: &[&str]) -> bool {
        let tokens = self.tokens.get(at..at + words.len()).unwrap_or_default();
        tokens.len() == words.len() && tokens.iter().zip(words).all(|(t, word)| t.text == *word)
    }
}

/// Files that Cargo compiles for tests, benchmarks and examples only.
fn is_test_path(path: &str) -> bool {
    let folders = ["tests/", "benches/", "examples/"];
    folders.iter().any(|folder| path.starts_with(folder) || path.contains(&format!("/{folder}")))
}

/// The token after the bracket group that opens at `open`.
pub fn after_group(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// The token after the item that begins at `at`: after its `;` or after its body.
pub fn after_item(tokens: &[Token], mut at: usize) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            ";" => return at + 1,
            "{" => return after_group(tokens, at),
            "(" | "[" => at = after_group(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// First and last line of each item under `#[cfg(test)]` or a condition that contains it.
fn test_items(tokens: &[Token]) -> Vec<(usize, usize)> {
    let mut items = Vec::new();
    let mut at = 0;
    while at + 2 < tokens.len() {
        let inner = tokens[at + 1].text == "!";
        let bracket = at + 1 + usize::from(inner);
        let is_attribute = tokens[at].text == "#" && tokens[bracket].text == "[";
        if !is_attribute {
            at += 1;
            continue;
        }
        let mut end = after_group(tokens, bracket);
        if !names_test(&tokens[bracket + 1..end]) {
            at = end;
            continue;
        }
        let first = tokens[at].line;
        while tokens.get(end).is_some_and(|t| t.text == "#") {
            end = after_group(tokens, end + 1);
        }
        let after = if inner { tokens.len() } else { after_item(tokens, end) };
        items.push((first, tokens[after - 1].line));
        at = after;
    }
    items
}

fn names_test(attribute: &[Token]) -> bool {
    let is_cfg = attribute.first().is_some_and(|t| t.text == "cfg");
    let has = |word: &str| attribute.iter().any(|t| t.text == word);
    is_cfg && has("test") && !has("not")
}

/// Takes the tokens of a text one by one, and the comments between them.
struct Reader<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
    /// The end of the last token.
    end: usize,
    after_colon: bool,
    tokens: Vec<Token>,
    comments: Vec<Piece>,
    strings: Vec<Piece>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
        Reader {
            text,
            line_starts: line_starts.collect(),
            end: 0,
            after_colon: false,
            tokens: Vec::new(),
            comments: Vec::new(),
            strings: Vec::new(),
        }
    }

    fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= at)
    }

    fn read(&mut self, stream: TokenStream) {
        for tree in stream {
            let span = tree.span().byte_range();
            let is_comment = self.text[span.clone()].starts_with("//")
                || self.text[span.clone()].starts_with("/*");
            if is_comment {
                continue; // The parser makes attributes of documentation.
            }
            let TokenTree::Group(group) = tree else {
                self.take(&tree, span);
                continue;
            };
            let (open, close) = match group.delimiter() {
                Delimiter::Parenthesis => ("(", ")"),
                Delimiter::Brace => ("{", "}"),
                Delimiter::Bracket => ("[", "]"),
                Delimiter::None => ("", ""),
            };
            self.push(open, span.start..span.start + 1);
            self.read(group.stream());
            self.push(close, span.end - 1..span.end);
        }
    }

    /// Takes a token that is no group. Characters are left out, and the quotes of lifetimes.
    fn take(&mut self, tree: &TokenTree, span: Range<usize>) {
        let text = &self.text[span.clone()];
        let is_colon = matches!(tree, TokenTree::Punct(p) if p.as_char() == ':');
        let is_joint = matches!(tree, TokenTree::Punct(p) if p.spacing() == Spacing::Joint);
        let is_literal = matches!(tree, TokenTree::Literal(_));
        if is_colon && std::mem::take(&mut self.after_colon) {
            self.end = span.end;
            self.tokens.last_mut().expect("a colon").text.push(':');
        } else if is_literal && text.ends_with(['"', '#']) && text.contains('"') {
            let (open, close) = (text.find('"').unwrap_or(0), text.rfind('"').unwrap_or(0));
            let line = self.line(span.start + open);
            self.strings.push(Piece { text: text[open + 1..close].to_string(), line });
            self.push("\"\"", span);
        } else if text.ends_with('\'') {
            self.take_comments(span.start);
            self.end = span.end;
        } else {
            self.push(text, span);
            self.after_colon = is_colon && is_joint;
        }
    }

    fn push(&mut self, text: &str, span: Range<usize>) {
        self.take_comments(span.start);
        self.end = span.end;
        self.after_colon = false;
        self.tokens.push(Token { text: text.to_string(), line: self.line(span.start) });
    }

    /// The comments between the last token and `end`: all that stands there but white space.
    fn take_comments(&mut self, end: usize) {
        while let Some(found) = self.text[self.end..end].find('/') {
            let start = self.end + found;
            let rest = &self.text[start..end];
            let bytes = match rest.starts_with("//") {
                true => rest.find('\n').unwrap_or(rest.len()),
                false => block_comment_bytes(rest),
            };
            let text = rest[..bytes].to_string();
            self.comments.push(Piece { text, line: self.line(start) });
            self.end = start + bytes;
        }
    }
}

fn block_comment_bytes(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0usize);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (at, depth) = (at + 2, depth + 1),
            Some(b"*/") => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new("crates/x/src/lib.rs".into(), text.into())
    }

    #[test]
    fn comments_and_strings_are_not_code() {
        let text = "let a = \"unsafe \\\" x\"; // todo!\n/* a /* b */ c */ let b = r#\"dbg!\"#;";
        let source = source(text);
        let words: Vec<&str> = source.tokens.iter().map(|t| t.text.as_str()).collect();
        assert_eq!(words, ["let", "a", "=", "\"\"", ";", "let", "b", "=", "\"\"", ";"]);
        assert_eq!(source.strings[0].text, "unsafe \\\" x");
        assert_eq!(source.strings[1].text, "dbg!");
        assert_eq!(source.comments[1].line, 2);
    }

    #[test]
    fn characters_and_lifetimes_differ() {
        let source = source("fn f<'a>(x: &'a u8) { ['\"', '\\'', '\\\\', 'é', b'{'] }");
        assert!(source.strings.is_empty());
        let braces = source.tokens.iter().filter(|t| t.text == "{").count();
        assert_eq!(braces, 1);
    }

    #[test]
    fn test_modules_are_marked_to_their_end() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let source = source(text);
        let marked: Vec<usize> = (1..=6).filter(|&line| source.is_test(line)).collect();
        assert_eq!(marked, [2, 3, 4, 5]);
        assert!(Source::new("crates/x/tests/it.rs".into(), text.into()).is_test(1));
    }

    #[test]
    fn code_for_everything_but_tests_is_not_marked() {
        assert!(!source("#[cfg(not(test))]\nfn a() {}\n").is_test(2));
    }
}
