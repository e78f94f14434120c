//! `shell`: commands on one database that stays open, from a person or from a script.
//!
//! - Lines are read by the same definitions as the command line of the system's shell, so that
//!   help, arguments and results are the same.
//! - A person sees each error and goes on. A script ends at the first, with the number of its line.
//! - A batch is written by `commit` alone. What ends the shell discards it, and says so.

mod editor;
mod words;

use crate::args::help;
use crate::args::shell::{Line, LineCommand, LineKeyspaceAction, ShellArgs};
use crate::commands;
use crate::commands::data::{commit, done};
use crate::context::{Context, Global};
use crate::failure::{Failure, Outcome};
use crate::interrupt::{Interrupt, interrupted};
use crate::open::Access;
use crate::session::Session;
use crate::units::counted;
use clap::{CommandFactory, FromArgMatches};
use editor::{Editor, Input};
use shingle::WriteBatch;
use std::ffi::OsString;
use std::io::{BufRead, IsTerminal};

/// What comes after a line.
#[derive(PartialEq, Eq)]
enum Next {
    Line,
    End,
}

/// A shell that is running.
struct Shell<'a, 'b> {
    context: &'a mut Context<'b>,
    /// The flags of the shell; `use` changes its keyspace.
    global: Global,
    definition: clap::Command,
}

/// `shingle shell`.
pub fn shell(context: &mut Context, args: ShellArgs) -> Outcome {
    context.path()?;
    let is_on_terminal = std::io::stdin().is_terminal();
    context.session = Some(Session::new(args.read_only, is_on_terminal));
    let global = context.global.clone();
    let mut shell = Shell { context, global, definition: definition() };
    let outcome = match is_on_terminal {
        true => shell.talk(),
        false => shell.read_script(),
    };
    let closed = shell.context.session.take().map_or(Ok(()), Session::close);
    outcome.and(closed)
}

/// The commands of a line, with help that speaks of lines.
fn definition() -> clap::Command {
    help::for_lines(help::compact(Line::command()))
}

impl Shell<'_, '_> {
    /// Lines from a person.
    fn talk(&mut self) -> Outcome {
        self.greet()?;
        let mut editor = Editor::new(&self.definition, self.context)?;
        loop {
            let keyspaces = self.session().keyspaces();
            match editor.read(&self.prompt(), keyspaces)? {
                Input::Line(line) => match self.line(line.as_bytes()) {
                    Ok(Next::Line) => {}
                    Ok(Next::End) => break,
                    Err(Failure::OutputClosed) => return Ok(()),
                    Err(failure) => drop(failure.report(self.context.global.json)),
                },
                Input::Cancelled => {}
                Input::End => break,
            }
        }
        self.context.global = self.global.clone();
        if let Some(text) = self.unwritten() {
            self.context.remark(&text);
        }
        Ok(())
    }

    /// Opens the database, so that a wrong path shows before the first command.
    fn greet(&mut self) -> Outcome {
        let path = self.context.path()?;
        match self.context.open(Access::Read) {
            Ok(_) => {}
            Err(Failure::Absent { message, .. }) => {
                self.context.remark(&format!("{message} yet; `put` makes one"));
            }
            Err(failure) => return Err(failure),
        }
        let version = env!("CARGO_PKG_VERSION");
        let hint = "`help` lists the commands, Ctrl-D ends";
        self.context.remark(&format!("shingle {version}, {}; {hint}", path.display()));
        Ok(())
    }

    /// The keyspace, and what is special about the next line.
    fn prompt(&mut self) -> String {
        let session = self.session();
        let batch = session.batch.as_ref().map(WriteBatch::len);
        let state = match batch {
            Some(operations) => format!(" (batch of {operations})"),
            None if session.only_reads() => " (read-only)".into(),
            None => String::new(),
        };
        format!("{}{state}> ", self.global.keyspace)
    }

    /// Lines from a file or pipe.
    fn read_script(&mut self) -> Outcome {
        let mut number = 0;
        let mut line = Vec::new();
        loop {
            line.clear();
            // The lock is not held while a command runs.
            let read = std::io::stdin().lock().read_until(b'\n', &mut line);
            if read.map_err(|error| Failure::io("read stdin", &error))? == 0 {
                break;
            }
            number += 1;
            match self.line(&line) {
                Ok(Next::Line) => {}
                Ok(Next::End) => break,
                Err(failure) => return Err(failure.at_line(number)),
            }
        }
        let Some(text) = self.unwritten() else { return Ok(()) };
        Err(Failure::said(text, "end a batch with `commit` or `discard`").at_line(number))
    }

    /// Says that a batch goes with the shell.
    fn unwritten(&mut self) -> Option<String> {
        let batch = self.session().batch.take()?;
        let operations = counted(batch.len() as u64, "operation");
        Some(format!("the batch was discarded: it had {operations} and no `commit`"))
    }

    fn session(&mut self) -> &mut Session {
        self.context.session.as_mut().expect("a shell has a session as long as it runs")
    }

    /// Runs one line.
    fn line(&mut self, line: &[u8]) -> Outcome<Next> {
        self.context.global = self.global.clone();
        let words = words::split(line).map_err(|message| {
            Failure::usage(message, "quote a word with '...', or escape a backslash: `\\\\`")
        })?;
        if words.is_empty() {
            return Ok(Next::Line);
        }
        let Some(Line { flags, command }) = self.parse(words)? else { return Ok(Next::Line) };
        self.context.global = self.global.of_line(flags);
        let interrupt = Interrupt::listen()?;
        let outcome = self.run(command);
        self.context.out.flush()?;
        if interrupt.is_asked() {
            // An interrupted compaction or checkpoint has closed it.
            self.session().forget();
            if outcome.is_ok() && !self.session().is_on_terminal {
                return Err(interrupted("the line is done", "the lines after it are not"));
            }
        }
        outcome
    }

    /// The command of a line; none where the line asks for help.
    fn parse(&mut self, words: Vec<OsString>) -> Outcome<Option<Line>> {
        let matches = self.definition.try_get_matches_from_mut(words);
        match matches.and_then(|matches| Line::from_arg_matches(&matches)) {
            Ok(line) => Ok(Some(line)),
            Err(error) if error.use_stderr() => {
                Err(Failure::usage(help::message(&error), "`help` lists the commands"))
            }
            Err(help) => {
                write!(self.context.out, "{}", help.render())?;
                self.context.out.flush()?;
                Ok(None)
            }
        }
    }

    fn run(&mut self, command: LineCommand) -> Outcome<Next> {
        let context = &mut *self.context;
        match command {
            LineCommand::Data(command) => commands::run(context, command)?,
            LineCommand::Keyspace(args) => match args.action {
                LineKeyspaceAction::Plain(action) => commands::keyspace::keyspace(context, action)?,
                LineKeyspaceAction::Use { name } => self.use_keyspace(name)?,
            },
            LineCommand::Use { name } => self.use_keyspace(name)?,
            LineCommand::Begin => self.begin()?,
            LineCommand::Commit { sync } => self.commit(sync)?,
            LineCommand::Discard => drop(self.take_batch()?),
            LineCommand::Flush => {
                context.open(Access::Change)?.flush()?;
                done(context)?;
            }
            LineCommand::Quit => return Ok(Next::End),
        }
        Ok(Next::Line)
    }

    fn use_keyspace(&mut self, name: String) -> Outcome {
        self.context.global.keyspace = name.clone();
        let db = self.context.open(Access::Read)?;
        self.context.keyspace(&db, Access::Read)?;
        self.global.keyspace = name;
        done(self.context)
    }

    fn begin(&mut self) -> Outcome {
        // A shell that cannot write says so here.
        match self.context.open(Access::Change) {
            Ok(_) | Err(Failure::Absent { .. }) => {}
            Err(failure) => return Err(failure),
        }
        if self.session().batch.is_some() {
            return Err(Failure::usage("a batch has begun already", "commit or discard it first"));
        }
        self.session().batch = Some(WriteBatch::new());
        done(self.context)
    }

    fn commit(&mut self, sync: bool) -> Outcome {
        let batch = self.take_batch()?;
        let operations = batch.len();
        if operations > 0 {
            // The batch stays where it could not be written.
            let db = match self.context.open(Access::Change) {
                Ok(db) => db,
                Err(failure) => {
                    self.session().batch = Some(batch);
                    return Err(failure);
                }
            };
            if let Err(failure) = commit(&db, batch.clone(), sync) {
                self.session().batch = Some(batch);
                return Err(failure);
            }
        }
        self.context.remark(&format!("committed {}", counted(operations as u64, "operation")));
        done(self.context)
    }

    fn take_batch(&mut self) -> Outcome<WriteBatch> {
        let none = || Failure::usage("no batch has begun", "`begin` begins one");
        self.session().batch.take().ok_or_else(none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of the examples in a command's help.
    fn examples(command: &clap::Command) -> Vec<String> {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = text.lines().filter(|line| line.starts_with("  "));
        lines.map(|line| line.trim().to_string()).collect()
    }

    #[test]
    fn every_example_in_the_help_of_a_line_is_a_line() {
        let mut all = 0;
        let definition = definition();
        for command in definition.get_subcommands() {
            for example in examples(command) {
                let words = words::split(example.as_bytes()).unwrap();
                let matches = definition.clone().try_get_matches_from(words);
                let line = matches.and_then(|matches| Line::from_arg_matches(&matches));
                assert!(line.is_ok(), "{example}: {line:?}");
                all += 1;
            }
        }
        assert!(all > 20, "{all}");
    }

    #[test]
    fn every_example_in_the_help_of_a_command_is_a_command() {
        use crate::args::Cli;
        fn check(command: &clap::Command, all: &mut usize) {
            for example in examples(command) {
                // A remark stands behind two spaces.
                let example = example.split("  ").next().unwrap_or_default();
                let commands = example.split(['|', '>']);
                let Some(ours) = commands.map(str::trim).find(|c| c.starts_with("shingle ")) else {
                    continue;
                };
                let words = words::split(ours.as_bytes()).unwrap();
                match Cli::command().try_get_matches_from(words) {
                    Ok(_) => {}
                    Err(error) => panic!("{example}: {error}"),
                }
                *all += 1;
            }
            command.get_subcommands().for_each(|command| check(command, all));
        }
        let mut all = 0;
        check(&Cli::command(), &mut all);
        assert!(all > 50, "{all}");
    }

    #[test]
    fn errors_of_a_line_are_one_sentence() {
        let error = definition().try_get_matches_from(["get"]).unwrap_err();
        let message = help::message(&error);
        assert!(message.contains("<KEY>") && !message.contains('\n'), "{message}");
        let error = definition().try_get_matches_from(["gett", "a"]).unwrap_err();
        assert!(help::message(&error).contains("'get'"), "{}", help::message(&error));
    }
}
