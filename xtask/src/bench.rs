//! `cargo xtask bench-check`: instructions of the most frequent operations, against a kept
//! baseline.
//!
//! callgrind counts the instructions of the example `measure_features`, once with N operations and
//! once with 2 N. The difference, divided by N, is what one operation needs: what comes before and
//! after the operations is in both counts. The counts hardly depend on the machine or on its load,
//! but another compiler moves them by 1 % to 3 %. So the baseline names its compiler, and is
//! compared with no other.

use crate::repository::Repository;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The kept counts.
const FILE: &str = "bench-baseline.toml";
const EXAMPLE: &str = "measure_features";
/// An operation may need this many percent more than the baseline. Counts of the same program
/// differ by up to 0.5 %: hash tables have random seeds.
const TOLERANCE_PERCENT: f64 = 2.0;

/// Something that is counted.
struct Measure {
    name: &'static str,
    /// What the example runs.
    operation: &'static str,
    /// The function inside which instructions count.
    counted: &'static str,
    /// Operations of the smaller run.
    count: u64,
}

const CALLER: &str = "*measure_features::counted";

const MEASURES: [Measure; 9] = [
    measure("put-100", "put-100", CALLER, 20_000),
    measure("put-1024", "put-1024", CALLER, 20_000),
    measure("get-memtable", "get-memtable", CALLER, 20_000),
    measure("get-table", "get-table", CALLER, 20_000),
    measure("get-missing", "get-missing", CALLER, 20_000),
    measure("seek-50", "seek-50", CALLER, 1_000),
    measure("next", "next", CALLER, 50_000),
    measure("flush-entry", "compact", "*flush::FlushJob::step_inside", 20_000),
    measure("compaction-entry", "compact", "*compaction::CompactionPart::step", 20_000),
];

const fn measure(
    name: &'static str,
    operation: &'static str,
    counted: &'static str,
    count: u64,
) -> Measure {
    Measure { name, operation, counted, count }
}

/// The kept counts, with the compiler that made the program.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Baseline {
    compiler: String,
    /// Instructions of an operation.
    instructions: BTreeMap<String, f64>,
}

impl Baseline {
    fn parse(text: &str) -> Result<Baseline, String> {
        toml::from_str(text).map_err(|error| format!("{FILE}: {error}"))
    }

    fn text(&self) -> Result<String, String> {
        let text = toml::to_string(self).map_err(|error| format!("{FILE}: {error}"))?;
        Ok(format!("# Instructions of an operation: `cargo xtask bench-check --write`.\n{text}"))
    }
}

/// Counts, and compares with the baseline; `writes`: keeps the counts as the new baseline.
pub fn check(repository: &Repository, writes: bool) -> Result<(), String> {
    let compiler = compiler(&output(repository, "rustc", &["--version", "--verbose"])?.stdout)?;
    let kept = repository.text(FILE).map(Baseline::parse).transpose();
    let kept = if writes { kept.unwrap_or_default() } else { Some(expected(kept?, &compiler)?) };
    output(repository, "valgrind", &["--version"])
        .map_err(|error| format!("{error}: install valgrind, whose callgrind counts"))?;
    let program = build(repository)?;
    let mut instructions = BTreeMap::new();
    for measure in &MEASURES {
        let count = count(repository, &program, measure)?;
        instructions.insert(measure.name.to_string(), (count * 10.0).round() / 10.0);
    }
    let now = Baseline { compiler, instructions };
    let compared = compare(kept.as_ref(), &now);
    compared.table.iter().for_each(|line| println!("{line}"));
    if writes {
        return repository.write(FILE, &now.text()?);
    }
    match compared.exceeded {
        0 => Ok(()),
        exceeded => Err(format!(
            "{exceeded} above the baseline by more than {TOLERANCE_PERCENT} %: find the function \
             with `callgrind_annotate` (docs/design/performance.md), or say in the commit what \
             the instructions are for and keep the new counts: `cargo xtask bench-check --write`"
        )),
    }
}

/// The baseline, if it can be compared with what `compiler` makes.
fn expected(kept: Option<Baseline>, compiler: &str) -> Result<Baseline, String> {
    let first = "`cargo xtask bench-check --write` on a state that you trust comes first";
    let kept = kept.ok_or_else(|| format!("there is no {FILE}: {first}"))?;
    if kept.compiler != compiler {
        return Err(format!(
            "{FILE} is of `{}`, and this is `{compiler}`: counts of two compilers cannot be \
             compared; {first}",
            kept.compiler
        ));
    }
    Ok(kept)
}

/// What a comparison found.
struct Compared {
    table: Vec<String>,
    /// Number of measures above the tolerance.
    exceeded: usize,
}

/// Compares the counts `now` with the baseline `kept`.
fn compare(kept: Option<&Baseline>, now: &Baseline) -> Compared {
    let mut table =
        vec![format!("{:18}{:>12}{:>12}{:>8}", "instructions", "baseline", "now", "ratio")];
    let mut exceeded = 0;
    for (name, &count) in &now.instructions {
        let before = kept.and_then(|kept| kept.instructions.get(name));
        let Some(&before) = before else {
            table.push(format!("{name:18}{:>12}{count:>12.1}{:>8}  new", "-", "-"));
            continue;
        };
        let ratio = count / before;
        let limit = TOLERANCE_PERCENT / 100.0;
        let verdict = match ratio {
            _ if ratio > 1.0 + limit => "  MORE",
            _ if ratio < 1.0 - limit => "  less: keep it with --write",
            _ => "",
        };
        exceeded += usize::from(ratio > 1.0 + limit);
        table.push(format!("{name:18}{before:>12.1}{count:>12.1}{ratio:>8.3}{verdict}"));
    }
    Compared { table, exceeded }
}

/// Builds the example; returns its path.
fn build(repository: &Repository) -> Result<PathBuf, String> {
    let what = ["--package", "shingle", "--example", EXAMPLE];
    let how = ["--release", "--locked", "--message-format", "json-render-diagnostics"];
    let built = output(repository, "cargo", &[&["build"][..], &what, &how].concat())?;
    executable(&built.stdout).ok_or_else(|| format!("cargo did not say where {EXAMPLE} is"))
}

/// The path of the example in the messages of cargo.
fn executable(messages: &[u8]) -> Option<PathBuf> {
    let messages = String::from_utf8_lossy(messages);
    let mut parsed = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
    parsed.find_map(|message: serde_json::Value| {
        let is_it = message["target"]["name"] == EXAMPLE;
        message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
    })
}

/// Instructions of one operation.
fn count(repository: &Repository, program: &Path, measure: &Measure) -> Result<f64, String> {
    let run = |count: u64| {
        let toggle = format!("--toggle-collect={}", measure.counted);
        let valgrind = ["--tool=callgrind", "--callgrind-out-file=/dev/null", &toggle];
        let program = program.to_string_lossy();
        let count = count.to_string();
        let example = [&*program, measure.operation, "none", &count];
        let ran = output(repository, "valgrind", &[&valgrind[..], &example].concat())?;
        collected(&String::from_utf8_lossy(&ran.stderr)).ok_or_else(|| {
            format!("{}: nothing was counted: is there a {}?", measure.name, measure.counted)
        })
    };
    let (once, twice) = (run(measure.count)?, run(2 * measure.count)?);
    Ok((twice as f64 - once as f64) / measure.count as f64)
}

/// The instructions that callgrind reports at its end; `None` where it counted none.
fn collected(report: &str) -> Option<u64> {
    let line = report.lines().find_map(|line| line.split_once("Collected :"))?;
    line.1.trim().parse().ok().filter(|&count| count > 0)
}

/// The compiler and its target in what `rustc --version --verbose` prints.
fn compiler(printed: &[u8]) -> Result<String, String> {
    let printed = String::from_utf8_lossy(printed);
    let host = printed.lines().find_map(|line| line.strip_prefix("host: "));
    match (printed.lines().next(), host) {
        (Some(version), Some(host)) => Ok(format!("{version} for {host}")),
        _ => Err("`rustc --version --verbose` names no version or no host".into()),
    }
}

/// Runs a program in the repository, and returns what it printed if it succeeds.
fn output(repository: &Repository, program: &str, arguments: &[&str]) -> Result<Output, String> {
    let root = repository.root.as_deref().ok_or("these texts are in memory alone")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root);
    if program == "cargo" {
        // Its progress and the errors of the compiler are for the user.
        command.stderr(Stdio::inherit());
    }
    let output = command.output().map_err(|error| format!("cannot run {program}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{program} {}` failed\n{said}", arguments.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline(compiler: &str, counts: &[(&str, f64)]) -> Baseline {
        let instructions = counts.iter().map(|(name, count)| (name.to_string(), *count)).collect();
        Baseline { compiler: compiler.into(), instructions }
    }

    #[test]
    fn a_baseline_survives_its_file() {
        let kept = baseline("rustc 1.0 for here", &[("get-table", 4900.5), ("put-100", 2300.0)]);
        assert_eq!(Baseline::parse(&kept.text().unwrap()).unwrap(), kept);
        assert!(Baseline::parse("compiler = 3").unwrap_err().starts_with(FILE));
    }

    #[test]
    fn the_baseline_of_another_compiler_is_refused() {
        let kept = || Some(baseline("rustc 1.0 for here", &[]));
        assert!(expected(kept(), "rustc 1.0 for here").is_ok());
        let refused = expected(kept(), "rustc 1.1 for here").unwrap_err();
        assert!(refused.contains("`rustc 1.0 for here`") && refused.contains("`rustc 1.1"));
        assert!(expected(None, "rustc 1.0 for here").unwrap_err().contains("no bench-baseline"));
    }

    #[test]
    fn only_more_than_the_tolerance_fails() {
        let kept = baseline("", &[("at", 1000.0), ("gone", 1.0), ("less", 1000.0), ("over", 1e3)]);
        let now = [("at", 1020.0), ("less", 900.0), ("new", 5.0), ("over", 1021.0)];
        let compared = compare(Some(&kept), &baseline("", &now));
        assert_eq!(compared.exceeded, 1);
        let verdicts: Vec<&str> = compared.table[1..].iter().map(|line| &line[50..]).collect();
        assert_eq!(verdicts, ["", "  less: keep it with --write", "  new", "  MORE"]);
        assert!(compared.table[4].contains("1000.0      1021.0   1.021"));
    }

    #[test]
    fn without_a_baseline_every_count_is_new() {
        let compared = compare(None, &baseline("", &[("put-100", 2300.0)]));
        assert_eq!((compared.exceeded, compared.table.len()), (0, 2));
    }

    #[test]
    fn callgrind_and_the_compiler_are_understood() {
        let report = "==1== Events    : Ir\n==1== Collected : 868558280\n==1==\n";
        assert_eq!(collected(report), Some(868_558_280));
        assert_eq!(collected("==1== Collected : 0\n"), None);
        assert_eq!(collected("==1== error"), None);
        let printed = b"rustc 1.95.0 (5980 2026-04-14)\nbinary: rustc\nhost: x86_64-linux\n";
        assert_eq!(compiler(printed).unwrap(), "rustc 1.95.0 (5980 2026-04-14) for x86_64-linux");
        assert!(compiler(b"").is_err());
    }

    #[test]
    fn the_example_is_found_among_the_messages_of_cargo() {
        let messages = "{\"target\":{\"name\":\"base\"},\"executable\":null}\n\
            not json\n\
            {\"target\":{\"name\":\"measure_features\"},\"executable\":\"/t/measure_features\"}\n\
            {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(executable(messages.as_bytes()), Some("/t/measure_features".into()));
        assert_eq!(executable(b"{\"reason\":\"build-finished\"}"), None);
    }
}
