//! lab trace: a recorded workload, and what it would cost.

use crate::Shell;

const FLAGS: [&str; 6] =
    ["--memtable-bytes", "65536", "--scheme", "leveled,tiered", "--fan-out", "4,10"];

fn recorded(shell: &Shell) {
    let bench = ["bench", "--device", "memory", "--record-trace", "my.trace", "db"];
    let flags = ["--benchmarks=fillrandom,readrandom", "--num=5000", "--value_size=2000"];
    let ran = shell.command().args(bench).args(flags).output().expect("it runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn a_recorded_benchmark_is_answered() {
    let shell = Shell::new();
    recorded(&shell);
    let flags = [&["lab", "trace", "my.trace", "--goal", "write"][..], &FLAGS].concat();
    let text = shell.run(&[&flags[..], &["--out", "answer"]].concat()).ok();
    assert!(text.contains("put 50.0%") && text.contains("\nTake "), "{text}");
    let csv = std::fs::read_to_string(shell.path("answer/candidates.csv")).expect("it was written");
    assert!(csv.starts_with("scheme,values,fan_out,write_amplification"), "{csv}");
    let svg = std::fs::read_to_string(shell.path("answer/candidates.svg")).expect("it was written");
    let picture = roxmltree::Document::parse(&svg).expect("the picture is well-formed");
    let marks = picture.descendants().filter(|node| node.has_tag_name("title")).count();
    assert_eq!(marks, csv.lines().count() - 1);
    let answer = &shell.run(&[&["--json"][..], &flags].concat()).json()[0];
    assert_eq!(answer["reading"]["operations"], 10_000);
    assert_eq!((&answer["reading"]["bad_lines"], &answer["goal"]), (&0.into(), &"write".into()));
    let candidates = answer["candidates"].as_array().expect("there are some");
    // Leveled with two fan-outs, tiered without one; each with three layouts.
    assert_eq!(candidates.len(), 9);
    let writes = candidates.iter().map(|c| c["write_amplification"].as_f64().expect("a number"));
    assert!(writes.clone().is_sorted_by(|a, b| *a <= b * 1.01), "{writes:?}");
}

#[test]
fn a_trace_comes_through_a_pipe_and_its_bad_lines_are_shown() {
    let shell = Shell::new();
    let lines = [&b"OK"[..], br#"1.5 [0 1:1] "set" "k" "v""#, b"what", br#"2.5 [0 lua] "get" "k""#];
    let monitor = lines.join(&b"\n"[..]);
    let ran = shell.feed(&[&["lab", "trace", "-"][..], &FLAGS].concat(), &monitor);
    assert!(ran.ok().contains("redis"), "{}", ran.out());
    assert!(ran.err().contains("1 of 4 lines") && ran.err().contains("line 3"), "{}", ran.err());
}

#[test]
fn what_is_no_trace_is_refused() {
    let shell = Shell::new();
    shell.feed(&["lab", "trace", "-"], b"hello\n").fails(1);
    shell.feed(&["lab", "trace", "-", "--format", "twitter"], b"hello\n").fails(1);
    shell.feed(&["lab", "trace", "-", "--format", "nothing"], b"hello\n").fails(2);
    shell.feed(&["lab", "trace", "-", "--fan-out", "0"], b"").fails(2);
    shell.run(&["lab", "trace", "absent.trace"]).fails(1);
}
