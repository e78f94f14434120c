//! Help, wrong usage, quiet and colour.

use crate::{Ran, Shell};

const COMMANDS: [&str; 19] = [
    "put",
    "get",
    "delete",
    "delete-range",
    "scan",
    "import",
    "export",
    "stat",
    "check",
    "compact",
    "checkpoint",
    "salvage",
    "keyspace",
    "options",
    "schemes",
    "simulate",
    "dump",
    "bench",
    "demo",
];

fn bare(arguments: &[&str]) -> Ran {
    Ran(Shell::new().command().args(arguments).output().expect("it runs"))
}

#[test]
fn every_command_teaches() {
    let list = bare(&["--help"]).ok();
    for command in COMMANDS {
        assert!(list.contains(command), "{command} is missing in --help");
        let help = bare(&[command, "--help"]).ok();
        assert!(help.contains("Examples:") && help.contains("shingle "), "{command}: {help}");
        let paragraph = help.split("Usage:").next().unwrap_or_default();
        assert!(paragraph.len() > 80, "{command} has no paragraph: {paragraph}");
    }
    assert!(list.contains("127") && list.contains("SHINGLE_DB"));
    assert!(!list.contains("crash-writer"), "what is internal is not shown");
}

#[test]
fn wrong_usage_is_2_and_says_what_is_missing() {
    assert_eq!(bare(&["no-such-command"]).code(), 2);
    assert_eq!(bare(&["get"]).code(), 2);
    assert_eq!(bare(&[]).code(), 2);
    assert!(bare(&["get", "a"]).fails(2).contains("which database?"));
}

#[test]
fn reading_does_not_create() {
    let shell = Shell::new();
    for arguments in [&["get", "a"][..], &["scan"], &["stat"], &["delete", "a"], &["compact"]] {
        assert!(shell.run(arguments).fails(1).contains("no database"), "{arguments:?}");
    }
    shell.run(&["check"]).fails(1);
    assert!(!shell.path("my.db").exists());
}

#[test]
fn without_a_terminal_there_are_no_colours_and_no_bars() {
    let shell = Shell::new();
    let import = shell.feed(&["import", "-", "--format", "tsv"], b"a\t1\n");
    import.ok();
    assert!(import.err().starts_with("imported 1 records"), "{}", import.err());
    for arguments in [&["--help"][..], &["no-such-command"], &["stat"]] {
        for no_color in [false, true] {
            let mut command = shell.command();
            command.args(["--db", "my.db"]).args(arguments);
            if no_color {
                command.env("NO_COLOR", "1");
            }
            let ran = Ran(command.output().expect("it runs"));
            assert!(!(ran.out() + &ran.err()).contains('\u{1b}'), "{arguments:?}");
        }
    }
}

#[test]
fn quiet_says_nothing() {
    let import = Shell::new().feed(&["-q", "import", "-", "--format", "tsv"], b"a\t1\n");
    assert_eq!((import.ok(), import.err()), (String::new(), String::new()));
}
