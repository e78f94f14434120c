//! The event log: one line of JSON for each background event, in a form that existing RocksDB log
//! parsers read (`EVENT_LOG_v1 {...}`).
//!
//! The newest [`KEPT`] lines stay in memory, and lines are appended to the store's `LOG` note in
//! batches. A full `LOG` becomes `LOG.old` and replaces the one before, so the size of both is
//! bounded. Opening never needs the log; a failure to write it is ignored.

use base::env::Runtime;
use base::{Error, FileId, Result};
use media::FileStore;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

/// Lines that stay in memory.
const KEPT: usize = 1000;
/// Lines are written out when this many are pending.
const BATCH: usize = 64;
/// The notes.
pub(crate) const LOG: &str = "LOG";
pub(crate) const OLD_LOG: &str = "LOG.old";
/// `LOG` is full at this many bytes.
const LOG_BYTES_MAX: u64 = if cfg!(any(test, feature = "testing")) { 8 << 10 } else { 1 << 20 };

/// Maximum number of places on a device in one event.
const PLACES_MAX: usize = 64;

/// Takes events.
pub(crate) struct Events {
    store: Arc<dyn FileStore>,
    runtime: Arc<dyn Runtime>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    recent: VecDeque<String>,
    unwritten: Vec<String>,
    /// Bytes in `LOG`; `None` until the note was read.
    log_bytes: Option<u64>,
    muted: bool,
}

/// A JSON object under construction.
pub(crate) struct Event {
    line: String,
}

impl Event {
    /// An event called `name`.
    pub(crate) fn new(name: &str) -> Event {
        Event { line: format!(", \"event\": \"{name}\"") }
    }

    pub(crate) fn number(mut self, key: &str, value: u64) -> Event {
        // Writing to a String cannot fail.
        let _ = write!(self.line, ", \"{key}\": {value}");
        self
    }

    pub(crate) fn text(mut self, key: &str, value: &str) -> Event {
        let _ = write!(self.line, ", \"{key}\": {}", crate::json::string(value));
        self
    }

    /// Where something was written on a device, as begin and length in turn; nothing where the
    /// store does not know. Places that touch are merged; if there are too many, the first are
    /// listed.
    pub(crate) fn places(self, places: impl IntoIterator<Item = Range<u64>>) -> Event {
        let mut merged: Vec<Range<u64>> = Vec::new();
        for place in places {
            match merged.last_mut() {
                Some(last) if (last.start..=last.end).contains(&place.start) => {
                    last.end = last.end.max(place.end);
                }
                _ => merged.push(place),
            }
        }
        if merged.is_empty() {
            return self;
        }
        merged.truncate(PLACES_MAX);
        self.numbers(
            "extents",
            merged.iter().flat_map(|place| [place.start, place.end - place.start]),
        )
    }

    pub(crate) fn numbers(mut self, key: &str, values: impl IntoIterator<Item = u64>) -> Event {
        let list: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
        let _ = write!(self.line, ", \"{key}\": [{}]", list.join(", "));
        self
    }
}

impl Events {
    pub(crate) fn new(store: Arc<dyn FileStore>, runtime: Arc<dyn Runtime>) -> Events {
        Events { store, runtime, state: Mutex::default() }
    }

    /// Writes nothing to the store: a read-only database leaves no trace.
    pub(crate) fn mute(&self) {
        self.state.lock().muted = true;
    }

    pub(crate) fn add(&self, event: Event) {
        let mut state = self.state.lock();
        let micros = self.runtime.wall_micros();
        let line = format!("EVENT_LOG_v1 {{\"time_micros\": {micros}{}}}", event.line);
        if state.recent.len() == KEPT {
            state.recent.pop_front();
        }
        state.recent.push_back(line.clone());
        state.unwritten.push(line);
        if state.unwritten.len() >= BATCH {
            self.write(&mut state);
        }
    }

    pub(crate) fn error(&self, name: &str, error: &Error) {
        self.add(Event::new(name).text("error", &error.to_string()));
        self.flush();
    }

    pub(crate) fn table_deleted(&self, file: FileId) {
        self.add(Event::new("table_file_deletion").number("file_number", file.0));
    }

    /// Writes out the pending lines.
    fn flush(&self) {
        self.write(&mut self.state.lock());
    }

    /// Writes out the pending lines, and nothing after that.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        self.write(&mut state);
        state.muted = true;
    }

    fn write(&self, state: &mut State) {
        if state.muted || state.unwritten.is_empty() {
            state.unwritten.clear();
            return;
        }
        let mut text = state.unwritten.join("\n");
        text.push('\n');
        state.unwritten.clear();
        // The event log must never fail the database.
        let _ = self.append(state, &text);
    }

    fn append(&self, state: &mut State, text: &str) -> Result<()> {
        let Some(notes) = self.store.notes() else { return Ok(()) };
        let bytes = match state.log_bytes {
            Some(bytes) => bytes,
            // A note that cannot be read back, perhaps for its size, is replaced by a new one.
            None => match notes.read_note(LOG) {
                Ok(old) => old.map_or(0, |old| old.len() as u64),
                Err(_) => u64::MAX,
            },
        };
        let is_full = bytes >= LOG_BYTES_MAX;
        if is_full && let Ok(Some(old)) = notes.read_note(LOG) {
            notes.write_note(OLD_LOG, &old, false)?;
        }
        notes.write_note(LOG, text.as_bytes(), !is_full)?;
        state.log_bytes = Some(if is_full { 0 } else { bytes } + text.len() as u64);
        Ok(())
    }

    /// The newest lines, oldest first.
    pub(crate) fn recent(&self) -> Vec<String> {
        let state = self.state.lock();
        state.recent.iter().cloned().collect()
    }
}
