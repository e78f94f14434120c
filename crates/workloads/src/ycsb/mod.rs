//! YCSB: the core workloads from their property files, with YCSB's output.
//!
//! A record is one value of `fieldcount` times `fieldlength` bytes; an update writes all of it, as
//! stores without fields must. Which of the two families of YCSB a run follows is its [`Flavour`];
//! they differ in skew and in what workload D reads, and the output names it.

mod chooser;
mod client;
mod properties;
mod report;
mod sequence;
mod shared;
#[cfg(test)]
mod tests;

use crate::clock::{Clock, check_threads};
use crate::measure::Meter;
use crate::observe::{Gauge, Observer, PROGRESS_INTERVAL, Progress};
use crate::record::{Record, Tally};
use crate::store::Store;
use crate::values::Values;
use base::{Error, Result};
use client::{Client, Measured};
use sequence::InsertSequence;
use shared::Shared;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

pub use properties::{Flavour, KeyDistribution, Properties, Workload};
pub use shared::Phase;

/// Runs one phase of `workload` and writes its result to `out`: YCSB's lines, or one line of JSON
/// when `workload.json` is set. Returns the same result.
pub fn run(
    workload: &Workload,
    phase: Phase,
    store: &dyn Store,
    clock: &dyn Clock,
    observer: &dyn Observer,
    out: &mut dyn Write,
) -> Result<Record> {
    let name = match phase {
        Phase::Load => format!("{}-load", workload.name),
        Phase::Run => format!("{}-run", workload.name),
    };
    let values = client::values(workload);
    let meter = Meter::start(store, clock)?;
    let shared = Shared {
        workload,
        phase,
        store,
        clock,
        start_ns: meter.start_ns(),
        inserts: InsertSequence::new(match phase {
            Phase::Load => workload.insert_start,
            Phase::Run => workload.insert_start + workload.record_count,
        }),
        stop: AtomicBool::new(false),
        done: (0..workload.threads).map(|_| Gauge::default()).collect(),
    };
    let measured = run_clients(&shared, &values, observer, &name)?;
    let tally = Tally {
        ops: measured.ops,
        read_bytes: measured.read_bytes,
        write_bytes: measured.write_bytes,
        read: measured.reads(),
        write: measured.writes(),
        ..Tally::default()
    };
    let record = meter.finish(&name, store, &tally, clock.now_ns())?;
    let text = match workload.json {
        true => record.json() + "\n",
        false => report::text(workload, phase, &record, &measured),
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| {
        Error::io("the results could not be written; look at where the output goes", error)
    })?;
    Ok(record)
}

/// Runs every client to its end. One without an observer runs on the calling thread, so that a
/// simulation with one thread can drive it.
fn run_clients(
    shared: &Shared<'_>,
    values: &Values,
    observer: &dyn Observer,
    name: &str,
) -> Result<Measured> {
    let threads = shared.workload.threads;
    check_threads(shared.clock, threads, observer.wants_progress())?;
    if threads == 1 && !observer.wants_progress() {
        return Client::new(shared, values, 0)?.run();
    }
    let clients = (0..threads)
        .map(|index| Client::new(shared, values, index))
        .collect::<Result<Vec<Client>>>()?;
    std::thread::scope(|scope| {
        let (finished, end) = std::sync::mpsc::channel::<()>();
        let watcher = observer
            .wants_progress()
            .then(|| scope.spawn(move || watch(shared, observer, name, &end)));
        let clients: Vec<_> =
            clients.into_iter().map(|client| scope.spawn(|| client.run())).collect();
        let mut total = Ok(Measured::default());
        for client in clients {
            let measured = client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match (&mut total, measured) {
                (Ok(total), Ok(measured)) => total.merge(&measured),
                (Ok(_), Err(error)) => total = Err(error),
                (Err(_), _) => {}
            }
        }
        drop(finished);
        if let Some(watcher) = watcher {
            watcher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        total
    })
}

/// Tells `observer` how far the clients are, until the other side of `end` is dropped.
fn watch(shared: &Shared<'_>, observer: &dyn Observer, benchmark: &str, end: &Receiver<()>) {
    let total = (shared.workload.seconds_max == 0).then(|| shared.operations());
    loop {
        let ended = end.recv_timeout(PROGRESS_INTERVAL) != Err(RecvTimeoutError::Timeout);
        let elapsed_ns = shared.clock.now_ns() - shared.start_ns;
        let done = Gauge::sum(&shared.done);
        observer.progress(&Progress { benchmark, done, total, elapsed_ns });
        if ended {
            return;
        }
    }
}
