//! The database as a whole. Its keys and values are those of [`crate::mapping::Table`].

use crate::arguments::seconds;
use crate::errors::{SIGNALS_EVERY, apart, raised};
use crate::own::{Ends, Own, Used};
use parking_lot::Mutex;
use pyo3::prelude::*;
use shingle::{Db, Error, ErrorKind, Options, Progress, ResourceLimits};
use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::mem;
use std::path::PathBuf;
use std::ptr;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// A block cache that several databases share.
#[pyclass(frozen, module = "shingle")]
pub struct Resources(shingle::Resources);

#[pymethods]
impl Resources {
    #[new]
    fn new(cache_bytes: u64) -> Resources {
        Resources(shingle::Resources::new(cache_bytes))
    }

    #[staticmethod]
    #[pyo3(signature = (memory_bytes, background_threads=2, background_bytes_per_second=0))]
    fn within(
        memory_bytes: u64,
        background_threads: usize,
        background_bytes_per_second: u64,
    ) -> Resources {
        let limits =
            ResourceLimits { memory_bytes, background_threads, background_bytes_per_second };
        Resources(shingle::Resources::within(&limits))
    }

    #[getter]
    fn cache_used_bytes(&self) -> u64 {
        self.0.cache_used_bytes()
    }

    #[getter]
    fn memtable_bytes(&self) -> u64 {
        self.0.memtable_bytes()
    }
}

thread_local! {
    /// The databases whose calls this thread is in, in a function of the program that they told of
    /// their progress. The call uses its database, so a close here would wait for itself.
    static TOLD_OF: RefCell<Vec<*const Store>> = const { RefCell::new(Vec::new()) };
}

/// An open database, without keys and values.
#[pyclass(frozen, module = "shingle")]
pub struct Store {
    db: Arc<Own<Db>>,
    /// What ends with it.
    parts: Mutex<Vec<Weak<dyn Ends>>>,
    /// Held while it is being closed.
    closing: Mutex<()>,
    /// How it was opened.
    path: OsString,
}

impl Store {
    /// The database. What is made while this is held, and handed to [`Store::part`], is closed with
    /// the database.
    pub fn db(&self, py: Python<'_>) -> PyResult<Used<'_, Db>> {
        self.db.get(py)
    }

    /// The database, for what outlives this call.
    pub fn shared(&self, py: Python<'_>) -> PyResult<Arc<Own<Db>>> {
        self.db.get(py).map(|_| Arc::clone(&self.db))
    }

    /// A thing that is closed with the database.
    pub fn part<T: Send + Sync + 'static>(&self, name: &'static str, thing: T) -> Arc<Own<T>> {
        let made = Arc::new(Own::new(name, thing));
        let part: Arc<dyn Ends> = Arc::<Own<T>>::clone(&made);
        let mut parts = self.parts.lock();
        parts.retain(|part| part.strong_count() > 0);
        parts.push(Arc::downgrade(&part));
        made
    }
}

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (
        path, settings, create=true, create_new=false, read_only=false, resources=None
    ))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        settings: Vec<(String, String)>,
        create: bool,
        create_new: bool,
        read_only: bool,
        resources: Option<&Resources>,
    ) -> PyResult<Store> {
        let mut options = Options::new().create(create).create_new(create_new);
        options = options.read_only(read_only);
        if let Some(resources) = resources {
            options = options.resources(&resources.0);
        }
        let shown = path.as_os_str().to_owned();
        let db = apart(py, || {
            for (name, value) in &settings {
                options = options.clone().set(name, value)?;
            }
            options.open(path)
        })?;
        let db = Arc::new(Own::new("database", db));
        Ok(Store { db, parts: Mutex::default(), closing: Mutex::default(), path: shown })
    }

    #[getter]
    fn path(&self) -> &OsStr {
        &self.path
    }

    /// A second time does nothing, but waits for the first.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if TOLD_OF.with_borrow(|told| told.contains(&ptr::from_ref(self))) {
            let message = "a function that is told of progress cannot close the database";
            return Err(raised(py, &Error::invalid(message)));
        }
        apart(py, || {
            self.db.check_process()?;
            let _closing = self.closing.lock();
            let Some(db) = self.db.take()? else { return Ok(()) };
            // First the database: a call of a part may wait for a lock that another part has.
            let closed = db.close();
            let parts = mem::take(&mut *self.parts.lock());
            parts.iter().filter_map(Weak::upgrade).for_each(|part| part.end());
            closed
        })
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db(py)?;
        apart(py, || db.flush())
    }

    fn begin_flush(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db(py)?;
        apart(py, || db.begin_flush())
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db(py)?;
        apart(py, || db.sync())
    }

    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db(py)?;
        apart(py, || db.compact())
    }

    fn wait_idle(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db(py)?;
        apart(py, || db.wait_idle())
    }

    #[pyo3(signature = (bytes, timeout=None))]
    fn wait_writable(&self, py: Python<'_>, bytes: u64, timeout: Option<f64>) -> PyResult<bool> {
        let db = self.db(py)?;
        let timeout = timeout.map(|timeout| seconds(py, timeout)).transpose()?;
        let begin = Instant::now();
        loop {
            let left = timeout.map(|timeout| timeout.saturating_sub(begin.elapsed()));
            let part = left.unwrap_or(Duration::MAX).min(SIGNALS_EVERY);
            let is_writable = apart(py, || db.wait_writable(bytes, Some(part)))?;
            if is_writable || left == Some(part) {
                return Ok(is_writable);
            }
            py.check_signals()?;
        }
    }

    fn checkpoint(&self, py: Python<'_>, target: PathBuf) -> PyResult<()> {
        let db = self.db(py)?;
        apart(py, || db.checkpoint(target))
    }

    /// Reads everything; `progress(done, total, what)` returns false to cancel. An exception in it,
    /// or an interrupt, cancels too and is raised. Returns the problems.
    #[pyo3(signature = (progress=None))]
    fn check(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<Vec<String>> {
        let db = self.db(py)?;
        let mut failed: Option<PyErr> = None;
        let report = apart(py, || {
            db.check(&mut |step: Progress| {
                let goes_on = Python::attach(|py| {
                    TOLD_OF.with_borrow_mut(|told| told.push(ptr::from_ref(self)));
                    let goes_on = goes_on(py, progress.as_ref(), &step);
                    TOLD_OF.with_borrow_mut(Vec::pop);
                    goes_on
                });
                match goes_on {
                    Ok(true) => {}
                    Ok(false) => step.cancel(),
                    Err(error) => {
                        failed.get_or_insert(error);
                        step.cancel();
                    }
                }
            })
        })?;
        match failed {
            Some(error) => Err(error),
            None if report.is_cancelled => {
                let message = "the receiver of the progress cancelled the check";
                Err(raised(py, &Error::new(ErrorKind::Cancelled, message)))
            }
            None => Ok(report.problems),
        }
    }

    fn stats_json(&self, py: Python<'_>) -> PyResult<String> {
        let db = self.db(py)?;
        apart(py, || Ok(db.stats().to_json()))
    }

    fn property(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        let db = self.db(py)?;
        apart(py, || Ok(db.property(name)))
    }

    fn set_option(&self, py: Python<'_>, name: &str, value: &str) -> PyResult<()> {
        let db = self.db(py)?;
        apart(py, || db.set_option(name, value))
    }

    fn keyspaces(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.db(py)?.keyspaces())
    }

    fn drop_keyspace(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let db = self.db(py)?;
        apart(py, || db.drop_keyspace(name))
    }
}

/// The program did not cancel a call at this step: by an interrupt, which raises, or in `progress`.
fn goes_on(py: Python<'_>, progress: Option<&Py<PyAny>>, step: &Progress) -> PyResult<bool> {
    py.check_signals()?;
    let Some(progress) = progress else { return Ok(true) };
    let told = progress.call1(py, (step.done_bytes, step.total_bytes, &step.what))?;
    Ok(told.is_none(py) || told.is_truthy(py)?)
}

#[pyfunction]
pub fn destroy(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    apart(py, || shingle::destroy(path))
}

/// The options that a database takes by name: name, unit, help, and whether they can be set while
/// it is open.
#[pyfunction]
pub fn options() -> Vec<(&'static str, &'static str, &'static str, bool)> {
    let all = shingle::options::OptionEntry::all();
    all.map(|entry| (entry.name, entry.unit, entry.help, entry.at_run_time)).collect()
}
