//! The keys and values of a keyspace.

use crate::arguments::{Data, as_bytes, seconds, write_options};
use crate::database::Store;
use crate::errors::apart;
use crate::own::{Own, Used};
use crate::scan::{Part, Scan, read_options};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use shingle::{Bytes, Keyspace, KeyspaceOptions, PrefixRule, ReadOptions, Result};
use std::sync::Arc;

/// A keyspace of an open database.
#[pyclass(frozen, subclass, module = "shingle")]
pub struct Table(Arc<Own<Keyspace>>);

impl Table {
    pub fn keyspace(&self, py: Python<'_>) -> PyResult<Used<'_, Keyspace>> {
        self.0.get(py)
    }

    fn found(&self, py: Python<'_>, key: &Data) -> PyResult<Option<Bytes>> {
        let keyspace = self.keyspace(py)?;
        apart(py, || keyspace.get(key))
    }
}

/// The last key, also one whose operands cannot be merged.
fn last_key(keyspace: &Keyspace) -> Result<Option<Vec<u8>>> {
    let mut cursor = keyspace.cursor(ReadOptions::default());
    match cursor.seek_to_last() {
        Err(error) if cursor.unmerged().is_none() => Err(error),
        _ => Ok(cursor.valid().then(|| cursor.key().to_vec())),
    }
}

#[pymethods]
impl Table {
    /// The keyspace called `name`, or the one that every database has.
    #[new]
    #[pyo3(signature = (
        store, name=None, create=false, merge_operator=None, ttl=None, prefix_bytes=0,
        without_wal=false,
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn new(
        py: Python<'_>,
        store: &Store,
        name: Option<&str>,
        create: bool,
        merge_operator: Option<String>,
        ttl: Option<f64>,
        prefix_bytes: u8,
        without_wal: bool,
    ) -> PyResult<Table> {
        let db = store.db(py)?;
        let options = KeyspaceOptions {
            merge_operator,
            ttl: ttl.map(|ttl| seconds(py, ttl)).transpose()?,
            prefix: if prefix_bytes == 0 {
                PrefixRule::None
            } else {
                PrefixRule::Fixed(prefix_bytes)
            },
            without_wal,
            ..KeyspaceOptions::default()
        };
        let keyspace = apart(py, || match name {
            None => Ok(db.default_keyspace().clone()),
            Some(name) if create => db.open_or_create_keyspace(name, options),
            Some(name) => db.keyspace(name),
        })?;
        Ok(Table(store.part("database", keyspace)))
    }

    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.keyspace(py)?.name().to_string())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Data) -> PyResult<Bound<'py, PyBytes>> {
        match self.found(py, &key)? {
            Some(value) => Ok(as_bytes(py, &value)),
            None => Err(PyKeyError::new_err(as_bytes(py, &key).unbind())),
        }
    }

    fn __setitem__(&self, py: Python<'_>, key: Data, value: Data) -> PyResult<()> {
        let keyspace = self.keyspace(py)?;
        apart(py, || keyspace.put(&key, &value))
    }

    /// Raises KeyError where there is no such key, as a dictionary does.
    fn __delitem__(&self, py: Python<'_>, key: Data) -> PyResult<()> {
        let keyspace = self.keyspace(py)?;
        let was_there = apart(py, || {
            let was_there = keyspace.get(&key)?.is_some();
            if was_there { keyspace.delete(&key).map(|()| true) } else { Ok(false) }
        })?;
        match was_there {
            true => Ok(()),
            false => Err(PyKeyError::new_err(as_bytes(py, &key).unbind())),
        }
    }

    /// What is neither bytes nor text is no key.
    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        match key.extract::<Data>() {
            Ok(key) => Ok(self.found(py, &key)?.is_some()),
            Err(error) if error.is_instance_of::<PyTypeError>(py) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let keyspace = self.keyspace(py)?;
        apart(py, || Ok(last_key(&keyspace)?.is_some()))
    }

    /// Removes every key, with one range deletion.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let keyspace = self.keyspace(py)?;
        apart(py, || {
            let Some(last) = last_key(&keyspace)? else { return Ok(()) };
            keyspace.delete_range(b"", &last)?;
            keyspace.delete(&last)
        })
    }

    /// Reads every key: a store does not count them.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let keyspace = self.keyspace(py)?;
        apart(py, || {
            let mut cursor = keyspace.cursor(ReadOptions::default());
            let mut count = 0;
            cursor.seek_to_first()?;
            while cursor.valid() {
                count += 1;
                cursor.next()?;
            }
            Ok(count)
        })
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Scan> {
        self.scan(py, "keys", None, None, None, false, false)
    }

    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Data,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match self.found(py, &key)? {
            Some(value) => Some(as_bytes(py, &value).into_any()),
            None => default,
        })
    }

    fn multi_get<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Data>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let keyspace = self.keyspace(py)?;
        let found = apart(py, || keyspace.multi_get(&keys))?;
        Ok(found.iter().map(|value| value.as_ref().map(|value| as_bytes(py, value))).collect())
    }

    #[pyo3(signature = (key, value, ttl=None, durability=None, wait=true))]
    fn put(
        &self,
        py: Python<'_>,
        key: Data,
        value: Data,
        ttl: Option<f64>,
        durability: Option<&str>,
        wait: bool,
    ) -> PyResult<()> {
        let (keyspace, options) = (self.keyspace(py)?, write_options(py, durability, wait)?);
        let ttl = ttl.map(|ttl| seconds(py, ttl)).transpose()?;
        apart(py, || match ttl {
            None => keyspace.put_with(&key, &value, &options),
            Some(ttl) => {
                keyspace.put_expiring_with(&key, &value, keyspace.expiry_after(ttl), &options)
            }
        })
    }

    /// Removes a key; it need not be there.
    #[pyo3(signature = (key, durability=None, wait=true))]
    fn delete(
        &self,
        py: Python<'_>,
        key: Data,
        durability: Option<&str>,
        wait: bool,
    ) -> PyResult<()> {
        let (keyspace, options) = (self.keyspace(py)?, write_options(py, durability, wait)?);
        apart(py, || keyspace.delete_with(&key, &options))
    }

    #[pyo3(signature = (start, end, durability=None, wait=true))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Data,
        end: Data,
        durability: Option<&str>,
        wait: bool,
    ) -> PyResult<()> {
        let (keyspace, options) = (self.keyspace(py)?, write_options(py, durability, wait)?);
        apart(py, || keyspace.delete_range_with(&start, &end, &options))
    }

    #[pyo3(signature = (key, operand, durability=None, wait=true))]
    fn merge(
        &self,
        py: Python<'_>,
        key: Data,
        operand: Data,
        durability: Option<&str>,
        wait: bool,
    ) -> PyResult<()> {
        let (keyspace, options) = (self.keyspace(py)?, write_options(py, durability, wait)?);
        apart(py, || keyspace.merge_with(&key, &operand, &options))
    }

    /// An iterator over "keys", "values" or "items".
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
        let cursor = self.keyspace(py)?.cursor(options);
        Ok(Scan::new(cursor, Part::named(py, part)?, reverse))
    }
}
