//! `shingle`, the command: a database from the shell, its tools, and a demonstration on real data.
//!
//! Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 error or damage,
//! 2 wrong usage, 127 no such key, 130 interrupted.

mod args;
mod assumed;
mod bench;
mod chart;
mod color;
mod commands;
mod completions;
mod context;
mod demo;
mod device;
mod dump;
mod event_log;
mod failure;
mod interrupt;
mod lab;
mod ldb;
mod man;
mod open;
mod progress;
mod session;
mod shell;
mod simulate;
mod suggest;
mod text;
mod trace;
mod transfer;
mod units;
mod walk;

use args::{Cli, Command};
use clap::{CommandFactory, FromArgMatches};
use context::Context;
use failure::{Failure, Outcome};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // Also of a command line that could not be read.
    color::choose(&arguments);
    let as_json = arguments.iter().any(|argument| argument == "--json");
    let parsed = ldb::translate(arguments)
        .map_err(|failure| failure.report(as_json))
        .and_then(|arguments| parse(arguments).map_err(|error| answer_usage(&error, as_json)));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let mut out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let outcome = run(cli, &mut out);
    let flushed = out.flush().map_err(Failure::from);
    match outcome.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(as_json),
    }
}

fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let matches = args::help::compact(Cli::command()).try_get_matches_from(arguments)?;
    Cli::from_arg_matches(&matches)
}

/// Help and version go to stdout with code 0, a wrong command line to stderr with code 2.
fn answer_usage(error: &clap::Error, as_json: bool) -> ExitCode {
    if error.use_stderr() && as_json {
        return Failure::usage(args::help::message(error), "see `shingle help`").report(true);
    }
    let _ = error.print();
    ExitCode::from(error.exit_code() as u8)
}

fn run(cli: Cli, out: &mut dyn Write) -> Outcome {
    let mut context = Context::new(cli.global.into(), out);
    match cli.command {
        Command::Data(command) => commands::run(&mut context, command),
        Command::Salvage(args) => commands::maintenance::salvage(&mut context, args),
        Command::Backup(args) => commands::backup::backup(&mut context, args),
        Command::Keyspace(args) => commands::keyspace::keyspace(&mut context, args.action),
        Command::Shell(args) => shell::shell(&mut context, args),
        Command::Options => commands::options::options(&mut context),
        Command::Schemes(args) => commands::schemes::schemes(&mut context, &args),
        Command::Simulate(args) => simulate::simulate(&mut context, &args),
        Command::Dump(args) => dump::dump(&mut context, args),
        Command::Bench(args) => bench::bench(&mut context, args),
        Command::Device(args) => device::device(&mut context, args),
        Command::Lab(args) => lab::lab(&mut context, args),
        Command::Demo(args) => demo::demo(&mut context, args),
        Command::Completions(args) => completions::completions(&mut context, &args),
        Command::Man(args) => man::man(&mut context, &args),
        Command::CrashWriter(args) => demo::crash::write_until_killed(&mut context, args),
    }
}
