//! A database whose merge operator is a program's own: the command does not know it.

use crate::Shell;
use shingle::{Db, Expiry, Keyspace, KeyspaceOptions, MergeOperator, Options, Result};
use std::sync::Arc;

/// Keeps the last operand.
struct Last;

impl MergeOperator for Last {
    fn name(&self) -> &str {
        "last"
    }

    fn merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>> {
        Ok(operands.last().map(|last| last.to_vec()))
    }
}

/// A database with a keyspace `own` whose operator is [`Last`].
fn open(shell: &Shell) -> Result<(Db, Keyspace)> {
    let db = Options::new().merge_operator(Arc::new(Last)).open(shell.path("my.db"))?;
    let options = KeyspaceOptions { merge_operator: Some("last".into()), ..Default::default() };
    let own = db.create_keyspace("own", options)?;
    Ok((db, own))
}

#[test]
fn the_command_works_where_it_does_not_know_the_operator() {
    let shell = Shell::new();
    let (db, own) = open(&shell).unwrap();
    db.put("plain", "1").unwrap();
    own.put("a", "x").unwrap();
    own.put("m", "base").unwrap();
    // What lies below the operands is not known at their flush, so that they stay operands.
    db.flush().unwrap();
    own.merge("m", "one").unwrap();
    own.merge("m", b"\xff").unwrap();
    own.put("z", "y").unwrap();
    drop((own, db));

    assert_eq!(shell.run(&["get", "plain"]).ok(), "1\n");
    assert_eq!(shell.run(&["--keyspace", "own", "get", "a"]).ok(), "x\n");
    let words = shell.run(&["--keyspace", "own", "get", "m"]).fails(1);
    assert!(words.contains("last") && words.contains("key m"), "{words}");
    let scan = shell.run(&["--keyspace", "own", "scan"]);
    assert_eq!(scan.ok(), "a : x\nm : (not merged) on base: one, \\xFF\nz : y\n");
    assert!(scan.err().contains("1 keys have operands"), "{}", scan.err());
    let json = shell.run(&["--keyspace", "own", "--json", "scan"]).json();
    assert_eq!(json[1]["base"], "base");
    assert_eq!(json[1]["operands_base64"][1], "/w==");
    for command in [&["check"][..], &["stat"], &["compact", "--all"], &["put", "new", "2"]] {
        shell.run(command).ok();
    }
    let lines = shell.run(&["--keyspace", "own", "export", "-", "--format", "jsonl"]).ok();
    assert_eq!(lines.lines().count(), 3, "{lines}");
    let words = shell.run(&["--keyspace", "own", "export", "own.tsv"]).fails(1);
    assert!(words.contains("1 keys were left out") && words.contains("jsonl"), "{words}");
    assert_eq!(std::fs::read_to_string(shell.path("own.tsv")).unwrap(), "a\tx\nz\ty\n");
    let words = shell.feed(&["import", "-", "--format", "jsonl"], lines.as_bytes()).fails(1);
    assert!(words.contains("operands"), "{words}");
    shell.run(&["salvage", "saved.db"]).ok();
    let db = Options::new().merge_operator(Arc::new(Last)).open(shell.path("saved.db")).unwrap();
    let own = db.keyspace("own").unwrap();
    assert_eq!(own.get("m").unwrap().as_deref(), Some(&b"\xff"[..]));
}

#[test]
fn an_export_of_operands_keeps_when_the_value_below_them_expires() {
    let shell = Shell::new();
    let (db, own) = open(&shell).unwrap();
    let expiry = Expiry::from_millis(4_102_444_800_000);
    own.put_expiring("m", "base", expiry).unwrap();
    db.flush().unwrap();
    own.merge("m", "one").unwrap();
    drop((own, db));

    let scanned = shell.run(&["--keyspace", "own", "--json", "scan"]).json();
    assert_eq!(scanned[0]["expiry_ms"], expiry.as_millis(), "{scanned:?}");
    let lines = shell.run(&["--keyspace", "own", "scan", "--expiry"]).ok();
    assert_eq!(lines, "m : 2100-01-01T00:00:00.000Z : (not merged) on base: one\n");
    let export = &["--keyspace", "own", "export", "-", "--format", "jsonl"][..];
    let line = shell.run(export).ok();
    assert!(line.contains("\"expiry_ms\":4102444800000"), "{line}");
    let line = shell.run(&[export, &["--without-expiry"]].concat()).ok();
    assert!(line.contains("\"operands\"") && !line.contains("expiry"), "{line}");
}
