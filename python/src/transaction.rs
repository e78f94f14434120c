//! Transactions.

use crate::arguments::{Data, as_bytes, seconds, write_options};
use crate::database::Store;
use crate::errors::{apart, raised};
use crate::mapping::Table;
use crate::own::Own;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use shingle::{Error, ErrorKind, Isolation, Result, TransactionOptions, WriteOptions};
use std::sync::Arc;

/// Reads and writes that happen together or not at all.
#[pyclass(frozen, subclass, module = "shingle")]
pub struct Transaction {
    /// None once it has ended.
    held: Arc<Own<Mutex<Option<shingle::Transaction>>>>,
    options: WriteOptions,
}

impl Transaction {
    /// Ends it: the next use is an error.
    fn take(&self, py: Python<'_>) -> PyResult<Option<shingle::Transaction>> {
        let held = self.held.get(py)?;
        Ok(py.detach(|| held.lock().take()))
    }

    fn within<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut shingle::Transaction) -> Result<T> + Send,
    ) -> PyResult<T> {
        let held = self.held.get(py)?;
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
    #[new]
    #[pyo3(signature = (store, isolation="serializable", lock_timeout=None, durability=None))]
    fn new(
        py: Python<'_>,
        store: &Store,
        isolation: &str,
        lock_timeout: Option<f64>,
        durability: Option<&str>,
    ) -> PyResult<Transaction> {
        let isolation = match isolation {
            "serializable" => Isolation::Serializable,
            "snapshot" => Isolation::Snapshot,
            other => {
                let message =
                    format!("isolation is \"serializable\" or \"snapshot\", not {other:?}");
                return Err(raised(py, &Error::invalid(message)));
            }
        };
        let options = write_options(py, durability, true)?;
        let lock_timeout = lock_timeout.map(|timeout| seconds(py, timeout)).transpose()?;
        let db = store.db(py)?;
        let made = db.transaction_with(TransactionOptions { isolation, lock_timeout });
        Ok(Transaction { held: store.part("transaction", Mutex::new(Some(made))), options })
    }

    #[pyo3(signature = (key, keyspace=None, for_update=false))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Data,
        keyspace: Option<&Table>,
        for_update: bool,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let keyspace = keyspace.map(|table| table.keyspace(py)).transpose()?;
        let found = self.within(py, |transaction| match (keyspace.as_deref(), for_update) {
            (None, false) => transaction.get(&key),
            (None, true) => transaction.get_for_update(&key),
            (Some(keyspace), false) => transaction.get_in(keyspace, &key),
            (Some(keyspace), true) => transaction.get_for_update_in(keyspace, &key),
        })?;
        Ok(found.map(|value| as_bytes(py, &value)))
    }

    #[pyo3(signature = (key, value, keyspace=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Data,
        value: Data,
        keyspace: Option<&Table>,
    ) -> PyResult<()> {
        let keyspace = keyspace.map(|table| table.keyspace(py)).transpose()?;
        self.within(py, |transaction| match keyspace.as_deref() {
            None => transaction.put(&key, &value),
            Some(keyspace) => transaction.put_in(keyspace, &key, &value),
        })
    }

    #[pyo3(signature = (key, keyspace=None))]
    fn delete(&self, py: Python<'_>, key: Data, keyspace: Option<&Table>) -> PyResult<()> {
        let keyspace = keyspace.map(|table| table.keyspace(py)).transpose()?;
        self.within(py, |transaction| match keyspace.as_deref() {
            None => transaction.delete(&key),
            Some(keyspace) => transaction.delete_in(keyspace, &key),
        })
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let taken = self.take(py)?;
        apart(py, || taken.ok_or_else(ended)?.commit_with(&self.options))
    }

    fn roll_back(&self, py: Python<'_>) -> PyResult<()> {
        self.take(py).map(drop)
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// Commits, unless an exception left the block.
    fn __exit__(
        &self,
        py: Python<'_>,
        exception: &Bound<'_, PyAny>,
        #[expect(unused_variables)] value: &Bound<'_, PyAny>,
        #[expect(unused_variables)] traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        if exception.is_none() {
            self.commit(py)?
        } else {
            self.roll_back(py)?
        }
        Ok(false)
    }
}
