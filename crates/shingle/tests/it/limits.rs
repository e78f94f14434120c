//! What the system does to a process: tables that somebody cuts.
//!
//! Each test runs itself as a child, as a limit is of a process and a signal ends one.

use shingle::{Compression, Db, ErrorKind, Options};
use std::path::Path;
use std::process::Command;

const DIRECTORY: &str = "SHINGLE_LIMITS_DIRECTORY";

/// Runs the test `name` of this program as a child that knows `directory`, after `prelude` of the
/// shell.
fn run_child(prelude: &str, name: &str, directory: &Path) {
    let program = std::env::current_exe().unwrap();
    let output = Command::new("sh")
        .args(["-c", &format!("{prelude}; exec \"$0\" \"$@\"")])
        .arg(program)
        .args([&format!("limits::{name}"), "--exact", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}{error}", output.status);
    assert!(text.contains("1 passed"), "{text}{error}");
}

fn small() -> Options {
    let options = Options::new().write_buffer_bytes(32 << 10).compression(Compression::None);
    options.expert(|e| e.table_bytes = Some(8192))
}

fn open(path: &Path) -> Db {
    small().open(path).unwrap()
}

fn key(n: u64) -> String {
    format!("key {n:06}")
}

fn value(n: u64) -> Vec<u8> {
    vec![n as u8; 200]
}

#[test]
fn child_whose_table_is_cut() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let directory = Path::new(&directory);
    let db = open(directory);
    for n in 0..2000 {
        db.put(key(n), value(n)).unwrap();
    }
    db.compact().unwrap();
    let read = |n| db.get(key(n));
    // Everything was used before: what is used for the first time is looked at with more care.
    for n in 0..2000 {
        assert_eq!(read(n).unwrap().as_deref(), Some(&value(n)[..]));
    }
    let is_table = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(".table");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let mut tables: Vec<_> = files.filter(|file| is_table(&file.file_name())).collect();
    tables.sort_by_key(|file| file.file_name());
    assert!(tables.len() > 3, "{tables:?}");
    let cut = &tables[tables.len() / 2];
    let bytes = cut.metadata().unwrap().len();
    std::fs::OpenOptions::new().write(true).open(cut.path()).unwrap().set_len(4096).unwrap();
    let name = cut.file_name().to_string_lossy().into_owned();
    let mut lost = 0;
    for n in 0..2000 {
        match read(n) {
            Ok(found) => assert_eq!(found.as_deref(), Some(&value(n)[..])),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                let text = error.to_string();
                assert!(text.contains(&name) && text.contains("4096"), "{text}");
                assert!(error.offset().is_some(), "{text}");
                lost += 1;
            }
        }
    }
    assert!(lost < 100, "{lost} keys of {bytes} bytes");
    let scanned = db.iter().take_while(Result::is_ok).count();
    assert!(scanned == 2000 || db.iter().any(|pair| pair.is_err()));
    assert!(!db.check(&mut |_| {}).unwrap().problems.is_empty());
}

#[test]
fn a_table_that_somebody_cuts_is_an_error_and_no_signal() {
    let home = tempfile::tempdir().unwrap();
    run_child("true", "child_whose_table_is_cut", home.path());
}
