//! What `shingle.lab` builds on: schemes on simulated workloads and on traces, and the figures of
//! the papers. Answers are JSON texts, which Python makes plain dictionaries of.

use crate::errors::{SIGNALS_EVERY, apart, raised};
use lab::schedule::{News, Schedule};
use lab::{ClaimResult, Findings, Library, Metrics, compare};
use parking_lot::Mutex;
use pyo3::prelude::*;
use serde_json::{Value, json};
use shingle::{Error, Result};
use std::fs::File;
use std::io::BufReader;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;
use workloads::simulate::{self, keys_by_name, to_json};
use workloads::trace::{Collected, DEVICES, Extent, Format, Goal, Question};

/// The format of a trace is recognised by what fits into the buffer.
const BUFFER_BYTES: usize = 1 << 20;

/// The schemes, with their options.
#[pyfunction]
pub fn schemes() -> String {
    simulate::schemes_to_json().to_string()
}

/// What schemes cost under writes of equal size.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
pub fn simulate_schemes(
    py: Python<'_>,
    schemes: Vec<String>,
    keys: &str,
    writes: u64,
    keys_count: Option<u64>,
    record_bytes: u64,
    memtable_bytes: u64,
    table_bytes: Option<u64>,
    fan_out: Option<f64>,
    reads_share: f64,
    scale: Option<u64>,
) -> PyResult<String> {
    apart(py, || {
        let question = simulate::Question {
            schemes,
            keys: keys_by_name(keys)?,
            writes,
            keys_count,
            record_bytes,
            memtable_bytes,
            table_bytes,
            fan_out,
            reads_share,
            scale,
        };
        let runs = question.runs()?;
        let rows = runs.iter().map(|run| Ok(to_json(run, &run.run(&mut |_| {})?)));
        Ok(Value::Array(rows.collect::<Result<_>>()?).to_string())
    })
}

/// What each scheme, value layout and fan-out would cost under a trace.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
pub fn answer_trace(
    py: Python<'_>,
    path: PathBuf,
    format: Option<&str>,
    goal: &str,
    device: &str,
    schemes: Option<Vec<String>>,
    layouts: Vec<String>,
    fan_outs: Vec<f64>,
    value_threshold: u64,
    memtable_bytes: u64,
    grow: u64,
    sample_keys: usize,
) -> PyResult<String> {
    apart(py, || {
        let question = Question {
            schemes: schemes.unwrap_or_else(simulate::scheme_names),
            layouts,
            fan_outs,
            goal: goal_by_name(goal)?,
            device: device_by_name(device)?,
        };
        question.check()?;
        let extent =
            Extent { memtable_bytes, value_threshold_bytes: value_threshold, grow, sample_keys };
        let format = format.map(Format::by_name).transpose()?;
        let answer = collected(&path, format)?.answer(question, &extent, &|_| {})?;
        Ok(answer.to_json().to_string())
    })
}

fn collected(path: &Path, format: Option<Format>) -> Result<Collected> {
    let file =
        File::open(path).map_err(|error| Error::io(format!("read {}", path.display()), error))?;
    let mut input = BufReader::with_capacity(BUFFER_BYTES, file);
    Collected::read(&mut input, format, &mut |_| {})
}

fn goal_by_name(name: &str) -> Result<Goal> {
    let found = Goal::ALL.into_iter().find(|goal| goal.name() == name);
    found.ok_or_else(|| one_of("goal", name, &Goal::ALL.map(Goal::name)))
}

fn device_by_name(name: &str) -> Result<usize> {
    let found = DEVICES.iter().position(|device| device.name == name);
    found.ok_or_else(|| one_of("device", name, &DEVICES.map(|device| device.name)))
}

fn one_of(what: &str, name: &str, names: &[&str]) -> Error {
    Error::invalid(format!("a {what} is one of {}, not {name:?}", names.join(", ")))
}

/// The experiments: one for each figure and table of the papers.
#[pyfunction]
pub fn experiments(py: Python<'_>) -> PyResult<String> {
    let library = Library::open().map_err(|error| raised(py, &error))?;
    let row = |experiment: &lab::Experiment| {
        json!({
            "id": experiment.id,
            "figure": experiment.figure,
            "title": experiment.title,
            "deviation": experiment.deviation,
            "systems": experiment.systems,
            "claims": experiment.claims(),
        })
    };
    Ok(library.experiments.iter().map(row).collect::<Value>().to_string())
}

/// Runs experiments. `progress(done, total, name)` hears of each run that ended; an exception in
/// it, and an interrupt, end the work.
#[pyfunction]
pub fn run_experiments(
    py: Python<'_>,
    ids: Vec<String>,
    scale: &str,
    seed: u64,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let failed: Mutex<Option<PyErr>> = Mutex::new(None);
    let done = Mutex::new(0);
    let text = apart(py, || {
        let library = Library::open()?;
        let experiments = library.select(&ids)?;
        let pairs = experiments.iter().map(|one| Ok((*one, library.paper(one)?)));
        let pairs = pairs.collect::<Result<Vec<_>>>()?;
        let schedule = Schedule::new(&pairs, scale, seed)?;
        let total = schedule.counts().0;
        let hear = |news: News<'_>| {
            if failed.lock().is_some() {
                return;
            }
            let done = {
                let mut done = done.lock();
                *done += 1;
                *done
            };
            let told = Python::attach(|py| -> PyResult<()> {
                let Some(progress) = &progress else { return Ok(()) };
                progress.call1(py, (done, total, news.name)).map(drop)
            });
            if let Err(error) = told {
                failed.lock().get_or_insert(error);
            }
        };
        // After a failure, runs that are left have no metrics and take no time.
        let known = |_: &str| failed.lock().is_some().then(Metrics::new);
        let tables = thread::scope(|scope| {
            let running = scope.spawn(|| schedule.run(threads.max(1), &known, &hear));
            // Signals come to the thread that Python began with, which may be this one.
            while !running.is_finished() {
                thread::sleep(SIGNALS_EVERY);
                if let Err(error) = Python::attach(|py| py.check_signals()) {
                    failed.lock().get_or_insert(error);
                }
            }
            running.join().unwrap_or_else(|panic| resume_unwind(panic))
        });
        if failed.lock().is_some() {
            return Ok(String::new());
        }
        let mut findings = Vec::new();
        for ((experiment, paper), table) in pairs.iter().zip(tables) {
            findings.push(Findings::new(experiment, experiment.scale(paper, scale)?, table)?);
        }
        let claims = compare::claims(&library, &findings)?;
        let claims: Value = claims.iter().map(ClaimResult::to_json).collect();
        let metrics: Vec<Value> = findings.iter().flat_map(Findings::to_json).collect();
        Ok(json!({ "scale": scale, "claims": claims, "metrics": metrics }).to_string())
    })?;
    match failed.into_inner() {
        Some(error) => Err(error),
        None => Ok(text),
    }
}
