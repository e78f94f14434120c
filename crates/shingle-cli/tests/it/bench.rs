//! bench.

use crate::{Ran, Shell, write};

fn bench(shell: &Shell, arguments: &[&str]) -> Ran {
    let all = [&["bench"], arguments].concat();
    Ran(shell.command().args(all).output().expect("it runs"))
}

#[test]
fn db_bench_prints_the_lines_that_scripts_look_for() {
    let shell = Shell::new();
    let arguments = ["db", "--benchmarks=fillrandom,readrandom,stats", "--num=2000", "-threads=2"];
    for device in ["files", "memory"] {
        let text = bench(&shell, &[&["--device", device], &arguments[..]].concat()).ok();
        let line = text.lines().find(|line| line.starts_with("readrandom"));
        let line = line.expect("there is a line of the benchmark");
        assert!(line.contains(" micros/op ") && line.contains(" ops/sec "), "{line}");
        assert!(text.contains("write amplification"), "{text}");
    }
    assert_eq!(std::fs::read_dir(shell.path("")).unwrap().count(), 0, "it cleans up");
}

#[test]
fn engine_flags_of_both_kinds_are_taken() {
    let shell = Shell::new();
    let ours = ["--preset", "leveldb", "--option", "memory_bytes=67108864"];
    let theirs = ["db", "--num=100", "--benchmarks=fillseq", "--write_buffer_size=1048576"];
    bench(&shell, &[&ours[..], &theirs].concat()).ok();
    bench(&shell, &["--scheme", "no-such-scheme", "db", "--num=10"]).fails(2);
}

#[test]
fn the_statistics_are_json_too() {
    let shell = Shell::new();
    let mut command = shell.command();
    command.args(["--json", "bench", "db", "--benchmarks=fillrandom,stats", "--num=2000"]);
    let lines = Ran(command.output().expect("it runs")).json();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[1]["benchmark"], "stats");
    let report = &lines[1]["report"];
    assert_eq!(report["sequence"], 2000, "{report}");
    assert!(report["stalls"].as_array().is_some_and(|stalls| !stalls.is_empty()), "{report}");
}

#[test]
fn ycsb_loads_and_runs() {
    let shell = Shell::new();
    let text = bench(&shell, &["ycsb", "-P", "workloada", "-p", "recordcount=500"]).ok();
    assert_eq!(text.matches("[OVERALL], Throughput(ops/sec),").count(), 2, "{text}");
    assert!(text.contains("[INSERT], Return=OK, 500"), "{text}");
    let mut command = shell.command();
    command.args(["--json", "bench", "ycsb", "load", "-P", "workloadc"]);
    let records = Ran(command.output().expect("it runs")).json();
    assert_eq!(records[0]["benchmark"], "workloadc-load");
}

#[test]
fn a_directory_that_is_no_database_is_not_removed() {
    let shell = Shell::new();
    write(&shell.path("precious/file"), b"mine");
    let mut command = shell.command();
    command.args(["--db", "precious", "bench", "db", "--benchmarks=fillseq", "--num=10"]);
    let words = Ran(command.output().expect("it runs")).fails(1);
    assert!(words.contains("precious") && words.contains("not removed"), "{words}");
    assert!(shell.path("precious/file").exists());
}

#[test]
fn what_is_unknown_is_named() {
    let shell = Shell::new();
    assert!(bench(&shell, &["what"]).fails(2).contains("what"));
    assert!(bench(&shell, &["db", "--benchmarks=what"]).fails(1).contains("what"));
    bench(&shell, &["ycsb", "-P", "not-there"]).fails(1);
}

#[test]
fn the_threshold_of_separation_is_measured_and_kept_with_the_database() {
    let shell = Shell::new();
    let db = |arguments: &[&str]| {
        let all = [&["--db", "my.db"], arguments].concat();
        Ran(shell.command().args(all).output().expect("it runs"))
    };
    db(&["put", "a", "b"]).ok();
    let small = ["threshold", "--sizes", "100,4000", "--bytes", "400000"];
    let measured = db(&[&["--json", "bench", "--values", "log"], &small[..]].concat()).json();
    let found = &measured[0];
    assert_eq!(
        (&found["layout"], found["points"].as_array().map(Vec::len)),
        (&"log".into(), Some(2))
    );
    for point in found["points"].as_array().expect("there are points") {
        assert!(point["inline"]["wa"].as_f64() > Some(0.9), "{point}");
        assert!(point["apart"]["read_ns"].as_u64() > Some(0), "{point}");
    }
    let kept = std::fs::read_to_string(shell.path("my.db/THRESHOLD")).ok();
    let threshold = found["threshold_bytes"].as_u64();
    assert_eq!(kept.map(|text| text.trim().to_string()), threshold.map(|bytes| bytes.to_string()));
    assert_eq!(found["is_kept"].as_bool(), Some(threshold.is_some()));
    assert_eq!(std::fs::read_dir(shell.path("")).unwrap().count(), 1, "it cleans up");
    assert_eq!(db(&["get", "a"]).ok().trim(), "b");
}

#[test]
fn the_threshold_of_a_model_repeats() {
    let shell = Shell::new();
    let run = || {
        let words = ["--device", "ssd", "threshold", "--sizes", "64,8000", "--bytes", "300000"];
        bench(&shell, &words).ok()
    };
    let text = run();
    assert_eq!(text, run());
    assert!(text.contains("W-Amp") && text.contains("hashed"), "{text}");
    let bad = bench(&shell, &["threshold", "--sizes", "64,32"]).fails(1);
    assert!(bad.contains("ascending"), "{bad}");
    assert!(bench(&shell, &["threshold", "--what"]).fails(2).contains("--what"));
    bench(&shell, &["--values", "inline", "threshold"]).fails(2);
    assert!(bench(&shell, &["threshold", "--help"]).ok().contains("--sizes"));
}
