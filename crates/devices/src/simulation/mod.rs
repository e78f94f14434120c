//! A deterministic simulation: the engine itself runs on models of devices, in virtual time.
//!
//! [`Simulation`] is the runtime that the engine is opened with; [`SimulatedDevice`] is a device of
//! it. There is one thread. The foreground, which is the caller, and each background worker have a
//! clock of their own; they meet in the devices' queues.
//!
//! Invariants:
//! - The same seed and the same calls give the same requests at the same times, on every machine.
//! - A background step runs when a user's operation ended ([`Runtime::turn`]) or waits
//!   ([`Runtime::wait`]), and never while the foreground is inside a request: it may hold locks.
//! - A worker begins a step only when its clock is not ahead of the foreground's.

mod content;
mod device;
mod page_cache;
mod poison;
#[cfg(test)]
mod tests;
mod timeline;

pub use device::{Counts, SimulatedDevice, Watch, Write};

use crate::model::Model;
use base::env::{Event, Runtime, Worker};
use base::random::Random;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use timeline::{FOREGROUND, Next, Timeline};

pub use timeline::Waits;

/// What a simulation assumes about the processor, and its seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulationOptions {
    /// Of everything that is left to chance: [`Runtime::random_u64`], the times of operations, the
    /// order of workers.
    pub seed: u64,
    /// Processor time of a user's operation, on average.
    pub operation_ns: u64,
    /// An operation takes up to this share more or less than `operation_ns`, evenly.
    pub operation_spread: f64,
    /// Processor time of a background step, whatever it does.
    pub step_ns: u64,
    /// Processor time of background work for each byte that it reads or writes.
    pub background_ns_per_byte: f64,
    /// The foreground does not wait for what it writes to logs and value segments, as where a page
    /// cache takes it. A flush waits for all of it.
    pub writes_behind: bool,
    /// Bytes of the page cache that a device is read and written through: what it has is read
    /// without the device. 0: none.
    pub page_cache_bytes: u64,
}

impl Default for SimulationOptions {
    /// What the engine and the kernel below it were measured to need, see
    /// `docs/papers/decisions/0157-processor-time-is-measured.md`.
    fn default() -> SimulationOptions {
        SimulationOptions {
            seed: 0,
            operation_ns: 5000,
            operation_spread: 0.1,
            step_ns: 1000,
            background_ns_per_byte: 1.0,
            writes_behind: false,
            page_cache_bytes: 0,
        }
    }
}

/// Processor time by actor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processor {
    /// The user's operations.
    pub foreground_ns: u64,
    /// Background steps.
    pub background_ns: u64,
}

struct State {
    timeline: Timeline,
    processor: Processor,
    random: Random,
    /// By actor; the foreground has none.
    workers: Vec<Arc<dyn Worker>>,
}

impl State {
    /// The processor time of `bytes` that a worker reads or writes; the foreground's is that of its
    /// operations.
    fn spend_background(&mut self, options: &SimulationOptions, bytes: u64) {
        let worker = self.timeline.current();
        if worker != FOREGROUND {
            let ns = (bytes as f64 * options.background_ns_per_byte) as u64;
            self.timeline.spend(worker, ns);
            self.processor.background_ns += ns;
        }
    }
}

struct Shared {
    options: SimulationOptions,
    state: Mutex<State>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// One virtual time. A clone is a second handle on it.
#[derive(Clone)]
pub struct Simulation {
    shared: Arc<Shared>,
}

impl Simulation {
    /// Time begins at zero, without devices and workers.
    pub fn new(options: SimulationOptions) -> Simulation {
        let state = State {
            timeline: Timeline::new(),
            processor: Processor::default(),
            random: Random::new(options.seed),
            workers: Vec::new(),
        };
        Simulation { shared: Arc::new(Shared { options, state: Mutex::new(state) }) }
    }

    /// A device in this simulation's time, empty.
    pub fn device(&self, model: Box<dyn Model>) -> SimulatedDevice {
        SimulatedDevice::new(self.shared.clone(), model)
    }

    /// A hash over every request so far that has its place in time: when it began, its sender, and
    /// what it was. [`Runtime::stop`] places the last.
    pub fn trace_hash(&self) -> u64 {
        self.shared.lock().timeline.trace_hash()
    }

    /// How many requests have their place in time.
    pub fn requests(&self) -> u64 {
        self.shared.lock().timeline.requests()
    }

    /// Processor time spent so far.
    pub fn processor(&self) -> Processor {
        self.shared.lock().processor
    }

    /// Reads that the foreground has waited for so far; those that it had begin ahead do not count.
    pub fn waits(&self) -> Waits {
        self.shared.lock().timeline.waits()
    }

    /// The foreground does nothing for `ns`, while workers go on.
    pub fn pass(&self, ns: u64) {
        let end_ns = self.now_ns() + ns;
        self.wait(&Event::default(), 0, Some(end_ns));
    }

    /// What happens next among the workers, if it happens until `end_ns`. `false`: nothing does.
    /// Gives the worker that took a step.
    fn run_next(&self, end_ns: u64) -> (bool, Option<usize>) {
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        let next = state.timeline.next(&mut state.random).filter(|next| next.0 <= end_ns);
        match next {
            None => (false, None),
            Some((_, Next::Place(actor))) => {
                state.timeline.place(actor);
                (true, None)
            }
            Some((_, Next::Step(actor))) => {
                let Some(worker) = state.workers.get(actor - 1).cloned() else {
                    return (false, None);
                };
                state.timeline.set_current(actor);
                state.timeline.spend(actor, self.shared.options.step_ns);
                state.processor.background_ns += self.shared.options.step_ns;
                let wakes = state.timeline.wakes();
                drop(guard);
                let did = worker.step();
                let timeline = &mut self.shared.lock().timeline;
                timeline.set_current(FOREGROUND);
                if !did && timeline.wakes() == wakes {
                    timeline.sleep(actor);
                }
                (true, Some(actor))
            }
        }
    }

    fn is_foreground(&self) -> bool {
        self.shared.lock().timeline.current() == FOREGROUND
    }

    /// The processor time of one user's operation.
    fn spend_operation(&self) {
        let options = &self.shared.options;
        let mut state = self.shared.lock();
        let share = 1.0 + options.operation_spread * (2.0 * state.random.unit() - 1.0);
        let ns = options.operation_ns as f64 * share;
        state.timeline.spend(FOREGROUND, ns as u64);
        state.processor.foreground_ns += ns as u64;
    }
}

impl Runtime for Simulation {
    fn now_ns(&self) -> u64 {
        let timeline = &self.shared.lock().timeline;
        timeline.now_ns(timeline.current())
    }

    fn wall_micros(&self) -> u64 {
        self.now_ns() / 1000
    }

    fn random_u64(&self) -> u64 {
        self.shared.lock().random.next_u64()
    }

    /// The foreground lets workers run until one of their steps moved `event`, and goes on at the
    /// end of that step. A worker that waits lets time pass: no other code runs inside its step.
    fn wait(&self, event: &Event, seen: u64, deadline_ns: Option<u64>) {
        if event.count() != seen {
            return;
        }
        if !self.is_foreground() {
            let timeline = &mut self.shared.lock().timeline;
            timeline.advance(timeline.current(), deadline_ns.unwrap_or(0));
            return;
        }
        let end_ns = deadline_ns.unwrap_or(u64::MAX);
        let mut signaller = None;
        loop {
            if let Some(worker) = signaller {
                let timeline = &mut self.shared.lock().timeline;
                if timeline.is_settled(worker) {
                    let signal_ns = timeline.now_ns(worker);
                    timeline.advance(FOREGROUND, signal_ns.min(end_ns));
                    return;
                }
            }
            let (did, stepped) = self.run_next(end_ns);
            if !did {
                // Nothing can happen any more but the passing of time.
                self.shared.lock().timeline.advance(FOREGROUND, deadline_ns.unwrap_or(0));
                return;
            }
            if signaller.is_none() && event.count() != seen {
                signaller = stepped;
            }
        }
    }

    fn start(&self, worker: Arc<dyn Worker>, workers: usize) {
        let state = &mut *self.shared.lock();
        for _ in 0..workers {
            state.timeline.add_worker();
            state.workers.push(worker.clone());
        }
    }

    /// Charges the processor time of the operation that ended, and lets workers catch up.
    fn turn(&self) {
        if self.is_foreground() {
            self.spend_operation();
            let now_ns = self.now_ns();
            while self.run_next(now_ns).0 {}
        }
    }

    fn wake(&self) {
        self.shared.lock().timeline.wake();
    }

    /// Ends the workers; the foreground goes on when the last of their requests is done.
    fn stop(&self) {
        let state = &mut *self.shared.lock();
        if state.timeline.current() == FOREGROUND {
            state.timeline.end_workers();
            state.workers.clear();
        }
    }
}
