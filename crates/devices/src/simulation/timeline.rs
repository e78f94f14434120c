//! Virtual time: the clock of each actor, and the order in which requests reach the devices.
//!
//! Code runs in one order, the order of execution, and its requests are served in another, the
//! order of time: a background step is executed whole before the foreground goes on, though it
//! takes longer than the foreground's next operation. So a request is split. What it does (state,
//! bytes moved, errors) happens at once, in the order of execution. When it happens is decided
//! later: a worker's requests wait in its chain, and each is *placed* when no actor can send an
//! earlier one any more. `docs/design/simulation.md` says what this comes to.
//!
//! Invariants:
//! - Devices serve placed requests one after another, in the order of arrival.
//! - A request arrives after the actor's earlier one is done, and its work in between.
//! - An actor's clock, as it reads it, never runs backwards.
//! - The foreground has no chain: its requests are placed at once. It alone has reads begin ahead
//!   of the moment at which it needs them, and leaves writes behind.

use crate::model::{Access, Model, Request, Served};
use base::Result;
use base::random::Random;
use std::collections::VecDeque;

/// The actor that is not a worker.
pub(super) const FOREGROUND: usize = 0;

/// A request that was executed and is not yet placed.
struct Pending {
    /// From the end of the actor's earlier request to the arrival of this one.
    gap_ns: u64,
    device: usize,
    access: Access,
    offset: u64,
    bytes: u64,
    /// How long it keeps the device, and how long the actor waits for it.
    busy_ns: u64,
    latency_ns: u64,
    /// Where the read before it ended, in the order of execution.
    executed_from: u64,
}

/// The foreground or a worker.
#[derive(Default)]
struct Actor {
    /// When its last placed request was done.
    done_ns: u64,
    chain: VecDeque<Pending>,
    /// Work since the last request of the chain.
    tail_ns: u64,
    /// Its clock: where it would be if no other actor came between the requests of its chain.
    now_ns: u64,
    is_asleep: bool,
}

/// Reads that were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// From the moment at which they were sent until they were done.
    pub ns: u64,
    /// What they read.
    pub bytes: u64,
}

struct Device {
    model: Box<dyn Model>,
    /// When the model, served in the order of execution, is free.
    model_free_ns: u64,
    /// When the device is free from what was placed.
    free_ns: u64,
    /// Ends of the last reads: executed and placed.
    executed_end: u64,
    placed_end: u64,
}

/// What happens next.
pub(super) enum Next {
    /// The first request of this actor's chain arrives.
    Place(usize),
    /// This worker can take a step.
    Step(usize),
}

pub(super) struct Timeline {
    actors: Vec<Actor>,
    devices: Vec<Device>,
    /// The actor that executes.
    current: usize,
    trace_hash: u64,
    requests: u64,
    wakes: u64,
    waits: Waits,
}

impl Timeline {
    pub(super) fn new() -> Timeline {
        Timeline {
            actors: vec![Actor::default()],
            devices: Vec::new(),
            current: FOREGROUND,
            trace_hash: 0,
            requests: 0,
            wakes: 0,
            waits: Waits::default(),
        }
    }

    pub(super) fn add_device(&mut self, model: Box<dyn Model>) -> usize {
        let free_ns = self.now_ns(FOREGROUND);
        let model_free_ns = free_ns;
        self.devices.push(Device { model, model_free_ns, free_ns, executed_end: 0, placed_end: 0 });
        self.devices.len() - 1
    }

    pub(super) fn model(&self, device: usize) -> &dyn Model {
        &*self.devices[device].model
    }

    /// Adds a worker whose time begins now; gives its number.
    pub(super) fn add_worker(&mut self) -> usize {
        let now_ns = self.now_ns(self.current);
        self.actors.push(Actor { done_ns: now_ns, now_ns, ..Actor::default() });
        self.actors.len() - 1
    }

    /// Places everything, lets the foreground wait for it, and removes the workers.
    pub(super) fn end_workers(&mut self) {
        while let Some((_, actor)) = self.next_arrival() {
            self.place(actor);
        }
        let end_ns = self.actors.iter().map(|actor| actor.now_ns).max().unwrap_or(0);
        self.actors.truncate(1);
        self.advance(FOREGROUND, end_ns);
    }

    pub(super) fn current(&self) -> usize {
        self.current
    }

    pub(super) fn set_current(&mut self, actor: usize) {
        self.current = actor;
    }

    pub(super) fn now_ns(&self, actor: usize) -> u64 {
        self.actors[actor].now_ns
    }

    /// A hash over every placed request: time, sender, kind, place, size.
    pub(super) fn trace_hash(&self) -> u64 {
        self.trace_hash
    }

    /// Requests placed so far.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// Reads that the foreground sent and waited for at once.
    pub(super) fn waits(&self) -> Waits {
        self.waits
    }

    /// `actor` works for `ns` without a device.
    pub(super) fn spend(&mut self, actor: usize, ns: u64) {
        let actor = &mut self.actors[actor];
        actor.tail_ns += ns;
        actor.now_ns += ns;
    }

    /// `actor` waits until `until_ns`.
    pub(super) fn advance(&mut self, actor: usize, until_ns: u64) {
        self.spend(actor, until_ns.saturating_sub(self.now_ns(actor)));
    }

    /// `actor` has nothing to do.
    pub(super) fn sleep(&mut self, actor: usize) {
        self.actors[actor].is_asleep = true;
    }

    /// Actors that sleep look for work again, not before the current actor's time.
    pub(super) fn wake(&mut self) {
        let now_ns = self.now_ns(self.current);
        self.wakes += 1;
        for actor in 0..self.actors.len() {
            if std::mem::take(&mut self.actors[actor].is_asleep) {
                self.advance(actor, now_ns);
            }
        }
    }

    /// How often [`Timeline::wake`] was called.
    pub(super) fn wakes(&self) -> u64 {
        self.wakes
    }

    /// Everything that `actor` sent was placed.
    pub(super) fn is_settled(&self, actor: usize) -> bool {
        self.actors[actor].chain.is_empty()
    }

    /// What happens next, and when. Between workers that can step at the same time, `random`
    /// decides.
    pub(super) fn next(&self, random: &mut Random) -> Option<(u64, Next)> {
        let arrival = self.next_arrival();
        let can_step = |actor: &&Actor| actor.chain.is_empty() && !actor.is_asleep;
        let step_ns = self.actors.iter().skip(1).filter(can_step).map(|a| a.now_ns).min();
        match (arrival, step_ns) {
            (Some((arrival_ns, actor)), step_ns) if step_ns.is_none_or(|ns| arrival_ns <= ns) => {
                Some((arrival_ns, Next::Place(actor)))
            }
            (_, Some(step_ns)) => {
                let is_first = |&index: &usize| {
                    let actor = &self.actors[index];
                    can_step(&actor) && actor.now_ns == step_ns
                };
                let first: Vec<usize> = (1..self.actors.len()).filter(is_first).collect();
                let drawn = random.below(first.len() as u64) as usize;
                first.get(drawn).map(|&actor| (step_ns, Next::Step(actor)))
            }
            _ => None,
        }
    }

    /// The current actor sends a request. The foreground's clock stands at its end afterwards.
    pub(super) fn send(
        &mut self,
        device: usize,
        access: Access,
        offset: u64,
        bytes: u64,
    ) -> Result<Served> {
        let sender = self.current;
        let arrival_ns = self.now_ns(sender);
        let (mut pending, served) = self.execute(device, access, offset, bytes)?;
        let actor = &mut self.actors[sender];
        pending.gap_ns = match actor.chain.is_empty() {
            true => arrival_ns - actor.done_ns,
            false => actor.tail_ns,
        };
        actor.tail_ns = 0;
        actor.now_ns += pending.latency_ns;
        actor.chain.push_back(pending);
        if sender == FOREGROUND {
            self.place_until(arrival_ns);
            self.place(FOREGROUND);
        }
        Ok(served)
    }

    /// The foreground has a read begin, and goes on; when it will be done. A worker, whose requests
    /// arrive in their turn, has none.
    pub(super) fn send_ahead(
        &mut self,
        device: usize,
        offset: u64,
        bytes: u64,
    ) -> Result<Option<(Served, u64)>> {
        if self.current != FOREGROUND {
            return Ok(None);
        }
        self.send_unawaited(device, Access::Read, offset, bytes).map(Some)
    }

    /// The foreground has a write begin, and goes on.
    pub(super) fn send_behind(&mut self, device: usize, offset: u64, bytes: u64) -> Result<Served> {
        let (served, _) = self.send_unawaited(device, Access::Write, offset, bytes)?;
        Ok(served)
    }

    /// A request of the foreground, which goes on; when it will be done.
    fn send_unawaited(
        &mut self,
        device: usize,
        access: Access,
        offset: u64,
        bytes: u64,
    ) -> Result<(Served, u64)> {
        let arrival_ns = self.now_ns(FOREGROUND);
        let (pending, served) = self.execute(device, access, offset, bytes)?;
        self.place_until(arrival_ns);
        let done_ns = self.begin(&pending, FOREGROUND, arrival_ns);
        Ok((served, done_ns))
    }

    /// Has the model serve a request of the current actor, in the order of execution.
    fn execute(
        &mut self,
        device: usize,
        access: Access,
        offset: u64,
        bytes: u64,
    ) -> Result<(Pending, Served)> {
        let arrival_ns = self.now_ns(self.current);
        let target = &mut self.devices[device];
        let at_ns = arrival_ns.max(target.model_free_ns);
        let served = target.model.serve(&Request { access, offset, bytes, at_ns })?;
        target.model_free_ns = served.free_ns;
        let executed_from = target.executed_end;
        if access == Access::Read {
            target.executed_end = offset + bytes;
        }
        let busy_ns = served.free_ns - at_ns;
        let latency_ns = served.done_ns - at_ns;
        let pending = Pending {
            gap_ns: 0,
            device,
            access,
            offset,
            bytes,
            busy_ns,
            latency_ns,
            executed_from,
        };
        Ok((pending, served))
    }

    /// Places what workers sent and what arrives before `end_ns`.
    fn place_until(&mut self, end_ns: u64) {
        while let Some((_, actor)) = self.next_worker_arrival().filter(|next| next.0 < end_ns) {
            self.place(actor);
        }
    }

    fn next_worker_arrival(&self) -> Option<(u64, usize)> {
        self.next_arrival_from(FOREGROUND + 1)
    }

    fn next_arrival(&self) -> Option<(u64, usize)> {
        self.next_arrival_from(FOREGROUND)
    }

    fn next_arrival_from(&self, first: usize) -> Option<(u64, usize)> {
        let arrival = |index: usize| {
            let actor = &self.actors[index];
            actor.chain.front().map(|pending| (actor.done_ns + pending.gap_ns, index))
        };
        (first..self.actors.len()).filter_map(arrival).min()
    }

    /// Places the first request of `index`.
    pub(super) fn place(&mut self, index: usize) {
        let Some(pending) = self.actors[index].chain.pop_front() else { return };
        let arrival_ns = self.actors[index].done_ns + pending.gap_ns;
        let done_ns = self.begin(&pending, index, arrival_ns);
        if index == FOREGROUND && pending.access == Access::Read {
            self.waits.ns += done_ns - arrival_ns;
            self.waits.bytes += pending.bytes;
        }
        let actor = &mut self.actors[index];
        actor.done_ns = done_ns;
        let rest_ns: u64 = actor.chain.iter().map(|next| next.gap_ns + next.latency_ns).sum();
        let now_ns = actor.done_ns + rest_ns + actor.tail_ns;
        // A worker may have read its clock meanwhile.
        actor.now_ns = if index == FOREGROUND { now_ns } else { now_ns.max(actor.now_ns) };
    }

    /// A request of `index` begins when it arrived and its device is free; when it is done.
    fn begin(&mut self, pending: &Pending, index: usize, arrival_ns: u64) -> u64 {
        let device = &mut self.devices[pending.device];
        let begin_ns = arrival_ns.max(device.free_ns);
        let (mut busy_ns, mut latency_ns) = (pending.busy_ns, pending.latency_ns);
        if pending.access == Access::Read {
            // The head comes from elsewhere than where the model had it. Writes go into a cache.
            let reach_ns = |from| device.model.positioning_ns(from, pending.offset);
            let (more, less) = match device.placed_end == pending.executed_from {
                true => (0, 0),
                false => (reach_ns(device.placed_end), reach_ns(pending.executed_from)),
            };
            busy_ns = (busy_ns + more).saturating_sub(less);
            latency_ns = (latency_ns + more).saturating_sub(less);
            device.placed_end = pending.offset + pending.bytes;
        }
        device.free_ns = begin_ns + busy_ns;
        self.trace([begin_ns, index as u64, pending.device as u64]);
        self.trace([pending.access as u64, pending.offset, pending.bytes]);
        self.requests += 1;
        begin_ns + latency_ns
    }

    fn trace(&mut self, words: [u64; 3]) {
        for word in words {
            self.trace_hash = Random::new(self.trace_hash ^ word).next_u64();
        }
    }
}
