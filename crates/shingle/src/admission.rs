//! Admission: the only place where a user's write waits.
//!
//! [`Pressure`] describes how far background work is behind. The pure function [`pace`] turns it
//! into a decision: go on, go on at a lower rate, or wait for a named event.
//!
//! Throttling is smooth. Each write gets a time slot, at a rate that falls as pressure grows. Short
//! waits are accumulated, because a timer cannot wait for less than some tens of microseconds. A
//! writer never sleeps or spins: it waits on an event with a deadline. Every wait is recorded with
//! its reason.

mod stall;

pub(crate) use stall::StallChange;
pub use stall::{Stall, StallCondition, StallReason, Wait};

use base::env::{Event, Runtime};
use base::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// How the background work stands, in the quantities that admission looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Bytes in sealed memtables that are not yet flushed.
    pub sealed_bytes: u64,
    /// Runs in level 0, of the keyspace that has the most.
    pub level0_runs: u64,
    /// Compaction debt: bytes that compaction has yet to rewrite.
    pub debt_bytes: u64,
    /// Garbage in a tree as a percentage of the garbage that its scheme allows, of the keyspace
    /// that has the most; 0 with schemes that keep no account of it.
    pub garbage_percent: u64,
    /// Bytes of value segments, of the keyspace that has the most. The part above the soft limit
    /// counts only as far as GC can reclaim it: throttling is meant to give GC time.
    pub value_bytes: u64,
    /// Garbage in value segments as a percentage of the allowed garbage, of the keyspace that has
    /// the most. Far above 100, GC is behind.
    pub value_debt_percent: u64,
}

/// Where throttling begins and where writes stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionLimits {
    /// Throttle above this many sealed bytes.
    pub sealed_bytes_soft: u64,
    /// Stop writes at this many sealed bytes until a flush ends. This bounds the memory budget.
    pub sealed_bytes_hard: u64,
    /// Throttle from this many runs in level 0.
    pub level0_runs_soft: u64,
    /// The rate is lowest from this many runs.
    pub level0_runs_hard: u64,
    /// Stop writes at `level0_runs_hard`, instead of letting them go on at the lowest rate.
    pub level0_stop: bool,
    /// Throttle above this much compaction debt, in bytes.
    pub debt_bytes_soft: u64,
    /// The rate is lowest from this debt.
    pub debt_bytes_hard: u64,
    /// Throttle above this much garbage in a tree, in percent of the allowed garbage.
    pub garbage_percent_soft: u64,
    /// The rate is lowest from this percentage.
    pub garbage_percent_hard: u64,
    /// Throttle above this many bytes of value segments.
    pub value_bytes_soft: u64,
    /// The rate is lowest from this many bytes; beyond them, writes of large values are out of
    /// space.
    pub value_bytes_hard: u64,
    /// Throttle above this much garbage among values, in percent of the allowed garbage.
    pub value_debt_percent_soft: u64,
    /// The rate is lowest from this percentage.
    pub value_debt_percent_hard: u64,
    /// The rate where throttling begins, in bytes per second.
    pub rate_max: u64,
    /// The lowest rate, in bytes per second.
    pub rate_min: u64,
    /// Delay each write once by this time, instead of pacing by bytes, as LevelDB does.
    pub fixed_delay_ns: Option<u64>,
}

/// The decision for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Go on.
    Free,
    /// Go on at this many bytes per second.
    Slow { reason: StallReason, bytes_per_second: u64 },
    /// Every write waits this long, once.
    Delay { reason: StallReason, delay_ns: u64 },
    /// Wait until the pressure falls.
    Stop { reason: StallReason },
}

impl Pace {
    /// What writes meet, and why.
    fn condition(self) -> (StallCondition, Option<StallReason>) {
        match self {
            Pace::Free => (StallCondition::Normal, None),
            Pace::Slow { reason, .. } | Pace::Delay { reason, .. } => {
                (StallCondition::Delayed, Some(reason))
            }
            Pace::Stop { reason } => (StallCondition::Stopped, Some(reason)),
        }
    }

    /// Why writes are stopped, if they are.
    fn stop(self) -> Option<StallReason> {
        match self {
            Pace::Stop { reason } => Some(reason),
            _ => None,
        }
    }

    /// The change that `self` makes to `before`.
    fn change_from(self, before: Pace) -> Option<StallChange> {
        let ((condition, reason), (previous, last)) = (self.condition(), before.condition());
        let is_change = (condition, reason) != (previous, last);
        let reason = reason.or(last).filter(|_| is_change)?;
        Some(StallChange { condition, previous, reason })
    }
}

/// The decision: a pure function of pressure and limits.
pub fn pace(pressure: &Pressure, limits: &AdmissionLimits) -> Pace {
    if pressure.sealed_bytes >= limits.sealed_bytes_hard {
        return Pace::Stop { reason: StallReason::MemoryFull };
    }
    if limits.level0_stop && pressure.level0_runs >= limits.level0_runs_hard {
        return Pace::Stop { reason: StallReason::Level0 };
    }
    let value_debt = share(
        pressure.value_debt_percent,
        limits.value_debt_percent_soft,
        limits.value_debt_percent_hard,
    );
    let garbage =
        share(pressure.garbage_percent, limits.garbage_percent_soft, limits.garbage_percent_hard);
    let candidates = [
        (
            StallReason::MemoryFull,
            share(pressure.sealed_bytes, limits.sealed_bytes_soft, limits.sealed_bytes_hard),
        ),
        (
            StallReason::Level0,
            share(pressure.level0_runs + 1, limits.level0_runs_soft, limits.level0_runs_hard),
        ),
        (
            StallReason::CompactionDebt,
            share(pressure.debt_bytes, limits.debt_bytes_soft, limits.debt_bytes_hard).max(garbage),
        ),
        (
            StallReason::ValueSpace,
            share(pressure.value_bytes, limits.value_bytes_soft, limits.value_bytes_hard)
                .max(value_debt),
        ),
    ];
    let worst = candidates.into_iter().fold(candidates[0], |a, b| if b.1 > a.1 { b } else { a });
    let (reason, share) = worst;
    if share <= 0.0 {
        return Pace::Free;
    }
    if let Some(delay_ns) = limits.fixed_delay_ns {
        // LevelDB delays for level 0 alone.
        return match reason {
            StallReason::Level0 => Pace::Delay { reason, delay_ns },
            _ => Pace::Free,
        };
    }
    // Geometric from the highest to the lowest rate: each step of pressure costs the same factor.
    let (max, min) = (limits.rate_max as f64, limits.rate_min as f64);
    let bytes_per_second = (max * (min / max).powf(share)) as u64;
    Pace::Slow { reason, bytes_per_second: bytes_per_second.max(1) }
}

/// Position of `value` between `soft` and `hard`: 0.0 up to `soft`, 1.0 from `hard`.
fn share(value: u64, soft: u64, hard: u64) -> f64 {
    if value <= soft {
        return 0.0;
    }
    ((value - soft) as f64 / (hard.max(soft + 1) - soft) as f64).min(1.0)
}

/// Waits shorter than this are accumulated: waking takes 20 microseconds, so shorter pauses would
/// be mostly that.
const WAIT_NS_MIN: u64 = 50_000;

const REASONS: usize = StallReason::ALL.len();

/// How often and how long writes waited, by reason.
#[derive(Debug, Default)]
struct Recorded {
    count: [AtomicU64; REASONS],
    ns: [AtomicU64; REASONS],
}

/// The admission object of one database.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: AdmissionLimits,
    pressure: Mutex<Pressure>,
    /// False: the pace is `Free`, and a write needs no further check.
    constrained: AtomicBool,
    /// When the next byte may be written, on the runtime's clock.
    next_slot_ns: AtomicU64,
    /// Fires when the pressure fell.
    relieved: Event,
    recorded: Recorded,
}

impl Admission {
    pub(crate) fn new(limits: AdmissionLimits) -> Admission {
        Admission {
            limits,
            pressure: Mutex::new(Pressure::default()),
            constrained: AtomicBool::new(false),
            next_slot_ns: AtomicU64::new(0),
            relieved: Event::default(),
            recorded: Recorded::default(),
        }
    }

    /// Changes the pressure. Waiting writers check again when it fell. If that changes what writes
    /// meet, calls `on_change` before the next change, so that changes are told in their order.
    pub(crate) fn update(
        &self,
        change: impl FnOnce(&mut Pressure),
        on_change: impl FnOnce(StallChange),
    ) {
        let mut pressure = self.pressure.lock();
        let before = *pressure;
        change(&mut pressure);
        let now = pace(&pressure, &self.limits);
        self.constrained.store(now != Pace::Free, Relaxed);
        if let Some(change) = now.change_from(pace(&before, &self.limits)) {
            on_change(change);
        }
        let fell = pressure.sealed_bytes < before.sealed_bytes
            || pressure.level0_runs < before.level0_runs
            || pressure.debt_bytes < before.debt_bytes
            || pressure.garbage_percent < before.garbage_percent
            || pressure.value_bytes < before.value_bytes
            || pressure.value_debt_percent < before.value_debt_percent;
        drop(pressure);
        if fell {
            self.relieved.signal();
        }
    }

    /// The sealed bytes that it knows of.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn sealed_bytes(&self) -> u64 {
        self.pressure.lock().sealed_bytes
    }

    /// Wakes all waiting writers, so that they see a poisoned or closed database.
    pub(crate) fn release(&self) {
        self.relieved.signal();
    }

    /// No write would wait.
    fn is_free(&self) -> bool {
        !self.constrained.load(Relaxed)
    }

    /// What a write meets now.
    pub(crate) fn condition(&self) -> StallCondition {
        self.current().condition().0
    }

    fn current(&self) -> Pace {
        let pressure = self.pressure.lock();
        pace(&pressure, &self.limits)
    }

    /// The wait that a write of `bytes` would have now.
    pub(crate) fn forecast(&self, bytes: u64, now_ns: u64) -> Option<Wait> {
        if self.is_free() {
            return None;
        }
        match self.current() {
            Pace::Free => None,
            Pace::Delay { reason, delay_ns } => Some(Wait { reason, estimate_ns: delay_ns }),
            Pace::Slow { reason, bytes_per_second } => {
                let end =
                    self.next_slot_ns.load(Relaxed).max(now_ns) + cost(bytes, bytes_per_second);
                let estimate_ns = end.saturating_sub(now_ns);
                (estimate_ns >= WAIT_NS_MIN).then_some(Wait { reason, estimate_ns })
            }
            Pace::Stop { reason } => {
                // The time until a flush of the sealed memory has freed some of it, at the paced
                // rate.
                let (hard, soft) = (self.limits.sealed_bytes_hard, self.limits.sealed_bytes_soft);
                let step = hard.saturating_sub(soft).max(hard / 4);
                Some(Wait { reason, estimate_ns: cost(step, self.limits.rate_max) })
            }
        }
    }

    /// Waits until [`Admission::forecast`] of a write of `bytes` has nothing to wait for. False: at
    /// `deadline_ns` it still had. `go_on` as for [`Admission::admit`].
    pub(crate) fn wait_free(
        &self,
        bytes: u64,
        deadline_ns: Option<u64>,
        runtime: &dyn Runtime,
        go_on: impl Fn(Option<StallReason>) -> Result<()>,
    ) -> Result<bool> {
        loop {
            let seen = self.relieved.count();
            let now_ns = runtime.now_ns();
            go_on(self.current().stop())?;
            let Some(wait) = self.forecast(bytes, now_ns) else { return Ok(true) };
            if deadline_ns.is_some_and(|deadline| deadline <= now_ns) {
                return Ok(false);
            }
            let until_ns = now_ns.saturating_add(wait.estimate_ns.max(WAIT_NS_MIN));
            let until_ns = deadline_ns.map_or(until_ns, |deadline| deadline.min(until_ns));
            runtime.wait(&self.relieved, seen, Some(until_ns));
        }
    }

    /// Lets a write of `bytes` through, after the wait that the pressure asks for. `go_on` says
    /// whether waiting still makes sense (an error ends the wait); it is told why writes are
    /// stopped, if they are, and it is called without a lock. With `wait` false, `WouldWait`
    /// instead of waiting.
    #[inline]
    pub(crate) fn admit(
        &self,
        bytes: u64,
        wait: bool,
        runtime: &dyn Runtime,
        go_on: impl Fn(Option<StallReason>) -> Result<()>,
    ) -> Result<()> {
        if !self.constrained.load(Relaxed) {
            return Ok(());
        }
        self.admit_constrained(bytes, wait, runtime, go_on)
    }

    #[cold]
    fn admit_constrained(
        &self,
        bytes: u64,
        wait: bool,
        runtime: &dyn Runtime,
        go_on: impl Fn(Option<StallReason>) -> Result<()>,
    ) -> Result<()> {
        if !wait && let Some(forecast) = self.forecast(bytes, runtime.now_ns()) {
            let ms = forecast.estimate_ns as f64 / 1e6;
            let message = format!("would wait about {ms:.1} ms: {}", forecast.reason.name());
            return Err(Error::new(ErrorKind::WouldWait, message));
        }
        let begin_ns = runtime.now_ns();
        let mut delayed = false;
        loop {
            let seen = self.relieved.count();
            let now_ns = runtime.now_ns();
            let pace = self.current();
            go_on(pace.stop())?;
            let (reason, deadline_ns) = match pace {
                Pace::Free => return Ok(()),
                Pace::Stop { reason } => (reason, None),
                Pace::Delay { .. } if delayed => return Ok(()),
                Pace::Delay { reason, delay_ns } => {
                    delayed = true;
                    (reason, Some(begin_ns + delay_ns))
                }
                Pace::Slow { reason, bytes_per_second } => {
                    let slot_ns = self.take_slot(now_ns, cost(bytes, bytes_per_second));
                    if slot_ns < now_ns + WAIT_NS_MIN {
                        return Ok(());
                    }
                    self.wait_for_slot(runtime, slot_ns, &go_on)?;
                    self.record(reason, runtime.now_ns() - now_ns);
                    if matches!(self.current(), Pace::Stop { .. }) {
                        continue;
                    }
                    return Ok(());
                }
            };
            runtime.wait(&self.relieved, seen, deadline_ns);
            self.record(reason, runtime.now_ns() - now_ns);
        }
    }

    /// Reserves the next `cost_ns` of the paced time line; returns when the slot begins.
    fn take_slot(&self, now_ns: u64, cost_ns: u64) -> u64 {
        let mut slot_ns = self.next_slot_ns.load(Relaxed);
        loop {
            let begin_ns = slot_ns.max(now_ns);
            match self.next_slot_ns.compare_exchange_weak(
                slot_ns,
                begin_ns + cost_ns,
                Relaxed,
                Relaxed,
            ) {
                Ok(_) => return begin_ns,
                Err(other) => slot_ns = other,
            }
        }
    }

    fn wait_for_slot(
        &self,
        runtime: &dyn Runtime,
        slot_ns: u64,
        go_on: &impl Fn(Option<StallReason>) -> Result<()>,
    ) -> Result<()> {
        while runtime.now_ns() < slot_ns {
            go_on(None)?;
            let seen = self.relieved.count();
            if self.current() == Pace::Free {
                self.next_slot_ns.store(0, Relaxed);
                return Ok(());
            }
            runtime.wait(&self.relieved, seen, Some(slot_ns));
        }
        Ok(())
    }

    /// Records a write's wait.
    pub(crate) fn record(&self, reason: StallReason, ns: u64) {
        let index = reason as usize;
        self.recorded.count[index].fetch_add(1, Relaxed);
        self.recorded.ns[index].fetch_add(ns, Relaxed);
    }

    /// How often and how long (in nanoseconds) writes waited so far, by reason.
    pub(crate) fn stalls(&self) -> Vec<Stall> {
        StallReason::ALL
            .iter()
            .map(|&reason| {
                let index = reason as usize;
                let load = |cells: &[AtomicU64; REASONS]| cells[index].load(Relaxed);
                Stall { reason, count: load(&self.recorded.count), ns: load(&self.recorded.ns) }
            })
            .collect()
    }
}

fn cost(bytes: u64, bytes_per_second: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Threads;
    use std::sync::Arc;

    fn limits() -> AdmissionLimits {
        AdmissionLimits {
            sealed_bytes_soft: 100,
            sealed_bytes_hard: 200,
            level0_runs_soft: 8,
            level0_runs_hard: 24,
            level0_stop: false,
            debt_bytes_soft: 1000,
            debt_bytes_hard: 10_000,
            garbage_percent_soft: 120,
            garbage_percent_hard: 220,
            value_bytes_soft: 1 << 40,
            value_bytes_hard: 2 << 40,
            value_debt_percent_soft: 200,
            value_debt_percent_hard: 600,
            rate_max: 64 << 20,
            rate_min: 1 << 20,
            fixed_delay_ns: None,
        }
    }

    #[test]
    fn no_pressure_no_pace() {
        assert_eq!(pace(&Pressure::default(), &limits()), Pace::Free);
    }

    #[test]
    fn the_rate_falls_smoothly_and_never_jumps() {
        let mut last = limits().rate_max;
        for debt_bytes in (1000..=10_000).step_by(100) {
            let pressure = Pressure { debt_bytes, ..Pressure::default() };
            let rate = match pace(&pressure, &limits()) {
                Pace::Free => limits().rate_max,
                Pace::Slow { bytes_per_second, .. } => bytes_per_second,
                other => panic!("{other:?}"),
            };
            assert!(
                rate <= last && rate as f64 > last as f64 * 0.9,
                "{debt_bytes}: {last} -> {rate}"
            );
            last = rate;
        }
        assert_eq!(last, limits().rate_min);
    }

    #[test]
    fn the_memory_budget_is_the_only_stop_of_the_modern_preset() {
        let full = Pressure { sealed_bytes: 200, ..Pressure::default() };
        assert_eq!(pace(&full, &limits()), Pace::Stop { reason: StallReason::MemoryFull });
        let crowded = Pressure { level0_runs: 1000, ..Pressure::default() };
        assert!(matches!(pace(&crowded, &limits()), Pace::Slow { .. }));
    }

    #[test]
    fn nearly_full_segments_throttle_and_never_stop() {
        let at = |value_bytes| pace(&Pressure { value_bytes, ..Pressure::default() }, &limits());
        assert_eq!(at(1 << 40), Pace::Free);
        let reason = StallReason::ValueSpace;
        assert_eq!(at(5 << 40), Pace::Slow { reason, bytes_per_second: limits().rate_min });
    }

    #[test]
    fn garbage_among_values_throttles_when_gc_is_far_behind() {
        let at = |percent| {
            let pressure = Pressure { value_debt_percent: percent, ..Pressure::default() };
            pace(&pressure, &limits())
        };
        assert_eq!(at(200), Pace::Free);
        let Pace::Slow { reason, bytes_per_second } = at(400) else { panic!("{:?}", at(400)) };
        assert_eq!((reason, bytes_per_second), (StallReason::ValueSpace, 8 << 20));
        assert_eq!(at(9000), Pace::Slow { reason, bytes_per_second: limits().rate_min });
    }

    #[test]
    fn garbage_of_a_tree_throttles_from_more_than_may_stay() {
        let at =
            |garbage_percent| pace(&Pressure { garbage_percent, ..Pressure::default() }, &limits());
        assert_eq!(at(120), Pace::Free);
        let Pace::Slow { reason, bytes_per_second } = at(170) else { panic!("{:?}", at(170)) };
        assert_eq!(reason, StallReason::CompactionDebt);
        assert!(bytes_per_second < limits().rate_max && bytes_per_second > limits().rate_min);
        assert_eq!(at(220), Pace::Slow { reason, bytes_per_second: limits().rate_min });
    }

    #[test]
    fn leveldb_delays_each_write_once_and_stops_at_twelve_runs() {
        let limits = AdmissionLimits {
            level0_runs_hard: 12,
            level0_stop: true,
            fixed_delay_ns: Some(1_000_000),
            ..limits()
        };
        let at = |level0_runs| pace(&Pressure { level0_runs, ..Pressure::default() }, &limits);
        assert_eq!(at(7), Pace::Free);
        assert_eq!(at(8), Pace::Delay { reason: StallReason::Level0, delay_ns: 1_000_000 });
        assert_eq!(at(12), Pace::Stop { reason: StallReason::Level0 });
    }

    #[test]
    fn a_writer_that_must_not_wait_gets_the_reason() {
        let admission = Admission::new(limits());
        admission.update(|p| p.sealed_bytes = 500, |_| {});
        let runtime = Threads::new();
        let error = admission.admit(1, false, &runtime, |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldWait);
        assert!(error.message().contains("memory-full"), "{error}");
    }

    #[test]
    fn a_stopped_writer_goes_on_when_the_pressure_falls() {
        let admission = Arc::new(Admission::new(limits()));
        admission.update(|p| p.sealed_bytes = 500, |_| {});
        let writer = {
            let admission = admission.clone();
            std::thread::spawn(move || admission.admit(1, true, &Threads::new(), |_| Ok(())))
        };
        while admission.stalls()[0].count == 0 && !writer.is_finished() {
            admission.update(|p| p.sealed_bytes = 0, |_| {});
            std::thread::yield_now();
        }
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn the_pauses_of_a_throttled_writer_are_short() {
        let admission = Admission::new(limits());
        admission.update(|p| p.debt_bytes = 2000, |_| {});
        let runtime = crate::runtime::Stepped::new(1, u64::MAX);
        for _ in 0..1000 {
            admission.admit(1024, true, &runtime, |_| Ok(())).unwrap();
        }
        let stalls = admission.stalls();
        let debt = stalls.iter().find(|s| s.reason == StallReason::CompactionDebt).unwrap();
        let pause_ns = debt.ns / debt.count;
        assert!(debt.count > 100 && (WAIT_NS_MIN..100_000).contains(&pause_ns), "{stalls:?}");
    }

    #[test]
    fn a_stopped_writer_sees_a_poisoned_database() {
        let admission = Admission::new(limits());
        admission.update(|p| p.sealed_bytes = 500, |_| {});
        let refuse = |_| Err(Error::new(ErrorKind::Closed, "closed"));
        let error = admission.admit(1, true, &Threads::new(), refuse).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
    }

    #[test]
    fn each_change_of_the_condition_is_told_once() {
        let admission = Admission::new(limits());
        let told = |sealed_bytes| {
            let mut told = None;
            admission.update(|p| p.sealed_bytes = sealed_bytes, |change| told = Some(change));
            told.map(|change| (change.previous, change.condition, change.reason))
        };
        use StallCondition::{Delayed, Normal, Stopped};
        let reason = StallReason::MemoryFull;
        assert_eq!(told(50), None);
        assert_eq!(told(150), Some((Normal, Delayed, reason)));
        assert_eq!(told(160), None, "another rate is no other condition");
        assert_eq!(told(200), Some((Delayed, Stopped, reason)));
        assert_eq!(told(0), Some((Stopped, Normal, reason)));
    }
}
