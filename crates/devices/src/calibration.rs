//! The workloads by which models are compared with tables of devices.
//!
//! One request at a time, each sent when the one before is answered. Sequential ones are of 1 MiB,
//! from the beginning of the device; random ones of 4 KiB, uniform over the whole device. A phase
//! ends with a flush when it writes sequentially, so that a write cache gives nothing away; for
//! random writes the cache is filled before the clock is read.

use crate::model::{Access, Model, Request};
use base::Result;
use base::random::Random;

/// Bytes of a sequential request, and of a random one.
const SEQUENTIAL_BYTES: u64 = 1 << 20;
const RANDOM_BYTES: u64 = 4096;

/// Requests of a sequential phase.
const SEQUENTIAL_COUNT: u64 = 1024;

/// Where a phase's requests go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One after another from the beginning.
    Sequential,
    /// Uniform over the device.
    Random,
}

/// What a phase gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Megabytes (10^6) in a second.
    pub megabytes: f64,
    /// Requests in a second.
    pub requests: f64,
}

/// A device and the time up to which it was used.
pub struct Bench {
    model: Box<dyn Model>,
    now_ns: u64,
    random: Random,
}

impl Bench {
    /// Begins at time 0.
    pub fn new(model: Box<dyn Model>) -> Bench {
        Bench { model, now_ns: 0, random: Random::new(1) }
    }

    /// The device.
    pub fn model(&self) -> &dyn Model {
        &*self.model
    }

    /// Sequential reads or writes: 1 GiB.
    pub fn sequential(&mut self, access: Access) -> Result<Rate> {
        let begin_ns = self.now_ns;
        for number in 0..SEQUENTIAL_COUNT {
            self.send(access, number * SEQUENTIAL_BYTES, SEQUENTIAL_BYTES)?;
        }
        if access == Access::Write {
            self.send(Access::Flush, 0, 0)?;
        }
        Ok(self.rate(begin_ns, SEQUENTIAL_COUNT, SEQUENTIAL_BYTES))
    }

    /// Random reads or writes, `count` of them.
    pub fn random(&mut self, access: Access, count: u64) -> Result<Rate> {
        let begin_ns = self.now_ns;
        let places = self.model.geometry().capacity_bytes / RANDOM_BYTES;
        for _ in 0..count {
            let offset = self.random.below(places) * RANDOM_BYTES;
            self.send(access, offset, RANDOM_BYTES)?;
        }
        Ok(self.rate(begin_ns, count, RANDOM_BYTES))
    }

    /// Lets time pass without requests.
    pub fn rest(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    fn send(&mut self, access: Access, offset: u64, bytes: u64) -> Result<()> {
        let served = self.model.serve(&Request { access, offset, bytes, at_ns: self.now_ns })?;
        self.now_ns = served.done_ns.max(served.free_ns);
        Ok(())
    }

    fn rate(&self, begin_ns: u64, count: u64, bytes: u64) -> Rate {
        let seconds = (self.now_ns - begin_ns) as f64 / 1e9;
        Rate { megabytes: (count * bytes) as f64 / 1e6 / seconds, requests: count as f64 / seconds }
    }
}
