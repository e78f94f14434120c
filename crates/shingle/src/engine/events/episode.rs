//! Stall episodes: what the event log tells of stalls.
//!
//! Writers that are throttled meet another condition many times a second. The log has the first of
//! these changes, and a summary when writes have met none for [`QUIET_NS`]. The listener gets every
//! change.

use crate::admission::{Stall, StallChange, StallCondition, StallReason};
use crate::event::{Event, StallTimes};

/// An episode is over when writes were neither throttled nor stopped for this long.
pub(super) const QUIET_NS: u64 = 1_000_000_000;

/// Changes between which there was no quiet time.
pub(super) struct Episode {
    begin_ns: u64,
    /// The time of the last change.
    changed_ns: u64,
    condition: StallCondition,
    /// The reason of the first change.
    first_reason: StallReason,
    /// All waits of the database before the first change.
    stalls_before: Vec<Stall>,
}

impl Episode {
    pub(super) fn begin(change: &StallChange, now_ns: u64, stalls: Vec<Stall>) -> Episode {
        Episode {
            begin_ns: now_ns,
            changed_ns: now_ns,
            condition: change.condition,
            first_reason: change.reason,
            stalls_before: stalls,
        }
    }

    /// A change within the episode.
    pub(super) fn take(&mut self, change: &StallChange, now_ns: u64) {
        (self.changed_ns, self.condition) = (now_ns, change.condition);
    }

    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        let quiet_ns = now_ns.saturating_sub(self.changed_ns);
        self.condition == StallCondition::Normal && quiet_ns >= QUIET_NS
    }

    /// What happened in it, where the database has `stalls` in all by `now_ns`.
    pub(super) fn summary(&self, now_ns: u64, stalls: &[Stall]) -> Event {
        let end_ns = match self.condition {
            StallCondition::Normal => self.changed_ns,
            _ => now_ns,
        };
        let waits: Vec<Stall> =
            stalls.iter().map(|stall| stall.since(&self.stalls_before)).collect();
        let longest = waits.iter().filter(|stall| stall.ns > 0).max_by_key(|stall| stall.ns);
        Event::StallFinished {
            micros: end_ns.saturating_sub(self.begin_ns) / 1000,
            reason: longest.map_or(self.first_reason, |stall| stall.reason),
            waits: waits.iter().map(|stall| stall.count).sum(),
            wait_micros: waits.iter().map(|stall| stall.ns).sum::<u64>() / 1000,
            stalls: StallTimes(waits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn change(previous: StallCondition, condition: StallCondition) -> StallChange {
        StallChange { condition, previous, reason: StallReason::MemoryFull }
    }

    fn stalls(memory: (u64, u64), level0: (u64, u64)) -> Vec<Stall> {
        let stall = |reason, (count, ns)| Stall { reason, count, ns };
        vec![stall(StallReason::MemoryFull, memory), stall(StallReason::Level0, level0)]
    }

    #[test]
    fn an_episode_ends_when_writes_were_quiet_and_its_summary_counts_its_own_waits() {
        let begin = change(StallCondition::Normal, StallCondition::Delayed);
        let mut episode = Episode::begin(&begin, 5 * MS, stalls((7, 7 * MS), (0, 0)));
        assert!(!episode.is_over(5 * MS + 2 * QUIET_NS), "writes are still throttled");
        episode.take(&change(StallCondition::Delayed, StallCondition::Normal), 25 * MS);
        assert!(!episode.is_over(25 * MS + QUIET_NS - 1));
        assert!(episode.is_over(25 * MS + QUIET_NS));
        let summary = episode.summary(25 * MS + QUIET_NS, &stalls((9, 10 * MS), (4, 8 * MS)));
        assert_eq!(
            summary.to_json(0),
            "{\"time_micros\": 0, \"event\": \"stall_finished\", \"micros\": 20000, \
             \"reason\": \"level-0\", \"waits\": 6, \"wait_micros\": 11000, \
             \"stall-memory-full\": [2, 3000000], \"stall-level-0\": [4, 8000000]}"
        );
    }

    #[test]
    fn an_episode_that_closing_cuts_short_lasts_until_then() {
        let begin = change(StallCondition::Normal, StallCondition::Stopped);
        let none = stalls((0, 0), (0, 0));
        let episode = Episode::begin(&begin, 5 * MS, none.clone());
        let summary = episode.summary(35 * MS, &none).to_json(0);
        assert!(summary.contains("\"micros\": 30000, \"reason\": \"memory-full\""), "{summary}");
    }
}
