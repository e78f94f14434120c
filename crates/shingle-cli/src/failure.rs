//! How a command ends when it does not succeed: what is said, and the exit code.

use serde_json::json;
use shingle::{Error, ErrorKind};
use std::io::{ErrorKind as IoKind, Write};
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
    /// The command line asks for something that makes no sense.
    Usage { message: String, help: String },
    /// `get` found nothing.
    NoSuchKey(String),
    /// Ctrl-C: what was done until then, and how to go on.
    Interrupted { message: String, help: String },
    /// Whoever read our output went away; that is their right.
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

    /// What happened, in one sentence.
    pub fn message(&self) -> String {
        match self {
            Failure::OutputClosed => "the output was closed".into(),
            Failure::Engine(error) | Failure::Opening { error, .. } => error.to_string(),
            Failure::Said { message, .. }
            | Failure::Usage { message, .. }
            | Failure::Interrupted { message, .. } => message.clone(),
            Failure::NoSuchKey(key) => format!("no such key: {key}"),
        }
    }

    /// Tells the user on stderr, in words or as one line of JSON, and gives the exit code.
    pub fn report(&self, as_json: bool) -> ExitCode {
        let (help, code) = match self {
            Failure::OutputClosed => return ExitCode::SUCCESS,
            Failure::Engine(error) => (remedy(error), 1),
            Failure::Said { help, .. } | Failure::Opening { help, .. } => (help.clone(), 1),
            Failure::Usage { help, .. } => (help.clone(), 2),
            Failure::NoSuchKey(_) => ("list keys with `shingle scan --keys-only`".into(), 127),
            Failure::Interrupted { help, .. } => (help.clone(), 130),
        };
        let message = self.message();
        // Nothing can be done when stderr is gone as well.
        let mut stderr = std::io::stderr().lock();
        if as_json {
            let kind = self.kind();
            let error = json!({ "kind": kind, "message": message, "help": help, "code": code });
            let _ = writeln!(stderr, "{}", json!({ "error": error }));
            return ExitCode::from(code);
        }
        let _ = writeln!(stderr, "shingle: {message}");
        if !help.is_empty() {
            let _ = writeln!(stderr, "  help: {help}");
        }
        ExitCode::from(code)
    }

    /// The engine's kind of error, or what the command calls its own.
    fn kind(&self) -> String {
        match self {
            Failure::Engine(error) | Failure::Opening { error, .. } => {
                format!("{:?}", error.kind())
            }
            Failure::Said { .. } => "Failed".into(),
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
