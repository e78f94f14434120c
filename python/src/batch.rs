//! Batches.

use crate::arguments::{Data, write_options};
use crate::database::Store;
use crate::errors::{apart, raised};
use crate::mapping::Table;
use crate::own::{Own, held};
use parking_lot::Mutex;
use pyo3::prelude::*;
use shingle::{Db, ErrorKind, Result, WriteBatch, WriteOptions};
use std::mem;
use std::sync::Arc;

/// Operations that become visible and durable together.
#[pyclass(frozen, subclass, module = "shingle")]
pub struct Batch {
    db: Arc<Own<Db>>,
    operations: Mutex<WriteBatch>,
    options: WriteOptions,
}

impl Batch {
    fn add(&self, py: Python<'_>, add: impl FnOnce(&mut WriteBatch) -> Result<()>) -> PyResult<()> {
        let added = add(&mut held(py, &self.operations));
        added.map_err(|error| raised(py, &error))
    }
}

#[pymethods]
impl Batch {
    #[new]
    #[pyo3(signature = (store, durability=None, wait=true))]
    fn new(py: Python<'_>, store: &Store, durability: Option<&str>, wait: bool) -> PyResult<Batch> {
        let options = write_options(py, durability, wait)?;
        Ok(Batch { db: store.shared(py)?, operations: Mutex::default(), options })
    }

    #[pyo3(signature = (key, value, keyspace=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Data,
        value: Data,
        keyspace: Option<&Table>,
    ) -> PyResult<()> {
        match keyspace {
            None => self.add(py, |batch| batch.put(&key, &value)),
            Some(table) => {
                let keyspace = table.keyspace(py)?;
                self.add(py, |batch| batch.put_in(&keyspace, &key, &value))
            }
        }
    }

    #[pyo3(signature = (key, keyspace=None))]
    fn delete(&self, py: Python<'_>, key: Data, keyspace: Option<&Table>) -> PyResult<()> {
        match keyspace {
            None => self.add(py, |batch| batch.delete(&key)),
            Some(table) => {
                let keyspace = table.keyspace(py)?;
                self.add(py, |batch| batch.delete_in(&keyspace, &key))
            }
        }
    }

    #[pyo3(signature = (start, end, keyspace=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Data,
        end: Data,
        keyspace: Option<&Table>,
    ) -> PyResult<()> {
        match keyspace {
            None => self.add(py, |batch| batch.delete_range(&start, &end)),
            Some(table) => {
                let keyspace = table.keyspace(py)?;
                self.add(py, |batch| batch.delete_range_in(&keyspace, &start, &end))
            }
        }
    }

    #[pyo3(signature = (key, operand, keyspace=None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: Data,
        operand: Data,
        keyspace: Option<&Table>,
    ) -> PyResult<()> {
        match keyspace {
            None => self.add(py, |batch| batch.merge(&key, &operand)),
            Some(table) => {
                let keyspace = table.keyspace(py)?;
                self.add(py, |batch| batch.merge_in(&keyspace, &key, &operand))
            }
        }
    }

    fn __setitem__(&self, py: Python<'_>, key: Data, value: Data) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: Data) -> PyResult<()> {
        self.delete(py, key, None)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        held(py, &self.operations).len()
    }

    fn clear(&self, py: Python<'_>) {
        held(py, &self.operations).clear();
    }

    /// Writes everything, or nothing. The batch is empty afterwards, but for `WouldWait` and where
    /// the database was closed before: then it is as it was.
    fn write(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db.get(py)?;
        apart(py, || {
            // Held, so that another thread's operations go into the next batch or none.
            let mut operations = self.operations.lock();
            let kept = if self.options.wait { None } else { Some(operations.clone()) };
            let written = db.write(mem::take(&mut *operations), &self.options);
            if let (Err(error), Some(kept)) = (&written, kept)
                && error.kind() == ErrorKind::WouldWait
            {
                *operations = kept;
            }
            written
        })
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// Writes the batch, unless an exception left the block.
    fn __exit__(
        &self,
        py: Python<'_>,
        exception: &Bound<'_, PyAny>,
        #[expect(unused_variables)] value: &Bound<'_, PyAny>,
        #[expect(unused_variables)] traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        if exception.is_none() {
            self.write(py)?;
        } else {
            self.clear(py);
        }
        Ok(false)
    }
}
