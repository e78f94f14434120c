//! From the start of a benchmark to its [`Record`].

use crate::amplification::{Amplification, by_cause};
use crate::clock::Clock;
use crate::process;
use crate::record::{LatencySummaries, Record, Tally};
use crate::store::{Counters, Store};
use base::Result;

/// The state at the start of a benchmark.
#[derive(Debug)]
pub struct Meter {
    counters: Counters,
    peak_rss_is_fresh: bool,
    start_ns: u64,
    is_simulated: bool,
}

impl Meter {
    /// Starts measuring; forgets the peak of resident memory where the system lets it.
    pub fn start(store: &dyn Store, clock: &dyn Clock) -> Result<Meter> {
        let counters = store.counters()?;
        let peak_rss_is_fresh = process::reset_peak_rss();
        let (start_ns, is_simulated) = (clock.now_ns(), clock.is_virtual());
        Ok(Meter { counters, peak_rss_is_fresh, start_ns, is_simulated })
    }

    /// When measuring started, on the clock it was started with.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// The record of a benchmark that did `tally` and ended at `end_ns`.
    pub fn finish(
        &self,
        benchmark: &str,
        store: &dyn Store,
        tally: &Tally,
        end_ns: u64,
    ) -> Result<Record> {
        let delta = store.counters()?.since(&self.counters);
        let causes = delta.ledger.as_ref().map(|ledger| by_cause(ledger, tally.write_bytes));
        let seconds = end_ns.saturating_sub(self.start_ns) as f64 / 1e9;
        Ok(Record {
            benchmark: benchmark.to_string(),
            ops: tally.ops,
            seconds,
            is_simulated: self.is_simulated,
            ops_per_second: if seconds > 0.0 { tally.ops as f64 / seconds } else { 0.0 },
            user_bytes: tally.write_bytes,
            host_write_bytes: delta.host_write_bytes,
            host_read_bytes: delta.host_read_bytes,
            media_write_bytes: delta.media_write_bytes,
            amplification: Amplification::of(&delta, tally.write_bytes),
            causes: causes.unwrap_or_default(),
            space_bytes: delta.space_bytes,
            stall_seconds: delta.stall_ns.map(|ns| ns as f64 / 1e9),
            value_seconds: delta
                .value_ns
                .iter()
                .filter(|(_, ns)| **ns > 0)
                .map(|(part, ns)| (part.to_string(), *ns as f64 / 1e9))
                .collect(),
            peak_rss_bytes: self.peak_rss_is_fresh.then(process::peak_rss_bytes).flatten(),
            latency_ns: LatencySummaries {
                read: tally.read.summary(),
                write: tally.write.summary(),
            },
        })
    }
}
