//! dump, on files that the engine wrote.

use crate::Shell;

fn file(shell: &Shell, belongs: impl Fn(&str) -> bool) -> String {
    let files = std::fs::read_dir(shell.path("my.db")).expect("there is a database").flatten();
    let mut names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    names.find(|name| belongs(name)).expect("there is such a file")
}

#[test]
fn tables_manifests_and_logs_are_readable() {
    let shell = Shell::new();
    let lines: String = (0..500).map(|i| format!("key{i:05}\tvalue {i}\n")).collect();
    shell.feed(&["import", "-", "--format", "tsv"], lines.as_bytes()).ok();
    shell.run(&["compact"]).ok();
    shell.run(&["put", "later", "in the log"]).ok();
    let table = shell.run(&["dump", "table", "--entries"]).ok();
    assert!(table.contains("key00007 @ ") && table.contains("Put => value 7"), "{table}");
    let manifest = shell.run(&["dump", "manifest"]).ok();
    assert!(manifest.contains("edit at byte") && manifest.contains("add run"), "{manifest}");
    // An orderly end may have left no log.
    shell.run(&["dump", "wal", "--entries"]).ok();
    let name = file(&shell, |name| name.starts_with("MANIFEST-"));
    let path = format!("my.db/{name}");
    let named = shell.command().args(["dump", "manifest", &path]).output().expect("it runs");
    assert!(named.status.success());
}

#[test]
fn what_is_no_such_file_is_refused() {
    let shell = Shell::new();
    shell.run(&["dump", "table"]).fails(1);
    shell.run(&["put", "a", "b"]).ok();
    shell.run(&["dump", "table", "my.db/what"]).fails(2);
    shell.run(&["dump", "manifest", "--json"]).fails_as_json(2);
}

#[test]
fn the_tree_is_listed_and_drawn() {
    let shell = Shell::new();
    let lines: String = (0..500).map(|i| format!("key{i:05}\tvalue {i}\n")).collect();
    shell.feed(&["import", "-", "--format", "tsv"], lines.as_bytes()).ok();
    shell.run(&["keyspace", "create", "other"]).ok();
    shell.run(&["--keyspace", "other", "put", "a", "b"]).ok();
    shell.run(&["compact", "--all"]).ok();
    let text = shell.run(&["dump", "tree"]).ok();
    assert!(text.contains("from key00000 to key00499") && text.contains("% of it live"), "{text}");
    assert!(shell.run(&["--keyspace", "other", "dump", "tree"]).ok().contains("from a to a"));
    shell.run(&["dump", "tree", "--svg", "tree.svg"]).ok();
    let picture = std::fs::read_to_string(shell.path("tree.svg")).expect("it was written");
    assert!(picture.starts_with("<svg") && picture.contains("key00000"), "{picture}");
    shell.run(&["--keyspace", "none", "dump", "tree"]).fails(1);
    shell.run(&["dump", "table", "--svg", "tree.svg"]).fails(2);
}

#[test]
fn values_are_listed_and_drawn_by_group() {
    let shell = Shell::new();
    let value = "v".repeat(2000);
    let lines: String = (0..200).map(|i| format!("key{i:05}\t{value}\n")).collect();
    let import = ["--option", "values=hashed", "import", "-", "--format", "tsv"];
    shell.feed(&import, lines.as_bytes()).ok();
    let text = shell.run(&["dump", "values"]).ok();
    assert!(text.contains("main, all keys: ") && text.contains(".value: "), "{text}");
    shell.run(&["dump", "values", "--svg", "values.svg"]).ok();
    let picture = std::fs::read_to_string(shell.path("values.svg")).expect("it was written");
    assert!(picture.starts_with("<svg") && picture.contains("main, all keys"), "{picture}");
}
