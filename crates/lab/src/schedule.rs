//! All runs of some experiments, each different one once, on a few threads.
//!
//! Many figures share a load: what has the same settings and phases is run once and its metrics are
//! given to all that ask. Results do not depend on the order of runs.

use crate::experiment::{Cell, Experiment};
use crate::paper::Paper;
use crate::run::{self, Metrics};
use base::Result;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Metrics of a run, or why there are none.
pub type Outcome = std::result::Result<Metrics, String>;

/// Outcomes of an experiment by system and point.
pub type Table = BTreeMap<(String, Option<String>), Outcome>;

/// A run, as news about it name it.
#[derive(Clone, Debug)]
pub struct News<'a> {
    /// Experiment, system and point.
    pub name: &'a str,
    /// Its share of all work, as estimated.
    pub weight: u64,
    /// How long it took on this machine; results know nothing of it. None: its metrics were known.
    pub elapsed: Option<Duration>,
    /// The text that runs of the same settings and phases share, and no other.
    pub identity: &'a str,
    /// What came of it.
    pub outcome: &'a Outcome,
}

/// One different run, and where its metrics go.
struct Work {
    identity: String,
    name: String,
    weight: u64,
    cell: Cell,
    experiment: usize,
    wanted: Vec<(usize, String, Option<String>)>,
}

/// Everything that is to be run.
pub struct Schedule<'a> {
    experiments: Vec<&'a Experiment>,
    work: Vec<Work>,
    cells: usize,
}

impl<'a> Schedule<'a> {
    /// For these experiments with their papers, at the scale of this name. What is left to chance
    /// follows from `seed`, where their data says nothing else.
    pub fn new(
        experiments: &[(&'a Experiment, &Paper)],
        scale: &str,
        seed: u64,
    ) -> Result<Schedule<'a>> {
        let mut found: BTreeMap<String, Work> = BTreeMap::new();
        let mut cells = 0;
        for (index, (experiment, paper)) in experiments.iter().enumerate() {
            for mut cell in experiment.cells(paper, scale)? {
                cell.settings = cell.settings.seeded(seed)?;
                cells += 1;
                let identity = run::identity(&cell.settings, &experiment.phases);
                let wanted = (index, cell.system.clone(), cell.point.clone());
                let at = cell.point.iter().map(|point| format!("@{point}")).collect::<String>();
                let name = format!("{} {}{at}", experiment.id, cell.system);
                let weight = weight(&cell, experiment)?;
                let new = || Work {
                    identity: identity.clone(),
                    name,
                    weight,
                    cell,
                    experiment: index,
                    wanted: Vec::new(),
                };
                found.entry(identity.clone()).or_insert_with(new).wanted.push(wanted);
            }
        }
        let mut work: Vec<Work> = found.into_values().collect();
        // The longest first, so that no thread has one left when the others are done.
        work.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.name.cmp(&b.name)));
        let experiments = experiments.iter().map(|(experiment, _)| *experiment).collect();
        Ok(Schedule { experiments, work, cells })
    }

    /// Different runs, and how many the experiments ask for.
    pub fn counts(&self) -> (usize, usize) {
        (self.work.len(), self.cells)
    }

    /// The sum of all weights.
    pub fn weight(&self) -> u64 {
        self.work.iter().map(|work| work.weight).sum()
    }

    /// Runs everything on `threads` threads, but for runs whose metrics `known` has by their
    /// identity; `news` hears of each run that ended. Tables stand in the order of the experiments.
    pub fn run(
        &self,
        threads: usize,
        known: &(dyn Fn(&str) -> Option<Metrics> + Sync),
        news: &(dyn Fn(News<'_>) + Sync),
    ) -> Vec<Table> {
        let next = AtomicUsize::new(0);
        let tables = Mutex::new(vec![Table::new(); self.experiments.len()]);
        let one = || {
            while let Some(work) = self.work.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (outcome, elapsed) = match known(&work.identity) {
                    Some(metrics) => (Ok(metrics), None),
                    None => {
                        let start = Instant::now();
                        (self.execute(work), Some(start.elapsed()))
                    }
                };
                let mut tables = tables.lock();
                for (experiment, system, point) in &work.wanted {
                    let key = (system.clone(), point.clone());
                    tables[*experiment].insert(key, outcome.clone());
                }
                drop(tables);
                let (name, identity) = (&work.name, &work.identity);
                news(News { name, weight: work.weight, elapsed, identity, outcome: &outcome });
            }
        };
        std::thread::scope(|scope| {
            (0..threads.max(1)).for_each(|_| drop(scope.spawn(one)));
        });
        tables.into_inner()
    }

    /// A run that panics is a run that failed, and none of the others' business.
    fn execute(&self, work: &Work) -> Outcome {
        let phases = &self.experiments[work.experiment].phases;
        let run = || run::execute(&work.cell.settings, phases);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        match caught {
            Ok(outcome) => outcome.map_err(|error| error.to_string()),
            Err(_) => Err("the run panicked".into()),
        }
    }
}

/// Pairs that a run writes, and requests, as an estimate of how long it takes.
fn weight(cell: &Cell, experiment: &Experiment) -> Result<u64> {
    let mut weight = 1;
    for phase in &experiment.phases {
        let settings = cell.settings.with(&phase.settings)?;
        let what = settings.get("do").unwrap_or_default();
        weight += match what {
            "fillrandom" | "fillseq" | "filluniquerandom" | "overwrite" => {
                settings.pairs(if settings.get("write").is_some() { "write" } else { "data" })?
            }
            "writeseq" | "writerandom" | "settle" | "check" => 1,
            "seekrandom" => 10 * settings.requests("count")?,
            "replay" => run::operations_of_trace(&settings)?,
            _ if settings.is_on("load") => settings.pairs("data")?,
            _ => settings.requests("count")?,
        };
    }
    Ok(weight)
}
