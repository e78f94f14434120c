//! Help, wrong usage, quiet and colour.

use crate::{Ran, Shell, write};

const COMMANDS: [&str; 20] = [
    "put",
    "get",
    "delete",
    "delete-range",
    "scan",
    "import",
    "ingest",
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
fn a_wrong_name_brings_the_name_that_it_may_mean() {
    let option = bare(&["-o", "shceme=ldc", "options"]).fails(2);
    assert!(option.contains("no option is called `shceme`"), "{option}");
    assert!(option.contains("did you mean `scheme`?"), "{option}");
    let parameter = bare(&["-o", "links_mxa=9", "options", "--json"]).fails_as_json(2);
    assert!(parameter["help"].as_str().unwrap().starts_with("did you mean `links_max`?"));
    for (arguments, meant) in
        [(["--quite", "options"], "--quiet"), (["optoins", "--json"], "options")]
    {
        let error = bare(&arguments).err();
        assert!(error.contains("similar") && error.contains(meant), "{error}");
    }
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

#[test]
fn help_of_a_command_fits_a_screen() {
    for command in ["get", "put", "scan", "stat", "compact", "keyspace"] {
        let help = bare(&[command, "--help"]).ok();
        let lines = help.lines().count();
        assert!(lines <= 40, "{command} --help has {lines} lines:\n{help}");
        assert_eq!(help, bare(&[command, "-h"]).ok());
    }
    assert!(bare(&["scan", "--help"]).ok().contains(r"(`\\` `\t` `\n` `\r` `\xHH`)"));
}

#[test]
fn a_wrong_value_of_an_option_is_wrong_usage() {
    let shell = Shell::new();
    for option in ["scheme=best", "memory_bytes=much", "memory_bytes=1", "no_option=1", "scheme"] {
        shell.run(&["-o", option, "put", "a", "b"]).fails(2);
    }
    assert!(!shell.path("my.db").exists());
    for arguments in [
        &["schemes", "best"][..],
        &["schemes", "--values", "best"],
        &["simulate", "--scheme", "best"],
        &["simulate", "--values", "best"],
        &["bench", "--scheme", "best", "db"],
        &["bench", "db", "--num=many"],
        &["bench", "--device", "memory", "ycsb", "-P", "workloada", "-p", "recordcount=many"],
        &["device", "info", "smr-banded:band=best"],
    ] {
        bare(arguments).fails(2);
    }
}

#[test]
fn sizes_take_the_same_suffixes_everywhere() {
    let shell = Shell::new();
    for size in ["67108864", "64M", "64MiB", "0.0625G", "67108.864kB"] {
        shell.run(&["-o", &format!("memory_bytes={size}"), "put", "a", "b"]).ok();
        let simulate = ["simulate", "--scheme", "leveled", "--writes", "1000", "--memtable-bytes"];
        bare(&[&simulate[..], &[size]].concat()).ok();
    }
    bare(&["simulate", "--values", "log", "--writes", "1000", "--value-size", "1KiB"]).ok();
}

#[test]
fn errors_are_json_where_json_was_asked_for() {
    let shell = Shell::new();
    for (arguments, code) in [
        (&["--json", "get", "a"][..], 1),
        (&["get", "a", "--json", "-o", "scheme=best"], 2),
        (&["--json", "get"], 2),
    ] {
        let ran = shell.run(arguments);
        assert_eq!(ran.code(), code, "{}", ran.err());
        let error: serde_json::Value = serde_json::from_str(&ran.err()).expect("it is JSON");
        assert_eq!(error["error"]["code"], code);
        assert!(error["error"]["message"].as_str().is_some_and(|text| !text.is_empty()));
        assert_eq!(ran.out(), "");
    }
    let missing = &shell.run(&["--json", "get"]).fails_as_json(2)["message"];
    assert!(missing.as_str().is_some_and(|text| text.contains("<KEY>")), "{missing}");
    shell.run(&["put", "a", "b"]).ok();
    shell.run(&["--json", "get", "b"]).fails_as_json(127);
}

#[test]
fn stat_fits_a_terminal() {
    let shell = Shell::new();
    // Separated values add the longest lines.
    let values = ["-o", "values=hashed", "-o", "value_threshold=1"];
    shell.run(&[&values[..], &["put", "a", "b"]].concat()).ok();
    shell.run(&[&values[..], &["compact"]].concat()).ok();
    let text = shell.run(&["stat"]).ok();
    assert!(text.contains("Values: ") && !text.contains("Uptime"), "{text}");
    let widest = text.lines().map(|line| line.trim_end().chars().count()).max();
    assert!(widest <= Some(80), "{text}");
}

#[test]
fn a_foreign_directory_takes_no_database() {
    let shell = Shell::new();
    let at = |name: &str| shell.path(&format!("foreign/{name}"));
    write(&at("LOG"), b"of somebody else\n");
    write(&at("notes.txt"), b"mine\n");
    let put = ["--db", "foreign", "put", "a", "b"];
    let words = Ran(shell.command().args(put).output().expect("it runs")).fails(1);
    assert!(words.contains("LOG") && words.contains("empty"), "{words}");
    assert!(words.contains("look at --db"), "{words}");
    assert_eq!(std::fs::read(at("LOG")).unwrap(), b"of somebody else\n");
    assert_eq!(std::fs::read_dir(shell.path("foreign")).unwrap().count(), 2);

    write(&shell.path("level/CURRENT"), b"MANIFEST-000002\n");
    let words =
        Ran(shell.command().args(["--db", "level", "put", "a", "b"]).output().expect("it runs"))
            .fails(1);
    assert!(
        words.contains("LevelDB") && words.contains("import --format leveldb level"),
        "{words}"
    );
    assert!(!words.contains("the version that wrote it"), "{words}");
}

#[test]
fn what_is_no_database_is_named_as_such() {
    let shell = Shell::new();
    write(&shell.path("passwd"), b"root:x:0:0:root:/root:/bin/bash\n");
    for path in ["passwd", "/dev/null"] {
        for command in [&["get", "a"][..], &["put", "a", "b"], &["check"]] {
            let arguments = [&["--db", path][..], command].concat();
            let ran = Ran(shell.command().args(arguments).output().expect("it runs"));
            let words = ran.fails(1);
            assert!(words.contains(path) && words.contains("a formatted file or disk"), "{words}");
        }
    }
    assert_eq!(std::fs::metadata(shell.path("passwd")).unwrap().len(), 32);
}

#[cfg(unix)]
#[test]
fn an_open_database_is_read_beside_its_writer_and_changed_by_no_other() {
    use std::process::Stdio;
    let shell = Shell::new();
    shell.run(&["put", "a", "b"]).ok();
    let mut writer = shell
        .command()
        .args(["--db", "my.db", "import", "-", "--format", "tsv"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let id = format!("process {}", writer.id());
    let lock = shell.path("my.db/LOCK");
    while std::fs::read_to_string(&lock).unwrap_or_default().trim() != writer.id().to_string() {
        std::thread::yield_now();
    }
    let metrics = &["stat", "--format", "prometheus"];
    for command in
        [&["get", "a"][..], &["scan"], &["stat"], metrics, &["check"], &["keyspace", "list"]]
    {
        let run = shell.run(command);
        assert!(run.err().contains(&id), "{command:?} does not say who writes: {}", run.err());
        run.ok();
    }
    let words = shell.run(&["put", "a", "c"]).fails(1);
    assert!(words.contains(&id) && words.contains("only read"), "{words}");
    assert_eq!(shell.run(&["--json", "put", "a", "c"]).fails_as_json(1)["kind"], "Locked");
    drop(writer.stdin.take());
    assert!(writer.wait().unwrap().success());
    assert_eq!(shell.run(&["get", "a"]).ok(), "b\n");
}
