//! Several engines on the same work: in rounds, in turn, each in a process of its own.
//!
//! The order changes from round to round, so that a slow minute of the machine does not always hit
//! the same engine; ratios are taken within a round.

use crate::run::{Content, Phase, Run};
use base::{Error, ErrorKind, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Takes a number out of a phase, where the phase has it.
type Measure = fn(&Phase) -> Option<f64>;

/// What is compared of a phase.
const METRICS: &[(&str, Measure)] = &[
    ("ops/s", |phase| Some(phase.record.ops_per_second)),
    ("WA", |phase| phase.wa),
    ("space MB", |phase| phase.space_bytes.map(|bytes| bytes as f64 / 1e6)),
    ("read p99 us", |phase| phase.record.latency_ns.read.map(|read| read.p99 as f64 / 1e3)),
    ("read p99.9 us", |phase| phase.record.latency_ns.read.map(|read| read.p999 as f64 / 1e3)),
    ("write p99 us", |phase| phase.record.latency_ns.write.map(|write| write.p99 as f64 / 1e3)),
    ("write p99.9 us", |phase| phase.record.latency_ns.write.map(|write| write.p999 as f64 / 1e3)),
    ("memory MB", |phase| phase.record.peak_rss_bytes.map(|bytes| bytes as f64 / 1e6)),
];

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
    /// The benchmark, with its number among the phases: `1 fillrandom`.
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

/// The whole comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Whether all engines were left with the same content in every round; `None` where the work
    /// leaves different content by itself.
    pub same_content: Option<bool>,
    /// Every measurement.
    pub rows: Vec<Row>,
    /// Every run, by round.
    pub rounds: Vec<Vec<Run>>,
}

/// What to compare.
pub struct Plan<'a> {
    /// Names of engines; the first is what the others are compared with.
    pub engines: &'a [String],
    /// How often.
    pub rounds: usize,
    /// Where the stores go; each run removes its own.
    pub dir: &'a Path,
    /// The flags of db_bench.
    pub flags: &'a [String],
    /// Whether the same flags always leave the same content.
    pub deterministic: bool,
    /// How long a run may take.
    pub timeout: Duration,
}

/// Runs the plan; `news` gets a line before each run.
pub fn compare(plan: &Plan<'_>, news: &mut dyn FnMut(&str)) -> Result<Comparison> {
    let mut rounds = Vec::new();
    for round in 0..plan.rounds {
        let mut runs = BTreeMap::new();
        for turn in 0..plan.engines.len() {
            let index = (turn + round) % plan.engines.len();
            let engine = &plan.engines[index];
            news(&format!("round {} of {}: {engine}", round + 1, plan.rounds));
            runs.insert(index, run_apart(plan, engine)?);
        }
        rounds.push(runs.into_values().collect::<Vec<Run>>());
    }
    let contents = |round: &Vec<Run>| round.iter().map(|run| run.content).collect::<Vec<Content>>();
    let all: Vec<Content> = rounds.iter().flat_map(contents).collect();
    let same_content = plan.deterministic.then(|| all.windows(2).all(|pair| pair[0] == pair[1]));
    Ok(Comparison { same_content, rows: rows(&rounds), rounds })
}

/// Runs one engine in a process of its own, and removes what it leaves.
fn run_apart(plan: &Plan<'_>, engine: &str) -> Result<Run> {
    let dir = plan.dir.join(engine);
    let broken = |doing: &str, error| Error::io(format!("{engine}: {doing}"), error);
    let program = std::env::current_exe().map_err(|error| broken("find this program", error))?;
    let child = Command::new(program)
        .args(["run", "--engine", engine, "--dir"])
        .arg(&dir)
        .arg("--")
        .args(plan.flags)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| broken("start a process", error))?;
    let output = wait(child, engine, plan.timeout);
    // Whatever happened, the next run needs the room.
    let removed = std::fs::remove_dir_all(&dir);
    let output = output?;
    removed.map_err(|error| broken("remove the store", error))?;
    serde_json::from_str(&output).map_err(|error| {
        Error::new(ErrorKind::Io, format!("{engine}: its result is not understood: {error}"))
    })
}

/// The output of `child`, which is ended when it takes longer than `timeout`.
fn wait(mut child: Child, engine: &str, timeout: Duration) -> Result<String> {
    let broken = |error| Error::io(format!("{engine}: wait for its process"), error);
    let mut pipe = child.stdout.take().ok_or_else(|| Error::invalid("a run without output"))?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).map(|_| text)
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(broken)? {
            break status;
        }
        if start.elapsed() > timeout {
            child.kill().and_then(|()| child.wait()).map_err(broken)?;
            let seconds = timeout.as_secs();
            let message = format!("{engine}: not done after {seconds} seconds, and ended");
            return Err(Error::new(ErrorKind::Cancelled, message));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if !status.success() {
        return Err(Error::new(ErrorKind::Io, format!("{engine}: the run failed ({status})")));
    }
    reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(broken)
}

fn rows(rounds: &[Vec<Run>]) -> Vec<Row> {
    let Some(first_round) = rounds.first() else { return Vec::new() };
    let phases = first_round.iter().map(|run| run.phases.len()).min().unwrap_or(0);
    let mut rows = Vec::new();
    for phase in 0..phases {
        for &(metric, measure) in METRICS {
            for (index, run) in first_round.iter().enumerate() {
                let of = |run: &Run| run.phases.get(phase).and_then(measure);
                let values = rounds.iter().filter_map(|round| of(&round[index]));
                let ratios = rounds.iter().filter_map(|round| {
                    let base = of(&round[0]).filter(|&base| base > 0.0)?;
                    Some(of(&round[index])? / base)
                });
                let Some(value) = Spread::of(values.collect()) else { continue };
                rows.push(Row {
                    phase: format!("{} {}", phase + 1, run.phases[phase].record.benchmark),
                    metric,
                    engine: run.engine.clone(),
                    value,
                    ratio: Spread::of(ratios.collect()),
                });
            }
        }
    }
    rows
}

/// The comparison as a table for people.
pub fn table(comparison: &Comparison) -> String {
    let mut text = format!(
        "{:<24} {:<15} {:<10} {:>12}   ratio to the first: {:>6} {:>8} {:>8}\n",
        "phase", "metric", "engine", "median", "min", "median", "max"
    );
    let mut last = "";
    for row in &comparison.rows {
        if row.phase != last {
            text.push('\n');
            last = &row.phase;
        }
        let Row { phase, metric, engine, value, ratio } = row;
        let _ = write!(text, "{phase:<24} {metric:<15} {engine:<10} {:>12.2}", value.median);
        if let Some(Spread { min, median, max }) = ratio {
            let _ = write!(text, "   {:19} {min:>6.2} {median:>8.2} {max:>8.2}", "");
        }
        text.push('\n');
    }
    text.push_str(match comparison.same_content {
        Some(true) => "\nAll engines hold the same content.\n",
        Some(false) => "\nTHE ENGINES HOLD DIFFERENT CONTENT: at least one is wrong.\n",
        None => "\nContent not compared: this work leaves different content every time.\n",
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_middle() {
        let spread = |numbers: &[f64]| Spread::of(numbers.to_vec()).map(|spread| spread.median);
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    fn child(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn a_run_that_hangs_or_fails_is_an_error() {
        let brief = Duration::from_millis(100);
        let error = wait(child("exec sleep 60"), "x", brief).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        let minute = Duration::from_secs(60);
        assert!(wait(child("exit 3"), "x", minute).is_err());
        assert_eq!(wait(child("echo done"), "x", minute).unwrap(), "done\n");
    }

    fn run(engine: &str, ops_per_second: f64) -> Run {
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

    #[test]
    fn ratios_are_taken_within_a_round() {
        let rounds = [
            vec![run("a", 100.0), run("b", 200.0)],
            vec![run("a", 10.0), run("b", 5.0)],
            vec![run("a", 10.0), run("b", 10.0)],
        ];
        let rows = rows(&rounds);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].value, Spread { min: 5.0, median: 10.0, max: 200.0 });
        assert_eq!(rows[1].ratio, Some(Spread { min: 0.5, median: 1.0, max: 2.0 }));
        assert_eq!(rows[0].ratio, Some(Spread { min: 1.0, median: 1.0, max: 1.0 }));
    }
}
