//! The completion scripts, in the shells that are here. bash is always here.

use crate::{Ran, Shell, write};
use std::process::Command;

fn script(shell: &Shell, name: &str) -> String {
    Ran(shell.command().args(["completions", name]).output().expect("it runs")).ok()
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

#[test]
fn the_scripts_are_accepted_by_their_shells() {
    let shell = Shell::new();
    for name in ["bash", "zsh", "fish"] {
        let path = shell.path(name);
        write(&path, script(&shell, name).as_bytes());
        if !is_there(name) {
            assert_ne!(name, "bash", "bash is needed");
            continue;
        }
        let checked = Command::new(name).arg("-n").arg(&path).output().expect("it starts");
        let complaint = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(checked.status.success() && complaint.is_empty(), "{name}: {complaint}");
    }
    assert_eq!(
        shell.command().args(["completions", "sh"]).output().expect("it runs").status.code(),
        Some(2)
    );
}

/// What bash offers for the last of these words.
fn offered(shell: &Shell, words: &[&str]) -> Vec<String> {
    let quoted = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let code = format!(
        "source ./bash; COMP_WORDS=('{}' {quoted}); COMP_CWORD={last}
         _shingle \"${{COMP_WORDS[0]}}\" \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{last} - 1]}}\"
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        env!("CARGO_BIN_EXE_shingle"),
        last = words.len(),
    );
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", &code]).current_dir(shell.path("")).env_remove("SHINGLE_DB");
    let output = bash.output().expect("bash starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect()
}

#[test]
fn bash_completes_commands_flags_values_and_keyspaces() {
    let shell = Shell::new();
    write(&shell.path("bash"), script(&shell, "bash").as_bytes());
    shell.run(&["put", "a", "b"]).ok();
    for keyspace in ["users", "uses", "$(touch hacked)"] {
        shell.run(&["keyspace", "create", keyspace]).ok();
    }
    assert_eq!(offered(&shell, &["chec"]), ["check", "checkpoint"]);
    assert_eq!(offered(&shell, &["keyspace", "cr"]), ["create"]);
    assert_eq!(offered(&shell, &["scan", "--pre"]), ["--prefix"]);
    assert_eq!(offered(&shell, &["export", "--format", "js"]), ["jsonl", "json"]);
    assert_eq!(offered(&shell, &["--color", "al"]), ["always"]);
    let of_db = |words: &[&str]| offered(&shell, &[&["--db", "my.db"][..], words].concat());
    assert_eq!(of_db(&["scan", "--keyspace", "us"]), ["users", "uses"]);
    assert_eq!(of_db(&["--keyspace", "d"]), ["default"]);
    assert_eq!(of_db(&["keyspace", "drop", "use"]), ["users", "uses"]);
    assert_eq!(of_db(&["scan", "--keyspace", ""]), ["default", "users", "uses"]);
    assert!(!shell.path("hacked").exists(), "a name was run");
    assert_eq!(offered(&shell, &["--db", "none.db", "scan", "--keyspace", "u"]), [""]);
}

#[test]
fn fish_completes_keyspaces_where_it_is() {
    if !is_there("fish") {
        return;
    }
    let shell = Shell::new();
    write(&shell.path("fish"), script(&shell, "fish").as_bytes());
    shell.run(&["put", "a", "b"]).ok();
    shell.run(&["keyspace", "create", "users"]).ok();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_shingle"));
    let commands = program.parent().expect("the command lies in a directory").display();
    let path = format!("{commands}:{}", std::env::var("PATH").unwrap_or_default());
    for line in ["shingle --db my.db scan --keyspace u", "shingle --db=my.db keyspace drop u"] {
        let code = format!("source ./fish; complete -C '{line}'");
        let mut fish = Command::new("fish");
        fish.args(["--no-config", "-c", &code]).current_dir(shell.path("")).env("PATH", &path);
        let output = fish.env("HOME", shell.path("")).output().expect("fish starts");
        let offered = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(offered.starts_with("users") && offered.lines().count() == 1, "{offered}");
    }
}
