//! Declarations as one line of text, from the source itself.

use crate::source::Source;

/// The declaration that begins at byte `start`, up to its body, its value or its end.
pub fn until_body(source: &Source, start: usize) -> String {
    cut(&source.text[start..], |c| matches!(c, '{' | ';' | '='))
}

/// The value of a declaration whose `=` ends at byte `start`.
pub fn until_end(source: &Source, start: usize) -> String {
    cut(&source.text[start..], |c| c == ';')
}

/// The field or variant that begins at byte `start`, up to the comma behind it.
pub fn until_comma(source: &Source, start: usize) -> String {
    cut(&source.text[start..], |c| matches!(c, ',' | '=' | '}' | ')'))
}

/// `text` up to the first character outside brackets at which it `ends`.
fn cut(text: &str, ends: impl Fn(char) -> bool) -> String {
    let mut depth = 0usize;
    let mut before = ' ';
    let end = text.char_indices().find(|&(_, c)| {
        let is_arrow = before == '-' && c == '>';
        before = c;
        if depth == 0 && ends(c) {
            return true;
        }
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '>' if !is_arrow => depth = depth.saturating_sub(1),
            _ => {}
        }
        false
    });
    on_one_line(&text[..end.map_or(text.len(), |(at, _)| at)])
}

/// Without comments and attributes, and with the spaces of a short line.
fn on_one_line(text: &str) -> String {
    let is_code = |line: &&str| !line.starts_with("//") && !line.starts_with("#[");
    let lines: Vec<&str> = text.lines().map(str::trim).filter(is_code).collect();
    let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
    let mut line = words.join(" ");
    for (long, short) in [
        ("( ", "("),
        (", )", ")"),
        (" )", ")"),
        ("< ", "<"),
        (", >", ">"),
        (", }", " }"),
        // How a function uses its own parameters.
        ("(mut ", "("),
        (", mut ", ", "),
    ] {
        line = line.replace(long, short);
    }
    line.trim_end_matches(',').to_string()
}
