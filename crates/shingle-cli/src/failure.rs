//! How a command ends when it does not succeed: what is said, and the exit code.

use crate::color::{ERROR, HELP};
use serde_json::json;
use shingle::{Error, ErrorKind};
use std::io::{ErrorKind as IoKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// What every command returns.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The engine said no.
    Engine(Error),
    /// The engine could not open the database: why, and what to do.
    Opening { error: Error, help: String },
    /// The command says no: what happened and what to do.
    Said { message: String, help: String },
    /// There is no database where the command looks for one.
    Absent { message: String, help: String },
    /// A line of a script failed.
    Line { number: u64, failure: Box<Failure> },
    /// The command line asks for something that makes no sense.
    Usage { message: String, help: String },
    /// `get` found nothing.
    NoSuchKey(String),
    /// Ctrl-C: what was done until then, and how to go on.
    Interrupted { message: String, help: String },
    /// The reader of our output closed it, which is no error.
    OutputClosed,
}

impl Failure {
    /// A failure with its remedy.
    pub fn said(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::Said { message: message.into(), help: help.into() }
    }

    /// A wrong command line with its remedy.
    pub fn usage(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::Usage { message: message.into(), help: help.into() }
    }

    /// An error from a value on the command line: wrong usage, if the value is wrong.
    pub fn of_value(error: Error) -> Failure {
        match error.kind() {
            ErrorKind::InvalidArgument => {
                Failure::usage(error.message(), "correct the value, or leave it out")
            }
            _ => Failure::Engine(error),
        }
    }

    /// A failed read or write of `what`, which is not the database.
    pub fn io(doing: impl std::fmt::Display, error: &std::io::Error) -> Failure {
        Failure::said(format!("{doing}: {error}"), "look at the path and its permissions")
    }

    /// A file or directory that cannot be written.
    pub fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
        Failure::io(format!("write {}", path.display()), error)
    }

    /// The same, where the caller knows more: what was done until then.
    pub fn adding(self, done: &str) -> Failure {
        match self {
            Failure::Said { message, help } => Failure::said(message, format!("{help}; {done}")),
            failure => failure,
        }
    }

    /// The failure of a line of a script. A closed output ends a script without a failure.
    pub fn at_line(self, number: u64) -> Failure {
        match self {
            Failure::OutputClosed => self,
            failure => Failure::Line { number, failure: Box::new(failure) },
        }
    }

    /// What happened, in one sentence.
    pub fn message(&self) -> String {
        match self {
            Failure::OutputClosed => "the output was closed".into(),
            Failure::Engine(error) | Failure::Opening { error, .. } => error.to_string(),
            Failure::Line { number, failure } => format!("line {number}: {}", failure.message()),
            Failure::Said { message, .. }
            | Failure::Absent { message, .. }
            | Failure::Usage { message, .. }
            | Failure::Interrupted { message, .. } => message.clone(),
            Failure::NoSuchKey(key) => format!("no such key: {key}"),
        }
    }

    /// Tells the user on stderr, in words or as one line of JSON, and gives the exit code.
    pub fn report(&self, as_json: bool) -> ExitCode {
        if let Failure::OutputClosed = self {
            return ExitCode::SUCCESS;
        }
        let (help, code) = self.remedy();
        let message = self.message();
        // Nothing can be done when stderr is gone as well.
        let mut stderr = anstream::stderr().lock();
        if as_json {
            let kind = self.kind();
            let error = json!({ "kind": kind, "message": message, "help": help, "code": code });
            let _ = writeln!(stderr, "{}", json!({ "error": error }));
            return ExitCode::from(code);
        }
        let _ = writeln!(stderr, "{ERROR}shingle:{ERROR:#} {message}");
        if !help.is_empty() {
            let _ = writeln!(stderr, "  {HELP}help:{HELP:#} {help}");
        }
        ExitCode::from(code)
    }

    /// What to do, and the exit code.
    fn remedy(&self) -> (String, u8) {
        match self {
            Failure::OutputClosed => (String::new(), 0),
            Failure::Engine(error) => (remedy(error), 1),
            Failure::Said { help, .. }
            | Failure::Absent { help, .. }
            | Failure::Opening { help, .. } => (help.clone(), 1),
            Failure::Usage { help, .. } => (help.clone(), 2),
            Failure::NoSuchKey(_) => ("list keys with `shingle scan --keys-only`".into(), 127),
            Failure::Interrupted { help, .. } => (help.clone(), 130),
            Failure::Line { failure, .. } => match failure.remedy() {
                (help, 130) => (help, 130),
                (help, _) => (help, 1),
            },
        }
    }

    /// The engine's kind of error, or what the command calls its own.
    fn kind(&self) -> String {
        match self {
            Failure::Engine(error) | Failure::Opening { error, .. } => {
                format!("{:?}", error.kind())
            }
            Failure::Said { .. } | Failure::Absent { .. } => "Failed".into(),
            Failure::Line { failure, .. } => failure.kind(),
            Failure::Usage { .. } => "Usage".into(),
            Failure::NoSuchKey(_) => "NoSuchKey".into(),
            Failure::Interrupted { .. } => "Interrupted".into(),
            Failure::OutputClosed => "OutputClosed".into(),
        }
    }
}

fn remedy(error: &Error) -> String {
    match error.kind() {
        ErrorKind::InvalidArgument => "see `shingle help` and `shingle options`".into(),
        kind => kind.remedy().into(),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Engine(error)
    }
}

/// For writes to stdout.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            IoKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::io("write the output", &error),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        match error.io_error_kind() {
            Some(IoKind::BrokenPipe) => Failure::OutputClosed,
            _ => Failure::said(format!("write JSON: {error}"), ""),
        }
    }
}
