//! Transactions.

use crate::arguments::Data;
use crate::errors::{apart, raised};
use crate::fork::Own;
use crate::mapping::{Table, as_bytes};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use shingle::{Error, ErrorKind, Result, WriteOptions};

/// Reads and writes that happen together or not at all.
#[pyclass(frozen, subclass, module = "shingle")]
pub struct Transaction(pub Own<Mutex<Option<shingle::Transaction>>>, pub WriteOptions);

impl Transaction {
    fn within<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut shingle::Transaction) -> Result<T> + Send,
    ) -> PyResult<T> {
        let held = self.0.get().map_err(|error| raised(py, &error))?;
        apart(py, || match &mut *held.lock() {
            Some(transaction) => work(transaction),
            None => Err(ended()),
        })
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Closed, "the transaction has ended")
}

#[pymethods]
impl Transaction {
    #[pyo3(signature = (key, keyspace=None, for_update=false))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Data,
        keyspace: Option<&Table>,
        for_update: bool,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let keyspace = keyspace.map(|table| table.keyspace(py)).transpose()?;
        let found = self.within(py, |transaction| match (keyspace, for_update) {
            (None, false) => transaction.get(&key),
            (None, true) => transaction.get_for_update(&key),
            (Some(keyspace), false) => transaction.get_in(keyspace, &key),
            (Some(keyspace), true) => transaction.get_for_update_in(keyspace, &key),
        })?;
        Ok(found.map(|value| as_bytes(py, &value)))
    }

    #[pyo3(signature = (key, value, keyspace=None))]
    fn put(&self, py: Python<'_>, key: Data, value: Data, keyspace: Option<&Table>) -> PyResult<()> {
        let keyspace = keyspace.map(|table| table.keyspace(py)).transpose()?;
        self.within(py, |transaction| match keyspace {
            None => transaction.put(&key, &value),
            Some(keyspace) => transaction.put_in(keyspace, &key, &value),
        })
    }

    #[pyo3(signature = (key, keyspace=None))]
    fn delete(&self, py: Python<'_>, key: Data, keyspace: Option<&Table>) -> PyResult<()> {
        let keyspace = keyspace.map(|table| table.keyspace(py)).transpose()?;
        self.within(py, |transaction| match keyspace {
            None => transaction.delete(&key),
            Some(keyspace) => transaction.delete_in(keyspace, &key),
        })
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let held = self.0.get().map_err(|error| raised(py, &error))?;
        let taken = held.lock().take();
        apart(py, || taken.ok_or_else(ended)?.commit_with(&self.1))
    }

    fn roll_back(&self, py: Python<'_>) -> PyResult<()> {
        let held = self.0.get().map_err(|error| raised(py, &error))?;
        drop(held.lock().take());
        Ok(())
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// Commits, unless an exception left the block.
    fn __exit__(
        &self,
        py: Python<'_>,
        exception: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        if exception.is_none() { self.commit(py)? } else { self.roll_back(py)? }
        Ok(false)
    }
}
