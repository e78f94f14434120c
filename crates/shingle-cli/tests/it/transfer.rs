//! import and export.

use crate::{Shell, write};

/// Records that break careless formats.
fn nasty() -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut records: Vec<(Vec<u8>, Vec<u8>)> = [
        (&b""[..], &b"the empty key"[..]),
        (b"empty value", b""),
        (b"key", b"value"),
        (b"tab\there", b"line\nbreak\r\nand\\backslash"),
        (b"\"quoted\"", b"a,b;\"c\""),
        (b"\\x41", b"\\t is no tab"),
        ("Grüße".as_bytes(), "日本\u{feff}\u{2028}".as_bytes()),
        (b"\x00\x01\xfe\xff", b"\xff\x00\n\t"),
        (b" spaces ", b" "),
        (b"key_base64", b"AP8K"),
    ]
    .map(|(key, value)| (key.to_vec(), value.to_vec()))
    .into();
    records.push((b"big".to_vec(), (0..300_000u32).map(|i| i.wrapping_mul(i) as u8).collect()));
    records
}

fn put_all(shell: &Shell, records: &[(Vec<u8>, Vec<u8>)]) {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    for (key, value) in records {
        let key = format!("0x{}", hex(key));
        shell.feed(&["put", "--hex", &key, "--value-file", "-"], value).ok();
    }
}

#[test]
fn export_and_import_lose_nothing() {
    let shell = Shell::new();
    put_all(&shell, &nasty());
    let before = shell.run(&["scan", "--hex"]).ok();
    for format in ["tsv", "csv", "jsonl"] {
        let file = format!("all.{format}");
        shell.run(&["export", &file, "--verify"]).ok();
        let copy = format!("copy-{format}.db");
        shell.command().args(["--db", &copy, "import", &file, "--verify"]).status().unwrap();
        let after = shell.command().args(["--db", &copy, "scan", "--hex"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&after.stdout), before, "{format}");
        let piped = shell.run(&["export", "-", "--format", format]).0.stdout;
        assert_eq!(piped, std::fs::read(shell.path(&file)).unwrap(), "{format}");
        shell.run(&["export", &file]).fails(1);
    }
}

#[test]
fn a_directory_tree_comes_back() {
    let shell = Shell::new();
    let files =
        [("a.txt", &b"text"[..]), ("empty", b""), ("sub/deep/b", b"\xff\x00"), ("sub/x y", b"1")];
    for (name, content) in files {
        write(&shell.path("tree").join(name), content);
    }
    shell.run(&["import", "tree", "--verify"]).ok();
    assert_eq!(shell.run(&["scan", "--keys-only"]).ok(), "a.txt\nempty\nsub/deep/b\nsub/x y\n");
    shell.run(&["export", "copy/", "--verify"]).ok();
    for (name, content) in files {
        assert_eq!(std::fs::read(shell.path("copy").join(name)).unwrap(), content);
    }
    assert!(shell.run(&["export", "copy/"]).fails(1).contains("not empty"));
}

#[test]
fn a_key_never_leads_out_of_the_directory() {
    let shell = Shell::new();
    shell.run(&["put", "../escaped", "x"]).ok();
    let words = shell.run(&["export", "inside/", "--format", "dir"]).fails(1);
    assert!(words.contains("no relative path"), "{words}");
    assert!(!shell.path("escaped").exists());
}

#[test]
fn a_key_that_is_file_and_directory_is_refused() {
    let shell = Shell::new();
    shell.run(&["put", "a", "file"]).ok();
    shell.run(&["put", "a/b", "below it"]).ok();
    assert!(shell.run(&["export", "d/", "--format", "dir"]).fails(1).contains("cannot be a file"));
}

#[test]
fn debian_stanzas_come_back() {
    let shell = Shell::new();
    let text = "Package: b\nVersion: 2\nDescription: two\n .\n lines\n\nPackage: a\nVersion: 1\n\n";
    write(&shell.path("x_Packages"), text.as_bytes());
    shell.run(&["import", "x_Packages", "--verify"]).ok();
    assert_eq!(shell.run(&["get", "a", "--raw"]).ok(), "Package: a\nVersion: 1\n");
    shell.run(&["export", "y_Packages", "--verify"]).ok();
    let sorted =
        "Package: a\nVersion: 1\n\nPackage: b\nVersion: 2\nDescription: two\n .\n lines\n\n";
    assert_eq!(std::fs::read_to_string(shell.path("y_Packages")).unwrap(), sorted);
    shell.run(&["put", "c", "no stanza"]).ok();
    shell.run(&["export", "z_Packages"]).fails(1);
    let by_version = ["--keyspace", "v", "import", "x_Packages", "--key-field", "version"];
    shell.run(&by_version).ok();
    assert_eq!(shell.run(&["--keyspace", "v", "scan", "--keys-only"]).ok(), "1\n2\n");
}

#[test]
fn json_lines_may_bring_their_own_key() {
    let shell = Shell::new();
    let lines = "{\"id\":7,\"name\":\"seven\"}\n\n{\"id\":\"x\",\"more\":[1]}\n";
    write(&shell.path("events.jsonl"), lines.as_bytes());
    shell.run(&["import", "events.jsonl", "--key-field", "id", "--verify"]).ok();
    assert_eq!(shell.run(&["get", "7"]).ok(), "{\"id\":7,\"name\":\"seven\"}\n");
    let back = shell.run(&["export", "-", "--format", "jsonl", "--key-field", "id"]).ok();
    assert_eq!(back, lines.replace("\n\n", "\n"));
}

#[test]
fn the_last_record_of_a_key_counts() {
    let shell = Shell::new();
    write(&shell.path("twice.tsv"), b"a\t1\nb\t1\na\t2\n");
    shell.run(&["import", "twice.tsv", "--verify"]).ok();
    assert_eq!(shell.run(&["scan"]).ok(), "a : 2\nb : 1\n");
}

#[test]
fn figures_are_json_where_asked() {
    let shell = Shell::new();
    write(&shell.path("two.csv"), b"key,value\na,1\nb,2\n");
    let figures = &shell.run(&["import", "two.csv", "--verify", "--json"]).json()[0];
    assert_eq!((&figures["records"], &figures["verified"]), (&2.into(), &true.into()));
}

#[test]
fn wrong_sources_are_named() {
    let shell = Shell::new();
    write(&shell.path("bad.tsv"), b"fine\t1\nbad\n");
    assert!(shell.run(&["import", "bad.tsv"]).fails(1).contains("bad.tsv, line 2"));
    write(&shell.path("bad.jsonl"), b"{\"key\":1}\n");
    assert!(shell.run(&["import", "bad.jsonl"]).fails(1).contains("neither `value`"));
    write(&shell.path("bad.csv"), b"a,b,c,d\n");
    assert!(shell.run(&["import", "bad.csv"]).fails(1).contains("--key-field a"));
    assert!(shell.run(&["import", "bad.csv", "--no-header"]).fails(1).contains("4 columns"));
    shell.run(&["import", "not-there.tsv"]).fails(1);
    write(&shell.path("what"), b"");
    shell.run(&["import", "what"]).fails(2);
    shell.run(&["import", "-", "--format", "tsv", "--verify"]).fails(2);
}

#[test]
fn compressed_files_come_back() {
    let shell = Shell::new();
    put_all(&shell, &nasty());
    let before = shell.run(&["scan", "--hex"]).ok();
    for format in ["tsv", "csv", "jsonl", "json"] {
        let file = format!("all.{format}.gz");
        shell.run(&["export", &file, "--verify"]).ok();
        assert_eq!(std::fs::read(shell.path(&file)).unwrap()[..2], [0x1f, 0x8b]);
        let copy = format!("copy-{format}.db");
        shell.command().args(["--db", &copy, "import", &file, "--verify"]).status().unwrap();
        let after = shell.command().args(["--db", &copy, "scan", "--hex"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&after.stdout), before, "{format}");
    }
}

#[test]
fn a_compressed_pipe_is_recognised() {
    let shell = Shell::new();
    write(&shell.path("a.csv"), b"id,name\n7,Ann\n");
    shell.run(&["import", "a.csv", "--key-field", "id"]).ok();
    shell.run(&["export", "a.jsonl.gz"]).ok();
    let packed = std::fs::read(shell.path("a.jsonl.gz")).unwrap();
    let import = ["--keyspace", "piped", "import", "-", "--format", "jsonl"];
    shell.feed(&import, &packed).ok();
    let piped = shell.run(&["--keyspace", "piped", "scan"]).ok();
    assert_eq!(piped, shell.run(&["scan"]).ok());
}

#[test]
fn a_csv_with_a_header_is_imported_by_its_key_field() {
    let shell = Shell::new();
    write(&shell.path("people.csv"), b"id,name,age\n7,Ann,41\n8,Bo,\n");
    let words = shell.run(&["import", "people.csv"]).fails(1);
    assert!(words.contains("--key-field id"), "{words}");
    shell.run(&["import", "people.csv", "--key-field", "id", "--verify"]).ok();
    assert_eq!(shell.run(&["get", "7"]).ok(), "{\"id\":\"7\",\"name\":\"Ann\",\"age\":\"41\"}\n");
    assert_eq!(shell.run(&["scan", "--keys-only"]).ok(), "7\n8\n");
    let names = ["--keyspace", "n", "import", "people.csv", "--key-field", "id"];
    shell.run(&[&names[..], &["--value-field", "name"]].concat()).ok();
    assert_eq!(shell.run(&["--keyspace", "n", "scan"]).ok(), "7 : Ann\n8 : Bo\n");
}

#[test]
fn a_header_of_two_columns_is_no_record() {
    let shell = Shell::new();
    write(&shell.path("names.csv"), b"id,name\n7,Ann\n");
    let words = shell.run(&["import", "names.csv"]).fails(1);
    assert!(words.contains("--key-field id") && words.contains("--no-header"), "{words}");
    write(&shell.path("plain.csv"), b"7,Ann\n8,Bo\n");
    shell.run(&["import", "plain.csv", "--no-header", "--verify"]).ok();
    assert_eq!(shell.run(&["scan"]).ok(), "7 : Ann\n8 : Bo\n");
}

#[test]
fn a_flag_that_the_format_does_not_have_is_refused() {
    let shell = Shell::new();
    write(&shell.path("a.tsv"), b"a\t1\n");
    write(&shell.path("a.csv"), b"a,1\n");
    shell.run(&["import", "a.tsv", "--key-field", "a"]).fails(2);
    shell.run(&["import", "a.csv", "--raw"]).fails(2);
    shell.run(&["import", "a.tsv", "--no-header"]).fails(2);
    shell.run(&["import", "a.tsv", "--raw", "--verify"]).ok();
    shell.run(&["export", "b.csv", "--key-field", "a"]).fails(2);
}

#[test]
fn an_interrupted_import_says_what_it_stored() {
    use std::io::Write;
    use std::process::Stdio;
    let shell = Shell::new();
    let mut child = shell
        .command()
        .args(["--db", "my.db", "import", "-", "--format", "tsv"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for record in 0..5000 {
        writeln!(input, "{record:05}\tvalue").unwrap();
    }
    input.flush().unwrap();
    // The first batches are there: it listens.
    while !shell.path("my.db/CURRENT").exists() {
        std::thread::yield_now();
    }
    while std::fs::read_dir(shell.path("my.db")).unwrap().all(|entry| {
        let entry = entry.unwrap();
        entry.path().extension().is_none_or(|e| e != "wal")
            || entry.metadata().unwrap().len() < 1000
    }) {
        std::thread::yield_now();
    }
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    // It looks at each record; the pipe may be empty.
    for record in 5000..200_000 {
        if writeln!(input, "{record:05}\tvalue").is_err() {
            break;
        }
    }
    drop(input);
    let ended = child.wait_with_output().unwrap();
    let words = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{words}");
    let stored = shell.run(&["scan", "--keys-only"]).ok().lines().count();
    let number: String = words.chars().filter(char::is_ascii_digit).collect();
    assert_eq!(number, stored.to_string(), "{words}");
    assert!((1000..200_000).contains(&stored));
}

#[test]
fn files_are_ingested_together_or_not_at_all() {
    let shell = Shell::new();
    let file = |name: &str, keys: std::ops::Range<u32>| {
        let layout = shingle::SortedFileOptions::default();
        let mut file = shingle::SortedFileWriter::create(shell.path(name), &layout).unwrap();
        keys.for_each(|n| file.put(format!("k{n:05}"), format!("value {n}")).unwrap());
        file.finish().unwrap();
    };
    file("a.sorted", 0..1000);
    file("b.sorted", 1000..2000);
    file("c.sorted", 1999..3000);
    let words = shell.run(&["ingest", "a.sorted", "b.sorted", "c.sorted"]).fails(1);
    assert!(words.contains("overlap"), "{words}");
    assert_eq!(shell.run(&["count"]).ok(), "0\n");
    let figures = &shell.run(&["ingest", "--json", "a.sorted", "b.sorted"]).json()[0];
    assert_eq!((&figures["files"], &figures["entries"]), (&2.into(), &2000.into()));
    assert_eq!(figures["copied_bytes"], figures["bytes"]);
    let figures = &shell.run(&["ingest", "--json", "--move", "c.sorted"]).json()[0];
    assert_eq!(figures["copied_bytes"], 0);
    assert!(shell.path("a.sorted").exists() && !shell.path("c.sorted").exists());
    assert_eq!(shell.run(&["count"]).ok(), "3000\n");
    shell.run(&["check"]).ok();
    shell.run(&["ingest", "not-there.sorted"]).fails(1);
}

#[test]
fn a_file_below_gives_values_to_keys_that_were_never_written() {
    let shell = Shell::new();
    let mut file =
        shingle::SortedFileWriter::create(shell.path("old.sorted"), &Default::default()).unwrap();
    ["a", "b", "c"].iter().for_each(|key| file.put(key, "old").unwrap());
    file.finish().unwrap();
    let refused = shell.run(&["ingest", "--below", "old.sorted"]).fails(1);
    assert!(refused.contains("ingests_below"), "{refused}");
    shell.run(&["keyspace", "create", "orders", "--ingests-below"]).ok();
    let orders = |arguments: &[&str]| shell.run(&[&["--keyspace", "orders"], arguments].concat());
    orders(&["put", "a", "new"]).ok();
    orders(&["put", "b", "new"]).ok();
    orders(&["delete", "b"]).ok();
    orders(&["compact"]).ok();
    orders(&["ingest", "--below", "old.sorted"]).ok();
    assert_eq!(orders(&["scan"]).ok(), "a : new\nc : old\n");
    shell.run(&["check"]).ok();
}

#[test]
fn a_sorted_source_of_any_format_is_ingested() {
    let shell = Shell::new();
    put_all(&shell, &nasty());
    let before = shell.run(&["scan", "--hex"]).ok();
    for format in ["tsv", "csv", "jsonl", "json"] {
        let file = format!("all.{format}.gz");
        shell.run(&["export", &file]).ok();
        let copy = ["--keyspace", format];
        shell.run(&[&copy[..], &["import", &file, "--sorted", "--verify"]].concat()).ok();
        assert_eq!(shell.run(&[&copy[..], &["scan", "--hex"]].concat()).ok(), before, "{format}");
    }
    write(&shell.path("tree/a/b"), b"1");
    write(&shell.path("tree/c"), b"2");
    shell.run(&["--keyspace", "dir", "import", "tree", "--sorted"]).ok();
    assert_eq!(shell.run(&["--keyspace", "dir", "scan"]).ok(), "a/b : 1\nc : 2\n");
    assert!(events(&shell, "files_ingested") == 5, "not every import was an ingestion");
    shell.run(&["import", "all.tsv.gz"]).ok();
    assert!(events(&shell, "files_ingested") == 5, "an import without --sorted was an ingestion");
    write(&shell.path("empty.tsv"), b"");
    shell.run(&["import", "empty.tsv", "--sorted"]).ok();
    shell.run(&["check"]).ok();
    assert!(left_overs(&shell).is_empty(), "{:?}", left_overs(&shell));
}

/// Events of this name in the event log of the database.
fn events(shell: &Shell, name: &str) -> usize {
    let log = std::fs::read_to_string(shell.path("my.db/LOG")).expect("there is an event log");
    log.matches(name).count()
}

/// Folders of imports.
fn left_overs(shell: &Shell) -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir(shell.path("")).expect("the folder can be read");
    let names = entries.map(|entry| entry.expect("an entry can be read").file_name());
    names.filter(|name| name.to_string_lossy().contains("import")).collect()
}

#[test]
fn a_source_out_of_order_is_named_with_both_keys_and_nothing_is_imported() {
    let shell = Shell::new();
    shell.run(&["put", "b", "old"]).ok();
    for (text, number, key, last) in
        [("a\t1\n\nc\t2\nb\t3\n", 3, "b", "c"), ("a\t1\na\t2\n", 2, "a", "a")]
    {
        write(&shell.path("words.tsv"), text.as_bytes());
        let words = shell.run(&["import", "words.tsv", "--sorted"]).fails(1);
        let expected =
            format!("words.tsv, record {number}: key {key} does not come after key {last}");
        assert!(words.contains(&expected), "{words}");
        assert!(words.contains("nothing was imported"), "{words}");
        assert_eq!(shell.run(&["scan"]).ok(), "b : old\n");
    }
    write(&shell.path("bad.tsv"), b"a\t1\nb\n");
    let words = shell.run(&["import", "bad.tsv", "--sorted"]).fails(1);
    assert!(words.contains("line 2") && words.contains("nothing was imported"), "{words}");
    assert_eq!(shell.run(&["count"]).ok(), "1\n");
    let words = shell.run(&["import", "bad.tsv"]).fails(1);
    assert!(words.contains("may have been stored"), "{words}");
    assert!(left_overs(&shell).is_empty(), "{:?}", left_overs(&shell));
}

#[test]
fn sorted_records_expire_as_the_source_the_flag_or_the_keyspace_says() {
    let shell = Shell::new();
    shell.run(&["keyspace", "create", "days", "--ttl", "1d"]).ok();
    write(&shell.path("a.tsv"), b"a\t1\n");
    shell.run(&["--keyspace", "days", "import", "a.tsv", "--sorted"]).ok();
    let of_keyspace = shell.run(&["--keyspace", "days", "get", "a", "--expiry"]).ok();
    assert_ne!(of_keyspace, "never\n");
    shell.run(&["import", "a.tsv", "--sorted"]).ok();
    assert_eq!(shell.run(&["get", "a", "--expiry"]).ok(), "never\n");
    shell.run(&["import", "a.tsv", "--sorted", "--ttl", "1h"]).ok();
    assert_ne!(shell.run(&["get", "a", "--expiry"]).ok(), "never\n");
    shell.run(&["--keyspace", "days", "export", "b.jsonl"]).ok();
    shell.run(&["import", "b.jsonl", "--sorted", "--ttl", "1h", "--verify"]).ok();
    assert_eq!(shell.run(&["get", "a", "--expiry"]).ok(), of_keyspace);
}

#[test]
fn a_database_that_keeps_changes_refuses_a_sorted_import_before_it_reads() {
    let shell = Shell::new();
    write(&shell.path("bad.tsv"), b"no tab\n");
    let keeps = ["--option", "changes_retention_bytes=1MiB"];
    let words = shell.run(&[&keeps[..], &["import", "bad.tsv", "--sorted"]].concat()).fails(1);
    assert!(words.contains("changes_retention_bytes") && !words.contains("line 1"), "{words}");
}

/// A database that LevelDB 1.23 made, with what it holds.
fn of_leveldb() -> (std::path::PathBuf, String) {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../foreign/tests/data");
    let text = std::fs::read_to_string(data.join("snappy.tsv")).expect("it can be read");
    (data.join("snappy.leveldb"), text)
}

#[test]
fn a_database_of_leveldb_is_imported_and_not_changed() {
    let shell = Shell::new();
    let (source, text) = of_leveldb();
    let names = |folder: &std::path::Path| {
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.file_name(), std::fs::read(entry.path()).unwrap())
            })
            .collect();
        names.sort();
        names
    };
    let before = names(&source);
    let path = source.to_str().unwrap();
    shell.run(&["import", path, "--verify"]).ok();
    let exported = |name: &str| {
        let export = ["--db", name, "export", "-", "--format", "tsv"];
        String::from_utf8(shell.command().args(export).output().unwrap().stdout).unwrap()
    };
    assert!(exported("my.db") == text);
    let sorted = [&["--db", "sorted.db", "import", "--format", "leveldb", "--sorted"][..], &[path]];
    assert!(shell.command().args(sorted.concat()).status().unwrap().success());
    assert!(exported("sorted.db") == text);
    assert!(names(&source) == before);
}

#[test]
fn what_is_no_database_of_leveldb_is_refused_in_words() {
    let shell = Shell::new();
    shell.run(&["put", "a", "1"]).ok();
    // Shingle's own directory has a file of the same name.
    let words = shell.run(&["import", "my.db", "--format", "leveldb"]).fails(1);
    assert!(words.contains("no database of LevelDB"), "{words}");
    let words = shell.run(&["export", "out", "--format", "leveldb"]).fails(2);
    assert!(words.contains("writes none"), "{words}");
    let (source, _) = of_leveldb();
    let words = shell.command().args(["--db", source.to_str().unwrap(), "scan"]).output().unwrap();
    assert!(!words.status.success());
}

/// A database that RocksDB made.
fn of_rocksdb(name: &str) -> String {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../foreign/tests/data");
    data.join(format!("rocksdb/{name}.rocksdb")).to_str().expect("the path is text").to_string()
}

#[test]
fn a_database_of_rocksdb_is_imported_with_its_column_families() {
    let shell = Shell::new();
    let source = of_rocksdb("families");
    // As many keys as RocksDB itself finds; one of the four families was dropped.
    let families = [("default", "29"), ("users", "29"), ("a name with spaces", "37")];
    let count = |db: &str, keyspace: &str| {
        let words = ["--db", db, "count", "--keyspace", keyspace];
        let output = shell.command().args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    };
    shell.run(&["import", &source, "--verify"]).ok();
    let sorted = ["--db", "sorted.db", "import", "--format", "rocksdb", "--sorted", &source];
    assert!(shell.command().args(sorted).status().unwrap().success());
    for (family, keys) in families {
        assert_eq!(
            (count("my.db", family), count("sorted.db", family)),
            (keys.into(), keys.into())
        );
    }
    let listed = shell.run(&["keyspace", "list"]).ok();
    assert!(!listed.contains("dropped"), "{listed}");
    let words = shell.run(&["import", &source, "--keyspace", "other"]).fails(2);
    assert!(words.contains("keyspace of its name"), "{words}");
}

#[test]
fn what_cannot_be_read_of_rocksdb_is_refused_in_words() {
    let shell = Shell::new();
    for (name, part) in [("refused-blobs", "blob files"), ("refused-order", "order")] {
        let words = shell.run(&["import", &of_rocksdb(name)]).fails(1);
        assert!(words.contains(part), "{words}");
        assert!(!shell.path("my.db").exists());
    }
    let words = shell.run(&["import", &of_rocksdb("refused-merge"), "--sorted"]).fails(1);
    assert!(words.contains("counter") && words.contains("nothing was imported"), "{words}");
    let words = shell.run(&["import", &of_rocksdb("v5-none"), "--format", "leveldb"]).fails(1);
    assert!(words.contains("--format rocksdb"), "{words}");
    let (leveldb, _) = of_leveldb();
    let words = shell.run(&["import", leveldb.to_str().unwrap(), "--format", "rocksdb"]).fails(1);
    assert!(words.contains("--format leveldb"), "{words}");
    let scan = shell.command().args(["--db", &of_rocksdb("v5-none"), "scan"]).output().unwrap();
    let words = String::from_utf8(scan.stderr).unwrap();
    assert!(words.contains("import --format rocksdb"), "{words}");
}
