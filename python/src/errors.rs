//! Exceptions: `shingle.Error`, and a class below it for each kind of error.

use bindings::{Failure, guarded};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyType;
use shingle::{Error as EngineError, ErrorKind};
use std::time::Duration;

/// How often a long call looks whether the user has interrupted it.
pub const SIGNALS_EVERY: Duration = Duration::from_millis(50);

create_exception!(shingle, Error, PyException, "What went wrong, where, and what to do about it.");

macro_rules! kinds {
    ($($name:ident = $doc:literal;)*) => {
        $(create_exception!(shingle, $name, Error, $doc);)*

        /// The class of a kind of error.
        fn class<'py>(py: Python<'py>, kind: ErrorKind) -> Bound<'py, PyType> {
            match kind {
                $(ErrorKind::$name => py.get_type::<$name>(),)*
                _ => py.get_type::<Error>(),
            }
        }

        /// Adds all classes to the module.
        pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            module.add("Error", module.py().get_type::<Error>())?;
            $(module.add(stringify!($name), module.py().get_type::<$name>())?;)*
            Ok(())
        }
    };
}

kinds! {
    InvalidArgument = "The call is wrong.";
    NotFound = "What was asked for does not exist.";
    AlreadyExists = "What was to be created exists.";
    Corruption = "Stored bytes are not what was written.";
    Io = "The operating system or the device refused.";
    NoSpace = "The medium is full.";
    Poisoned = "An earlier failure left an unknown outcome: close and open again.";
    WouldWait = "The write would have to wait.";
    Locked = "Another process, or this one, has the database open.";
    Incompatible = "The files are foreign, or of a newer version.";
    Closed = "The database was closed.";
    Unsupported = "This store or configuration cannot do it.";
    Cancelled = "The work was cancelled.";
    Shared = "The file has names in other directories, and takes no more bytes.";
    Conflict = "Another write came between: begin again.";
    TooLate = "What was asked for is no longer kept.";
}

/// The exception for an error of the engine. It has `code`, `kind`, `remedy`, `file` and `offset`.
pub fn raised(py: Python<'_>, error: &EngineError) -> PyErr {
    let kind = error.kind();
    let made = || -> PyResult<PyErr> {
        let exception = class(py, kind).call1((error.to_string(),))?;
        exception.setattr("code", kind.code())?;
        exception.setattr("kind", format!("{kind:?}"))?;
        exception.setattr("remedy", kind.remedy())?;
        exception.setattr("file", error.file())?;
        exception.setattr("offset", error.offset())?;
        Ok(PyErr::from_value(exception))
    };
    made().unwrap_or_else(|failed| failed)
}

/// The exception for a panic inside Shingle.
fn panicked(py: Python<'_>, failure: &Failure) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let exception = py.get_type::<Error>().call1((failure.to_string(),))?;
        exception.setattr("code", failure.code())?;
        exception.setattr("kind", failure.kind())?;
        exception.setattr("remedy", failure.remedy())?;
        exception.setattr("file", py.None())?;
        exception.setattr("offset", py.None())?;
        Ok(PyErr::from_value(exception))
    };
    made().unwrap_or_else(|failed| failed)
}

/// Does work of the engine without the interpreter's lock.
pub fn apart<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> shingle::Result<T> + Send,
) -> PyResult<T> {
    py.detach(|| guarded(work)).map_err(|failure| match failure.error() {
        Some(error) => raised(py, error),
        None => panicked(py, &failure),
    })
}
