//! The line editor of a shell: history in a file that only its user reads, and completion.
//!
//! The history is `shingle/history` in the user's state directory. A line that begins with a space
//! does not go into it.

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Helper};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Lines that the history keeps.
const HISTORY_LINES_MAX: usize = 1000;

/// What a person typed.
pub enum Input {
    /// A line.
    Line(String),
    /// Ctrl-C: the line is to be forgotten.
    Cancelled,
    /// Ctrl-D.
    End,
}

/// Reads lines from a terminal.
pub struct Editor {
    editor: rustyline::Editor<Words, FileHistory>,
    history: Option<PathBuf>,
}

impl Editor {
    /// With the history of earlier shells. A history that cannot be used is no error.
    pub fn new(definition: &clap::Command, context: &Context) -> Outcome<Editor> {
        let config = Config::builder()
            .max_history_size(HISTORY_LINES_MAX)
            .and_then(|config| config.history_ignore_dups(true))
            .map_err(failed)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .build();
        let mut editor = rustyline::Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(Words { definition: definition.clone(), keyspaces: Vec::new() }));
        let history = history_file();
        if let Some(path) = history.as_ref().filter(|path| path.exists())
            && let Err(error) = editor.load_history(path)
        {
            context.remark(&format!("note: no history: read {}: {error}", path.display()));
        }
        Ok(Editor { editor, history })
    }

    /// The next line. `keyspaces` can be completed in it.
    pub fn read(&mut self, prompt: &str, keyspaces: Vec<String>) -> Outcome<Input> {
        if let Some(words) = self.editor.helper_mut() {
            words.keyspaces = keyspaces;
        }
        let line = match self.editor.readline(prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => return Ok(Input::Cancelled),
            Err(ReadlineError::Eof) => return Ok(Input::End),
            Err(error) => return Err(failed(error)),
        };
        let is_new = self.editor.add_history_entry(&line).map_err(failed)?;
        if let Some(path) = self.history.as_ref().filter(|_| is_new) {
            // A shell without a history is better than none.
            let _ = self.editor.append_history(path);
        }
        Ok(Input::Line(line))
    }
}

fn failed(error: ReadlineError) -> Failure {
    Failure::said(format!("read from the terminal: {error}"), "pipe the commands into the shell")
}

/// Where the history is, by the XDG base directories; none where there is no such place.
fn history_file() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).filter(|directory| directory.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local").join("state")))?;
    let directory = state.join("shingle");
    DirBuilder::new().recursive(true).mode(0o700).create(&directory).ok()?;
    Some(directory.join("history"))
}

/// Completes the words of a line by the definitions of its commands.
struct Words {
    definition: clap::Command,
    keyspaces: Vec<String>,
}

impl Words {
    /// What can stand behind `before`, the words of the line up to the one that begins with
    /// `start`.
    fn candidates(&self, before: &[&str], start: &str) -> Vec<String> {
        let mut command = &self.definition;
        let mut is_help = false;
        for word in before {
            match command.find_subcommand(word) {
                Some(found) if found.get_name() == "help" => is_help = true,
                Some(found) => command = found,
                None => {}
            }
        }
        let takes_keyspace = before.last() == Some(&"--keyspace")
            || !is_help && matches!(before, ["use"] | ["keyspace", "use" | "drop"]);
        let mut all: Vec<String> = Vec::new();
        if takes_keyspace {
            all.extend(self.keyspaces.iter().cloned());
        } else if start.starts_with('-') {
            let flags = command.get_arguments().chain(self.definition.get_arguments());
            let shown = flags.filter(|flag| !flag.is_hide_set()).filter_map(|flag| flag.get_long());
            all.extend(shown.map(|flag| format!("--{flag}")));
        } else {
            let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
            all.extend(shown.map(|command| command.get_name().to_string()));
            if before.is_empty() {
                all.push("help".into());
            }
        }
        all.retain(|candidate| candidate.starts_with(start));
        all.sort();
        all.dedup();
        all
    }
}

impl Completer for Words {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _context: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let line = &line[..position];
        let begin = line.rfind([' ', '\t']).map_or(0, |at| at + 1);
        let before: Vec<&str> = line[..begin].split_whitespace().collect();
        Ok((begin, self.candidates(&before, &line[begin..])))
    }
}

impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::definition;

    #[test]
    fn commands_flags_and_keyspaces_are_completed() {
        let words =
            Words { definition: definition(), keyspaces: vec!["default".into(), "users".into()] };
        let candidates = |line: &str| {
            let begin = line.rfind(' ').map_or(0, |at| at + 1);
            let before: Vec<&str> = line[..begin].split_whitespace().collect();
            words.candidates(&before, &line[begin..])
        };
        assert_eq!(candidates("com"), ["commit", "compact"]);
        assert_eq!(candidates("scan --re"), ["--reverse"]);
        assert_eq!(candidates("scan --pre"), ["--prefix"]);
        assert_eq!(candidates("scan --js"), ["--json"]);
        assert_eq!(candidates("use "), ["default", "users"]);
        assert_eq!(candidates("scan --keyspace u"), ["users"]);
        assert_eq!(candidates("keyspace drop u"), ["users"]);
        assert_eq!(candidates("keyspace cr"), ["create"]);
        assert_eq!(candidates("help comp"), ["compact"]);
        assert_eq!(candidates("delete-range --bou"), [""; 0]);
    }
}
