//! Sentences of documents, comments and strings, as words that know what stands before them.
//!
//! Code between backticks is one word without letters, so that no rule about words sees a name.
//! Fenced blocks and the targets of links are left out.

use crate::source::Piece;

/// A word of a sentence.
#[derive(Debug)]
pub struct Word {
    /// In small letters; nothing for code, and for the end of a block.
    pub text: String,
    /// The line it stands on.
    pub line: usize,
    /// The last mark between the word before and this one; a new block begins with `\n`.
    pub before: Option<char>,
}

/// What ends a sentence or a clause.
const MARKS: &str = ".,;:!?(|—";

/// Words of a paragraph, a heading, an item of a list, a row of a table or a string. The last one
/// is empty and carries the mark at the end.
pub type Block = Vec<Word>;

/// The blocks of a Markdown text.
pub fn of_document(text: &str) -> Vec<Block> {
    of_lines(text.lines().enumerate().map(|(index, line)| (index + 1, line)))
}

/// The blocks of comments; those on neighbouring lines belong together.
pub fn of_comments(comments: &[Piece]) -> Vec<Block> {
    let mut lines = Vec::new();
    let mut last = 0;
    for comment in comments {
        for (index, line) in comment.text.lines().enumerate() {
            let number = comment.line + index;
            if number > last + 1 {
                lines.push((number, ""));
            }
            let line = line.trim_start().trim_start_matches(['/', '!', '*']);
            lines.push((number, line));
            last = number;
        }
    }
    of_lines(lines.into_iter())
}

/// The words of a string; what `{}` stands for counts as code.
pub fn of_string(string: &Piece) -> Block {
    let text = string.text.replace("\\n", "  ").replace("\\\"", "  ").replace('\\', " ");
    let mut block = Reader::default();
    for (index, line) in text.lines().enumerate() {
        block.line(string.line + index, &line.replace(['{', '}'], "`"));
    }
    block.end()
}

fn of_lines<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut reader = Reader::default();
    let mut is_fenced = false;
    for (number, line) in lines {
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```");
        if is_fence || begins_block(trimmed) {
            blocks.push(std::mem::take(&mut reader).end());
        }
        is_fenced ^= is_fence;
        if !is_fenced && !is_fence {
            reader.line(number, trimmed);
        }
    }
    blocks.push(reader.end());
    blocks.retain(|block| block.len() > 1);
    blocks
}

/// The line is empty, a heading, an item of a list or a row of a table.
fn begins_block(line: &str) -> bool {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = digits.len() < line.len() && digits.starts_with(". ");
    line.is_empty() || is_numbered || ["#", "- ", "* ", "|"].iter().any(|s| line.starts_with(s))
}

#[derive(Default)]
struct Reader {
    words: Block,
    before: Option<char>,
    in_code: bool,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) {
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let is_letter = |c: char| c.is_alphanumeric() || c == '_' || c == '-' || c == '\'';
            if first == '`' {
                self.in_code = !self.in_code;
                if !self.in_code {
                    self.push(number, "");
                }
            } else if self.in_code {
            } else if let Some(link) = rest.strip_prefix("](") {
                rest = link.find(')').map_or("", |end| &link[end + 1..]);
                continue;
            } else if first.is_alphanumeric() {
                let end = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
                self.push(number, &rest[..end]);
                rest = &rest[end..];
                continue;
            } else if MARKS.contains(first) {
                self.before = Some(first);
            }
            rest = &rest[first.len_utf8()..];
        }
    }

    fn push(&mut self, line: usize, text: &str) {
        let before = if self.words.is_empty() { Some('\n') } else { self.before };
        self.before = None;
        self.words.push(Word { text: text.to_lowercase(), line, before });
    }

    fn end(mut self) -> Block {
        let before = self.before.or(Some('\n'));
        let line = self.words.last().map_or(1, |word| word.line);
        self.words.push(Word { text: String::new(), line, before });
        self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(block: &Block) -> String {
        let word = |word: &Word| {
            let mark = word.before.map(String::from).unwrap_or_default().replace('\n', "/");
            format!("{mark}{}", word.text)
        };
        block.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn code_fences_and_targets_are_no_words() {
        let text = "# Title\nOne `x y` two,\nthree [four](five six).\n```\nseven\n```\n- item";
        let blocks: Vec<String> = of_document(text).iter().map(shown).collect();
        assert_eq!(blocks[0], "/title one  two ,three four .");
        assert_eq!(blocks[1..], ["/item /"]);
    }

    #[test]
    fn neighbouring_comments_are_one_block_and_lines_are_kept() {
        let piece = |line, text: &str| Piece { line, text: text.into() };
        let comments = [piece(3, "/// At the"), piece(4, "/// end"), piece(9, "// later")];
        let blocks = of_comments(&comments);
        assert_eq!(blocks.iter().map(shown).collect::<Vec<_>>(), ["/at the end /", "/later /"]);
        assert_eq!(blocks[0][2].line, 4);
    }

    #[test]
    fn strings_are_read_without_escapes_and_arguments() {
        let string = Piece { line: 2, text: "no {x} \\\n  here\\nnow".into() };
        let block = of_string(&string);
        assert_eq!(shown(&block), "/no  here now /");
        assert_eq!(block[2].line, 3);
    }
}
