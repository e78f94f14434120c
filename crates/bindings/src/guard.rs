//! Failures as bindings hand them on: an error of the engine, or a panic.

use shingle::Error;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The code of a panic, which is a bug in Shingle. [`shingle::ErrorKind::code`] gives the codes of
/// errors, from 1.
pub const PANIC_CODE: u16 = u16::MAX;

/// Why a call failed.
#[derive(Debug)]
pub enum Failure {
    /// The engine's error.
    Error(Error),
    /// A panic, with its message.
    Panic(String),
}

impl Failure {
    /// The number of its kind; the same in every language and version.
    pub fn code(&self) -> u16 {
        match self {
            Failure::Error(error) => error.kind().code(),
            Failure::Panic(_) => PANIC_CODE,
        }
    }

    /// The name of its kind.
    pub fn kind(&self) -> String {
        match self {
            Failure::Error(error) => format!("{:?}", error.kind()),
            Failure::Panic(_) => "Panic".into(),
        }
    }

    /// What the caller can do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Failure::Error(error) => error.kind().remedy(),
            Failure::Panic(_) => "this is a bug in Shingle: report it with its message",
        }
    }

    /// The engine's error.
    pub fn error(&self) -> Option<&Error> {
        match self {
            Failure::Error(error) => Some(error),
            Failure::Panic(_) => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Error(error) => error.fmt(f),
            Failure::Panic(message) => write!(f, "a panic inside Shingle: {message}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

/// Does `work` and catches its panic. A panic must not cross the boundary to another language.
///
/// What a panic leaves behind is only what the engine leaves behind for its own threads: its locks
/// are not poisoned, and a failed commit refuses later writes. So the caller may go on.
#[inline(always)]
pub fn guarded<T>(work: impl FnOnce() -> shingle::Result<T>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(Failure::Error),
        Err(panic) => Err(Failure::Panic(message(&*panic))),
    }
}

#[cold]
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shingle::ErrorKind;

    #[test]
    fn an_error_keeps_its_code_and_a_panic_has_its_own() {
        let locked = || Err::<(), _>(Error::new(ErrorKind::Locked, "by another"));
        let failure = guarded(locked).unwrap_err();
        assert_eq!((failure.code(), failure.kind().as_str()), (ErrorKind::Locked.code(), "Locked"));
        assert_eq!(failure.error().map(Error::kind), Some(ErrorKind::Locked));
        let failure = guarded::<()>(|| panic!("at {}", 7)).unwrap_err();
        assert_eq!((failure.code(), failure.kind().as_str()), (PANIC_CODE, "Panic"));
        assert_eq!(failure.to_string(), "a panic inside Shingle: at 7");
        assert!(failure.error().is_none());
    }
}
