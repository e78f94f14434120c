//! stat, check, compact, checkpoint, salvage, options.

use crate::{Ran, Shell, write};

fn filled() -> Shell {
    let shell = Shell::new();
    let lines: String = (0..2000).map(|i| format!("k{i:05}\tvalue {i}\n")).collect();
    shell.feed(&["import", "-", "--format", "tsv"], lines.as_bytes()).ok();
    shell
}

#[test]
fn stat_is_a_table_or_json_or_a_property() {
    let shell = filled();
    let text = shell.run(&["stat"]).ok();
    // What can only be zero for a command that reads is not there; a shell that writes has it.
    assert!(text.contains(" L0 ") && text.contains("Writes did not wait."), "{text}");
    assert!(!text.contains("Bytes by cause") && !text.contains("Write Stall"), "{text}");
    let text = shell.feed(&["shell"], b"put a b\nstat\n").ok();
    assert!(text.contains("Bytes by cause") && text.contains("Write Stall"), "{text}");
    let stats = shell.run(&["stat", "--json"]).json();
    assert!(stats[0].is_object());
    shell.run(&["stat", "--property", "no.such.property"]).fails(1);
}

#[test]
fn stat_says_which_options_it_assumes_and_takes_those_of_the_last_opening() {
    let shell = filled();
    let assumed = |arguments: &[&str]| {
        let stats = shell.run(&[arguments, &["stat", "--json"]].concat()).json().remove(0);
        (stats["options"].to_string(), stats["levels"][0]["score"].as_f64().unwrap())
    };
    let of = |from, scheme| {
        serde_json::json!({ "from": from, "scheme": scheme, "values": "inline" }).to_string()
    };
    assert_eq!(assumed(&[]).0, of("last opening", "adaptive"));
    let flags = ["-o", "scheme=ldc", "-o", "links_max=9", "-o", "level0_runs_trigger=16"];
    shell.run(&[&flags[..], &["put", "a", "b"]].concat()).ok();
    let (last, score) = assumed(&[]);
    assert_eq!(last, of("last opening", "ldc"));
    // Parameters of the stored scheme do not stand in the way of another one.
    assert_eq!(assumed(&["-o", "scheme=tiered"]).0, of("last opening", "tiered"));
    let text = shell.run(&["-o", "values=log", "stat"]).ok();
    let line = "computed with scheme=ldc, values=log: the options of the last opening for writing, \
                and --option.";
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains(line), "{text}");
    std::fs::remove_file(shell.path("my.db/OPTIONS")).unwrap();
    assert_eq!(assumed(&flags), (of("defaults", "ldc"), score));
    let (from, other) = assumed(&[]);
    assert_eq!(from, of("defaults", "adaptive"));
    assert!(score < other, "{score} {other}");
}

#[test]
fn commands_that_write_go_on_with_the_options_of_the_database() {
    let shell = filled();
    let options = || std::fs::read_to_string(shell.path("my.db/OPTIONS")).unwrap();
    let set = ["scheme=ldc", "links_max=9", "memory_bytes=64M", "block_bytes=8K"];
    let flags: Vec<&str> = set.iter().flat_map(|option| ["-o", option]).collect();
    shell.run(&[&flags[..], &["put", "a", "b"]].concat()).ok();
    let before = options();
    for line in ["scheme=ldc\n", "links_max=9\n", "block_bytes=8192\n"] {
        assert!(before.contains(line), "{before}");
    }
    shell.run(&["put", "c", "d"]).ok();
    shell.run(&["delete", "c"]).ok();
    shell.run(&["compact"]).ok();
    let text = shell.feed(&["shell"], b"put e f\nstat\n").ok();
    assert!(text.contains("scheme=ldc"), "{text}");
    assert_eq!(options(), before);
    // A flag sets the one option that it names.
    shell.run(&["-o", "memory_bytes=32M", "put", "g", "h"]).ok();
    assert_eq!(options(), before.replace("memory_bytes=67108864", "memory_bytes=33554432"));
    // Parameters of the stored scheme do not stand in the way of another one.
    shell.run(&["-o", "scheme=tiered", "put", "i", "j"]).ok();
    assert!(options().contains("scheme=tiered"), "{}", options());
    assert!(!options().contains("links_max"), "{}", options());
}

#[test]
fn stat_prints_metrics_of_the_database_and_none_of_the_command() {
    let shell = filled();
    shell.run(&["compact"]).ok();
    let text = shell.run(&["stat", "--format", "prometheus"]).ok();
    let stats = &shell.run(&["stat", "--json"]).json()[0];
    let line = |name: &str, labels: &str| {
        let begin = format!("{name}{{db=\"my.db\"{labels}}} ");
        let lines = text.lines().filter_map(|line| line.strip_prefix(begin.as_str()));
        lines.map(|number| number.parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    let wanted = stats["live_bytes"].as_u64().unwrap();
    assert!(wanted > 0);
    assert_eq!(line("shingle_live_bytes", ",keyspace=\"default\""), [wanted], "{text}");
    assert_eq!(line("shingle_sequence", ""), [stats["sequence"].as_u64().unwrap()], "{text}");
    assert!(!text.contains("_total") && !text.contains("uptime"), "{text}");

    let text = shell.run(&["stat", "--format", "openmetrics"]).ok();
    assert!(text.contains("# UNIT shingle_live_bytes bytes\n") && text.ends_with("# EOF\n"));
    let failure = shell.run(&["stat", "--format", "prometheus", "--json"]).fails_as_json(2);
    assert_eq!(failure["kind"], "Usage");
}

#[test]
fn a_sound_database_is_found_sound() {
    let shell = filled();
    assert!(shell.run(&["check"]).ok().contains("everything is as it was written"));
    let report = &shell.run(&["check", "--json"]).json()[0];
    assert_eq!(report["ok"], true);
    assert!(report["bytes"].as_u64().unwrap() > 0);
}

/// The largest table file; after a compaction it holds data.
fn largest_file(shell: &Shell) -> std::path::PathBuf {
    let files = std::fs::read_dir(shell.path("my.db")).expect("there is a database").flatten();
    let rank = |file: &std::fs::DirEntry| {
        let is_table = file.path().extension().is_some_and(|extension| extension == "table");
        (is_table, file.metadata().map_or(0, |metadata| metadata.len()))
    };
    files.max_by_key(rank).expect("it has files").path()
}

/// Flips one bit of a compacted database; gives the file and its bytes.
fn damage(shell: &Shell, place: impl Fn(usize) -> usize) -> (std::path::PathBuf, Vec<u8>) {
    shell.run(&["compact"]).ok();
    let path = largest_file(shell);
    let mut bytes = std::fs::read(&path).expect("it can be read");
    let at = place(bytes.len());
    bytes[at] ^= 0x40;
    std::fs::write(&path, &bytes).expect("it can be written");
    (path, bytes)
}

#[test]
fn a_flipped_bit_is_found_and_salvage_leaves_the_source_alone() {
    let shell = filled();
    let (path, bytes) = damage(&shell, |length| length / 2);
    let words = shell.run(&["check"]).fails(1);
    assert!(words.contains("shingle salvage"), "{words}");
    shell.run(&["salvage", "saved.db"]).ok();
    assert_eq!(std::fs::read(&path).expect("it is still there"), bytes);
    shell.run(&["salvage", "saved.db"]).fails(1);
}

/// The names and contents of all files in `folder`.
fn contents(folder: &std::path::Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let files = std::fs::read_dir(folder).expect("it is a directory").flatten();
    let read = |file: std::fs::DirEntry| {
        (file.file_name(), std::fs::read(file.path()).expect("it can be read"))
    };
    let mut files: Vec<_> = files.map(read).collect();
    files.sort();
    files
}

/// Shells and programs hand the limit of the size of a file on, and that no signal comes with it.
#[cfg(unix)]
#[test]
fn a_failed_salvage_removes_what_it_wrote_and_nothing_else() {
    let shell = Shell::new();
    let lines: String = (0..20_000u64).map(|i| format!("k{i:05}\t{}\n", i * i * i)).collect();
    shell.feed(&["import", "-", "--format", "tsv"], lines.as_bytes()).ok();
    let source = contents(&shell.path("my.db"));
    write(&shell.path("used/letter"), b"a letter");
    std::fs::create_dir(shell.path("empty")).expect("it can be made");

    let limited = |target: &str| {
        let run = format!(
            "trap '' XFSZ; ulimit -f 100; exec {} --db my.db salvage {target}",
            env!("CARGO_BIN_EXE_shingle")
        );
        let mut command = std::process::Command::new("sh");
        command.current_dir(shell.path("")).args(["-c", &run]).env_remove("SHINGLE_DB");
        Ran(command.output().expect("there is a shell"))
    };
    let words = limited("saved.db").fails(1);
    assert!(words.contains("File too large"), "{words}");
    assert!(!shell.path("saved.db").exists(), "{words}");
    for target in ["used", "empty", "my.db"] {
        let words = limited(target).fails(1);
        assert!(words.contains(&format!("{target} exists")), "{words}");
    }
    assert_eq!(contents(&shell.path("used")), [("letter".into(), b"a letter".to_vec())]);
    assert!(contents(&shell.path("empty")).is_empty());
    assert_eq!(contents(&shell.path("my.db")), source);
    shell.run(&["salvage", "saved.db"]).ok();
}

/// The table in the middle of several, cut in half.
fn cut_one_of_many() -> (Shell, String) {
    let shell = Shell::new();
    let small = ["-o", "table_bytes=64K", "-o", "compression=none"];
    // Two runs of the same keys: a compaction merges them into tables of the size.
    for _ in 0..2 {
        let lines: String = (0..20_000).map(|i| format!("k{i:05}\tvalue {i}\n")).collect();
        let import = [&small[..], &["import", "-", "--format", "tsv"]].concat();
        shell.feed(&import, lines.as_bytes()).ok();
    }
    shell.run(&[&small[..], &["compact"]].concat()).ok();
    let files = std::fs::read_dir(shell.path("my.db")).expect("there is a database").flatten();
    let is_table = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "table");
    let mut tables: Vec<_> = files.map(|file| file.path()).filter(is_table).collect();
    tables.sort();
    assert!(tables.len() > 4, "{tables:?}");
    let cut = &tables[tables.len() / 2];
    let file = std::fs::OpenOptions::new().write(true).open(cut).expect("it can be written");
    file.set_len(cut.metadata().expect("it is there").len() / 2).expect("it can be cut");
    (shell, cut.file_name().expect("it has a name").to_string_lossy().into_owned())
}

#[test]
fn a_cut_table_stops_only_reads_of_that_table() {
    let (shell, name) = cut_one_of_many();
    shell.run(&["put", "new", "1"]).ok();
    let keys: Vec<String> = (0..200).map(|i| format!("k{:05}", i * 100)).collect();
    let mut lost = 0;
    for key in &keys {
        let got = shell.run(&["get", key]);
        if got.code() != 0 {
            assert!(got.fails(1).contains(&name), "{}", got.err());
            lost += 1;
        }
    }
    assert!((1..keys.len() / 2).contains(&lost), "{lost} of {}", keys.len());
    assert_eq!(shell.run(&["scan", "--limit", "2", "--keys-only"]).ok(), "k00000\nk00001\n");
    assert_eq!(shell.run(&["get", "new"]).ok(), "1\n");
    shell.run(&["stat"]).ok();
    let words = shell.run(&["scan", "--keys-only"]).fails(1);
    assert!(words.contains(&name), "{words}");
    let check = shell.run(&["check"]);
    check.fails(1);
    assert!(check.out().contains(&format!("damage: {name} has ")), "{}", check.out());
    shell.run(&["salvage", "saved.db"]).ok();
    let saved = shell.command().args(["--db", "saved.db", "scan", "--keys-only"]).output().unwrap();
    let saved = String::from_utf8(saved.stdout).unwrap().lines().count();
    assert!((17_000..20_001).contains(&saved), "{saved}");
}

#[test]
fn a_compaction_tells_the_space_that_is_left() {
    let shell = filled();
    for _ in 0..2 {
        let told = shell.run(&["compact", "--json"]).json()[0]["space_bytes_after"].as_u64();
        let is_data = |path: &std::path::Path| {
            let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
            name.ends_with(".table") || name.ends_with(".wal") || name.starts_with("MANIFEST")
        };
        let files = std::fs::read_dir(shell.path("my.db")).expect("there is a database").flatten();
        let data = files.filter(|file| is_data(&file.path()));
        let bytes: u64 = data.map(|file| file.metadata().expect("it is there").len()).sum();
        assert_eq!(told, Some(bytes));
    }
}

#[test]
fn check_reads_the_header_of_a_file_too() {
    let shell = filled();
    damage(&shell, |_| 2);
    shell.run(&["check"]).fails(1);
}

#[test]
fn compaction_changes_no_record() {
    let shell = filled();
    let before = shell.run(&["scan"]).ok();
    shell.run(&["compact"]).ok();
    shell.run(&["compact", "--from", "k001", "--to", "k002"]).ok();
    shell.run(&["compact", "--all"]).ok();
    assert_eq!(shell.run(&["scan"]).ok(), before);
    assert!(shell.run(&["compact", "--json"]).json()[0]["space_bytes_after"].is_u64());
}

#[test]
fn a_checkpoint_is_a_database_of_its_own() {
    let shell = filled();
    shell.run(&["checkpoint", "backup.db"]).ok();
    shell.run(&["put", "k00000", "changed afterwards"]).ok();
    let backup = shell.command().args(["--db", "backup.db", "get", "k00000"]).output().unwrap();
    assert_eq!(backup.stdout, b"value 0\n");
    shell.run(&["checkpoint", "backup.db"]).fails(1);
}

#[test]
fn options_are_listed_and_taken() {
    let shell = filled();
    let listed = shell.run(&["options"]).ok();
    assert!(listed.contains("memory_bytes"), "{listed}");
    assert!(!shell.run(&["options", "--json"]).json().is_empty());
    let set = ["-o", "scheme=ldc", "-o", "links_max=3", "-o", "values=log", "options"];
    let listed = shell.run(&set).ok();
    for line in ["links_max = 3\n", "fan_out = 10\n", "value_reserved_ratio = 0.3\n"] {
        assert!(listed.contains(line), "{line}{listed}");
    }
    assert!(!listed.contains("stack_max"), "of another scheme: {listed}");
    let refused = shell.run(&["-o", "links_max=3", "options"]).fails(2);
    assert!(refused.contains("has no parameter `links_max`"), "{refused}");
    shell.run(&["-o", "memory_bytes=67108864", "get", "k00000"]).ok();
    shell.run(&["-o", "no_such_option=1", "get", "k00000"]).fails(2);
    shell.run(&["-o", "no-equals-sign", "get", "k00000"]).fails(2);
}

#[test]
fn a_cold_store_is_named_with_every_command() {
    let shell = Shell::new();
    let cold = ["--cold-store", "cold.db"];
    let value = "v".repeat(2000);
    let lines: String = (0..300).map(|i| format!("key{i:05}\t{value}\n")).collect();
    // Two runs of the same keys, for a move that must merge them: what it finds inline was written
    // long ago. The cold store comes with the move.
    for _ in 0..2 {
        shell.feed(&["import", "-", "--format", "tsv"], lines.as_bytes()).ok();
    }
    let compact = [&cold[..], &["--option", "values=hashed", "compact"]].concat();
    shell.run(&compact).ok();
    let with = |words: &[&'static str]| shell.run(&[&cold[..], words].concat());
    assert!(with(&["stat"]).ok().contains("Values in the cold store: "));
    assert!(with(&["dump", "values"]).ok().contains(", in the cold store"));
    assert!(with(&["check"]).ok().contains("everything is as it was written"));
    assert!(with(&["get", "key00007"]).ok().contains(&value));
    with(&["checkpoint", "copy.db"]).ok();
    let words = shell.run(&["get", "key00007"]).fails(1);
    assert!(words.contains("are in a cold store"), "{words}");
    let words = shell.run(&["--cold-store", "copy.db", "get", "key00007"]).fails(1);
    assert!(words.contains("holds a database"), "{words}");
    let words = shell.run(&["--cold-store", "none.db", "get", "key00007"]).fails(1);
    assert!(words.contains("no cold store in none.db"), "{words}");
    let words = shell.run(&["--cold-store", "none.db", "check"]).fails(1);
    assert!(words.contains("no cold store in none.db"), "{words}");
    assert!(!shell.path("none.db").exists(), "who reads makes no directory");
    let elsewhere = ["--db", "no.db", "--cold-store", "none.db", "compact"];
    let output = shell.command().args(elsewhere).output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("no database in no.db"), "{words}");
    with(&["bench", "db", "--num=1"]).fails(2);
}

#[test]
fn backups_are_taken_listed_verified_restored_and_pruned() {
    let shell = Shell::new();
    shell.run(&["put", "a", "1"]).ok();
    let first = shell.run(&["backup", "create", "kept"]).ok();
    assert!(first.starts_with("backup 1: "), "{first}");
    shell.run(&["put", "a", "2"]).ok();
    let second = shell.run(&["--json", "backup", "create", "kept"]).ok();
    let second: serde_json::Value = serde_json::from_str(&second).unwrap();
    assert_eq!(second["number"], 2);
    let listed = shell.run(&["backup", "list", "kept"]).ok();
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(shell.run(&["backup", "verify", "kept"]).ok().contains("backup 2 is as it was stored"));
    shell.run(&["backup", "restore", "kept", "old.db", "--number", "1"]).ok();
    shell.run(&["backup", "restore", "kept", "new.db"]).ok();
    for (path, value) in [("old.db", "1\n"), ("new.db", "2\n")] {
        let got = shell.command().args(["--db", path, "get", "a"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&got.stdout), value);
    }
    let words = shell.run(&["backup", "restore", "kept", "none.db", "--at", "5"]).fails(1);
    assert!(words.contains("no such backup"), "{words}");
    assert!(!shell.path("none.db").exists());
    let words = shell.run(&["backup", "restore", "kept", "old.db"]).fails(1);
    assert!(words.contains("holds"), "{words}");
    assert!(shell.run(&["backup", "prune", "kept", "--keep", "1"]).ok().contains("1 backup"));
    let words = shell.run(&["backup", "create", "old.db"]).fails(1);
    assert!(words.contains("not a backup directory"), "{words}");
}

#[test]
fn a_directory_with_backups_of_two_databases_asks_for_one() {
    let shell = Shell::new();
    shell.run(&["put", "a", "1"]).ok();
    shell.run(&["backup", "create", "kept"]).ok();
    let other = |args: &[&str]| {
        let output = shell.command().args(["--db", "other.db"]).args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    other(&["put", "a", "2"]);
    other(&["backup", "create", "kept"]);
    let listed = shell.run(&["--json", "backup", "list", "kept"]).ok();
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let ours = listed[0]["database"].as_str().unwrap();
    for args in [&["verify", "kept"][..], &["restore", "kept", "new.db"], &["prune", "kept"]] {
        let words = shell.run(&[&["backup"], args].concat()).fails(1);
        assert!(words.contains("2 databases") && words.contains(ours), "{words}");
    }
    assert!(!shell.path("new.db").exists());
    shell.run(&["backup", "restore", "kept", "new.db", "--database", ours]).ok();
    let got = shell.command().args(["--db", "new.db", "get", "a"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&got.stdout), "1\n");
    shell.run(&["backup", "prune", "kept", "--keep", "1", "--database", ours]).ok();
    let left = shell.run(&["backup", "list", "kept"]).ok();
    assert_eq!(left.lines().count(), 3, "{left}");
}
