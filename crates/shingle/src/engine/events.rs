//! The event log and the listener: where events go.
//!
//! A line of JSON for each event, in a form that existing RocksDB log parsers read
//! (`EVENT_LOG_v1 {...}`). The newest [`KEPT`] lines stay in memory, and lines are appended to the
//! store's `LOG` note in batches. A full `LOG` becomes `LOG.old` and replaces the one before, so
//! the size of both is bounded. Opening never needs the log; a failure to write it is ignored.
//!
//! Events are added under locks of the engine, so the program's listener is not called there:
//! `delivery` has a queue for it.

mod delivery;

use crate::event::{Event, EventListener, Severity};
use base::Result;
use base::env::Runtime;
use delivery::Delivery;
use media::FileStore;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Lines that stay in memory.
const KEPT: usize = 1000;
/// Lines are written out when this many are pending.
const BATCH: usize = 64;
/// The notes.
pub(crate) const LOG: &str = "LOG";
pub(crate) const OLD_LOG: &str = "LOG.old";
/// `LOG` is full at this many bytes.
const LOG_BYTES_MAX: u64 = if cfg!(any(test, feature = "testing")) { 8 << 10 } else { 1 << 20 };

/// Takes events.
pub(crate) struct Events {
    store: Arc<dyn FileStore>,
    runtime: Arc<dyn Runtime>,
    lines: Mutex<Lines>,
    /// Taken before `lines`, and held while lines are written.
    log: Mutex<Log>,
    delivery: Option<Delivery>,
    last_job: AtomicU64,
}

#[derive(Default)]
struct Lines {
    recent: VecDeque<String>,
    unwritten: Vec<String>,
}

#[derive(Default)]
struct Log {
    /// Bytes in `LOG`; `None` until the note was read.
    bytes: Option<u64>,
    is_muted: bool,
}

impl Events {
    pub(crate) fn new(
        store: Arc<dyn FileStore>,
        runtime: Arc<dyn Runtime>,
        listener: Option<Arc<dyn EventListener>>,
    ) -> Events {
        Events {
            store,
            runtime,
            lines: Mutex::default(),
            log: Mutex::default(),
            delivery: listener.map(Delivery::new),
            last_job: AtomicU64::new(0),
        }
    }

    /// The number of a job that begins.
    pub(crate) fn begin_job(&self) -> u64 {
        self.last_job.fetch_add(1, Relaxed) + 1
    }

    /// Writes nothing to the store: a read-only database leaves no trace.
    pub(crate) fn mute(&self) {
        self.log.lock().is_muted = true;
    }

    /// Adds an event. Failures are written out at once.
    pub(crate) fn add(&self, event: Event) {
        let is_urgent = event.severity() > Severity::Info;
        if self.note(event) >= BATCH || is_urgent {
            self.write();
        }
    }

    /// Adds an event without I/O: for callers that writers wait for. A later event writes it out.
    /// Returns the number of lines that are pending.
    pub(crate) fn note(&self, event: Event) -> usize {
        #[cfg(feature = "tracing")]
        event.trace();
        let mut lines = self.lines.lock();
        let micros = self.runtime.wall_micros();
        let line = format!("EVENT_LOG_v1 {}", event.to_json(micros));
        if lines.recent.len() == KEPT {
            lines.recent.pop_front();
        }
        lines.recent.push_back(line.clone());
        lines.unwritten.push(line);
        let pending = lines.unwritten.len();
        // Under the lock, so that the listener gets events in the order of the lines.
        if let Some(delivery) = &self.delivery {
            delivery.push(event, micros);
            self.runtime.wake();
        }
        pending
    }

    /// Calls the listener with the events that wait for it. The caller holds no lock of the engine.
    /// A concurrent caller leaves them to this one.
    pub(crate) fn deliver(&self) {
        let Some(delivery) = &self.delivery else { return };
        if let Err(message) = delivery.deliver() {
            self.add(Event::ListenerPanicked { message });
        }
    }

    /// Writes out the pending lines, and nothing after that. The listener gets the last events.
    pub(crate) fn end(&self) {
        self.write();
        self.mute();
    }

    /// Writes out the pending lines.
    fn write(&self) {
        let mut log = self.log.lock();
        let lines = std::mem::take(&mut self.lines.lock().unwritten);
        if log.is_muted || lines.is_empty() {
            return;
        }
        let mut text = lines.join("\n");
        text.push('\n');
        // The event log must never fail the database.
        let _ = self.append(&mut log, &text);
    }

    fn append(&self, log: &mut Log, text: &str) -> Result<()> {
        let Some(notes) = self.store.notes() else { return Ok(()) };
        let bytes = match log.bytes {
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
        log.bytes = Some(if is_full { 0 } else { bytes } + text.len() as u64);
        Ok(())
    }

    /// The newest lines, oldest first.
    pub(crate) fn recent(&self) -> Vec<String> {
        self.lines.lock().recent.iter().cloned().collect()
    }
}
