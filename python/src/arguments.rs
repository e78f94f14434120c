//! Keys, values and options as Python gives them.

use crate::errors::raised;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyMemoryView, PyString};
use shingle::{Durability, Error, WriteOptions};
use std::ops::Deref;
use std::time::Duration;

/// Longer durations are as long as this one.
const SECONDS_MAX: f64 = 3e11;

/// The bytes of a key or value.
pub enum Data {
    /// Those of a `bytes`, which is kept while they are used.
    Bytes(PyBackedBytes),
    /// Those of a text, as UTF-8.
    Text(PyBackedStr),
    /// A copy: what has a buffer may change it.
    Copied(Vec<u8>),
}

impl Deref for Data {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Data::Bytes(bytes) => bytes,
            Data::Text(text) => text.as_bytes(),
            Data::Copied(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Data {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Data {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Data> {
        if let Ok(bytes) = given.cast::<PyBytes>() {
            return Ok(Data::Bytes(bytes.to_owned().into()));
        }
        if let Ok(text) = given.cast::<PyString>() {
            return Ok(Data::Text(text.to_owned().try_into()?));
        }
        match PyMemoryView::from(&given) {
            Ok(view) => Ok(Data::Copied(view.call_method0("tobytes")?.extract()?)),
            Err(_) => {
                let name = given.get_type().name()?;
                Err(PyTypeError::new_err(format!("bytes or str expected, not {name}")))
            }
        }
    }
}

/// A `bytes` with a value.
pub fn as_bytes<'py>(py: Python<'py>, value: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, value)
}

/// A duration of this many seconds, up to some ten thousand years.
pub fn seconds(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    if seconds.is_nan() || seconds < 0.0 {
        let message = format!("a time is a number of seconds from 0 on, not {seconds}");
        return Err(raised(py, &Error::invalid(message)));
    }
    Ok(Duration::from_secs_f64(seconds.min(SECONDS_MAX)))
}

/// What a write has beside its key and value.
pub fn write_options(
    py: Python<'_>,
    durability: Option<&str>,
    wait: bool,
) -> PyResult<WriteOptions> {
    let durability = match durability {
        None => None,
        Some("buffered") => Some(Durability::Buffered),
        Some("synced") => Some(Durability::Synced),
        Some(other) => {
            let message = format!("durability is \"buffered\" or \"synced\", not {other:?}");
            return Err(raised(py, &Error::invalid(message)));
        }
    };
    Ok(WriteOptions { durability, wait })
}
