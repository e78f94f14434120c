//! What every scheme, value layout and fan-out would cost under a workload, and which to take.
//!
//! Each scheme and fan-out is simulated with each layout. A layout's cost is that of its segments,
//! of the tree of pointers, and of the pointers that garbage collection writes anew.

use super::device::{DEVICES, Device, Load};
use super::replay::{self, TreeCost, ValueCost};
use super::workload::Workload;
use base::{Error, Result};
use parking_lot::Mutex;
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tree::policy::{Descriptor, by_name};

/// A filter of 10 bits a key lets 1 % of the reads of missing keys through.
const FILTER_MISS_SHARE: f64 = 0.01;
/// A segment of values is written in one go.
const SEGMENT_BYTES: f64 = (64u64 << 20) as f64;
/// The default, with which others are compared.
const REFERENCE: (&str, &str) = ("adaptive", "inline");
/// Memtables that a trace should fill for its tree to have a shape.
const MEMTABLES_MIN: f64 = 16.0;
/// Simulated records that a memtable and a table should have at least.
const RECORDS_IN_TABLE_MIN: f64 = 16.0;

/// What to hold small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Write amplification.
    Write,
    /// Read amplification.
    Read,
    /// Space amplification.
    Space,
    /// The time that a device is busy.
    Time,
}

impl Goal {
    /// Every goal.
    pub const ALL: [Goal; 4] = [Goal::Write, Goal::Read, Goal::Space, Goal::Time];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Goal::Write => "write",
            Goal::Read => "read",
            Goal::Space => "space",
            Goal::Time => "time",
        }
    }
}

/// What is compared, and by what.
#[derive(Clone, Debug)]
pub struct Question {
    /// Names of schemes.
    pub schemes: Vec<String>,
    /// Names of value layouts.
    pub layouts: Vec<String>,
    /// Fan-outs, beside each scheme's own.
    pub fan_outs: Vec<f64>,
    /// What to hold small.
    pub goal: Goal,
    /// The device that times are of: a place in [`DEVICES`].
    pub device: usize,
}

/// A scheme, a layout and a fan-out, and what they cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// The scheme.
    pub scheme: &'static str,
    /// The value layout.
    pub values: &'static str,
    /// The fan-out; `None` where the scheme has none.
    pub fan_out: Option<f64>,
    /// The fan-out is the scheme's own.
    pub is_default: bool,
    /// Bytes written for a byte of the user, without the log.
    pub write_amplification: f64,
    /// Places read for a get: runs, filters aside, and one more for a separated value.
    pub read_amplification: f64,
    /// Bytes of files for a byte of live keys and values, at the end.
    pub space_amplification: f64,
    /// Seconds that each of [`DEVICES`] is busy, one request at a time, without any cache.
    pub busy_seconds: [f64; DEVICES.len()],
    /// No other candidate is better both at writing and at reading.
    pub is_on_front: bool,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Best first.
    pub candidates: Vec<Candidate>,
    /// What to take and why, and how many others keep the device busy for as long.
    pub recommendation: String,
    /// What the estimate rests on here, and where it is weak.
    pub remarks: Vec<String>,
}

/// Device times that differ by no more than this share are equal.
const EQUAL_TIME_SHARE: f64 = 0.005;

/// A candidate to simulate.
struct Job {
    scheme: &'static Descriptor,
    fan_out: Option<f64>,
    is_default: bool,
    layout: &'static values::Descriptor,
}

/// Answers; `progress` is called after each of the simulations, with how many there are.
pub fn advise(
    workload: &Workload,
    question: &Question,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Advice> {
    let layouts: Vec<&values::Descriptor> =
        question.layouts.iter().map(|name| values::by_name(name)).collect::<Result<_>>()?;
    let has_use = |layout: &&values::Descriptor| workload.has_large_values() || !is_apart(layout);
    let layouts: Vec<_> = layouts.into_iter().filter(has_use).collect();
    let jobs = jobs(question, &layouts)?;
    let costs = simulate(workload, &jobs, progress)?;
    let priced = jobs.iter().zip(&costs).map(|(job, cost)| price(workload, job, cost));
    let mut candidates: Vec<Candidate> = priced.collect();
    if candidates.is_empty() {
        let message = "nothing to compare: no value reaches the threshold of the layouts named";
        return Err(Error::invalid(message));
    }
    mark_front(&mut candidates);
    let key = |candidate: &Candidate| candidate.rank(question);
    candidates.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal));
    let recommendation = recommend(&candidates, question);
    Ok(Advice { candidates, recommendation, remarks: remarks(workload, &jobs) })
}

fn is_apart(layout: &values::Descriptor) -> bool {
    (layout.make)().separates()
}

fn jobs(question: &Question, layouts: &[&'static values::Descriptor]) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for name in &question.schemes {
        let scheme = by_name(name)?;
        let own = (scheme.limits)(1).fan_out;
        let mut fan_outs = vec![None];
        if scheme.options.contains(&"fan_out") {
            fan_outs = question.fan_outs.iter().copied().map(Some).collect();
            fan_outs.push(Some(own));
            fan_outs.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
            fan_outs.dedup();
        }
        for fan_out in fan_outs {
            let is_default = fan_out.is_none_or(|fan_out| fan_out == own);
            jobs.extend(layouts.iter().map(|layout| Job { scheme, fan_out, is_default, layout }));
        }
    }
    Ok(jobs)
}

/// Runs the jobs on the machine's cores; the results do not depend on how many there are.
fn simulate(
    workload: &Workload,
    jobs: &[Job],
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<(TreeCost, ValueCost)>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let next = AtomicUsize::new(0);
    let costs = Mutex::new(vec![Ok(Default::default()); jobs.len()]);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Relaxed);
                    let Some(job) = jobs.get(at) else { return };
                    let cost = job.run(workload);
                    let mut costs = costs.lock();
                    if let Some(place) = costs.get_mut(at) {
                        *place = cost;
                    }
                    progress(jobs.len());
                }
            });
        }
    });
    costs.into_inner().into_iter().collect()
}

impl Job {
    fn run(&self, workload: &Workload) -> Result<(TreeCost, ValueCost)> {
        replay::replay(workload, self.scheme, self.limits(workload), self.layout)
    }

    fn limits(&self, workload: &Workload) -> tree::policy::Limits {
        let limits = (self.scheme.limits)(workload.memtable_bytes);
        tree::policy::Limits { fan_out: self.fan_out.unwrap_or(limits.fan_out), ..limits }
    }
}

fn price(workload: &Workload, job: &Job, (tree, values): &(TreeCost, ValueCost)) -> Candidate {
    let repointed_bytes = values.moved_records * workload.pointer_entry_bytes * tree.per_flushed();
    let tree_bytes = tree.flushed_bytes + tree.moved_bytes + repointed_bytes;
    let write_bytes = tree_bytes + values.written_bytes;
    let layout = (job.layout.make)();
    let has_pointers = layout.separates();
    let apart_share = if has_pointers { workload.apart_get_share } else { 0.0 };
    let gets = workload.gets as f64;
    let missed = (tree.runs_per_get - tree.found_share).max(0.0) * FILTER_MISS_SHARE;
    let scanned_bytes = workload.scan_records as f64 * workload.entry_bytes;
    let apart_records = if has_pointers { workload.scan_records as f64 } else { 0.0 };
    // The log has every byte once more; pointers alone, where the commit wrote the values.
    let logged_entry_bytes = match layout.writes_at_commit() {
        true => workload.pointer_entry_bytes,
        false => workload.entry_bytes,
    };
    let log_bytes = workload.write_bytes as f64 / workload.entry_bytes * logged_entry_bytes;
    let load = Load {
        write_bytes: write_bytes + log_bytes,
        // Merges and garbage collection read about what they write.
        read_bytes: tree.moved_bytes + values.written_bytes / 2.0 + scanned_bytes,
        random_writes: tree.files + values.written_bytes / SEGMENT_BYTES,
        random_reads: gets * (tree.found_share + missed + apart_share)
            + workload.scans as f64 * tree.runs_per_scan
            + apart_records
            + tree.files,
    };
    let live_bytes = workload.live_bytes();
    Candidate {
        scheme: job.scheme.name,
        values: job.layout.name,
        fan_out: job.fan_out,
        is_default: job.is_default,
        write_amplification: write_bytes / (workload.write_bytes as f64).max(1.0),
        read_amplification: tree.runs_per_get + apart_share,
        space_amplification: (tree.file_bytes + values.segment_bytes) / live_bytes.max(1.0),
        busy_seconds: DEVICES.map(|device: Device| device.busy_seconds(&load)),
        is_on_front: false,
    }
}

impl Candidate {
    /// What the goal counts.
    pub fn cost(&self, goal: Goal, device: usize) -> f64 {
        match goal {
            Goal::Write => self.write_amplification,
            Goal::Read => self.read_amplification,
            Goal::Space => self.space_amplification,
            Goal::Time => self.busy_seconds.get(device).copied().unwrap_or_default(),
        }
    }

    /// Costs within half a percent are alike; time decides then, and then the scheme's own fan-out.
    fn rank(&self, question: &Question) -> (f64, f64, bool) {
        let goal = self.cost(question.goal, question.device);
        let steps = (goal.max(f64::MIN_POSITIVE).ln() * 200.0).round();
        (steps, self.cost(Goal::Time, question.device), !self.is_default)
    }

    /// Others are compared with it.
    fn is_reference(&self) -> bool {
        (self.scheme, self.values) == REFERENCE && self.is_default
    }

    /// Scheme, layout and fan-out in words.
    pub fn name(&self) -> String {
        match self.fan_out {
            Some(fan_out) => format!("{}, values {}, fan-out {fan_out}", self.scheme, self.values),
            None => format!("{}, values {}", self.scheme, self.values),
        }
    }
}

fn mark_front(candidates: &mut [Candidate]) {
    let points: Vec<(f64, f64)> =
        candidates.iter().map(|c| (c.write_amplification, c.read_amplification)).collect();
    for (candidate, &(write, read)) in candidates.iter_mut().zip(&points) {
        let is_better = |&(w, r): &(f64, f64)| w <= write && r <= read && (w < write || r < read);
        candidate.is_on_front = !points.iter().any(is_better);
    }
}

fn recommend(candidates: &[Candidate], question: &Question) -> String {
    let Some(best) = candidates.first() else { return String::new() };
    let device = DEVICES.get(question.device).map_or("device", |device| device.name);
    let figures = |c: &Candidate| {
        format!(
            "writes {:.2} bytes for each of the user's, probes {:.2} runs for a get, takes {:.2} \
             times the live bytes, and keeps the {device} busy for {}",
            c.write_amplification,
            c.read_amplification,
            c.space_amplification,
            seconds(c.cost(Goal::Time, question.device)),
        )
    };
    let why =
        format!("for the goal `{}` it is the best of {}", question.goal.name(), candidates.len());
    let equals = equal_times(candidates, question, device);
    match candidates.iter().find(|candidate| candidate.is_reference()) {
        Some(reference) if reference != best => format!(
            "Take {}: {why}; it {}, where the default ({}) {}.{equals}",
            best.name(),
            figures(best),
            reference.name(),
            figures(reference)
        ),
        _ => format!("Take {}: {why}; it {}.{equals}", best.name(), figures(best)),
    }
}

/// A sentence about the candidates that keep `device` busy for as long as the first; empty where
/// there is none.
fn equal_times(candidates: &[Candidate], question: &Question, device: &str) -> String {
    let time = |candidate: &Candidate| candidate.cost(Goal::Time, question.device);
    let Some((best, others)) = candidates.split_first() else { return String::new() };
    let is_equal = |c: &&Candidate| (time(c) - time(best)).abs() <= time(best) * EQUAL_TIME_SHARE;
    let equal: Vec<&Candidate> = others.iter().filter(is_equal).collect();
    if equal.is_empty() {
        return String::new();
    }
    let has_reference = equal.iter().any(|candidate| candidate.is_reference());
    let reference = if has_reference { ", the default included" } else { "" };
    let (equal, others) = (equal.len(), others.len());
    format!(
        " The {device} is busy for as long under {equal} of the {others} others{reference}: \
         compare writes, reads and space."
    )
}

fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 0.1 => format!("{:.1} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

fn remarks(workload: &Workload, jobs: &[Job]) -> Vec<String> {
    let mut remarks = Vec::new();
    if workload.scale > 1 {
        remarks.push(format!("a simulated record stands for {} of the trace", workload.scale));
    }
    let memtables = workload.memtables();
    if memtables < MEMTABLES_MIN {
        remarks.push(format!(
            "the trace fills {memtables:.1} memtables of {} bytes: its tree has hardly a shape; a \
             longer trace, --grow or smaller --memtable-bytes would show one",
            workload.memtable_bytes
        ));
    }
    let tables = jobs.iter().map(|job| job.limits(workload).table_bytes_max);
    let unit = tables.fold(workload.memtable_bytes, u64::min) as f64;
    let records = unit / (workload.entry_bytes * workload.scale as f64);
    if records < RECORDS_IN_TABLE_MIN {
        remarks.push(format!(
            "a table has {records:.1} simulated records: schemes with small tables are estimated \
             coarsely; a larger --sample helps"
        ));
    }
    remarks
}

#[cfg(test)]
mod tests;
