//! The clock by which values expire.
//!
//! Invariant: it never runs backwards while the database is open, whatever the wall clock does. So
//! a value that a read or a compaction found expired stays expired.

use base::env::Runtime;
use base::{Expiry, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The wall clock of a runtime, without its steps back.
pub(crate) struct ExpiryClock {
    runtime: Arc<dyn Runtime>,
    latest_ms: AtomicU64,
}

impl ExpiryClock {
    pub(crate) fn new(runtime: Arc<dyn Runtime>) -> ExpiryClock {
        ExpiryClock { runtime, latest_ms: AtomicU64::new(0) }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        let now_ms = self.runtime.wall_micros() / 1000;
        self.latest_ms.fetch_max(now_ms, Relaxed).max(now_ms)
    }

    /// When a value that is written now with this time to live expires.
    pub(crate) fn expiry_after(&self, ttl: Duration) -> Expiry {
        Expiry::after(self.now_ms(), ttl)
    }
}

/// The one moment of a read, by the clock: taken when the read meets its first expiring entry, and
/// kept, so that all entries of the read are judged alike.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadTime(Option<u64>);

impl ReadTime {
    /// A read that takes its moment now.
    pub(crate) fn now(clock: &ExpiryClock) -> ReadTime {
        ReadTime(Some(clock.now_ms()))
    }

    /// Takes the moment, if it was not taken.
    pub(crate) fn fix(&mut self, clock: &ExpiryClock) -> ReadTime {
        self.0.get_or_insert_with(|| clock.now_ms());
        *self
    }

    /// The value has expired for this read.
    pub(crate) fn is_over(&mut self, expiry: Expiry, clock: &ExpiryClock) -> bool {
        expiry.is_over(*self.0.get_or_insert_with(|| clock.now_ms()))
    }
}

/// What an expiring entry stores, in its two parts; `Corruption` where it is too short.
pub(crate) fn split(stored: &[u8]) -> Result<(Expiry, &[u8])> {
    Expiry::split(stored).ok_or_else(|| {
        let message = "found an expiring entry that is too short for its expiry";
        base::Error::new(base::ErrorKind::Corruption, message)
    })
}
