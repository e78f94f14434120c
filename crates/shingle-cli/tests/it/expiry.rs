//! Values that expire: put, get, scan, import, export.

use crate::{Shell, write};

/// In March 2030.
const LATER_MS: u64 = 1_900_000_000_000;
const LATER: &str = "2030-03-17T17:46:40.000Z";

fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("a clock after 1970").as_millis() as u64
}

#[test]
fn a_value_expires_after_its_time_to_live() {
    let shell = Shell::new();
    let began = now_ms();
    shell.run(&["put", "session", "ann", "--ttl", "1h"]).ok();
    shell.run(&["put", "gone", "bob", "--ttl", "1ns"]).ok();
    shell.run(&["put", "stays", "eve"]).ok();
    let ended = now_ms();
    shell.run(&["get", "gone"]).fails(127);
    assert_eq!(shell.run(&["scan", "--keys-only"]).ok(), "session\nstays\n");
    assert_eq!(shell.run(&["get", "stays", "--expiry"]).ok(), "never\n");
    let record = &shell.run(&["get", "session", "--json"]).json()[0];
    let expiry = record["expiry_ms"].as_u64().expect("it expires");
    assert!((began + 3_600_000..=ended + 3_600_001).contains(&expiry), "{expiry}");
    assert_eq!(record["value"], "ann");
    let wrong = shell.run(&["put", "a", "b", "--ttl", "10"]);
    assert!(wrong.code() == 2 && wrong.err().contains("90s, 10m"), "{}", wrong.err());
}

#[test]
fn a_keyspace_has_a_time_to_live() {
    let shell = Shell::new();
    shell.run(&["keyspace", "create", "short", "--ttl", "1ms"]).ok();
    shell.run(&["--keyspace", "short", "put", "a", "1"]).ok();
    shell.run(&["--keyspace", "short", "put", "b", "2", "--ttl", "1d"]).ok();
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert_eq!(shell.run(&["--keyspace", "short", "scan"]).ok(), "b : 2\n");
}

#[test]
fn a_shell_and_a_batch_write_values_that_expire() {
    let shell = Shell::new();
    let lines = "begin\nput a 1 --ttl 1ns\nput b 2 --ttl 1d\ncommit\nscan --keys-only\n";
    assert!(shell.feed(&["shell"], lines.as_bytes()).ok().ends_with("b\n"));
}

fn imported() -> Shell {
    let shell = Shell::new();
    let lines = format!(
        "{{\"key\":\"a\",\"value\":\"1\",\"expiry_ms\":{LATER_MS}}}\n\
         {{\"key\":\"b\",\"value\":\"2\"}}\n\
         {{\"key\":\"old\",\"value\":\"3\",\"expiry_ms\":1000}}\n"
    );
    write(&shell.path("in.jsonl"), lines.as_bytes());
    shell.run(&["import", "in.jsonl", "--verify"]).ok();
    shell
}

#[test]
fn json_keeps_the_expiry_both_ways() {
    let shell = imported();
    let listed = format!("a : {LATER} : 1\nb : never : 2\n");
    assert_eq!(shell.run(&["scan", "--expiry"]).ok(), listed);
    assert_eq!(shell.run(&["get", "a", "--expiry"]).ok(), format!("{LATER}\n"));
    for format in ["jsonl", "json"] {
        let (file, copy) = (format!("out.{format}"), format!("copy-{format}.db"));
        shell.run(&["export", &file, "--verify"]).ok();
        shell.command().args(["--db", &copy, "import", &file, "--verify"]).status().unwrap();
        let scan = shell.command().args(["--db", &copy, "scan", "--expiry"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&scan.stdout), listed, "{format}");
    }
}

#[test]
fn a_format_without_a_place_for_the_expiry_refuses_it() {
    let shell = imported();
    for format in ["tsv", "csv"] {
        let file = format!("out.{format}");
        let words = shell.run(&["export", &file]).fails(1);
        assert!(words.contains("a: the value expires") && words.contains("--format jsonl"));
        assert!(!shell.path(&file).exists());
        shell.run(&["export", &file, "--without-expiry", "--verify"]).ok();
    }
    assert_eq!(std::fs::read(shell.path("out.tsv")).unwrap(), b"a\t1\nb\t2\n");
}

#[test]
fn an_import_gives_a_time_to_live_to_records_without_one() {
    let shell = imported();
    write(&shell.path("more.tsv"), b"c\t3\n");
    shell.run(&["import", "more.tsv", "--ttl", "1ns"]).ok();
    shell.run(&["import", "in.jsonl", "--ttl", "1ns"]).ok();
    assert_eq!(shell.run(&["scan", "--keys-only"]).ok(), "a\n");
    assert_eq!(shell.run(&["get", "a", "--expiry"]).ok(), format!("{LATER}\n"));
}
