//! db_bench: the benchmarks of LevelDB and RocksDB by their names, with their flags and output.
//!
//! [`parse`] reads a command line, [`run`] does what it asks for against any store. What the
//! original tools do not measure (write amplification, stalls, space) stands on extra, indented
//! lines, so that scripts which look for the known lines go on working.

mod benchmarks;
mod config;
mod flags;
mod monitor;
mod report;
mod shared;
#[cfg(test)]
mod tests;
mod worker;

use crate::clock::{Clock, check_threads};
use crate::measure::Meter;
use crate::observe::{Gauge, Observer};
use crate::record::{Record, Tally};
use crate::store::{Store, StoreFactory};
use base::{Error, Result};
use benchmarks::{Benchmark, Maintenance, Operation};
use monitor::{Monitor, ReportFile};
use shared::Shared;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use worker::Worker;

pub use benchmarks::names;
pub use config::{Config, KeyOrigin};
pub use flags::{Parsed, parse};

/// Runs the benchmarks of `config` one after another and writes their results to `out`: text, or
/// one line of JSON for each when `config.json` is set. Returns the same results; reports are
/// none.
pub fn run(
    config: &Config,
    factory: &dyn StoreFactory,
    clock: &dyn Clock,
    observer: &dyn Observer,
    out: &mut dyn Write,
) -> Result<Vec<Record>> {
    let benchmarks = config
        .benchmarks
        .iter()
        .map(|name| Benchmark::named(name))
        .collect::<Result<Vec<Benchmark>>>()?;
    let report_file = ReportFile::create(config, clock)?;
    if !config.json {
        emit(out, &report::header(config))?;
    }
    let mut runner =
        Runner { config, factory, clock, observer, out, report_file, store: None, workers: 0 };
    let mut records = Vec::new();
    for benchmark in &benchmarks {
        records.extend(runner.run(benchmark)?);
    }
    runner.finish()?;
    Ok(records)
}

/// Runs the one benchmark called `name` on a store that is open, and leaves it open. It does not
/// begin anew, whatever `name` does elsewhere. `None`: it measures nothing.
pub fn run_on(
    config: &Config,
    name: &str,
    store: &dyn Store,
    clock: &dyn Clock,
    observer: &dyn Observer,
    out: &mut dyn Write,
) -> Result<Option<Record>> {
    let (factory, report_file) = (&NoFactory, None);
    let mut runner =
        Runner { config, factory, clock, observer, out, report_file, store: None, workers: 0 };
    let benchmark = Benchmark::named(name)?;
    match benchmark.operation {
        Operation::Maintain(maintenance) => runner.maintain(&benchmark, maintenance, store),
        _ => runner.measure(&benchmark, store).map(Some),
    }
}

/// The store is there already.
struct NoFactory;

impl StoreFactory for NoFactory {
    fn open(&self) -> Result<Box<dyn Store>> {
        Err(Error::invalid("the store is open and not to be opened again"))
    }

    fn destroy(&self) -> Result<()> {
        Err(Error::invalid("the store is open and not to be removed"))
    }
}

struct Runner<'a> {
    config: &'a Config,
    factory: &'a dyn StoreFactory,
    clock: &'a dyn Clock,
    observer: &'a dyn Observer,
    out: &'a mut dyn Write,
    report_file: Option<ReportFile>,
    store: Option<Box<dyn Store>>,
    /// Workers started so far: each has its own seed, so no phase repeats another's keys.
    workers: u64,
}

impl Runner<'_> {
    fn run(&mut self, benchmark: &Benchmark) -> Result<Option<Record>> {
        let fresh = benchmark.fresh && !self.config.use_existing_db;
        if benchmark.fresh && self.config.use_existing_db {
            let skipped = report::skipped(benchmark.name);
            self.text(&skipped)?;
            return Ok(None);
        }
        if fresh {
            self.close()?;
            self.factory.destroy()?;
        }
        let store = match self.store.take() {
            Some(store) => store,
            None => self.factory.open()?,
        };
        let result = match benchmark.operation {
            Operation::Maintain(maintenance) => {
                self.maintain(benchmark, maintenance, store.as_ref())
            }
            Operation::Report => self.report(benchmark.name, store.as_ref()).map(|()| None),
            _ => self.measure(benchmark, store.as_ref()).map(Some),
        };
        self.store = Some(store);
        result
    }

    fn maintain(
        &mut self,
        benchmark: &Benchmark,
        maintenance: Maintenance,
        store: &dyn Store,
    ) -> Result<Option<Record>> {
        let meter = Meter::start(store, self.clock)?;
        match maintenance {
            Maintenance::Compact => store.compact_all(),
            Maintenance::Flush => store.flush(),
            Maintenance::WaitIdle => store.wait_idle(),
            Maintenance::ResetStatistics => {
                store.reset_statistics();
                Ok(())
            }
        }?;
        let end_ns = self.clock.now_ns();
        let elapsed_ns = end_ns - meter.start_ns();
        let tally = Tally { ops: 1, thread_ns: elapsed_ns, ..Tally::default() };
        let record = meter.finish(benchmark.name, store, &tally, end_ns)?;
        self.publish(benchmark, &record, &tally)?;
        Ok(Some(record))
    }

    fn measure(&mut self, benchmark: &Benchmark, store: &dyn Store) -> Result<Record> {
        let threads = self.config.threads;
        let started = self.workers;
        self.workers += threads as u64 + 1;
        let values = worker::values(self.config, benchmark);
        let meter = Meter::start(store, self.clock)?;
        let shared = Shared {
            config: self.config,
            benchmark,
            store,
            clock: self.clock,
            start_ns: meter.start_ns(),
            stop: AtomicBool::new(false),
            done: (0..threads).map(|_| Gauge::default()).collect(),
        };
        let workers = (0..threads)
            .map(|index| Worker::new(&shared, &values, index, started + index as u64))
            .collect::<Result<Vec<Worker>>>()?;
        let background = match benchmark.background {
            Some(_) => Some(Worker::new(&shared, &values, threads, started + threads as u64)?),
            None => None,
        };
        let monitor = Monitor::new(&shared, self.observer, self.report_file.as_mut())?;
        let tally = run_workers(&shared, workers, background, monitor)?;
        let record = meter.finish(benchmark.name, store, &tally, self.clock.now_ns())?;
        self.publish(benchmark, &record, &tally)?;
        Ok(record)
    }

    fn publish(&mut self, benchmark: &Benchmark, record: &Record, tally: &Tally) -> Result<()> {
        if self.config.json {
            return emit(self.out, &(record.json() + "\n"));
        }
        let mut text = report::line(benchmark, record, tally);
        if self.config.histogram {
            text += &report::histograms(benchmark, tally);
        }
        text += &report::extras(record);
        emit(self.out, &text)
    }

    /// Prints what the store tells of itself; in JSON an object, or a text where it has no more.
    fn report(&mut self, name: &str, store: &dyn Store) -> Result<()> {
        let text = || store.report(name).unwrap_or_else(|| format!("no {name} here"));
        if !self.config.json {
            return self.text(&format!("\n{}\n", text().trim_end()));
        }
        let report = store.report_json(name).unwrap_or_else(|| json_string(text().trim_end()));
        let name = json_string(name);
        emit(self.out, &format!("{{\"benchmark\":{name},\"report\":{report}}}\n"))
    }

    fn text(&mut self, text: &str) -> Result<()> {
        if self.config.json { Ok(()) } else { emit(self.out, text) }
    }

    fn close(&mut self) -> Result<()> {
        self.store.take().map_or(Ok(()), |store| store.close())
    }

    fn finish(mut self) -> Result<()> {
        if let Some(report_file) = &mut self.report_file {
            report_file.flush()?;
        }
        if self.config.statistics {
            let report = self.store.as_ref().and_then(|store| store.report("statistics"));
            self.text(&report.map_or(String::new(), |report| format!("STATISTICS:\n{report}\n")))?;
        }
        self.close()
    }
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn emit(out: &mut dyn Write, text: &str) -> Result<()> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| {
        Error::io("the results could not be written; look at where the output goes", error)
    })
}

/// Runs everything to its end. A single worker without company runs on the calling thread, so that
/// a simulation with one thread can drive it; there it asks its monitor itself.
fn run_workers<'a>(
    shared: &'a Shared<'a>,
    mut workers: Vec<Worker<'a>>,
    background: Option<Worker<'a>>,
    monitor: Option<Monitor<'a>>,
) -> Result<Tally> {
    check_threads(shared.clock, workers.len(), background.is_some())?;
    let is_alone = workers.len() == 1 && background.is_none();
    if is_alone && (monitor.is_none() || shared.clock.is_virtual()) {
        return workers.pop().expect("there is one worker").run_watched(monitor);
    }
    std::thread::scope(|scope| {
        let (finished, end) = std::sync::mpsc::channel::<()>();
        let monitor = monitor.map(|monitor| scope.spawn(move || monitor.run(&end)));
        let background = background.map(|worker| scope.spawn(|| worker.run_background()));
        let workers: Vec<_> =
            workers.into_iter().map(|worker| scope.spawn(|| worker.run())).collect();
        let mut total = Ok(Tally::default());
        let mut add = |tally: std::thread::Result<Result<Tally>>, background: bool| {
            let tally = tally.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match (&mut total, tally) {
                (Ok(total), Ok(tally)) if background => total.merge_background(&tally),
                (Ok(total), Ok(tally)) => total.merge(&tally),
                (Ok(_), Err(error)) => total = Err(error),
                (Err(_), _) => {}
            }
        };
        workers.into_iter().for_each(|worker| add(worker.join(), false));
        shared.stop.store(true, Relaxed);
        background.into_iter().for_each(|worker| add(worker.join(), true));
        drop(finished);
        if let Some(monitor) = monitor {
            monitor.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        total
    })
}
