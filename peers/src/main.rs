//! `peers`: Shingle beside other stores, on the same work, with the same memory, filters and no
//! compression, measured in bytes by the kernel.

#[cfg(not(any(
    feature = "fjall",
    feature = "leveldb",
    feature = "lmdb",
    feature = "rocksdb",
    feature = "shingle"
)))]
compile_error!("give at least one engine as a feature");

mod compare;
mod engine;
#[cfg(feature = "fjall")]
mod fjall;
mod growth;
mod kernel;
#[cfg(feature = "leveldb")]
mod leveldb;
#[cfg(feature = "lmdb")]
mod lmdb;
mod page;
mod peak;
#[cfg(feature = "rocksdb")]
mod rocks;
mod run;
#[cfg(feature = "shingle")]
mod shingle;
mod subprocess;
mod suite;
mod table;
mod work;
mod ycsb;

use base::{Error, Result};
use clap::{Args, Parser, Subcommand};
use compare::{Compared, Plan};
use engine::{ENGINES, Engine};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use suite::Case;
use work::Work;

/// Compares storage engines on the same work.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Names the engines that this program was built with.
    Engines,
    /// Runs one engine in this process and prints its result as one line of JSON.
    Run {
        /// The engine.
        #[arg(long)]
        engine: String,
        /// Where the store goes; it is emptied first.
        #[arg(long)]
        dir: PathBuf,
        /// Names of db_bench's benchmarks, or `ycsb-load` and `ycsb-a` to `ycsb-f`, with commas; or
        /// give them among the flags.
        #[arg(long)]
        benchmarks: Option<String>,
        /// Flags of db_bench: --num, --value_size, --write_buffer_size, --cache_size ...;
        /// `then:NAME` begins a step with flags of its own, on the same store.
        #[arg(last = true)]
        flags: Vec<String>,
    },
    /// Runs several engines in turn and prints tables of ratios to the first.
    Compare(Compare),
}

#[derive(Args)]
struct Compare {
    /// The engines, with commas; all that are built in unless given.
    #[arg(long, value_delimiter = ',')]
    engines: Vec<String>,
    /// How often each runs.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Where the stores go, one at a time.
    #[arg(long)]
    dir: PathBuf,
    /// Cases by name instead of benchmarks: writes, reads, ycsb, threads, all, large, growth,
    /// values or hashkv.
    #[arg(long, conflicts_with = "benchmarks")]
    suite: Option<String>,
    /// Of the suite, only the cases that have this in their names.
    #[arg(long, requires = "suite")]
    only: Option<String>,
    /// How many times the usual numbers of entries and operations a suite has.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Names of benchmarks, as for `run`.
    #[arg(long)]
    benchmarks: Option<String>,
    /// Writes everything that was measured to this file, after each case anew.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Writes every line of the tables to this file, as comma-separated values.
    #[arg(long)]
    csv: Option<PathBuf>,
    /// Writes the medians to this file, as tables in Markdown.
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// Writes a page with plots to this file.
    #[arg(long)]
    html: Option<PathBuf>,
    /// Writes a picture of write amplification over size to this file, as SVG; for `growth`.
    #[arg(long)]
    growth: Option<PathBuf>,
    /// Seconds after which a run is ended; the others go on.
    #[arg(long, default_value_t = 600)]
    timeout: u64,
    /// Flags, as for `run`; with a suite, for each of its cases.
    #[arg(last = true)]
    flags: Vec<String>,
}

fn main() -> ExitCode {
    match act(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("peers: {error}; {}", error.kind().remedy());
            ExitCode::FAILURE
        }
    }
}

fn act(action: Action) -> Result<ExitCode> {
    match action {
        Action::Engines => {
            ENGINES.iter().for_each(|engine| println!("{}", engine.name));
            Ok(ExitCode::SUCCESS)
        }
        Action::Run { engine, dir, benchmarks, flags } => {
            let work = Work::parse(&with_benchmarks(benchmarks, flags))?;
            work.warnings.iter().for_each(|warning| eprintln!("peers: {warning}"));
            println!("{}", json(&run::run(Engine::named(&engine)?, &dir, &work)?)?);
            Ok(ExitCode::SUCCESS)
        }
        Action::Compare(asked) => asked.act(),
    }
}

/// Everything that a comparison gave.
#[derive(Serialize)]
struct Results<'a> {
    engines: &'a [String],
    cases: &'a [Compared],
}

impl Compare {
    fn act(mut self) -> Result<ExitCode> {
        if self.engines.is_empty() {
            self.engines = ENGINES.iter().map(|engine| engine.name.to_string()).collect();
        }
        self.engines.iter().try_for_each(|name| Engine::named(name).map(|_| ()))?;
        let timeout = Duration::from_secs(self.timeout);
        let plan = Plan {
            engines: &self.engines,
            rounds: self.rounds,
            run: &|engine, flags| subprocess::run(engine, flags, &self.dir, timeout),
        };
        let mut done = Vec::new();
        for case in self.cases()? {
            let compared = compare::compare(&plan, &case, &mut |line| eprintln!("{line}"))?;
            print!("{}", table::text(std::slice::from_ref(&compared)));
            done.push(compared);
            // After each case, so that what ends the program early does not take the rest with it.
            self.write(&done)?;
        }
        let is_bad = done.iter().any(Compared::is_bad);
        Ok(if is_bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn cases(&self) -> Result<Vec<Case>> {
        let flags = with_benchmarks(self.benchmarks.clone(), self.flags.clone());
        let Some(suite) = &self.suite else {
            return Ok(vec![Case { name: "benchmarks".into(), flags }]);
        };
        let cases = suite::cases(suite, self.scale, &flags)?;
        match &self.only {
            Some(part) => suite::only(cases, part),
            None => Ok(cases),
        }
    }

    /// Writes the files that are asked for.
    fn write(&self, cases: &[Compared]) -> Result<()> {
        if let Some(file) = &self.json {
            write(file, &json(&Results { engines: &self.engines, cases })?)?;
        }
        if let Some(file) = &self.csv {
            write(file, &table::csv(cases))?;
        }
        if let Some(file) = &self.markdown {
            write(file, &table::markdown(cases))?;
        }
        if let Some(file) = self.growth.as_ref().filter(|_| cases.len() > 1) {
            write(file, &growth::svg(&self.engines, cases)?)?;
        }
        if let Some(file) = &self.html {
            write(file, &page::html(&self.title(), &self.engines, cases))?;
        }
        Ok(())
    }

    fn title(&self) -> String {
        format!("{}: rounds: {}", self.engines.join(", "), self.rounds)
    }
}

fn write(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text)
        .map_err(|error| Error::io("write the results", error).in_file(file.display().to_string()))
}

/// All flags in one list.
fn with_benchmarks(benchmarks: Option<String>, flags: Vec<String>) -> Vec<String> {
    let names = benchmarks.map(|names| format!("--benchmarks={names}"));
    names.into_iter().chain(flags).collect()
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::invalid(format!("the result cannot be written as JSON: {error}")))
}
