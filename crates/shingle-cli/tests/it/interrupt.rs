//! Ctrl-C in the middle of long commands: nothing stays half done, and the command says what was.
//!
//! The signal is sent when a command has begun, which its files or its handler show. The process
//! is stopped while the test looks, so that it does not end meanwhile. A command that ended all
//! the same is run again.

use crate::{Ran, Shell, write};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const ATTEMPTS_MAX: usize = 50;

fn signal(child: &Child, signal: Signal) {
    let id = Pid::from_raw(child.id() as i32).expect("a process has an id");
    kill_process(id, signal).expect("the process is there until it is waited for");
}

/// The process has a handler for Ctrl-C.
fn listens(child: &Child) -> bool {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 2 > 0)
}

/// Runs a command and interrupts it as soon as it listens and `has_begun`. `None`: it ended before.
fn interrupt(mut command: Command, has_begun: &dyn Fn() -> bool) -> Option<Ran> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    loop {
        if child.try_wait().expect("it can be asked").is_some() {
            return None;
        }
        signal(&child, Signal::STOP);
        if listens(&child) && has_begun() {
            break;
        }
        signal(&child, Signal::CONT);
        std::thread::yield_now();
    }
    signal(&child, Signal::INT);
    signal(&child, Signal::CONT);
    let ran = Ran(child.wait_with_output().expect("it ends"));
    (ran.code() != 0).then_some(ran)
}

/// Tries until the signal comes in time; `anew` takes away what a whole command left.
fn interrupted(
    shell: &Shell,
    arguments: &[&str],
    has_begun: &dyn Fn() -> bool,
    anew: &dyn Fn(),
) -> Ran {
    for _ in 0..ATTEMPTS_MAX {
        let mut command = shell.command();
        command.args(["--db", "my.db"]).args(arguments);
        if let Some(ran) = interrupt(command, has_begun) {
            let words = ran.fails(130);
            assert!(words.starts_with("shingle: interrupted: "), "{words}");
            return ran;
        }
        anew();
    }
    panic!("{arguments:?} always ended before the signal");
}

const SMALL: [&str; 4] = ["-o", "table_bytes=64K", "-o", "compression=none"];

/// 100,000 records in many tables.
fn filled() -> Shell {
    let shell = Shell::new();
    let lines: String = (0..100_000).map(|i| format!("k{i:06}\t{:0100}\n", i * 7)).collect();
    let import = [&SMALL[..], &["import", "-", "--format", "tsv"]].concat();
    // Twice: a compaction merges them into tables of the size.
    for _ in 0..2 {
        shell.feed(&import, lines.as_bytes()).ok();
    }
    shell.run(&[&SMALL[..], &["compact"]].concat()).ok();
    shell
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

/// The database is whole, and has all records.
fn check_whole(shell: &Shell) {
    assert!(shell.run(&["check"]).ok().contains("everything is as it was written"));
    assert_eq!(shell.run(&["count"]).ok(), "100000\n");
}

#[test]
fn an_interrupted_export_leaves_no_file() {
    let shell = filled();
    for name in ["all.jsonl", "all.csv.gz"] {
        let target = shell.path(name);
        let anew = || std::fs::remove_file(&target).expect("it was written");
        let ran = interrupted(&shell, &["export", name], &|| target.exists(), &anew);
        assert!(ran.err().contains(" written") && ran.err().contains("was removed"));
        assert!(!target.exists());
    }
    let tree = shell.path("tree");
    std::fs::create_dir(&tree).expect("it can be made");
    let has_begun = || entries(&tree) > 10;
    let anew = || {
        std::fs::remove_dir_all(&tree).expect("it was written");
        std::fs::create_dir(&tree).expect("it can be made");
    };
    interrupted(&shell, &["export", "tree", "--format", "dir"], &has_begun, &anew);
    assert!(tree.exists() && entries(&tree) == 0, "it was there, and empty");
    check_whole(&shell);
}

#[test]
fn an_interrupted_scan_ends_with_a_whole_line() {
    let shell = filled();
    for arguments in [&["scan"][..], &["export", "-", "--format", "tsv"]] {
        let mut command = shell.command();
        command.args(["--db", "my.db"]).args(arguments).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("it was asked for"));
        let mut text = String::new();
        out.read_line(&mut text).expect("it can be read");
        // The pipe is full long before the end.
        signal(&child, Signal::INT);
        out.read_to_string(&mut text).expect("it can be read");
        let ran = Ran(child.wait_with_output().expect("it ends"));
        let words = ran.fails(130);
        let lines = text.lines().count();
        assert!(lines < 100_000 && text.ends_with('\n'), "{lines}");
        let number: String = words.chars().filter(char::is_ascii_digit).collect();
        assert_eq!(number, lines.to_string(), "{words}");
    }
}

#[test]
fn followed_changes_are_printed_beside_the_writer_until_an_interrupt() {
    let shell = Shell::new();
    let put = |key: &str| {
        shell.run(&["-o", "changes_retention_bytes=1M", "put", key, "ripe"]).ok();
    };
    put("apple");
    let mut command = shell.command();
    command.args(["--db", "my.db", "changes", "--follow"]).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("it was asked for"));
    let mut line = || {
        let mut line = String::new();
        out.read_line(&mut line).expect("it can be read");
        line
    };
    assert_eq!(line(), "1 default put apple : ripe\n");
    put("pear");
    assert_eq!(line(), "2 default put pear : ripe\n");
    signal(&child, Signal::INT);
    let words = Ran(child.wait_with_output().expect("it ends")).fails(130);
    assert!(words.contains("2 commits were printed"), "{words}");
}

#[test]
fn an_interrupted_compaction_leaves_a_whole_database() {
    let shell = filled();
    // New tables over all the others; a compaction of them is slow.
    let lines: String = (0..100_000).step_by(50).map(|i| format!("k{i:06}\tnew\n")).collect();
    let import = [&SMALL[..], &["import", "-", "--format", "tsv"]].concat();
    shell.feed(&import, lines.as_bytes()).ok();
    let slow = [&SMALL[..], &["-o", "background_bytes_per_second=1M", "compact"]].concat();
    let ran = interrupted(&shell, &slow, &|| true, &|| {});
    assert!(ran.err().contains("before, ") && ran.err().contains("goes on"), "{}", ran.err());
    check_whole(&shell);
    assert_eq!(shell.run(&["get", "k000050"]).ok(), "new\n");
    shell.run(&["compact"]).ok();
    check_whole(&shell);
}

#[test]
fn an_interrupted_check_says_how_much_it_checked() {
    let shell = filled();
    let ran = interrupted(&shell, &["check"], &|| true, &|| {});
    assert!(ran.err().contains("were checked"), "{}", ran.err());
    assert!(!ran.out().contains("everything"), "{}", ran.out());
    let as_json = interrupt_json(&shell);
    assert_eq!(as_json["ok"], false);
}

/// The report of an interrupted check as JSON.
fn interrupt_json(shell: &Shell) -> serde_json::Value {
    for _ in 0..ATTEMPTS_MAX {
        let mut command = shell.command();
        command.args(["--db", "my.db", "--json", "check"]);
        if let Some(ran) = interrupt(command, &|| true) {
            assert_eq!(ran.fails_as_json(130)["kind"], "Interrupted");
            return serde_json::from_str(&ran.out()).expect("the report is JSON");
        }
    }
    panic!("the check always ended before the signal");
}

#[test]
fn an_interrupted_checkpoint_leaves_no_directory() {
    let shell = filled();
    let target = shell.path("copy.db");
    let anew = || std::fs::remove_dir_all(&target).expect("it was made");
    let has_begun = || entries(&target) > 3;
    let ran = interrupted(&shell, &["checkpoint", "copy.db"], &has_begun, &anew);
    assert!(ran.err().contains("no checkpoint was made"), "{}", ran.err());
    assert!(!target.exists());
    check_whole(&shell);
    shell.run(&["checkpoint", "copy.db"]).ok();
}

#[test]
fn an_interrupted_salvage_leaves_no_directory() {
    let shell = filled();
    let target = shell.path("saved.db");
    let anew = || std::fs::remove_dir_all(&target).expect("it was made");
    let ran = interrupted(&shell, &["salvage", "saved.db"], &|| target.exists(), &anew);
    assert!(ran.err().contains("nothing was saved"), "{}", ran.err());
    assert!(!target.exists());
    check_whole(&shell);
}

#[test]
fn an_interrupted_benchmark_leaves_no_directory() {
    let many = "--num=100000000";
    for arguments in [
        &["bench", "db", "--benchmarks=fillrandom", many][..],
        &["bench", "--device", "smr-raw", "db", "--benchmarks=fillrandom", many],
        &["bench", "ycsb", "load", "-P", "workloada", "-p", "recordcount=100000000"],
        &["bench", "threshold", "--bytes", "100000000000"],
    ] {
        let shell = Shell::new();
        let mut command = shell.command();
        command.args(arguments);
        let is_on_files = !arguments.contains(&"--device");
        let has_begun = || !is_on_files || entries(&shell.path("")) > 0;
        let ran = interrupt(command, &has_begun).expect("it takes hours");
        let words = ran.fails(130);
        assert!(words.starts_with("shingle: interrupted: "), "{words}");
        assert_eq!(entries(&shell.path("")), 0, "{words}");
    }
    // A database with a name stays, and is whole.
    let shell = Shell::new();
    let named = ["bench", "db", "--benchmarks=fillrandom", many];
    let wal_exists = || entries(&shell.path("my.db")) > 4;
    let ran = interrupted(&shell, &named, &wal_exists, &|| {});
    assert!(ran.err().contains("my.db is closed"), "{}", ran.err());
    assert!(shell.run(&["check"]).ok().contains("everything is as it was written"));
}

#[test]
fn an_interrupted_lab_goes_on_later() {
    let shell = Shell::new();
    let runs = || std::fs::read_to_string(shell.path("out/runs.csv")).unwrap_or_default();
    let ended = || runs().lines().filter(|line| line.ends_with(",end,")).count();
    let interrupted_at = |resume: &[&str], count: usize| {
        let mut command = shell.command();
        command.args(["--quiet", "lab", "run", "ldc", "--scale", "smoke", "--out", "out"]);
        command.args(resume);
        let words = interrupt(command, &|| ended() > count).expect("it takes longer").fails(130);
        assert!(words.contains("--resume"), "{words}");
        let all = words.split_whitespace().find_map(|word| word.parse::<usize>().ok());
        assert_eq!(all, Some(ended()), "{words}");
        assert!(!shell.path("out/claims.json").exists());
        ended()
    };
    let first = interrupted_at(&[], 0);
    let second = interrupted_at(&["--resume"], first);
    assert!(second > first);
}

#[test]
fn an_interrupted_demo_removes_its_database() {
    let shell = Shell::new();
    for i in 0..200 {
        write(
            &shell.path(&format!("data/{i}/file")),
            format!("content of {i}").repeat(50).as_bytes(),
        );
    }
    for step in ["1/8", "3/8", "4/8"] {
        let mut command = shell.command();
        command.args(["demo", "--source", "data", "--html", "page.html"]);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("it was asked for"));
        let mut line = String::new();
        while !line.starts_with(step) {
            line.clear();
            assert!(out.read_line(&mut line).expect("it can be read") > 0, "no {step}");
        }
        signal(&child, Signal::INT);
        std::io::copy(&mut out, &mut std::io::sink()).expect("it can be read");
        let ran = Ran(child.wait_with_output().expect("it ends"));
        let words = ran.fails(130);
        assert!(words.contains("of 8 was not ended") && words.contains("was removed"), "{words}");
        let left: Vec<_> = std::fs::read_dir(shell.path("")).unwrap().flatten().collect();
        assert!(left.iter().all(|entry| entry.file_name() == "data"), "{left:?}");
    }
}

#[test]
fn an_interrupted_script_of_a_shell_says_where_it_ended() {
    let shell = filled();
    let mut command = shell.command();
    command.args(["--db", "my.db", "shell"]).stdin(Stdio::piped());
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let lines = "put a 1\nscan\nput b 2\n";
    std::io::Write::write_all(&mut child.stdin.take().expect("asked for"), lines.as_bytes())
        .expect("it reads");
    let mut out = BufReader::new(child.stdout.take().expect("it was asked for"));
    out.read_line(&mut String::new()).expect("it can be read");
    signal(&child, Signal::INT);
    std::io::copy(&mut out, &mut std::io::sink()).expect("it can be read");
    let words = Ran(child.wait_with_output().expect("it ends")).fails(130);
    assert!(words.contains("line 2: interrupted: "), "{words}");
    assert_eq!(shell.run(&["get", "a"]).ok(), "1\n");
    shell.run(&["get", "b"]).fails(127);
}
