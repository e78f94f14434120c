//! Databases that RocksDB 7.8.3 and 11.8.1 made: those in `data/rocksdb`, and random ones where its
//! library is.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod rocks;

use base::{ErrorKind, Result};
use foreign::Store;
use foreign::leveldb::LevelDb;
use foreign::rocksdb::RocksDb;
use rocks::{Found, copied, data, files, found, found_in};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What RocksDB found in each database, by column family. Empty: the reader must refuse it.
fn expected() -> BTreeMap<String, Found> {
    parse(&std::fs::read_to_string(data().join("expected.tsv")).unwrap())
}

fn parse(text: &str) -> BTreeMap<String, Found> {
    let mut all = BTreeMap::<String, Found>::new();
    for line in text.lines() {
        let fields: Vec<_> = line.split('\t').collect();
        let of_name = all.entry(fields[0].to_string()).or_default();
        if let [_, family, count, digest] = fields[..] {
            let digest = u64::from_str_radix(digest, 16).unwrap();
            of_name.insert(family.to_string(), (count.parse().unwrap(), digest));
        }
    }
    all
}

#[test]
fn each_database_has_what_rocksdb_finds_in_it() {
    let mut read = 0;
    for (name, expected) in expected() {
        let found = found(&name);
        match name.starts_with("refused") || name == "bzip2" {
            true => {
                let error = found.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}: {error}");
            }
            false => {
                assert_eq!(
                    found.unwrap_or_else(|error| panic!("{name}: {error}")),
                    expected,
                    "{name}"
                );
                read += 1;
            }
        }
        let path = data().join(format!("{name}.rocksdb"));
        assert!(RocksDb::is_at(&path), "{name}");
    }
    assert!(read > 60, "{read}");
}

fn refusal(found: Result<Found>) -> String {
    let error = found.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.file().is_some() || error.to_string().contains("the key"), "{error}");
    error.to_string()
}

#[test]
fn what_cannot_be_read_is_refused_in_words_that_say_what_to_do() {
    let words = [
        ("bzip2", "bzip2", "compact the database with another compression"),
        ("refused-merge", "the key \"counter\" has operands of a merge operator", "compact"),
        ("refused-columns", "the key \"entity\" has several columns", "values of keys"),
        ("refused-blobs", "blob files", "enable_blob_files to false"),
        ("refused-order", "rocksdb.ReverseBytewiseComparator", "leveldb.BytewiseComparator"),
        ("refused-version-0", "the format before version 2", "compact"),
        ("refused-version-1", "format version 1", "versions 2 to 7"),
        ("refused-plain", "a plain table", "BlockBasedTableFactory"),
        ("refused-cuckoo", "a cuckoo table", "BlockBasedTableFactory"),
        ("refused-prepared", "the transaction \"open\" is prepared", "end the transaction"),
        ("refused-write-prepared-new", "WritePrepared", "flush all column families"),
    ];
    for (name, what, remedy) in words {
        let words = refusal(found(name));
        assert!(words.contains(what) && words.contains(remedy), "{name}: {words}");
    }
}

#[test]
fn logs_in_another_directory_are_refused_and_not_left_out() {
    let (_folder, path) = copied("options");
    assert!(found_in(&path).is_ok());
    let options = files(&path).into_iter().find(|path| path.to_string_lossy().contains("OPTIONS"));
    let options = options.unwrap();
    let text = std::fs::read_to_string(&options).unwrap();
    let with = |logs: &str| text.replace("[DBOptions]", &format!("[DBOptions]\n  wal_dir={logs}"));
    std::fs::write(&options, with("/somewhere/logs")).unwrap();
    let words = refusal(found_in(&path));
    assert!(words.contains("/somewhere/logs") && words.contains("wal_dir"), "{words}");
    std::fs::write(&options, with(path.to_str().unwrap())).unwrap();
    assert!(found_in(&path).is_ok());
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    for (name, extension) in [("families-at-once", "sst"), ("tracked-logs", "log")] {
        let (_folder, path) = copied(name);
        let of_kind = |path: &PathBuf| path.extension().is_some_and(|other| other == extension);
        let file = files(&path).into_iter().find(of_kind).unwrap();
        std::fs::remove_file(&file).unwrap();
        let words = found_in(&path).unwrap_err().to_string();
        assert!(words.contains(file.file_name().unwrap().to_str().unwrap()), "{words}");
    }
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(RocksDb::open(empty.path()).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn each_store_is_told_by_its_files() {
    let leveldb = data().join("../plain.leveldb");
    assert_eq!(foreign::store_at(&leveldb), Some(Store::LevelDb));
    let error = RocksDb::open(&leveldb).unwrap_err();
    assert!(error.to_string().contains("--format leveldb"), "{error}");
    let (_folder, path) = copied("v2-xxhash");
    // Without the file of its identity, the manifest tells.
    std::fs::remove_file(path.join("IDENTITY")).unwrap();
    assert_eq!(foreign::store_at(&path), Some(Store::RocksDb));
    let error = LevelDb::open(&path).err().unwrap();
    assert!(error.to_string().contains("--format rocksdb"), "{error}");
    assert_eq!(foreign::store_at(path.parent().unwrap()), None);
}

#[test]
fn a_database_that_another_program_has_open_is_refused() {
    let (_folder, path) = copied("v5-crc32c");
    let lock = path.join("LOCK");
    std::fs::write(&lock, "").unwrap();
    let script = "import fcntl,sys,time; f=open(sys.argv[1],'r+'); fcntl.lockf(f,fcntl.LOCK_EX); \
                  print('held',flush=True); time.sleep(60)";
    let mut python = Command::new("python3");
    python.args(["-c", script]).arg(&lock).stdout(std::process::Stdio::piped());
    let Ok(mut child) = python.spawn() else {
        println!("notice: there is no python3, so no other process held the lock");
        return;
    };
    let mut held = [0; 4];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut held).unwrap();
    let error = RocksDb::open(&path).unwrap_err();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    assert!(RocksDb::open(&path).is_ok());
}

/// Databases of random options and thousands of writes, with RocksDB's own library.
/// `SHINGLE_ROCKS_SEEDS=100..200` makes those of these seeds, `SHINGLE_ROCKS_FILL` with another
/// program that was built of `fill_rocks.cc`.
#[test]
fn random_databases_are_read_as_rocksdb_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let built = folder.path().join("fill");
    let program = match std::env::var_os("SHINGLE_ROCKS_FILL") {
        Some(program) => program.into(),
        None if Path::new("/usr/include/rocksdb/c.h").exists() => {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fill_rocks.cc");
            let mut compiler = Command::new("c++");
            compiler.args(["-std=c++17", "-DWITH_CXX"]).arg(source).arg("-o").arg(&built);
            assert!(compiler.arg("-lrocksdb").status().unwrap().success());
            built
        }
        None => {
            println!("notice: RocksDB's library is not installed, so no database was made with it");
            return;
        }
    };
    let seeds = std::env::var("SHINGLE_ROCKS_SEEDS").unwrap_or("1..4".into());
    let (first, end) = seeds.split_once("..").unwrap();
    for seed in first.parse::<u32>().unwrap()..end.parse().unwrap() {
        let db = folder.path().join(seed.to_string());
        let made = Command::new(&program).arg("random").arg(&db).arg(seed.to_string()).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{seed}: {}", String::from_utf8_lossy(&made.stderr));
        let expected = parse(&String::from_utf8(made.stdout).unwrap()).remove("random").unwrap();
        let found = found_in(&db).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(found, expected, "seed {seed}");
        assert!(found.values().map(|(count, _)| count).sum::<u64>() > 100, "seed {seed}");
        std::fs::remove_dir_all(&db).unwrap();
    }
}
