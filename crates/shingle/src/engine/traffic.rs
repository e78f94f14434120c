//! Periodic traffic events in the event log: bytes by cause, and how long writes waited. They are a
//! history of amplification and stalls, which counters cannot give because they begin at zero with
//! each opening.
//!
//! An event has what came since the event before, or since opening, so any of them add up. What is
//! written after the last event, the end of the event log itself, is in no event.

use crate::admission::{Admission, Stall};
use crate::engine::events::Events;
use crate::event::{CauseBytes, Event, StallTimes};
use base::{Ledger, LedgerSnapshot};
use parking_lot::Mutex;

/// Minimum time between two events while there are flushes.
const INTERVAL_NS: u64 = 60_000_000_000;

/// The state of the counters at the last event.
struct Counters {
    now_ns: u64,
    ledger: LedgerSnapshot,
    stalls: Vec<Stall>,
}

/// What the next event counts from.
pub(crate) struct Noted(Mutex<Counters>);

impl Noted {
    /// At opening.
    pub(crate) fn new(now_ns: u64, ledger: LedgerSnapshot) -> Noted {
        Noted(Mutex::new(Counters { now_ns, ledger, stalls: Vec::new() }))
    }

    /// After a flush: writes an event if the last one is long ago.
    pub(crate) fn note_if_due(
        &self,
        ledger: &Ledger,
        admission: &Admission,
        events: &Events,
        now_ns: u64,
    ) {
        let mut last = self.0.lock();
        if now_ns.saturating_sub(last.now_ns) >= INTERVAL_NS {
            note_since(&mut last, ledger, admission, events, now_ns);
        }
    }

    /// Writes an event with what came since the last one.
    pub(crate) fn note(
        &self,
        ledger: &Ledger,
        admission: &Admission,
        events: &Events,
        now_ns: u64,
    ) {
        note_since(&mut self.0.lock(), ledger, admission, events, now_ns);
    }
}

fn note_since(
    last: &mut Counters,
    ledger: &Ledger,
    admission: &Admission,
    events: &Events,
    now_ns: u64,
) {
    let now = Counters { now_ns, ledger: ledger.snapshot(), stalls: admission.stalls() };
    let moved = now.ledger.since(&last.ledger);
    let bytes = moved.causes().map(|(cause, of)| {
        (cause, [of.write_bytes, of.read_bytes, of.media_write_bytes, of.media_read_bytes])
    });
    events.add(Event::Traffic {
        micros: now_ns.saturating_sub(last.now_ns) / 1000,
        user_write_bytes: moved.user_write_bytes,
        user_read_bytes: moved.user_read_bytes,
        stalls: StallTimes(now.stalls.iter().map(|stall| stall.since(&last.stalls)).collect()),
        causes: CauseBytes(bytes.collect()),
    });
    *last = now;
}
