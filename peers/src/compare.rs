//! Several engines on the same work: case by case, in rounds, in turn.
//!
//! The order changes from round to round, so that a slow minute of the machine does not always hit
//! the same engine; ratios are taken within a round. A run that fails is noted, and the others go
//! on.

use crate::run::{Phase, Run};
use crate::suite::Case;
use crate::work::Work;
use base::Result;
use serde::Serialize;

/// Takes a number out of a phase, where the phase has it.
type Measure = fn(&Phase) -> Option<f64>;

/// What is compared of a phase.
const METRICS: &[(&str, Measure)] = &[
    ("ops/s", |phase| Some(phase.record.ops_per_second)),
    ("ops/s with settling", with_settling),
    ("WA", |phase| phase.wa),
    ("space MB", |phase| phase.space_bytes.map(|bytes| bytes as f64 / 1e6)),
    ("peak space MB", |phase| phase.space_peak_bytes.map(|bytes| bytes as f64 / 1e6)),
    ("processor us an operation", processor_us),
    ("read p99 us", |phase| phase.record.latency_ns.read.map(|read| read.p99 as f64 / 1e3)),
    ("read p99.9 us", |phase| phase.record.latency_ns.read.map(|read| read.p999 as f64 / 1e3)),
    ("write p99 us", |phase| phase.record.latency_ns.write.map(|write| write.p99 as f64 / 1e3)),
    ("write p99.9 us", |phase| phase.record.latency_ns.write.map(|write| write.p999 as f64 / 1e3)),
    ("values written s", |phase| value_seconds(phase, "write")),
    ("values collected: reading s", |phase| value_seconds(phase, "collect_read")),
    ("values collected: look-ups s", |phase| value_seconds(phase, "collect_lookup")),
    ("values collected: writing s", |phase| value_seconds(phase, "collect_write")),
    ("values collected: pointers s", |phase| value_seconds(phase, "collect_pointer")),
    ("memory MB", |phase| phase.record.peak_rss_bytes.map(|bytes| bytes as f64 / 1e6)),
];

/// Operations per second until the store was idle and everything durable.
fn with_settling(phase: &Phase) -> Option<f64> {
    Some(phase.record.ops as f64 / (phase.record.seconds + phase.settle_seconds))
}

/// Processor time of the whole process until then, for each operation.
fn processor_us(phase: &Phase) -> Option<f64> {
    phase.cpu_seconds.map(|seconds| seconds * 1e6 / phase.record.ops.max(1) as f64)
}

/// Background work on large values until the store was idle, one part of it.
fn value_seconds(phase: &Phase, part: &str) -> Option<f64> {
    phase.record.value_seconds.get(part).copied()
}

/// Least, middle and largest of the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The middle; of an even number, the mean of the two in the middle.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    fn of(mut numbers: Vec<f64>) -> Option<Spread> {
        numbers.sort_by(f64::total_cmp);
        let (min, max) = (*numbers.first()?, *numbers.last()?);
        let middle = numbers.len() / 2;
        let median = match numbers.len() % 2 {
            1 => numbers[middle],
            _ => (numbers[middle - 1] + numbers[middle]) / 2.0,
        };
        Some(Spread { min, median, max })
    }
}

/// One line of the comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The benchmark and its step, with its number among the phases: `2 readrandom cached`.
    pub phase: String,
    /// What was measured.
    pub metric: &'static str,
    /// The engine.
    pub engine: String,
    /// What it measured, over the rounds.
    pub value: Spread,
    /// The same over what the first engine measured in the same round.
    pub ratio: Option<Spread>,
}

/// A run without a result.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// From 1.
    pub round: usize,
    /// The engine.
    pub engine: String,
    /// What happened.
    pub message: String,
}

/// What came of a case.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The case.
    pub case: Case,
    /// Whether all runs left the same content; `None` where the work leaves different content by
    /// itself.
    pub same_content: Option<bool>,
    /// Every measurement.
    pub rows: Vec<Row>,
    /// Runs that gave none.
    pub failures: Vec<Failure>,
    /// Every run, by round and engine; `None` where it failed.
    pub rounds: Vec<Vec<Option<Run>>>,
}

impl Compared {
    /// Something went wrong: a run failed, or engines hold different content.
    pub fn is_bad(&self) -> bool {
        !self.failures.is_empty() || self.same_content == Some(false)
    }
}

/// How to compare.
pub struct Plan<'a> {
    /// Names of engines; the first is what the others are compared with.
    pub engines: &'a [String],
    /// How often.
    pub rounds: usize,
    /// Runs one engine with flags.
    pub run: &'a dyn Fn(&str, &[String]) -> Result<Run>,
}

/// Does `case` in all rounds; `news` gets a line before each run, and one for each that fails.
pub fn compare(plan: &Plan<'_>, case: &Case, news: &mut dyn FnMut(&str)) -> Result<Compared> {
    let is_deterministic = Work::parse(&case.flags)?.is_deterministic();
    let mut rounds = Vec::new();
    let mut failures = Vec::new();
    for round in 0..plan.rounds {
        let mut runs: Vec<Option<Run>> = vec![None; plan.engines.len()];
        for turn in 0..plan.engines.len() {
            let index = (turn + round) % plan.engines.len();
            let engine = &plan.engines[index];
            news(&format!("{}: round {} of {}: {engine}", case.name, round + 1, plan.rounds));
            match (plan.run)(engine, &case.flags) {
                Ok(run) => runs[index] = Some(run),
                Err(error) => {
                    let message = error.to_string();
                    news(&format!("{message}; going on without it"));
                    failures.push(Failure { round: round + 1, engine: engine.clone(), message });
                }
            }
        }
        rounds.push(runs);
    }
    let all: Vec<_> = rounds.iter().flatten().flatten().map(|run| run.content).collect();
    let same_content = is_deterministic.then(|| all.windows(2).all(|pair| pair[0] == pair[1]));
    let rows = rows(plan.engines, &rounds);
    Ok(Compared { case: case.clone(), same_content, rows, failures, rounds })
}

fn rows(engines: &[String], rounds: &[Vec<Option<Run>>]) -> Vec<Row> {
    let Some(whole) = rounds.iter().flatten().flatten().max_by_key(|run| run.phases.len()) else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    for (number, phase) in whole.phases.iter().enumerate() {
        for &(metric, measure) in METRICS {
            for (index, engine) in engines.iter().enumerate() {
                let of = |round: &[Option<Run>], index: usize| {
                    measure(round.get(index)?.as_ref()?.phases.get(number)?)
                };
                let values = rounds.iter().filter_map(|round| of(round, index));
                let ratios = rounds.iter().filter_map(|round| {
                    let base = of(round, 0).filter(|&base| base > 0.0)?;
                    Some(of(round, index)? / base)
                });
                let Some(value) = Spread::of(values.collect()) else { continue };
                rows.push(Row {
                    phase: format!("{} {}", number + 1, phase.title()),
                    metric,
                    engine: engine.clone(),
                    value,
                    ratio: Spread::of(ratios.collect()),
                });
            }
        }
    }
    rows
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use base::{Error, ErrorKind};
    use std::cell::RefCell;

    #[test]
    fn a_spread_has_the_middle() {
        let spread = |numbers: &[f64]| Spread::of(numbers.to_vec()).map(|spread| spread.median);
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    pub(crate) fn run(engine: &str, ops_per_second: f64) -> Run {
        let text = format!(
            r#"{{"engine":"{engine}","cpu_seconds":null,"content":{{"entries":1,"checksum":2}},
            "phases":[{{"settle_seconds":0,"write_bytes":null,"wa":null,"space_bytes":null,
            "record":{{"benchmark":"fillseq","ops":1,"seconds":1,"ops_per_second":{ops_per_second},
            "user_bytes":1,"host_write_bytes":null,"host_read_bytes":null,
            "media_write_bytes":null,"wa":null,"wa_without_wal":null,"space_bytes":null,
            "stall_seconds":null,"peak_rss_bytes":null,
            "latency_ns":{{"read":null,"write":null}}}}}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    /// Compares engines `a` and `b`; `results` are taken in the order of the runs.
    pub(crate) fn compared(results: Vec<Result<f64>>) -> Compared {
        let rounds = results.len() / 2;
        let results = RefCell::new(results.into_iter());
        let engines = ["a".to_string(), "b".to_string()];
        let work = |engine: &str, _: &[String]| {
            results.borrow_mut().next().unwrap().map(|ops_per_second| run(engine, ops_per_second))
        };
        let case = Case { name: "fill".into(), flags: vec!["--benchmarks=fillseq".into()] };
        compare(&Plan { engines: &engines, rounds, run: &work }, &case, &mut |_| {}).unwrap()
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The order of the second round is b, a.
        let compared = compared([100.0, 200.0, 5.0, 10.0, 10.0, 10.0].map(Ok).to_vec());
        let rows: Vec<&Row> = compared.rows.iter().filter(|row| row.metric == "ops/s").collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].value, Spread { min: 5.0, median: 10.0, max: 200.0 });
        assert_eq!(rows[1].ratio, Some(Spread { min: 0.5, median: 1.0, max: 2.0 }));
        assert_eq!(rows[0].ratio, Some(Spread { min: 1.0, median: 1.0, max: 1.0 }));
        assert!(!compared.is_bad());
    }

    #[test]
    fn a_failed_run_is_noted_and_the_others_go_on() {
        let hung = || Err(Error::new(ErrorKind::Cancelled, "a: not done"));
        let compared = compared(vec![hung(), Ok(200.0), Ok(5.0), Ok(10.0)]);
        assert!(compared.is_bad());
        assert_eq!((compared.failures[0].round, compared.failures[0].engine.as_str()), (1, "a"));
        assert_eq!(compared.rows[0].value, Spread { min: 10.0, median: 10.0, max: 10.0 });
        assert_eq!(compared.rows[1].value.max, 200.0);
        assert_eq!(compared.rows[1].ratio, Some(Spread { min: 0.5, median: 0.5, max: 0.5 }));
        assert_eq!(compared.same_content, Some(true));
    }
}
