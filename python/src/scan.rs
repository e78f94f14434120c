//! Iterators. They cross to the engine once for many entries: for few at first, so that the first
//! entry comes soon.

use crate::arguments::{Data, as_bytes};
use crate::errors::{apart, raised};
use crate::own::{Own, held};
use bindings::{Chunk, fill};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use shingle::{Cursor, Error, ReadOptions};

/// Entries of the first chunk.
const COUNT_MIN: usize = 8;
/// Entries of later chunks, at most.
const COUNT_MAX: usize = 2048;
/// No entry is added to a chunk of this size.
const BYTES_MAX: usize = 256 << 10;

/// What an iterator gives.
#[derive(Clone, Copy)]
pub enum Part {
    Keys,
    Values,
    Items,
}

impl Part {
    pub fn named(py: Python<'_>, name: &str) -> PyResult<Part> {
        match name {
            "keys" => Ok(Part::Keys),
            "values" => Ok(Part::Values),
            "items" => Ok(Part::Items),
            other => {
                let message = format!("a scan gives keys, values or items, not {other:?}");
                Err(raised(py, &Error::invalid(message)))
            }
        }
    }
}

/// Which keys an iterator shows.
pub fn read_options(
    py: Python<'_>,
    start: Option<Data>,
    end: Option<Data>,
    prefix: Option<Data>,
    background: bool,
) -> PyResult<ReadOptions> {
    if prefix.is_some() && (start.is_some() || end.is_some()) {
        let message = "a scan has a prefix, or a start and an end, not both";
        return Err(raised(py, &Error::invalid(message)));
    }
    let mut options = match prefix {
        Some(prefix) => ReadOptions::prefix(&prefix),
        None => ReadOptions::default(),
    };
    if let Some(start) = start {
        options.range.start = (&start[..]).into();
    }
    if let Some(end) = end {
        options.range.end = Some((&end[..]).into());
    }
    options.background = background;
    options.fill_cache = !background;
    Ok(options)
}

struct State {
    cursor: Cursor,
    chunk: Chunk,
    count: usize,
    has_begun: bool,
}

impl State {
    /// Reads the next entries.
    fn advance(&mut self, in_reverse: bool) -> shingle::Result<()> {
        if !self.has_begun {
            self.has_begun = true;
            if in_reverse { self.cursor.seek_to_last()? } else { self.cursor.seek_to_first()? }
        }
        fill(&mut self.cursor, in_reverse, self.count, BYTES_MAX, &mut self.chunk)?;
        self.count = (2 * self.count).min(COUNT_MAX);
        Ok(())
    }
}

/// An iterator over a keyspace or a snapshot, as it was when the iterator was made.
#[pyclass(frozen, module = "shingle")]
pub struct Scan {
    state: Own<Mutex<State>>,
    part: Part,
    in_reverse: bool,
}

impl Scan {
    pub fn new(cursor: Cursor, part: Part, in_reverse: bool) -> Scan {
        let chunk = Chunk::default();
        let state = State { cursor, chunk, count: COUNT_MIN, has_begun: false };
        Scan { state: Own::new("scan", Mutex::new(state)), part, in_reverse }
    }
}

#[pymethods]
impl Scan {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// Gives back what it holds. It ends by itself where its last reference goes.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        apart(py, || self.state.take().map(drop))
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let state = self.state.get(py)?;
        let mut state = held(py, &state);
        let state = &mut *state;
        if state.chunk.is_given() {
            apart(py, || state.advance(self.in_reverse))?;
        }
        let Some((key, value)) = state.chunk.next_entry() else { return Ok(None) };
        Ok(Some(match self.part {
            Part::Keys => as_bytes(py, key).into_any(),
            Part::Values => as_bytes(py, value).into_any(),
            Part::Items => PyTuple::new(py, [as_bytes(py, key), as_bytes(py, value)])?.into_any(),
        }))
    }
}
