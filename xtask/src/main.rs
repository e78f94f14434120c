//! Rules of the repository, checked: `cargo xtask tidy`. The same rules run as a test, so that
//! `cargo test` checks them too.
//!
//! `cargo xtask tidy --lower` lowers the counts of what may still break a rule to those of today.
//! `cargo xtask words FOLDER` lists retired words with their replacements, and `cargo xtask cycles
//! FOLDER` files that use each other in circles, with the names that make the edges.
//!
//! `cargo xtask interface` writes the listing of what the crate `shingle` exports, and
//! `cargo xtask interface --since REVISION` compares it with an earlier one.
//!
//! `cargo xtask publishable` prints the order in which the crates are published, and with
//! `--dry-run` packages and builds each as the registry would have it. `cargo xtask features` and
//! `cargo xtask msrv` compile the crate `shingle` with each set of features, and the workspace with
//! the oldest compiler that it promises to accept.
//!
//! `cargo xtask bench-check` counts the instructions of puts, gets, scans, flushes and compactions,
//! and compares them with `bench-baseline.toml`; `--write` keeps the new counts there.
//!
//! `cargo xtask c-library FOLDER` builds the C library and installs it there, and
//! `cargo xtask leveldb FOLDER` the libraries with LevelDB's interface. `cargo xtask java` builds
//! the jar of the Java binding and runs its tests.
//!
//! `cargo xtask readme` prints the commands of README.md, one on each line; `.ci/run` takes the
//! test command from there. `cargo xtask papers DIR` puts the verdicts of a run of the lab into
//! `docs/papers`; without DIR it draws the pictures there again, from the kept values.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod bench;
mod c_library;
mod graph;
mod interface;
mod java;
mod leveldb;
mod methods;
mod modules;
mod names;
mod package;
mod papers;
mod paths;
mod prose;
mod readme;
mod release;
mod repository;
mod rules;
mod source;
mod uses;
mod words;

use repository::Repository;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let repository = match Repository::load() {
        Ok(repository) => repository,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy(&repository),
        ["tidy", "--lower"] => done(lower(&repository)),
        ["words"] => done(list_words(&repository, "")),
        ["words", under] => done(list_words(&repository, under)),
        ["cycles"] => list_cycles(&repository, ""),
        ["cycles", under] => list_cycles(&repository, under),
        ["interface"] => {
            let listing = interface::listing(&interface::exported(&repository));
            done(repository.write(interface::FILE, &listing))
        }
        ["interface", "--since", revision] => {
            done(interface::since(&repository, revision).map(|lines| print_all(&lines)))
        }
        ["publishable"] => done(release::publishable(&repository, false)),
        ["publishable", "--dry-run"] => done(release::publishable(&repository, true)),
        ["features"] => done(release::features(&repository)),
        ["msrv"] => done(release::oldest_compiler(&repository)),
        ["bench-check"] => done(bench::check(&repository, false)),
        ["bench-check", "--write"] => done(bench::check(&repository, true)),
        ["c-library", folder] => done(c_library::install(&repository, Path::new(folder))),
        ["leveldb", folder] => done(leveldb::install(&repository, Path::new(folder))),
        ["java"] => done(java::package(&repository)),
        ["readme"] => print_readme_commands(&repository),
        ["papers"] => done(papers::write(&repository, None)),
        ["papers", results] => done(papers::write(&repository, Some(Path::new(results)))),
        _ => {
            eprintln!("usage: cargo xtask tidy [--lower] | words [FOLDER] | cycles [FOLDER]");
            eprintln!("       cargo xtask interface [--since REVISION] | readme | papers [DIR]");
            eprintln!("       cargo xtask publishable [--dry-run] | features | msrv");
            eprintln!("       cargo xtask bench-check [--write]");
            eprintln!("       cargo xtask c-library FOLDER | leveldb FOLDER | java");
            ExitCode::FAILURE
        }
    }
}

fn tidy(repository: &Repository) -> ExitCode {
    let report = rules::check(repository);
    for note in &report.notes {
        println!("note: {note}");
    }
    for violation in &report.violations {
        println!("{violation}");
    }
    if report.violations.is_empty() {
        println!("tidy: {} rules, nothing to say", rules::ALL.len());
        return ExitCode::SUCCESS;
    }
    println!("tidy: {} violations", report.violations.len());
    ExitCode::FAILURE
}

/// Lowers the counts that the rules allow to those of today.
fn lower(repository: &Repository) -> Result<(), String> {
    repository.write(rules::cycles::LEFT, &rules::cycles::lower(repository)?)?;
    repository.write(rules::words::LEFT, &rules::words::lower(repository)?)
}

fn list_cycles(repository: &Repository, under: &str) -> ExitCode {
    let lines = rules::cycles::listing(repository, under);
    lines.iter().for_each(|line| println!("{line}"));
    ExitCode::SUCCESS
}

fn list_words(repository: &Repository, under: &str) -> Result<(), String> {
    let lines = rules::words::listing(repository, under)?;
    lines.iter().for_each(|line| println!("{line}"));
    println!("{} uses of retired words", lines.len());
    Ok(())
}

fn print_all(lines: &[String]) {
    lines.iter().for_each(|line| println!("{line}"));
}

fn done(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn print_readme_commands(repository: &Repository) -> ExitCode {
    let Some(text) = repository.text("README.md") else {
        eprintln!("there is no README.md");
        return ExitCode::FAILURE;
    };
    for command in readme::commands(text) {
        println!("{}", command.text);
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let repository = Repository::load().expect("the repository is readable");
        let report = rules::check(&repository);
        for note in &report.notes {
            println!("note: {note}");
        }
        let lines: Vec<String> = report.violations.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
    }
}
