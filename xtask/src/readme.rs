//! The commands of README.md: the lines of its fenced `sh` blocks.
//!
//! A block whose fence says `sh no-run` shows commands that are not meant to be run as they stand.

/// A command that a reader may copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The line where it begins.
    pub line: usize,
    /// The whole command; continued lines are joined.
    pub text: String,
}

/// The commands of a Markdown text, in order.
pub fn commands(markdown: &str) -> Vec<Command> {
    let mut found: Vec<Command> = Vec::new();
    let mut block: Option<bool> = None;
    let mut continued = false;
    for (index, line) in markdown.lines().enumerate() {
        let trimmed = line.trim();
        if let Some(info) = trimmed.strip_prefix("```") {
            block = if block.is_some() { None } else { Some(info.trim() == "sh") };
            continued = false;
            continue;
        }
        if block != Some(true) || trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let part = trimmed.strip_suffix('\\').unwrap_or(trimmed).trim_end();
        match found.last_mut().filter(|_| continued) {
            Some(command) => command.text = format!("{} {part}", command.text),
            None => found.push(Command { line: index + 1, text: part.to_string() }),
        }
        continued = trimmed.ends_with('\\');
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_sh_blocks_are_commands() {
        let text = "# T\n```sh\n# a comment\ncargo a \\\n  --b\n\ngit c\n```\n\
                    ```rust\nfn x() {}\n```\n\
                    ```sh no-run\nrm\n```\ncargo d\n";
        let found: Vec<_> = commands(text).into_iter().map(|c| (c.line, c.text)).collect();
        assert_eq!(found, [(4, "cargo a --b".to_string()), (7, "git c".to_string())]);
    }
}
