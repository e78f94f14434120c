//! Failures while a database of another store is read: of the source, or of what takes its records.

use crate::failure::Failure;
use shingle::{Error, ErrorKind};

/// Why the reading of a source ended.
pub enum Stop {
    Source(Error),
    Record(Failure),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Source(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Record(failure)
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Failure {
        match stop {
            Stop::Source(error) => of_source(&error),
            Stop::Record(failure) => failure,
        }
    }
}

/// An error of the source. The remedies for a database of Shingle would not help.
pub fn of_source(error: &Error) -> Failure {
    let help = match error.kind() {
        ErrorKind::Corruption => "repair the source with its own programs, or take a backup of it",
        ErrorKind::Locked => "close the program that has the source open",
        ErrorKind::NotFound => "look at the path",
        _ => "the source was not changed",
    };
    Failure::said(error.to_string(), help)
}
