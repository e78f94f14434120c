//! What workloads and devices are watched by: the times of calls, and the bands that merges write
//! into.

use base::Cause;
use devices::simulation::Write;
use lab::watched::{Call, Watcher};
use lab::{Clock, VirtualClock};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bands that each merge wrote into, summed over merges. A merge ends with its edit.
#[derive(Default)]
pub struct Bands {
    band_bytes: u64,
    state: Mutex<(BTreeSet<u64>, u64)>,
}

impl Bands {
    /// Bands of so many bytes; 0: none.
    pub fn new(band_bytes: u64) -> Bands {
        Bands { band_bytes, state: Mutex::default() }
    }

    /// A write to the device.
    pub fn note(&self, write: Write) {
        if self.band_bytes == 0 {
            return;
        }
        let (open, total) = &mut *hold(&self.state);
        match write.cause {
            Cause::Compaction(_) => {
                let (first, end) = (write.offset, write.offset + write.bytes);
                open.extend(first / self.band_bytes..end.div_ceil(self.band_bytes));
            }
            Cause::Manifest => {
                *total += open.len() as u64;
                open.clear();
            }
            _ => {}
        }
    }

    /// The sum so far.
    pub fn count(&self) -> u64 {
        hold(&self.state).1
    }
}

/// Times of the calls of one kind.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// How long all of them took.
    pub sum_ns: u64,
}

/// Calls since the last look.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Puts.
    pub writes: Times,
    /// Gets and scans.
    pub reads: Times,
    /// When each put ended, and how long it took.
    pub series: Vec<(u64, u64)>,
}

/// Takes the time of every call.
pub struct Probe {
    clock: VirtualClock,
    calls: Mutex<Calls>,
}

impl Probe {
    /// With the times of `clock`.
    pub fn new(clock: VirtualClock) -> Probe {
        Probe { clock, calls: Mutex::default() }
    }

    /// The calls since this was asked last.
    pub fn take(&self) -> Calls {
        std::mem::take(&mut *hold(&self.calls))
    }
}

impl Watcher for Probe {
    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    fn done(&self, call: &Call<'_>, begin_ns: u64) {
        let end_ns = self.clock.now_ns();
        let calls = &mut *hold(&self.calls);
        let times = if call.is_write() { &mut calls.writes } else { &mut calls.reads };
        times.count += 1;
        times.sum_ns += end_ns - begin_ns;
        if call.is_write() {
            calls.series.push((end_ns, end_ns - begin_ns));
        }
    }
}
