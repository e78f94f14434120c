//! Kafka Streams on Shingle from end to end: `java/e2e/run --short` kills brokers and instances of
//! an application, and compares every count. It takes minutes, so it runs only where all languages
//! are asked for.

#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

/// The wrong and missing entries of each store with each guarantee, as the outcome has them.
fn totals(outcome: &str) -> Vec<(&str, &str)> {
    let table = outcome.split_once("| wrong | missing |").unwrap().1;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        (cells[4], cells[5])
    })
    .collect()
}

#[test]
fn every_count_is_exact_after_kills() {
    if std::env::var_os("SHINGLE_TEST_LANGUAGES").is_none() {
        println!("notice: Kafka Streams was not tested end to end: set SHINGLE_TEST_LANGUAGES=all");
        return;
    }
    let library = std::env::current_exe().unwrap().with_file_name("libshingle_jni.so");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../java/e2e/run");
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(script)
        .args(["--short", "--out"])
        .arg(folder.path().join("outcome"))
        .env("SHINGLE_LIBRARY", &library)
        .env("SHINGLE_BUILD", folder.path().join("build"))
        .output()
        .unwrap();
    let printed = [&output.stdout[..], &output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    assert!(output.status.success(), "{printed}");
    let outcome = std::fs::read_to_string(folder.path().join("outcome/outcome.md")).unwrap();
    println!("{outcome}");
    // Five stores with each of two guarantees.
    assert_eq!(totals(&outcome), [("0", "0"); 10], "{printed}");
}
