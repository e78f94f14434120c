//! A Rust file, split into code, comments and strings, without a full parser.
//!
//! [`Source::tokens`] are the words and signs of the code alone: a name in a comment or in a string
//! never looks like one in code. Lines count from 1. What belongs to `#[cfg(test)]` is marked.

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
    test_lines: Vec<bool>,
}

impl Source {
    /// Splits `text`.
    pub fn new(path: String, text: String) -> Source {
        let mut lexer = Lexer { rest: &text, line: 1, after_word: false, ..Lexer::default() };
        while lexer.step() {}
        let Lexer { tokens, comments, strings, .. } = lexer;
        let mut test_lines = vec![is_test_path(&path); text.lines().count() + 2];
        for (first, last) in test_items(&tokens) {
            test_lines[first..=last].fill(true);
        }
        Source { path, text, tokens, comments, strings, test_lines }
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

#[derive(Default)]
struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    after_word: bool,
    tokens: Vec<Token>,
    comments: Vec<Piece>,
    strings: Vec<Piece>,
}

impl<'a> Lexer<'a> {
    /// Takes one token, comment, string or white space. `false` at the end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else { return false };
        let was_after_word = std::mem::take(&mut self.after_word);
        if self.rest.starts_with("//") {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.take_comment(end);
        } else if self.rest.starts_with("/*") {
            self.take_comment(block_comment_bytes(self.rest));
        } else if first == '"' {
            self.take_string(1, quoted_bytes(&self.rest[1..]), 1);
        } else if let Some((open, inside, close)) = raw_string(self.rest, was_after_word) {
            self.take_string(open, inside, close);
        } else if first == '\'' {
            let bytes = character_bytes(self.rest);
            self.take(bytes);
        } else if first.is_alphanumeric() || first == '_' {
            let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            self.take_token(end.unwrap_or(self.rest.len()));
        } else if first.is_whitespace() {
            self.take(first.len_utf8());
        } else {
            let bytes = if self.rest.starts_with("::") { 2 } else { first.len_utf8() };
            self.take_token(bytes);
        }
        true
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn take_token(&mut self, bytes: usize) {
        let line = self.line;
        let text = self.take(bytes).to_string();
        self.tokens.push(Token { text, line });
    }

    fn take_comment(&mut self, bytes: usize) {
        let line = self.line;
        let text = self.take(bytes).to_string();
        self.comments.push(Piece { text, line });
    }

    fn take_string(&mut self, open: usize, inside: usize, close: usize) {
        self.take(open);
        let line = self.line;
        let text = self.take(inside).to_string();
        self.strings.push(Piece { text, line });
        self.take(close.min(self.rest.len()));
        self.tokens.push(Token { text: "\"\"".into(), line });
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

/// Bytes before the closing quote of a string whose opening quote is taken.
fn quoted_bytes(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at,
            _ => {}
        }
    }
    text.len()
}

/// Bytes of the opening, the inside and the closing of a raw string that `text` begins with. The
/// prefixes of plain strings (`b`, `c`) are words of their own and need no care.
fn raw_string(text: &str, after_word: bool) -> Option<(usize, usize, usize)> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        let after = text.strip_prefix(prefix).unwrap_or_default();
        after.trim_start_matches('#').starts_with('"')
    })?;
    if after_word {
        return None;
    }
    let hashes = text[prefix.len()..].bytes().take_while(|&byte| byte == b'#').count();
    let open = prefix.len() + hashes + 1;
    let closing = format!("\"{}", "#".repeat(hashes));
    let inside = text[open..].find(&closing).unwrap_or(text.len() - open);
    Some((open, inside, closing.len()))
}

/// Bytes of a character, or of the quote alone where a lifetime begins.
fn character_bytes(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => {
            let after_escape = text.get(3..).unwrap_or_default();
            after_escape.find('\'').map_or(text.len(), |at| at + 4)
        }
        Some(_) => match characters.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
        None => 1,
    }
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
