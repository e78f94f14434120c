//! One engine, one list of benchmarks, in this process: what it did, what it cost, what it left.

use crate::engine::{Engine, EngineOptions, Place};
use base::checksum::hash64_seeded;
use base::{Error, Result};
use lab::dbbench::{self, Config};
use lab::process::{self, Io};
use lab::store::{Direction, Store, StoreFactory};
use lab::{Record, Silent, WallClock};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// The benchmark that ends every phase: background work, and what is still dirty, belongs to the
/// phase that caused it.
const SETTLE: &str = "waitforcompaction";

/// One benchmark with the work that it left behind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Phase {
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

/// Runs the benchmarks of `config` on `engine` in `dir`, which is emptied first.
pub fn run(engine: Engine, dir: &Path, config: &Config) -> Result<Run> {
    let mut config = config.clone();
    config.benchmarks =
        config.benchmarks.into_iter().flat_map(|name| [name, SETTLE.to_string()]).collect();
    let place = Place::new(engine, dir, EngineOptions::new(&config)?);
    if !config.use_existing_db {
        place.destroy()?;
    }
    let clock = WallClock::default();
    config.json = true;
    let mut marks = Marks::default();
    let start_bytes = Io::now().map(|io| io.net_write_bytes());
    let records = dbbench::run(&config, &place, &clock, &Silent, &mut marks)?;
    let store = place.open()?;
    let content = content(store.as_ref())?;
    store.close()?;
    Ok(Run {
        engine: engine.name.to_string(),
        phases: phases(records, start_bytes, &marks.0)?,
        content,
        cpu_seconds: process::cpu_seconds(),
    })
}

/// Takes the place of an output of JSON lines, and notes at each what the process had written.
///
/// The sum of the intervals between records would be too high: bytes that one interval counts may
/// be taken back in the next, when a file goes away before it reached storage.
#[derive(Default)]
struct Marks(Vec<Option<u64>>);

impl Write for Marks {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.push(Io::now().map(|io| io.net_write_bytes()));
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Puts every benchmark together with the settling after it. `marks` stand at the end of each
/// record. The settling after a report, which measures nothing, goes to the benchmark before it.
fn phases(
    records: Vec<Record>,
    start_bytes: Option<u64>,
    marks: &[Option<u64>],
) -> Result<Vec<Phase>> {
    if records.len() != marks.len() {
        return Err(Error::invalid("a record without a mark: the output is not one line each"));
    }
    let mut phases: Vec<Phase> = Vec::new();
    let mut phase_start_bytes = start_bytes;
    for (record, &mark) in records.into_iter().zip(marks) {
        if record.benchmark != SETTLE {
            phases.push(Phase::new(record));
            continue;
        }
        if let Some(phase) = phases.last_mut() {
            phase.settle(&record, phase_start_bytes, mark);
        }
        phase_start_bytes = mark;
    }
    Ok(phases)
}

impl Phase {
    fn new(record: Record) -> Phase {
        Phase { record, settle_seconds: 0.0, write_bytes: None, wa: None, space_bytes: None }
    }

    /// Adds a settling that ended at `end_bytes`; what was written since `start_bytes` is this
    /// phase's.
    fn settle(&mut self, settling: &Record, start_bytes: Option<u64>, end_bytes: Option<u64>) {
        let added = end_bytes.zip(start_bytes).map(|(end, start)| end.saturating_sub(start));
        self.settle_seconds += settling.seconds;
        self.space_bytes = settling.space_bytes;
        self.write_bytes = added.map(|added| added + self.write_bytes.unwrap_or(0));
        let user_bytes = self.record.user_bytes;
        self.wa = self
            .write_bytes
            .filter(|_| user_bytes > 0)
            .map(|bytes| bytes as f64 / user_bytes as f64);
    }
}

/// Reads everything.
fn content(store: &dyn Store) -> Result<Content> {
    let mut content = Content { entries: 0, checksum: 0 };
    store.scan(None, usize::MAX, Direction::Forward, &mut |key, value| {
        content.entries += 1;
        // The lengths keep key and value apart.
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
        let config = dbbench::parse(flags).unwrap().config;
        run(engine, &dir.path().join("db"), &config).unwrap()
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
