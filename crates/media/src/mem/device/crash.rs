//! What power loss leaves of a device: every change since the last flush gets a fate.

use super::{Change, Medium, MemDevice, State};
use base::random::Random;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// Draws in a row that may repeat known images before an enumeration ends.
const REPEATS_MAX: u32 = 64;

/// A way in which a device loses power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerLoss {
    /// Everything since the last flush is lost.
    LoseUnflushed,
    /// Nothing is lost, as when the process alone dies.
    KeepAll,
    /// A prefix of the changes survives; the first one that does not may be torn.
    Prefix,
    /// Each change survives or not, so that later ones overtake earlier ones.
    Subset,
    /// Each part of each write survives or not.
    Torn,
}

impl PowerLoss {
    /// All of them.
    pub const ALL: [PowerLoss; 5] = [
        PowerLoss::LoseUnflushed,
        PowerLoss::KeepAll,
        PowerLoss::Prefix,
        PowerLoss::Subset,
        PowerLoss::Torn,
    ];
}

/// What becomes of a change: a seed says which parts of a torn write survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fate {
    Kept,
    Lost,
    Torn(u64),
}

pub(super) fn draw(changes: usize, loss: PowerLoss, random: &mut Random) -> Vec<Fate> {
    let kept = random.below(changes as u64 + 1) as usize;
    let mut fate = |index: usize| match loss {
        PowerLoss::LoseUnflushed => Fate::Lost,
        PowerLoss::KeepAll => Fate::Kept,
        PowerLoss::Prefix if index < kept => Fate::Kept,
        PowerLoss::Prefix if index == kept && random.one_in(2) => Fate::Torn(random.next_u64()),
        PowerLoss::Prefix => Fate::Lost,
        PowerLoss::Subset if random.one_in(2) => Fate::Kept,
        PowerLoss::Subset => Fate::Lost,
        PowerLoss::Torn => match random.below(4) {
            0 => Fate::Kept,
            1 => Fate::Lost,
            _ => Fate::Torn(random.next_u64()),
        },
    };
    (0..changes).map(&mut fate).collect()
}

/// The medium on which each pending change met its fate. In a zone, what follows a change that did
/// not survive whole is lost: writes arrive at the write pointer or not at all.
fn outcome(state: &State, fates: &[Fate]) -> Medium {
    let mut medium = state.durable.clone();
    let mut ended_zones = BTreeSet::new();
    for (change, fate) in state.pending.iter().zip(fates) {
        let zone = medium.sequential_zone_of(change.offset());
        if zone.is_some_and(|zone| ended_zones.contains(&zone)) {
            continue;
        }
        match (*fate, change) {
            (Fate::Kept, _) => medium.apply(change),
            (Fate::Torn(seed), Change::Write(offset, bytes)) => {
                tear(&mut medium, *offset, bytes, seed, zone.is_some());
            }
            _ => {}
        }
        if *fate != Fate::Kept {
            ended_zones.extend(zone);
        }
    }
    medium
}

/// Writes some of the parts of `bytes` that are whole: any, or with `is_prefix` the first ones.
fn tear(medium: &mut Medium, offset: u64, bytes: &[u8], seed: u64, is_prefix: bool) {
    let mut random = Random::new(seed);
    let bias = random.below(101);
    let atomic_bytes = medium.geometry.atomic_bytes as usize;
    for (index, part) in bytes.chunks(atomic_bytes).enumerate() {
        if random.below(100) < bias {
            let at = offset + (index * atomic_bytes) as u64;
            medium.apply(&Change::Write(at, part.into()));
        } else if is_prefix {
            return;
        }
    }
}

impl MemDevice {
    /// A new device as power loss would leave this one, which goes on untouched. All bytes of the
    /// image are durable, and it is not locked.
    pub fn crash_image(&self, random: &mut Random, loss: PowerLoss) -> MemDevice {
        let state = self.state.lock();
        let fates = draw(state.pending.len(), loss, random);
        image(&state, &fates, loss == PowerLoss::KeepAll)
    }

    /// Changes since the last flush.
    pub fn pending_changes(&self) -> usize {
        self.state.lock().pending.len()
    }

    /// Up to `limit` images whose fates differ. Where `limit` allows, every subset of the changes;
    /// otherwise the extremes and draws of every kind from `seed`.
    pub fn crash_images(&self, limit: usize, seed: u64) -> Vec<MemDevice> {
        let state = self.state.lock();
        let changes = state.pending.len();
        let mut fates = vec![vec![Fate::Lost; changes]];
        if changes < 24 && 1usize << changes <= limit {
            let bit = |mask: usize, i| if mask >> i & 1 == 1 { Fate::Kept } else { Fate::Lost };
            fates.extend((1..1usize << changes).map(|m| (0..changes).map(|i| bit(m, i)).collect()));
        } else {
            fates.push(vec![Fate::Kept; changes]);
        }
        let mut seen: HashSet<Vec<Fate>> = fates.iter().cloned().collect();
        let mut random = Random::new(seed);
        let (mut repeats, mut draws) = (0, 0);
        while changes > 0 && fates.len() < limit && repeats < REPEATS_MAX {
            let drawn = draw(changes, PowerLoss::ALL[2 + draws % 3], &mut random);
            draws += 1;
            if seen.insert(drawn.clone()) {
                fates.push(drawn);
            } else {
                repeats += 1;
            }
        }
        fates.truncate(limit);
        fates.iter().map(|fates| image(&state, fates, false)).collect()
    }
}

fn image(state: &State, fates: &[Fate], is_alive: bool) -> MemDevice {
    let medium = outcome(state, fates);
    // What a living device holds in its cache can still be lost later.
    let (durable, pending) = if is_alive {
        (state.durable.clone(), state.pending.clone())
    } else {
        (medium.clone(), Vec::new())
    };
    let state = State { medium, durable, pending, ..State::default() };
    let title = if is_alive { "memory" } else { "memory after power loss" };
    MemDevice { state: Arc::new(Mutex::new(state)), title: title.into() }
}
