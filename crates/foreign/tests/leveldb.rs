//! Databases that LevelDB 1.23 made: those in `data`, and larger ones where its library is.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use base::{Error, ErrorKind, Result};
use foreign::leveldb::LevelDb;
use std::path::{Path, PathBuf};
use std::process::Command;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn read(folder: &Path) -> Result<Pairs> {
    let mut pairs = Pairs::new();
    LevelDb::open(folder)?.read(&mut |key, value| {
        pairs.push((key.to_vec(), value.to_vec()));
        Ok::<(), Error>(())
    })?;
    Ok(pairs)
}

/// Lines of a key, a tab and a value.
fn expected(text: &str) -> Pairs {
    let pair = |line: &str| {
        let (key, value) = line.split_once('\t').unwrap();
        (key.as_bytes().to_vec(), value.as_bytes().to_vec())
    };
    text.lines().map(pair).collect()
}

/// A copy that a test may damage.
fn copied(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(data().join(name)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let path = folder.path().to_path_buf();
    (folder, path)
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    found.sort();
    found
}

#[test]
fn tables_and_logs_give_the_newest_value_of_each_key() {
    for name in ["snappy", "plain"] {
        let folder = data().join(format!("{name}.leveldb"));
        assert!(!files(&folder, "ldb").is_empty() && !files(&folder, "log").is_empty());
        let text = std::fs::read_to_string(data().join(format!("{name}.tsv"))).unwrap();
        assert_eq!(read(&folder).unwrap(), expected(&text), "{name}");
        let db = LevelDb::open(&folder).unwrap();
        assert!(db.bytes().unwrap() > 10_000);
    }
}

/// A database of several levels, with LevelDB's own library.
#[test]
fn large_databases_are_read_whole() {
    if !Path::new("/usr/include/leveldb/c.h").exists() {
        println!("notice: LevelDB's library is not installed, so no database was made with it");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("fill");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fill.c");
    let built = Command::new("cc").arg(source).arg("-o").arg(&program).arg("-lleveldb").status();
    assert!(built.unwrap().success());
    for compression in ["0", "1"] {
        let db = folder.path().join(compression);
        let made =
            Command::new(&program).arg(&db).args([compression, "100000", "4"]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        assert!(!files(&db, "ldb").is_empty());
        let pairs = expected(&String::from_utf8(made.stdout).unwrap());
        assert!(pairs.len() > 60_000);
        assert_eq!(read(&db).unwrap(), pairs);
    }
}

#[test]
fn every_changed_byte_of_a_table_is_found_or_changes_nothing() {
    let whole = read(&data().join("snappy.leveldb")).unwrap();
    let (_folder, path) = copied("snappy.leveldb");
    let mut found = 0;
    for table in files(&path, "ldb") {
        let bytes = std::fs::read(&table).unwrap();
        for at in (0..bytes.len()).step_by(97).chain(bytes.len() - 48..bytes.len()) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            std::fs::write(&table, damaged).unwrap();
            match read(&path) {
                // A byte of the filter, of the metadata, or that pads the footer.
                Ok(pairs) => assert_eq!(pairs, whole, "byte {at} of {}", table.display()),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                    assert!(error.file().is_some_and(|file| file.ends_with(".ldb")), "{error}");
                    found += 1;
                }
            }
        }
        std::fs::write(&table, bytes).unwrap();
    }
    assert!(found > 100, "{found}");
}

#[test]
fn a_log_that_ends_in_a_record_has_the_records_before_it() {
    let (_folder, path) = copied("snappy.leveldb");
    let whole = read(&path).unwrap();
    let log = files(&path, "log").pop().unwrap();
    let bytes = std::fs::read(&log).unwrap();
    for keep in [bytes.len() - 1, bytes.len() / 2, 3, 0] {
        std::fs::write(&log, &bytes[..keep]).unwrap();
        let fewer = read(&path).unwrap();
        assert_ne!(fewer, whole);
    }
    // Damage before the end is no end, whichever byte of the first record it is.
    for at in 6..60 {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        std::fs::write(&log, damaged).unwrap();
        let error = read(&path).unwrap_err();
        assert_eq!(
            (error.kind(), error.offset()),
            (ErrorKind::Corruption, Some(0)),
            "{at}: {error}"
        );
    }
}

#[test]
fn a_log_whose_entries_are_in_tables_is_not_read_again() {
    let (_folder, path) = copied("snappy.leveldb");
    let whole = read(&path).unwrap();
    let other = files(&data().join("plain.leveldb"), "log").pop().unwrap();
    std::fs::copy(other, path.join("000001.log")).unwrap();
    assert!(read(&path).unwrap() == whole);
}

#[test]
fn keys_in_another_order_than_that_of_bytes_are_refused() {
    let (_folder, path) = copied("plain.leveldb");
    let manifest = path.join("MANIFEST-000002");
    let mut bytes = std::fs::read(&manifest).unwrap();
    let name = b"leveldb.BytewiseComparator";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at + 8] = b'X';
    // The first record: its checksum, its length, its type, the edit.
    let end = 7 + usize::from(u16::from_le_bytes([bytes[4], bytes[5]]));
    let sum = base::checksum::crc32c(&bytes[6..end]);
    let masked = sum.rotate_right(15).wrapping_add(0xa282_ead8);
    bytes[..4].copy_from_slice(&masked.to_le_bytes());
    std::fs::write(&manifest, bytes).unwrap();
    let error = LevelDb::open(&path).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("leveldb.XytewiseComparator"), "{error}");
}

#[test]
fn what_is_missing_or_foreign_is_an_error_in_words() {
    let empty = tempfile::tempdir().unwrap();
    let error = LevelDb::open(empty.path()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(!LevelDb::is_at(empty.path()) && LevelDb::is_at(&data().join("plain.leveldb")));

    let (_folder, path) = copied("snappy.leveldb");
    std::fs::remove_file(&files(&path, "ldb")[0]).unwrap();
    let error = read(&path).unwrap_err();
    assert!(error.file().is_some_and(|file| file.contains("000")), "{error}");

    let (_folder, path) = copied("plain.leveldb");
    std::fs::write(path.join("CURRENT"), "MANIFEST-000099\n").unwrap();
    assert!(LevelDb::open(&path).is_err());
    std::fs::write(path.join("CURRENT"), "../somewhere\n").unwrap();
    assert!(!LevelDb::is_at(&path));
}

#[test]
fn a_database_that_another_program_has_open_is_refused() {
    let (_folder, path) = copied("plain.leveldb");
    let lock = path.join("LOCK");
    std::fs::write(&lock, "").unwrap();
    assert!(LevelDb::open(&path).is_ok());
    // Locks of this process do not keep it from itself: another one must hold it.
    let script = "import fcntl,sys,time; f=open(sys.argv[1],'r+'); fcntl.lockf(f,fcntl.LOCK_EX); \
                  print('held',flush=True); time.sleep(60)";
    let child = Command::new("python3")
        .args(["-c", script])
        .arg(&lock)
        .stdout(std::process::Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        println!("notice: there is no python3, so no other process held the lock");
        return;
    };
    let mut held = [0; 4];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut held).unwrap();
    let error = LevelDb::open(&path).err().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
}
