//! Snapshots.

use crate::arguments::{Data, as_bytes};
use crate::database::Store;
use crate::errors::{apart, raised};
use crate::mapping::Table;
use crate::own::{Own, Used};
use crate::scan::{Part, Scan, read_options};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The state of a keyspace at a moment, until it is closed.
#[pyclass(frozen, subclass, module = "shingle")]
pub struct Snapshot(Own<shingle::Snapshot>);

impl Snapshot {
    fn held(&self, py: Python<'_>) -> PyResult<Used<'_, shingle::Snapshot>> {
        self.0.get(py)
    }
}

#[pymethods]
impl Snapshot {
    /// The state as it is now.
    #[new]
    fn new(py: Python<'_>, store: &Store) -> PyResult<Snapshot> {
        Ok(Snapshot(Own::new("snapshot", store.db(py)?.snapshot())))
    }

    /// The same moment of another keyspace.
    fn of(&self, py: Python<'_>, keyspace: &Table) -> PyResult<Snapshot> {
        Ok(Snapshot(Own::new(
            "snapshot",
            self.held(py)?.of(&*keyspace.keyspace(py)?).map_err(|error| raised(py, &error))?,
        )))
    }

    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Data,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let held = self.held(py)?;
        Ok(match apart(py, || held.get(&key))? {
            Some(value) => Some(as_bytes(py, &value).into_any()),
            None => default,
        })
    }

    fn multi_get<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Data>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let held = self.held(py)?;
        let found = apart(py, || held.multi_get(&keys))?;
        Ok(found.iter().map(|value| value.as_ref().map(|value| as_bytes(py, value))).collect())
    }

    #[pyo3(
        name = "_scan",
        signature = (part, start=None, end=None, prefix=None, reverse=false, background=false)
    )]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn scan(
        &self,
        py: Python<'_>,
        part: &str,
        start: Option<Data>,
        end: Option<Data>,
        prefix: Option<Data>,
        reverse: bool,
        background: bool,
    ) -> PyResult<Scan> {
        let options = read_options(py, start, end, prefix, background)?;
        Ok(Scan::new(self.held(py)?.cursor(options), Part::named(py, part)?, reverse))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        apart(py, || self.0.take().map(drop))
    }
}
