//! A thread beside a benchmark that tells how far it is: progress, interval lines, a CSV file.

use super::Shared;
use super::config::Config;
use crate::clock::Clock;
use crate::observe::{Gauge, Observer, PROGRESS_INTERVAL, Progress};
use base::{Error, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError};

/// The CSV file of `--report_file`: throughput by interval, over the whole run.
pub(super) struct ReportFile {
    path: String,
    file: BufWriter<File>,
    start_ns: u64,
}

impl ReportFile {
    /// Creates the file that `config` asks for, if any.
    pub(super) fn create(config: &Config, clock: &dyn Clock) -> Result<Option<ReportFile>> {
        let Some(path) = config.report_file.clone() else { return Ok(None) };
        let file = File::create(&path).map_err(|error| {
            Error::io("the report file cannot be created", error).in_file(&path)
        })?;
        let mut report = ReportFile { path, file: BufWriter::new(file), start_ns: clock.now_ns() };
        report.write("secs_elapsed,interval_qps\n")?;
        Ok(Some(report))
    }

    fn write(&mut self, text: &str) -> Result<()> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|error| {
            Error::io("the report file cannot be written", error).in_file(&self.path)
        })
    }

    fn row(&mut self, now_ns: u64, per_second: f64) -> Result<()> {
        let seconds = (now_ns - self.start_ns) as f64 / 1e9;
        self.write(&format!("{seconds:.0},{per_second:.0}\n"))
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.file.flush().map_err(|error| {
            Error::io("the report file cannot be written", error).in_file(&self.path)
        })
    }
}

/// The moment and the count of the last line of some kind.
#[derive(Clone, Copy, Debug)]
struct Mark {
    interval_ns: u64,
    at_ns: u64,
    done: u64,
}

impl Mark {
    fn new(interval_seconds: u64, start_ns: u64) -> Mark {
        Mark { interval_ns: interval_seconds * 1_000_000_000, at_ns: start_ns, done: 0 }
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
    notes: Mark,
    rows: Mark,
}

impl<'a> Monitor<'a> {
    /// A monitor, when anybody wants to know.
    pub(super) fn new(
        shared: &'a Shared<'a>,
        observer: &'a dyn Observer,
        report_file: Option<&'a mut ReportFile>,
    ) -> Option<Monitor<'a>> {
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
        wanted.then(|| Monitor {
            shared,
            observer,
            report_file,
            total,
            notes: Mark::new(config.stats_interval_seconds, shared.start_ns),
            rows: Mark::new(config.report_interval_seconds, shared.start_ns),
        })
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

    fn report(&mut self) -> Result<()> {
        let (now_ns, done) = (self.shared.clock.now_ns(), Gauge::sum(&self.shared.done));
        let elapsed_ns = now_ns - self.shared.start_ns;
        if self.observer.wants_progress() {
            let benchmark = self.shared.benchmark.name;
            self.observer.progress(&Progress { benchmark, done, total: self.total, elapsed_ns });
        }
        if let Some((added, seconds)) = self.notes.due(now_ns, done) {
            let elapsed = elapsed_ns as f64 / 1e9;
            self.observer.note(&format!(
                "{} ... ({added},{done}) ops and ({:.1},{:.1}) ops/second in ({:.6},{:.6}) seconds",
                self.shared.benchmark.name,
                added as f64 / seconds,
                done as f64 / elapsed,
                seconds,
                elapsed,
            ));
        }
        if let Some(file) = &mut self.report_file
            && let Some((added, seconds)) = self.rows.due(now_ns, done)
        {
            file.row(now_ns, added as f64 / seconds)?;
        }
        Ok(())
    }
}
