//! Tells how far a benchmark is: progress, lines by interval, a file with a row for each interval.
//! A thread beside it asks, or, in a simulation, the benchmark itself after each operation.

use super::config::Config;
use super::shared::Shared;
use crate::amplification::{Amplification, CausePart, by_cause};
use crate::clock::Clock;
use crate::observe::{Gauge, Observer, PROGRESS_INTERVAL, Progress};
use crate::store::{Counters, Store};
use base::{Error, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError};

/// The file of `--report_file`: throughput and amplification by interval, over the whole run. CSV
/// that begins with db_bench's columns, or, with `--json`, an object a line with the parts of
/// causes.
pub(super) struct ReportFile {
    path: String,
    file: BufWriter<File>,
    start_ns: u64,
    is_json: bool,
}

/// What an interval did, and everything since the benchmark began.
struct Row {
    per_second: f64,
    interval: Amplification,
    cumulative: Amplification,
    /// Of the interval.
    causes: Vec<CausePart>,
}

impl Row {
    /// Column and value.
    fn factors(&self) -> impl Iterator<Item = (String, Option<f64>)> {
        let interval = self.interval.factors().map(|(name, x)| (format!("interval_{name}"), x));
        let cumulative = self.cumulative.factors().map(|(name, x)| (name.to_string(), x));
        interval.into_iter().chain(cumulative)
    }
}

impl ReportFile {
    /// Creates the file that `config` asks for, if any.
    pub(super) fn create(config: &Config, clock: &dyn Clock) -> Result<Option<ReportFile>> {
        let Some(path) = config.report_file.clone() else { return Ok(None) };
        let file = File::create(&path).map_err(|error| {
            Error::io("the report file cannot be created", error).in_file(&path)
        })?;
        let (file, start_ns, is_json) = (BufWriter::new(file), clock.now_ns(), config.json);
        let mut report = ReportFile { path, file, start_ns, is_json };
        if !is_json {
            let nothing = Amplification::default();
            let causes = Vec::new();
            let row = Row { per_second: 0.0, interval: nothing, cumulative: nothing, causes };
            let names: String = row.factors().map(|(name, _)| format!(",{name}")).collect();
            report.write(&format!("secs_elapsed,interval_qps{names}\n"))?;
        }
        Ok(Some(report))
    }

    fn write(&mut self, text: &str) -> Result<()> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|error| {
            Error::io("the report file cannot be written", error).in_file(&self.path)
        })
    }

    fn row(&mut self, benchmark: &str, now_ns: u64, row: &Row) -> Result<()> {
        let (seconds, qps) = ((now_ns - self.start_ns) as f64 / 1e9, row.per_second);
        if self.is_json {
            let mut fields = serde_json::Map::new();
            fields.insert("benchmark".into(), benchmark.into());
            fields.insert("secs_elapsed".into(), seconds.into());
            fields.insert("interval_qps".into(), qps.into());
            fields.extend(row.factors().map(|(name, factor)| (name, factor.into())));
            fields.insert("interval_causes".into(), serde_json::json!(row.causes));
            return self.write(&format!("{}\n", serde_json::Value::Object(fields)));
        }
        let factor = |factor: Option<f64>| factor.map_or(String::new(), |x| format!("{x:.4}"));
        let factors: String = row.factors().map(|(_, x)| format!(",{}", factor(x))).collect();
        self.write(&format!("{seconds:.0},{qps:.0}{factors}\n"))
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.file.flush().map_err(|error| {
            Error::io("the report file cannot be written", error).in_file(&self.path)
        })
    }
}

/// The moment, the count and the counters of the last line of some kind.
#[derive(Clone, Debug)]
struct Mark {
    interval_ns: u64,
    at_ns: u64,
    done: u64,
    counters: Counters,
}

impl Mark {
    fn new(interval_seconds: u64, start_ns: u64, counters: Counters) -> Mark {
        let interval_ns = interval_seconds.saturating_mul(1_000_000_000);
        Mark { interval_ns, at_ns: start_ns, done: 0, counters }
    }

    /// What a line tells of amplification: since the last one, and since `first`.
    fn row(&mut self, store: &dyn Store, first: &Counters, per_second: f64) -> Result<Row> {
        let now = store.counters()?;
        let user = |added: &Counters| added.user_write_bytes.unwrap_or(0);
        let (added, all) = (now.since(&self.counters), now.since(first));
        self.counters = now;
        Ok(Row {
            per_second,
            interval: Amplification::of(&added, user(&added)),
            cumulative: Amplification::of(&all, user(&all)),
            causes: added.ledger.as_ref().map_or(Vec::new(), |of| by_cause(of, user(&added))),
        })
    }

    /// Operations and seconds since the last line, when the next one is due.
    fn due(&mut self, now_ns: u64, done: u64) -> Option<(u64, f64)> {
        let passed_ns = now_ns.saturating_sub(self.at_ns);
        if self.interval_ns == 0 || passed_ns < self.interval_ns {
            return None;
        }
        let added = done.saturating_sub(self.done);
        (self.at_ns, self.done) = (now_ns, done);
        Some((added, passed_ns as f64 / 1e9))
    }
}

/// Watches one benchmark.
pub(super) struct Monitor<'a> {
    shared: &'a Shared<'a>,
    observer: &'a dyn Observer,
    report_file: Option<&'a mut ReportFile>,
    total: Option<u64>,
    /// When the benchmark began.
    first: Counters,
    notes: Mark,
    rows: Mark,
}

impl<'a> Monitor<'a> {
    /// A monitor, if an observer, an interval of statistics or a report file asks for one.
    pub(super) fn new(
        shared: &'a Shared<'a>,
        observer: &'a dyn Observer,
        report_file: Option<&'a mut ReportFile>,
    ) -> Result<Option<Monitor<'a>>> {
        let config = shared.config;
        let wanted =
            observer.wants_progress() || config.stats_interval_seconds > 0 || report_file.is_some();
        let total = match config.seconds(shared.benchmark) {
            Some(_) => None,
            None => {
                let threads = 0..config.threads;
                Some(threads.map(|index| config.operations(shared.benchmark, index)).sum())
            }
        };
        if !wanted {
            return Ok(None);
        }
        let first = shared.store.counters()?;
        Ok(Some(Monitor {
            shared,
            observer,
            report_file,
            total,
            notes: Mark::new(config.stats_interval_seconds, shared.start_ns, first.clone()),
            rows: Mark::new(config.report_interval_seconds, shared.start_ns, first.clone()),
            first,
        }))
    }

    /// Reports until the other side of `end` is dropped.
    pub(super) fn run(mut self, end: &Receiver<()>) -> Result<()> {
        loop {
            let ended = end.recv_timeout(PROGRESS_INTERVAL) != Err(RecvTimeoutError::Timeout);
            self.report()?;
            if ended {
                return Ok(());
            }
        }
    }

    /// Tells what is due.
    pub(super) fn report(&mut self) -> Result<()> {
        let (now_ns, done) = (self.shared.clock.now_ns(), Gauge::sum(&self.shared.done));
        let elapsed_ns = now_ns - self.shared.start_ns;
        if self.observer.wants_progress() {
            let benchmark = self.shared.benchmark.name;
            self.observer.progress(&Progress { benchmark, done, total: self.total, elapsed_ns });
        }
        if let Some((added, seconds)) = self.notes.due(now_ns, done) {
            let elapsed = elapsed_ns as f64 / 1e9;
            let row = self.notes.row(self.shared.store, &self.first, added as f64 / seconds)?;
            self.observer.note(&format!(
                "{} ... ({added},{done}) ops and ({:.1},{:.1}) ops/second in ({:.6},{:.6}) \
                 seconds{}",
                self.shared.benchmark.name,
                row.per_second,
                done as f64 / elapsed,
                seconds,
                elapsed,
                pairs(&row),
            ));
        }
        if let Some(file) = &mut self.report_file
            && let Some((added, seconds)) = self.rows.due(now_ns, done)
        {
            let row = self.rows.row(self.shared.store, &self.first, added as f64 / seconds)?;
            file.row(self.shared.benchmark.name, now_ns, &row)?;
        }
        Ok(())
    }
}

/// Factors of the interval and of everything, where there are any.
fn pairs(row: &Row) -> String {
    let factor = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.2}"));
    let mut text = String::new();
    for ((name, now), (_, all)) in row.interval.factors().into_iter().zip(row.cumulative.factors())
    {
        if all.is_some() {
            text += &format!(" {name} ({},{})", factor(now), factor(all));
        }
    }
    text
}
