//! Scenarios as text, for the tests of every crate: commands, and what each must print.
//!
//! A command is a line, with more lines where the command takes some, ended by `----`. What
//! follows, up to an empty line, is what it must print. Lines that begin with `#` are comments.

use std::fmt::Write;

/// `text` with the answers of `command` in place of those that it has. `command` gets the first
/// line of each command and the lines that follow it, and answers with whole lines.
pub fn answered(text: &str, mut command: impl FnMut(&str, &[&str]) -> String) -> String {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let _ = writeln!(out, "{line}");
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "----").collect();
        body.iter().for_each(|line| _ = writeln!(out, "{line}"));
        lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
        let _ = writeln!(out, "----\n{}", command(line, &body));
    }
    out
}

/// The first line of `out` that is not as in `text`, both the content of the file `name`.
///
/// # Panics
///
/// Where they differ.
pub fn assert_same(text: &str, out: &str, name: &str) {
    let number = text.lines().zip(out.lines()).take_while(|(a, b)| a == b).count();
    let (expected, found) = (text.lines().nth(number), out.lines().nth(number));
    assert!(
        text == out,
        "{name}, line {}: expected {expected:?}, found {found:?} (REWRITE=1 rewrites the file)",
        number + 1
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A comment.\nadd\n1\n2\n----\n3\n\nsay x\n----\nx\n\n";

    fn command(line: &str, body: &[&str]) -> String {
        match line.strip_prefix("say ") {
            Some(word) => format!("{word}\n"),
            None => format!("{}\n", body.iter().map(|n| n.parse::<u32>().unwrap()).sum::<u32>()),
        }
    }

    #[test]
    fn right_answers_stay_and_wrong_ones_are_replaced() {
        assert_eq!(answered(TEXT, command), TEXT);
        assert_eq!(answered(&TEXT.replace("3\n", "4\nand more\n"), command), TEXT);
        assert_eq!(answered(&TEXT.replace("3\n", ""), command), TEXT);
    }

    #[test]
    #[should_panic(expected = "add.txt, line 6: expected Some(\"4\"), found Some(\"3\")")]
    fn a_wrong_answer_is_named_with_its_line() {
        let text = TEXT.replace("3\n", "4\n");
        assert_same(&text, &answered(&text, command), "add.txt");
    }
}
