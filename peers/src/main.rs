//! `peers`: Shingle beside other stores, on the same work, with the same memory, filters and no
//! compression, measured in bytes by the kernel.

#[cfg(not(any(feature = "fjall", feature = "leveldb", feature = "rocksdb", feature = "shingle")))]
compile_error!("give at least one engine as a feature");

mod compare;
mod engine;
#[cfg(feature = "fjall")]
mod fjall;
mod kernel;
#[cfg(feature = "leveldb")]
mod leveldb;
#[cfg(feature = "rocksdb")]
mod rocks;
mod run;
#[cfg(feature = "shingle")]
mod shingle;

use base::{Error, Result};
use clap::{Parser, Subcommand};
use compare::Plan;
use engine::{ENGINES, Engine};
use lab::dbbench::{self, Config};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

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
        /// Names of db_bench's benchmarks, with commas; or give them among the flags.
        #[arg(long)]
        benchmarks: Option<String>,
        /// Flags of db_bench: --num, --value_size, --write_buffer_size, --cache_size ...
        #[arg(last = true)]
        flags: Vec<String>,
    },
    /// Runs several engines in turn and prints a table of ratios to the first.
    Compare {
        /// The engines, with commas; all that are built in unless given.
        #[arg(long, value_delimiter = ',')]
        engines: Vec<String>,
        /// How often each runs.
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// Where the stores go, one at a time.
        #[arg(long)]
        dir: PathBuf,
        /// Names of db_bench's benchmarks, with commas; or give them among the flags.
        #[arg(long)]
        benchmarks: Option<String>,
        /// Writes everything that was measured to this file.
        #[arg(long)]
        json: Option<PathBuf>,
        /// Seconds after which a run is ended.
        #[arg(long, default_value_t = 3600)]
        timeout: u64,
        /// Flags of db_bench: --num, --value_size, --write_buffer_size, --cache_size ...
        #[arg(last = true)]
        flags: Vec<String>,
    },
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
            let (config, _) = configure(benchmarks, flags)?;
            let run = run::run(Engine::named(&engine)?, &dir, &config)?;
            println!("{}", json(&run)?);
            Ok(ExitCode::SUCCESS)
        }
        Action::Compare { engines, rounds, dir, benchmarks, json: file, timeout, flags } => {
            let (config, flags) = configure(benchmarks, flags)?;
            let all = || ENGINES.iter().map(|engine| engine.name.to_string()).collect();
            let engines: Vec<String> = if engines.is_empty() { all() } else { engines };
            engines.iter().try_for_each(|name| Engine::named(name).map(|_| ()))?;
            let timeout = Duration::from_secs(timeout);
            let deterministic = is_deterministic(&config);
            let plan = Plan {
                engines: &engines,
                rounds,
                dir: &dir,
                flags: &flags,
                deterministic,
                timeout,
            };
            let comparison = compare::compare(&plan, &mut |line| eprintln!("{line}"))?;
            print!("{}", compare::table(&comparison));
            if let Some(file) = file {
                std::fs::write(&file, json(&comparison)?).map_err(|error| {
                    Error::io("write the results", error).in_file(file.display().to_string())
                })?;
            }
            let differs = comparison.same_content == Some(false);
            Ok(if differs { ExitCode::FAILURE } else { ExitCode::SUCCESS })
        }
    }
}

/// The configuration that the flags ask for, and all flags in one list.
fn configure(benchmarks: Option<String>, flags: Vec<String>) -> Result<(Config, Vec<String>)> {
    let names = benchmarks.map(|names| format!("--benchmarks={names}"));
    let flags: Vec<String> = names.into_iter().chain(flags).collect();
    let parsed = dbbench::parse(&flags)?;
    parsed.warnings.iter().for_each(|warning| eprintln!("peers: {warning}"));
    Ok((parsed.config, flags))
}

/// Threads that write at the same time, and work that ends by time, leave different content.
fn is_deterministic(config: &Config) -> bool {
    let by_time = |name: &String| name.ends_with("whilewriting");
    config.threads == 1 && config.duration_seconds == 0 && !config.benchmarks.iter().any(by_time)
}

fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::invalid(format!("the result cannot be written as JSON: {error}")))
}
