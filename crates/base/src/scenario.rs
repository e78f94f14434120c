//! Scenarios as text, for the tests of every crate: commands, and what each must print.
//!
//! A command is a line, with more lines where the command takes some, and ends with the line
//! `----`. The lines after it, up to an empty line, are what it must print. Lines between commands
//! that begin with `#` are comments.

use std::fmt::Write;

/// `text`, the content of the file `name`, with the answers of `command` in place of those that it
/// has. `command` gets the first line of each command and the lines that follow it, and answers
/// with whole lines.
///
/// # Panics
///
/// An empty line or the end of the file comes before the line `----` of a command.
pub fn answered(
    text: &str,
    name: &str,
    mut command: impl FnMut(&str, &[&str]) -> String,
) -> String {
    let mut out = String::new();
    let mut numbered = (1..).zip(text.lines());
    while let Some((number, line)) = numbered.next() {
        let _ = writeln!(out, "{line}");
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut lines = numbered.by_ref().map(|(_, line)| line);
        let Some(body) = body(&mut lines) else {
            panic!("{name}, line {number}: `{line}` has no line `----` before the next empty line");
        };
        body.iter().for_each(|line| _ = writeln!(out, "{line}"));
        lines.take_while(|line| !line.is_empty()).for_each(drop);
        let _ = writeln!(out, "----\n{}", command(line, &body));
    }
    out
}

/// The lines of a command before its `----`; `None` where an empty line or the end comes first.
fn body<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Option<Vec<&'a str>> {
    let mut body = Vec::new();
    loop {
        match lines.next()? {
            "----" => return Some(body),
            "" => return None,
            line => body.push(line),
        }
    }
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
        let answered = |text: &str| answered(text, "add.txt", command);
        assert_eq!(answered(TEXT), TEXT);
        assert_eq!(answered(&TEXT.replace("3\n", "4\nand more\n")), TEXT);
        assert_eq!(answered(&TEXT.replace("3\n", "")), TEXT);
    }

    #[test]
    #[should_panic(expected = "add.txt, line 2: `add` has no line `----`")]
    fn a_command_without_its_end_is_named_with_its_line() {
        answered(&TEXT.replacen("----\n", "", 1), "add.txt", command);
    }

    #[test]
    #[should_panic(expected = "add.txt, line 8: `say x` has no line `----`")]
    fn a_command_that_the_file_ends_in_is_named_with_its_line() {
        answered(TEXT.trim_end_matches("----\nx\n\n"), "add.txt", command);
    }

    #[test]
    #[should_panic(expected = "add.txt, line 6: expected Some(\"4\"), found Some(\"3\")")]
    fn a_wrong_answer_is_named_with_its_line() {
        let text = TEXT.replace("3\n", "4\n");
        assert_same(&text, &answered(&text, "add.txt", command), "add.txt");
    }
}
