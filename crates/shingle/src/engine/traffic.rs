//! Periodic traffic events in the event log: bytes by cause. They are a history of amplification,
//! which counters cannot give because they begin at zero with each opening.
//!
//! An event has the bytes since the event before, or since opening, so any of them add up. What is
//! written after the last event, the end of the event log itself, is in no event.

use crate::engine::events::Events;
use crate::event::{CauseBytes, Event};
use base::{Ledger, LedgerSnapshot};
use parking_lot::Mutex;

/// Minimum time between two events while there are flushes.
const INTERVAL_NS: u64 = 60_000_000_000;

/// The clock and the ledger at the last event.
pub(crate) struct Noted(Mutex<(u64, LedgerSnapshot)>);

impl Noted {
    /// At opening.
    pub(crate) fn new(now_ns: u64, ledger: LedgerSnapshot) -> Noted {
        Noted(Mutex::new((now_ns, ledger)))
    }

    /// After a flush: writes an event if the last one is long ago.
    pub(crate) fn note_if_due(&self, ledger: &Ledger, events: &Events, now_ns: u64) {
        let mut last = self.0.lock();
        if now_ns.saturating_sub(last.0) >= INTERVAL_NS {
            note_since(&mut last, ledger, events, now_ns);
        }
    }

    /// Writes an event with the bytes since the last one.
    pub(crate) fn note(&self, ledger: &Ledger, events: &Events, now_ns: u64) {
        let mut last = self.0.lock();
        note_since(&mut last, ledger, events, now_ns);
    }
}

fn note_since(last: &mut (u64, LedgerSnapshot), ledger: &Ledger, events: &Events, now_ns: u64) {
    let now = ledger.snapshot();
    let moved = now.since(&last.1);
    let bytes = moved.causes().map(|(cause, of)| {
        (cause, [of.write_bytes, of.read_bytes, of.media_write_bytes, of.media_read_bytes])
    });
    events.add(Event::Traffic {
        micros: now_ns.saturating_sub(last.0) / 1000,
        user_write_bytes: moved.user_write_bytes,
        user_read_bytes: moved.user_read_bytes,
        causes: CauseBytes(bytes.collect()),
    });
    *last = (now_ns, now);
}
