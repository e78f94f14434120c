//! One engine, one list of benchmarks, in this process: what it did, what it cost, what it left.

use crate::engine::{Engine, EngineOptions, Place};
use base::checksum::hash64_seeded;
use base::{Error, Result};
use lab::dbbench::{self, Config};
use lab::process;
use lab::store::{Direction, Store, StoreFactory};
use lab::{Record, Silent, WallClock};
use serde::{Deserialize, Serialize};
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
    let records = dbbench::run(&config, &place, &clock, &Silent, &mut std::io::sink())?;
    let store = place.open()?;
    let content = content(store.as_ref())?;
    store.close()?;
    Ok(Run {
        engine: engine.name.to_string(),
        phases: phases(records)?,
        content,
        cpu_seconds: process::cpu_seconds(),
    })
}

/// Puts every benchmark together with the settling after it. Reports measure nothing and leave a
/// settling alone, which is dropped.
fn phases(records: Vec<Record>) -> Result<Vec<Phase>> {
    let mut phases = Vec::new();
    let mut records = records.into_iter().peekable();
    while let Some(record) = records.next() {
        if record.benchmark == SETTLE {
            continue;
        }
        let settled = records
            .next_if(|next| next.benchmark == SETTLE)
            .ok_or_else(|| Error::invalid("a benchmark was not settled"))?;
        let write_bytes = record.host_write_bytes.zip(settled.host_write_bytes);
        let write_bytes = write_bytes.map(|(during, after)| during + after);
        let user_bytes = record.user_bytes;
        let wa = write_bytes.filter(|_| user_bytes > 0).map(|b| b as f64 / user_bytes as f64);
        phases.push(Phase {
            settle_seconds: settled.seconds,
            write_bytes,
            wa,
            space_bytes: settled.space_bytes,
            record,
        });
    }
    Ok(phases)
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
