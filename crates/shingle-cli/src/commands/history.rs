//! Amplification of an existing database over time, from the traffic in its event log.

use crate::commands::ledger::plain_table;
use crate::event_log;
use crate::units;
use media::FileStore;
use serde::Serialize;
use serde_json::Value;
use shingle::{Cause, Ledger, LedgerSnapshot, Result, StallReason};
use workloads::amplification::{Amplification, CausePart, by_cause};

/// Intervals that the table shows; JSON has all.
const ROWS_MAX: usize = 20;

/// What moved in an interval, or in all of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// When it ended, in microseconds since 1970.
    pub end_micros: u64,
    /// Its length.
    pub seconds: f64,
    /// Bytes of keys and values that users wrote.
    pub user_write_bytes: u64,
    /// Bytes written to files.
    pub host_write_bytes: u64,
    /// The factors.
    #[serde(flatten)]
    pub factors: Amplification,
    /// What each cause adds to them.
    pub causes: Vec<CausePart>,
    /// Waits of writes, longest first.
    pub stalls: Vec<Stall>,
}

/// Waits of writes for one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stall {
    /// The name of the reason.
    pub reason: &'static str,
    /// How many.
    pub count: u64,
    /// How long, all together.
    pub seconds: f64,
}

impl Interval {
    fn new(end_micros: u64, micros: u64, ledger: &LedgerSnapshot, stalls: Vec<Stall>) -> Interval {
        Interval {
            end_micros,
            seconds: micros as f64 / 1e6,
            user_write_bytes: ledger.user_write_bytes,
            host_write_bytes: ledger.host().write_bytes,
            factors: Amplification::of_ledger(ledger),
            causes: by_cause(ledger, ledger.user_write_bytes),
            stalls,
        }
    }

    fn stalled_seconds(&self) -> f64 {
        // The sum of no floats is -0.0.
        self.stalls.iter().fold(0.0, |sum, stall| sum + stall.seconds)
    }

    /// The waits of writes in a sentence.
    pub fn stall_line(&self) -> String {
        if self.stalls.is_empty() {
            return "Writes did not wait.".into();
        }
        let reason = |stall: &Stall| {
            let waits = units::counted(stall.count, "wait");
            format!("{} {:.3} s ({waits})", stall.reason, stall.seconds)
        };
        let reasons: Vec<String> = self.stalls.iter().map(reason).collect();
        format!("Writes waited for {}.", reasons.join(", "))
    }
}

/// Adds the waits in an event to `stalls`.
fn add_stalls(event: &Value, stalls: &mut Vec<Stall>) {
    for reason in StallReason::ALL.iter().map(|reason| reason.name()) {
        let [count, ns] = event_log::numbers(event, &format!("stall-{reason}"))[..] else {
            continue;
        };
        let seconds = ns as f64 / 1e9;
        match stalls.iter_mut().find(|stall| stall.reason == reason) {
            Some(stall) => {
                stall.count = stall.count.saturating_add(count);
                stall.seconds += seconds;
            }
            None => stalls.push(Stall { reason, count, seconds }),
        }
    }
    stalls.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
}

/// What the event log tells: its intervals, and all of them together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct History {
    /// From the oldest on; time in which the database was not open is between them.
    pub intervals: Vec<Interval>,
    /// Nothing where there are no intervals.
    pub recorded: Option<Interval>,
}

impl History {
    /// Of the database whose files these are.
    pub fn of(store: &dyn FileStore) -> Result<History> {
        let all = Ledger::default();
        let (mut intervals, mut all_micros, mut all_stalls) = (Vec::new(), 0u64, Vec::new());
        for event in event_log::events(store)? {
            let number = |name: &str| event[name].as_u64();
            let (Some("traffic"), Some(end), Some(micros)) =
                (event["event"].as_str(), number("time_micros"), number("micros"))
            else {
                continue;
            };
            let one = Ledger::default();
            add(&event, &one);
            add(&event, &all);
            all_micros = all_micros.saturating_add(micros);
            let mut stalls = Vec::new();
            add_stalls(&event, &mut stalls);
            add_stalls(&event, &mut all_stalls);
            intervals.push(Interval::new(end, micros, &one.snapshot(), stalls));
        }
        let end = intervals.iter().map(|interval| interval.end_micros).max();
        let recorded = end.map(|end| Interval::new(end, all_micros, &all.snapshot(), all_stalls));
        Ok(History { intervals, recorded })
    }

    /// The newest intervals and the sum, one a line.
    pub fn table(&self) -> String {
        let heads = ["WA", "no WAL", "AWA", "MWA", "RA", "ARA", "MRA"];
        let mut table =
            plain_table(&[&["until", "seconds", "stalled", "user"][..], &heads].concat());
        let begin = self.intervals.first().map_or(0, |first| first.end_micros);
        let row = |name: String, of: &Interval| {
            let ratio = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.2}"));
            let [seconds, stalled] =
                [of.seconds, of.stalled_seconds()].map(|seconds| format!("{seconds:.1}"));
            let first = [name, seconds, stalled, units::bytes(of.user_write_bytes)];
            let factors = of.factors.factors().map(|(_, factor)| ratio(factor));
            first.into_iter().chain(factors).collect::<Vec<String>>()
        };
        let skipped = self.intervals.len().saturating_sub(ROWS_MAX);
        for interval in self.intervals.iter().skip(skipped) {
            let seconds = interval.end_micros.saturating_sub(begin) as f64 / 1e6;
            table.add_row(row(format!("+{seconds:.0} s"), interval));
        }
        if let Some(all) = &self.recorded {
            table.add_row(row("all".into(), all));
        }
        table.to_string()
    }
}

/// Adds the bytes of an event to `ledger`.
fn add(event: &Value, ledger: &Ledger) {
    let number = |name: &str| event[name].as_u64().unwrap_or(0);
    ledger.user_wrote(number("user_write_bytes"));
    ledger.user_read(number("user_read_bytes"));
    for cause in Cause::all() {
        if let [written, read, media_written, media_read] =
            event_log::numbers(event, &cause.name())[..]
        {
            ledger.wrote(cause, written);
            ledger.read(cause, read);
            ledger.media_wrote(cause, media_written);
            ledger.media_read(cause, media_read);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use media::Notes;
    use media::mem::MemStore;
    use std::sync::Arc;

    fn found_stalls(of: &Interval) -> Vec<(&'static str, u64, f64)> {
        of.stalls.iter().map(|stall| (stall.reason, stall.count, stall.seconds)).collect()
    }

    #[test]
    fn intervals_add_up_and_bad_events_are_left_out() {
        let store = MemStore::new(Arc::default());
        let log = "EVENT_LOG_v1 {\"time_micros\": 5000000, \"event\": \"traffic\", \
                   \"micros\": 2000000, \"user_write_bytes\": 100, \"wal\": [100, 0, 100, 0], \
                   \"flush\": [100, 0, 300, 200], \"stall-level-0\": [3, 1500000000]}\n\
                   EVENT_LOG_v1 {\"time_micros\": 6000000, \"event\": \"traffic\"}\n\
                   EVENT_LOG_v1 {\"time_micros\": 9000000, \"event\": \"traffic\", \
                   \"micros\": 1000000, \"user_write_bytes\": 100, \"flush\": \"?\", \
                   \"stall-level-0\": [1, 500000000], \"stall-memory-full\": [2, 250000000], \
                   \"compaction-L2\": [600, 500, 600, 600]}\n";
        store.write_note("LOG", log.as_bytes(), false).unwrap();
        let history = History::of(&store).unwrap();
        let wa = |of: &Interval| (of.factors.wa, of.factors.wa_without_wal, of.factors.awa);
        let found: Vec<_> = history.intervals.iter().map(wa).collect();
        assert_eq!(found[0], (Some(2.0), Some(1.0), Some(2.0)));
        assert_eq!(found[1], (Some(6.0), Some(6.0), Some(1.0)));
        let all = history.recorded.as_ref().unwrap();
        assert_eq!(wa(all), (Some(4.0), Some(3.5), Some(1.25)));
        assert_eq!((all.seconds, all.end_micros, all.user_write_bytes), (3.0, 9_000_000, 200));
        assert_eq!((all.factors.merge_ra, all.factors.ara), (Some(2.5), Some(1.6)));
        assert_eq!(found_stalls(&history.intervals[0]), [("level-0", 3, 1.5)]);
        assert_eq!(found_stalls(all), [("level-0", 4, 2.0), ("memory-full", 2, 0.25)]);
        let line = "Writes waited for level-0 2.000 s (4 waits), memory-full 0.250 s (2 waits).";
        assert_eq!(all.stall_line(), line);
        let text = history.table();
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.contains("+4 s") && text.lines().last().unwrap().contains("4.00"), "{text}");
        assert_eq!(History::of(&MemStore::new(Arc::default())).unwrap(), History::default());
    }

    #[test]
    fn an_interval_without_waits_has_no_negative_zero() {
        let store = MemStore::new(Arc::default());
        let log = "EVENT_LOG_v1 {\"time_micros\": 5000000, \"event\": \"traffic\", \
                   \"micros\": 2000000, \"user_write_bytes\": 100}\n";
        store.write_note("LOG", log.as_bytes(), false).unwrap();
        let text = History::of(&store).unwrap().table();
        assert!(text.contains(" 0.0 ") && !text.contains("-0.0"), "{text}");
    }
}
