//! The event log and the listener: where events go.
//!
//! A line of JSON for each event, in a form that existing RocksDB log parsers read
//! (`EVENT_LOG_v1 {...}`); of a stall, two lines (`episode`). The newest [`KEPT`] lines stay in
//! memory, and lines are appended to the store's `LOG` note in batches. A full `LOG` becomes
//! `LOG.old` and replaces the one before, so the size of both is bounded. Opening never needs the
//! log; a failure to write it is ignored.
//!
//! Events are added under locks of the engine, so the program's listener is not called there:
//! `delivery` has a queue for it.

mod delivery;
mod episode;

use crate::admission::{Stall, StallChange};
use crate::event::{Event, EventListener, Severity};
use crate::notes::{LOG, OLD_LOG};
use base::Result;
use base::env::Runtime;
use delivery::Delivery;
use episode::Episode;
use media::FileStore;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Lines that stay in memory.
const KEPT: usize = 1000;
/// Lines are written out when this many are pending.
const BATCH: usize = 64;
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
    /// The stall in progress, or the last one until its summary is added. Taken before `lines`.
    episode: Mutex<Option<Episode>>,
    last_job: AtomicU64,
}

#[derive(Default)]
struct Lines {
    recent: VecDeque<String>,
    unwritten: Vec<String>,
    /// The next [`Events::add`] writes them out.
    is_due: bool,
}

impl Lines {
    fn push(&mut self, line: String, is_urgent: bool) {
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(line.clone());
        self.unwritten.push(line);
        self.is_due |= is_urgent || self.unwritten.len() >= BATCH;
    }

    /// The unwritten lines.
    fn take(&mut self) -> Vec<String> {
        self.is_due = false;
        std::mem::take(&mut self.unwritten)
    }
}

/// The receivers of an event.
enum Audience {
    /// The event log and the listener; an urgent line does not wait for a batch.
    All { is_urgent: bool },
    /// The listener.
    Listener,
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
            episode: Mutex::default(),
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
        if self.note(event, Audience::All { is_urgent }) {
            self.write();
        }
    }

    /// Adds a change of what writes meet, without I/O, because writers may wait for the caller: the
    /// next event writes it out. `stalls` gives the waits so far. Changes after the first of an
    /// episode are for the listener alone.
    pub(crate) fn note_stall(&self, change: StallChange, stalls: impl FnOnce() -> Vec<Stall>) {
        let now_ns = self.runtime.now_ns();
        let mut episode = self.episode.lock();
        let audience = match &mut *episode {
            Some(episode) => {
                episode.take(&change, now_ns);
                Audience::Listener
            }
            None => {
                *episode = Some(Episode::begin(&change, now_ns, stalls()));
                Audience::All { is_urgent: true }
            }
        };
        let StallChange { condition, previous, reason } = change;
        self.note(Event::StallConditionsChanged { condition, previous, reason }, audience);
    }

    /// Adds the summary of a stall that is over, or that `is_closing` ends; without I/O, as
    /// [`Events::note_stall`].
    pub(crate) fn end_stall(&self, is_closing: bool, stalls: impl FnOnce() -> Vec<Stall>) {
        let now_ns = self.runtime.now_ns();
        let mut episode = self.episode.lock();
        if let Some(over) = episode.take_if(|episode| is_closing || episode.is_over(now_ns)) {
            let summary = over.summary(now_ns, &stalls());
            self.note(summary, Audience::All { is_urgent: true });
        }
    }

    /// Adds an event without I/O. Returns whether lines are due to be written out.
    fn note(&self, event: Event, audience: Audience) -> bool {
        #[cfg(feature = "tracing")]
        event.trace();
        let mut lines = self.lines.lock();
        let micros = self.runtime.wall_micros();
        if let Audience::All { is_urgent } = audience {
            lines.push(format!("EVENT_LOG_v1 {}", event.to_json(micros)), is_urgent);
        }
        // Under the lock, so that the listener gets events in the order of the lines.
        if let Some(delivery) = &self.delivery {
            delivery.push(event, micros);
            self.runtime.wake();
        }
        lines.is_due
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
        let lines = self.lines.lock().take();
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
