//! put, get, delete, delete-range, scan.

use crate::{Shell, write};
use serde_json::json;
use std::io::Read;
use std::process::Stdio;

#[test]
fn what_is_put_is_got_until_it_is_deleted() {
    let shell = Shell::new();
    assert_eq!(shell.run(&["put", "apple", "red", "--sync"]).ok(), "");
    assert_eq!(shell.run(&["get", "apple"]).ok(), "red\n");
    assert_eq!(shell.run(&["get", "apple", "--raw"]).ok(), "red");
    shell.run(&["delete", "apple", "never-there"]).ok();
    let gone = shell.run(&["get", "apple"]);
    assert!(gone.fails(127).contains("no such key: apple"));
    assert_eq!(gone.out(), "");
}

#[test]
fn keys_and_values_may_be_any_bytes() {
    let shell = Shell::new();
    let value: Vec<u8> = (0..=255).collect();
    write(&shell.path("value"), &value);
    shell.run(&["--hex", "put", "0x00FF0a", "--value-file", "../nowhere"]).fails(1);
    shell.feed(&["--hex", "put", "0x00FF0a", "--value-file", "-"], &value).ok();
    assert_eq!(shell.run(&["--hex", "get", "00ff0A", "--raw"]).0.stdout, value);
    let text = shell.run(&["scan"]).ok();
    assert!(text.starts_with("\\x00\\xFF\\n : \\x00\\x01"), "{text}");
    assert_eq!(text.lines().count(), 1);
    let record = &shell.run(&["scan", "--json"]).json()[0];
    assert_eq!(record["key_base64"], "AP8K");
    shell.run(&["--hex", "get", "xyz"]).fails(2);
}

#[test]
fn an_empty_key_and_an_empty_value_are_ordinary() {
    let shell = Shell::new();
    shell.run(&["put", "", ""]).ok();
    assert_eq!(shell.run(&["get", ""]).ok(), "\n");
    assert_eq!(shell.run(&["scan"]).ok(), " : \n");
    shell.run(&["delete", ""]).ok();
    shell.run(&["get", ""]).fails(127);
}

fn filled() -> Shell {
    let shell = Shell::new();
    let lines: String = (0..20).map(|i| format!("k{i:02}\tv{i}\n")).collect();
    shell.feed(&["import", "-", "--format", "tsv"], lines.as_bytes()).ok();
    shell
}

#[test]
fn scans_take_ranges_prefixes_limits_and_both_directions() {
    let shell = filled();
    let scan = |arguments: &[&str]| shell.run(&[&["scan"], arguments].concat()).ok();
    assert_eq!(scan(&["--from", "k03", "--to", "k05"]), "k03 : v3\nk04 : v4\n");
    assert_eq!(scan(&["--prefix", "k1", "--limit", "2", "--keys-only"]), "k10\nk11\n");
    assert_eq!(scan(&["--reverse", "--limit", "1"]), "k19 : v19\n");
    assert_eq!(scan(&["--from", "k05", "--to", "k05"]), "");
    assert_eq!(scan(&["--hex", "--limit", "1"]), "0x6B3030 : 0x7630\n");
    assert_eq!(scan(&["--limit", "0"]), "");
    let records = shell.run(&["scan", "--json", "--limit", "1"]).json();
    assert_eq!(records, [json!({ "key": "k00", "value": "v0" })]);
}

#[test]
fn a_range_deletion_takes_its_start_and_leaves_its_end() {
    let shell = filled();
    shell.run(&["delete-range", "k02", "k18"]).ok();
    assert_eq!(shell.run(&["scan", "--keys-only"]).ok(), "k00\nk01\nk18\nk19\n");
    shell.run(&["delete-range", "z", "a"]).fails(2);
}

#[test]
fn keyspaces_are_apart() {
    let shell = Shell::new();
    shell.run(&["put", "k", "default"]).ok();
    shell.run(&["--keyspace", "other", "put", "k", "other"]).ok();
    assert_eq!(shell.run(&["get", "k"]).ok(), "default\n");
    assert_eq!(shell.run(&["get", "k", "--keyspace", "other"]).ok(), "other\n");
    shell.run(&["get", "k", "--keyspace", "none"]).fails(1);
    shell.run(&["keyspace", "create", "third"]).ok();
    shell.run(&["keyspace", "create", "third"]).fails(1);
    assert_eq!(shell.run(&["keyspace", "list"]).ok(), "default\nother\nthird\n");
    shell.run(&["keyspace", "drop", "third"]).ok();
    shell.run(&["keyspace", "drop", "third"]).fails(1);
    assert_eq!(shell.run(&["keyspace", "list", "--json"]).json(), [json!(["default", "other"])]);
}

#[test]
fn the_database_may_come_from_the_environment() {
    let shell = Shell::new();
    let run = |arguments: &[&str]| {
        let mut command = shell.command();
        command.env("SHINGLE_DB", "env.db").args(arguments).status().expect("it runs").code()
    };
    assert_eq!(run(&["put", "a", "b"]), Some(0));
    assert_eq!(run(&["get", "a"]), Some(0));
    assert!(shell.path("env.db").is_dir());
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let shell = Shell::new();
    let lines: String = (0..20_000).map(|i| format!("key{i:08}\t{}\n", "v".repeat(50))).collect();
    shell.feed(&["import", "-", "--format", "tsv"], lines.as_bytes()).ok();
    for arguments in [&["scan"][..], &["scan", "--json"], &["export", "-", "--format", "csv"]] {
        let mut child = shell
            .command()
            .args(["--db", "my.db"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stdout = child.stdout.take().expect("stdout was asked for");
        stdout.read_exact(&mut [0; 10]).expect("there is output");
        drop(stdout);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn called_ldb_it_takes_ldbs_spelling() {
    let shell = filled();
    let ldb = shell.path("ldb");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_shingle"), &ldb).expect("a link can be made");
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(&ldb);
        crate::Ran(command.current_dir(&shell.directory).args(arguments).output().expect("it runs"))
    };
    assert_eq!(run(&["--db=my.db", "get", "k03"]).ok(), "v3\n");
    assert_eq!(run(&["--db=my.db", "put", "new", "value"]).ok(), "");
    assert_eq!(run(&["--db=my.db", "scan", "--from=n", "--max_keys=1"]).ok(), "new : value\n");
    run(&["--db=my.db", "delete", "new"]).ok();
    run(&["--db=my.db", "get", "new"]).fails(127);
    run(&["--db=my.db", "idump"]).fails(2);
}
