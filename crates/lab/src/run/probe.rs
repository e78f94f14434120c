//! What workloads and devices are watched by: the times of calls, and the bands that merges write
//! into.

use base::Cause;
use base::env::Runtime;
use devices::Simulation;
use devices::simulation::{Waits, Write};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use workloads::watched::{Call, Watcher};

/// Bands that each merge wrote into, summed over merges. A merge ends with its edit.
#[derive(Default)]
pub struct Bands {
    band_bytes: u64,
    state: Mutex<(BTreeSet<u64>, u64)>,
}

impl Bands {
    /// Bands of `band_bytes` bytes; 0: none.
    pub fn new(band_bytes: u64) -> Bands {
        Bands { band_bytes, state: Mutex::default() }
    }

    /// A write to the device.
    pub fn note(&self, write: Write) {
        if self.band_bytes == 0 {
            return;
        }
        let (open, total) = &mut *self.state.lock();
        match write.cause {
            cause if cause.is_compaction() => {
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
        self.state.lock().1
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

/// How long gets wait in all. Where values did not shrink as much as rates did, one entry here
/// takes as long as several of the paper, and its gets have to wait as those would: `factor` times
/// for the device to find what they read, and once for the bytes, which are those of several blocks
/// already.
pub struct GetWaits {
    /// Entries of the paper for one here, [`Settings::time_factor`](crate::settings::Settings).
    pub factor: f64,
    /// How long a byte takes in a stream of reads.
    pub ns_per_byte: f64,
}

/// Takes the time of every call.
pub struct Probe {
    simulation: Simulation,
    get_waits: GetWaits,
    /// When the running call began: reads outside a call are not a get's.
    begun: Mutex<Waits>,
    calls: Mutex<Calls>,
}

impl Probe {
    /// With the times of `simulation`.
    pub fn new(simulation: Simulation, get_waits: GetWaits) -> Probe {
        Probe { simulation, get_waits, begun: Mutex::default(), calls: Mutex::default() }
    }

    /// Has a get wait that was one of several.
    fn wait_again(&self, call: &Call<'_>) {
        if !matches!(call, Call::Get(..)) {
            return;
        }
        let (begun, now) = (*self.begun.lock(), self.simulation.waits());
        let GetWaits { factor, ns_per_byte } = self.get_waits;
        let bytes_ns = (now.bytes - begun.bytes) as f64 * ns_per_byte;
        let found_ns = (now.ns - begun.ns) as f64 - bytes_ns;
        let again_ns = (factor - 1.0) * found_ns;
        if again_ns >= 1.0 {
            self.simulation.pass(again_ns as u64);
        }
    }

    /// The calls since this was asked last.
    pub fn take(&self) -> Calls {
        std::mem::take(&mut *self.calls.lock())
    }
}

impl Watcher for Probe {
    fn now_ns(&self) -> u64 {
        *self.begun.lock() = self.simulation.waits();
        self.simulation.now_ns()
    }

    fn done(&self, call: &Call<'_>, begin_ns: u64) {
        self.wait_again(call);
        let end_ns = self.simulation.now_ns();
        let calls = &mut *self.calls.lock();
        let times = if call.is_write() { &mut calls.writes } else { &mut calls.reads };
        times.count += 1;
        times.sum_ns += end_ns - begin_ns;
        if call.is_write() {
            calls.series.push((end_ns, end_ns - begin_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use devices::{SimulationOptions, models};
    use media::block::BlockDevice;

    #[test]
    fn a_get_waits_for_finding_as_often_as_it_stands_for_and_once_for_bytes() {
        let simulation = Simulation::new(SimulationOptions::default());
        let device = simulation.device(models::make("hdd:capacity=1GB").unwrap());
        let ns_per_byte = 10.0;
        let probe = Probe::new(simulation.clone(), GetWaits { factor: 3.0, ns_per_byte });
        let took_ns = |place: Option<u64>, call: Call<'_>| {
            // A read of no call, as a check of all tables between two phases.
            device.read(0, &mut [0; 4096], Cause::Check).unwrap();
            let begin_ns = probe.now_ns();
            let before = simulation.waits();
            if let Some(place) = place {
                device.read(place, &mut [0; 4096], Cause::Get).unwrap();
            }
            probe.done(&call, begin_ns);
            (simulation.now_ns() - begin_ns, simulation.waits().ns - before.ns)
        };
        let (all_ns, read_ns) = took_ns(Some(512 << 20), Call::Get(b"key", None));
        assert!(read_ns > 1_000_000, "an arm moved: {read_ns}");
        assert_eq!(all_ns, read_ns + 2 * (read_ns - 40_960));
        assert_eq!(took_ns(None, Call::Get(b"key", None)).0, 0, "nothing was read");
        let (all_ns, read_ns) = took_ns(Some(64 << 20), Call::Scan(None, 10));
        assert_eq!(all_ns, read_ns, "a scan waits as it did");
    }
}
