//! One engine, one piece of work, in this process: what it did, what it cost, what it left.

use crate::engine::{Engine, EngineOptions, Place};
use crate::peak::SpacePeak;
use crate::work::{Step, Work};
use crate::ycsb;
use base::checksum::hash64_seeded;
use base::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;
use workloads::dbbench;
use workloads::process::{self, Io};
use workloads::store::{Direction, Store, StoreFactory};
use workloads::{Record, Silent, WallClock};

/// The benchmark that ends every phase: background work, and what is still dirty, belongs to the
/// phase that caused it.
const SETTLE: &str = "waitforcompaction";

/// One benchmark with the work that it left behind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Phase {
    /// The name of the step that it belongs to; nothing in the first.
    #[serde(default)]
    pub step: String,
    /// The benchmark itself, up to its last operation.
    pub record: Record,
    /// Seconds until no background work was left and everything was durable.
    pub settle_seconds: f64,
    /// Bytes written to storage from the start of the benchmark until then.
    pub write_bytes: Option<u64>,
    /// `write_bytes` over the bytes that the benchmark wrote.
    pub wa: Option<f64>,
    /// Bytes on storage then.
    pub space_bytes: Option<u64>,
    /// The maximum number of bytes on storage until then.
    #[serde(default)]
    pub space_peak_bytes: Option<u64>,
    /// Processor time from the start of the benchmark until then.
    #[serde(default)]
    pub cpu_seconds: Option<f64>,
}

/// What a store holds in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Entries found by a full scan after reopening.
    pub entries: u64,
    /// Checksum over all keys and values, in order.
    pub checksum: u64,
}

/// A whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The engine's name.
    pub engine: String,
    /// One for each benchmark that measured something.
    pub phases: Vec<Phase>,
    /// The final content.
    pub content: Content,
    /// Processor time of the whole process.
    pub cpu_seconds: Option<f64>,
}

/// Does `work` on `engine` in `dir`, which is emptied first.
pub fn run(engine: Engine, dir: &Path, work: &Work) -> Result<Run> {
    let mut place = Place::new(engine, dir, EngineOptions::new(&work.first.config)?);
    if !work.first.config.use_existing_db {
        place.destroy()?;
    }
    let mut phases = Vec::new();
    let peak = SpacePeak::watch(dir);
    for step in work.steps() {
        place = Place::new(engine, dir, EngineOptions::new(&step.config)?);
        let done = if ycsb::is_asked(&step.config) {
            ycsb::step(&place, &step.config, &peak)?
        } else {
            db_bench(&place, step, &peak)?
        };
        phases.extend(done.into_iter().map(|phase| Phase { step: step.name.clone(), ..phase }));
    }
    let store = place.open()?;
    let content = content(store.as_ref())?;
    store.close()?;
    let cpu_seconds = process::cpu_seconds();
    Ok(Run { engine: engine.name.to_string(), phases, content, cpu_seconds })
}

/// Runs the benchmarks of a step, each until the store is idle.
fn db_bench(place: &Place, step: &Step, peak: &SpacePeak) -> Result<Vec<Phase>> {
    let mut config = step.config.clone();
    config.benchmarks =
        config.benchmarks.into_iter().flat_map(|name| [name, SETTLE.to_string()]).collect();
    config.json = true;
    let clock = WallClock::default();
    let start = Mark::now(peak);
    let mut marks = Marks { peak, marks: Vec::new() };
    let records = dbbench::run(&config, place, &clock, &Silent, &mut marks)?;
    phases(records, start, &marks.marks)
}

/// What the process had written and computed at one moment, and the space since the last one.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    written_bytes: Option<u64>,
    cpu_seconds: Option<f64>,
    space_peak_bytes: u64,
}

impl Mark {
    /// The mark of this moment.
    pub fn now(peak: &SpacePeak) -> Mark {
        Mark {
            written_bytes: Io::now().map(|io| io.net_write_bytes()),
            cpu_seconds: process::cpu_seconds(),
            space_peak_bytes: peak.take(),
        }
    }
}

/// Takes the place of an output of JSON lines, and notes at each record what the process had
/// written. Other lines are reports, such as those of `stats`.
///
/// The sum of the intervals between records would be too high: bytes that one interval counts may
/// be taken back in the next, when a file goes away before it reached storage.
struct Marks<'a> {
    peak: &'a SpacePeak,
    marks: Vec<Mark>,
}

impl Write for Marks<'_> {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let mark = Mark::now(self.peak);
        self.marks.extend(serde_json::from_slice::<Record>(line).is_ok().then_some(mark));
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Puts every benchmark together with the settling after it. `marks` stand at the end of each
/// record. The settling after a report, which measures nothing, goes to the benchmark before it.
fn phases(records: Vec<Record>, start: Mark, marks: &[Mark]) -> Result<Vec<Phase>> {
    if records.len() != marks.len() {
        return Err(Error::invalid("a record without a mark: the output is not one line each"));
    }
    let mut phases: Vec<Phase> = Vec::new();
    let (mut before, mut peak_bytes) = (start, 0);
    for (record, &mark) in records.into_iter().zip(marks) {
        peak_bytes = mark.space_peak_bytes.max(peak_bytes);
        if record.benchmark != SETTLE {
            phases.push(Phase::new(record));
            continue;
        }
        if let Some(phase) = phases.last_mut() {
            for (part, seconds) in record.value_seconds {
                *phase.record.value_seconds.entry(part).or_default() += seconds;
            }
            let mark = Mark { space_peak_bytes: peak_bytes, ..mark };
            phase.settle(record.seconds, record.space_bytes, before, mark);
        }
        (before, peak_bytes) = (mark, 0);
    }
    Ok(phases)
}

impl Phase {
    /// What `record` measured, before the store has settled.
    pub fn new(record: Record) -> Phase {
        Phase {
            step: String::new(),
            record,
            settle_seconds: 0.0,
            write_bytes: None,
            wa: None,
            space_bytes: None,
            space_peak_bytes: None,
            cpu_seconds: None,
        }
    }

    /// Adds what settling needed, from the mark before the phase to the one after it.
    pub fn settle(&mut self, seconds: f64, space_bytes: Option<u64>, before: Mark, after: Mark) {
        self.settle_seconds += seconds;
        let added = after.written_bytes.zip(before.written_bytes);
        let added = added.map(|(after, before)| after.saturating_sub(before));
        self.write_bytes = added.map(|added| added + self.write_bytes.unwrap_or(0));
        let user_bytes = self.record.user_bytes;
        let wa = self.write_bytes.filter(|_| user_bytes > 0);
        self.wa = wa.map(|bytes| bytes as f64 / user_bytes as f64);
        self.space_bytes = space_bytes;
        self.space_peak_bytes = self.space_peak_bytes.max(Some(after.space_peak_bytes));
        let spent = after.cpu_seconds.zip(before.cpu_seconds).map(|(after, before)| after - before);
        self.cpu_seconds = spent.map(|spent| spent + self.cpu_seconds.unwrap_or(0.0));
    }

    /// The benchmark, and the step where it has a name.
    pub fn title(&self) -> String {
        format!("{} {}", self.record.benchmark, self.step).trim_end().to_string()
    }
}

/// Reads everything.
fn content(store: &dyn Store) -> Result<Content> {
    let mut content = Content { entries: 0, checksum: 0 };
    store.scan(None, usize::MAX, Direction::Forward, &mut |key, value| {
        content.entries += 1;
        // The lengths separate the key from the value.
        let seed = content.checksum ^ ((key.len() as u64) << 32 | value.len() as u64);
        content.checksum = hash64_seeded(value, hash64_seeded(key, seed));
    })?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ENGINES;

    fn run_small(engine: Engine, flags: &[&str]) -> Run {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let flags: Vec<String> = flags.iter().map(|flag| flag.to_string()).collect();
        run(engine, &dir.path().join("db"), &Work::parse(&flags).unwrap()).unwrap()
    }

    #[test]
    fn all_engines_end_with_the_same_content() {
        let flags = [
            "--benchmarks=fillrandom,overwrite,deleterandom,readrandom,seekrandom,stats",
            "--num=5000",
            "--deletes=1000",
            "--write_buffer_size=1048576",
        ];
        let runs: Vec<Run> = ENGINES.iter().map(|&engine| run_small(engine, &flags)).collect();
        for run in &runs {
            assert_eq!(run.content, runs[0].content, "{} {}", run.engine, runs[0].engine);
            assert!((2000..4000).contains(&run.content.entries), "{}", run.content.entries);
            let names: Vec<&str> = run.phases.iter().map(|p| p.record.benchmark.as_str()).collect();
            let expected = ["fillrandom", "overwrite", "deleterandom", "readrandom", "seekrandom"];
            assert_eq!(names, expected);
            // A log alone writes every byte once.
            assert!(run.phases[0].wa.unwrap() > 0.9, "{}: {:?}", run.engine, run.phases[0]);
            assert_eq!(run.phases[3].wa, None);
        }
    }

    #[test]
    fn ycsb_and_later_steps_leave_the_same_content_in_all_engines() {
        let flags = [
            "--benchmarks=ycsb-load,ycsb-a,ycsb-b,ycsb-c,ycsb-f,ycsb-d,ycsb-e",
            "--num=500",
            "--reads=300",
            "then:again",
            "--benchmarks=readseq",
            "--threads=2",
        ];
        let runs: Vec<Run> = ENGINES.iter().map(|&engine| run_small(engine, &flags)).collect();
        for run in &runs {
            assert_eq!(run.content, runs[0].content, "{} {}", run.engine, runs[0].engine);
            assert!(run.content.entries > 500, "D and E insert");
            let titles: Vec<String> = run.phases.iter().map(Phase::title).collect();
            assert_eq!(titles[0], "ycsb-load");
            assert_eq!(titles[7], "readseq again");
            assert_eq!(run.phases[0].record.ops, 500);
            assert_eq!(run.phases[1].record.ops, 300);
            assert!(run.phases[0].wa.unwrap() > 0.9, "{}: {:?}", run.engine, run.phases[0]);
            assert_eq!(run.phases[3].wa, None, "workload C only reads");
        }
    }

    #[test]
    fn different_content_has_another_checksum() {
        let engine = ENGINES[0];
        let checksum = |seed| {
            let seed = format!("--seed={seed}");
            run_small(engine, &["--benchmarks=fillrandom", "--num=100", &seed]).content.checksum
        };
        assert_eq!(checksum(1), checksum(1));
        assert_ne!(checksum(1), checksum(2));
    }
}
