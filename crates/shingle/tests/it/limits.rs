//! Limits that the system sets for a process: few descriptors, and tables that another process
//! cuts.
//!
//! Each test runs itself as a child, because a limit holds for a process and a signal ends one.

use shingle::{Compression, Db, ErrorKind, Event, EventListener, Options};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

const DIRECTORY: &str = "SHINGLE_LIMITS_DIRECTORY";

/// Runs the test `name` of this program as a child that gets `directory`, after the shell commands
/// `prelude`.
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
    options.expert(|e| e.scheme.table_bytes_max = Some(8192))
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
    // Everything was used before, because the first use is checked more thoroughly.
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
fn a_table_that_is_cut_is_an_error_and_no_signal() {
    let home = tempfile::tempdir().unwrap();
    run_child("true", "child_whose_table_is_cut", home.path());
}

#[test]
fn child_with_few_descriptors() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    for values in ["inline", "log", "hashed"] {
        let directory = Path::new(&directory).join(values);
        for round in 0..2u64 {
            let db = few_descriptors(values).open(&directory).unwrap();
            for n in 0..3000 {
                let written = db.put(key(n), value(n + round));
                written.unwrap_or_else(|error| panic!("put {n}: {error}"));
            }
            for n in 0..3000 {
                let found = db.get(key(n)).unwrap_or_else(|error| panic!("get {n}: {error}"));
                assert_eq!(found.as_deref(), Some(&value(n + round)[..]));
            }
            db.compact().unwrap();
            assert_eq!(db.iter().map(Result::unwrap).count(), 3000);
            assert!(db.check(&mut |_| {}).unwrap().is_clean());
            db.close().unwrap();
        }
    }
}

fn few_descriptors(values: &str) -> Options {
    small().values(values).value_threshold_bytes(100).expert(|e| {
        e.values.log_segment_bytes = Some(16 << 10);
    })
}

#[test]
fn few_descriptors_fail_no_write_and_no_read() {
    let home = tempfile::tempdir().unwrap();
    run_child("ulimit -n 20", "child_with_few_descriptors", home.path());
}

fn take_all_descriptors() -> Vec<std::fs::File> {
    std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect()
}

/// Other parts of the process use all descriptors: a write that needs one fails, and nothing is
/// poisoned.
#[test]
fn child_that_has_no_descriptors_for_a_while() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let db = open(Path::new(&directory));
    (0..500).for_each(|n| db.put(key(n), value(n)).unwrap());
    let others = take_all_descriptors();
    let mut written = 500;
    let failed = loop {
        match db.put(key(written), value(written)) {
            Ok(()) if written < 3000 => written += 1,
            Ok(()) => break None,
            Err(error) => break Some(error),
        }
    };
    if let Some(error) = failed {
        assert!(error.to_string().contains("ulimit -n"), "{error}");
    }
    drop(others);
    (written..3000).for_each(|n| db.put(key(n), value(n)).unwrap());
    db.wait_idle().unwrap();
    for n in 0..3000 {
        assert_eq!(db.get(key(n)).unwrap().as_deref(), Some(&value(n)[..]));
    }
    db.close().unwrap();
    assert_eq!(open(Path::new(&directory)).iter().map(Result::unwrap).count(), 3000);
}

#[test]
fn a_lack_of_descriptors_passes() {
    let home = tempfile::tempdir().unwrap();
    run_child("ulimit -n 40", "child_that_has_no_descriptors_for_a_while", home.path());
}

/// The sender gets a message for each failure of background work.
struct Failures(Mutex<Sender<()>>);

impl EventListener for Failures {
    fn on_event(&self, event: &Event, _time_micros: u64) {
        if matches!(event, Event::BackgroundError { .. }) {
            self.0.lock().unwrap().send(()).unwrap();
        }
    }
}

/// Background work fails until it pauses for long between its tries. Writes and waits that begin
/// after the lack do not get the error of the last try.
#[test]
fn child_whose_background_work_lacked_descriptors() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let (sender, failures) = std::sync::mpsc::channel();
    let options = small().event_listener(Arc::new(Failures(Mutex::new(sender))));
    let db = options.open(Path::new(&directory)).unwrap();
    db.put(key(0), value(0)).unwrap();
    for begins_with_flush in [false, true] {
        let others = take_all_descriptors();
        let filled = (0..3000).find_map(|n| db.put(key(n), value(n)).err()).unwrap();
        assert!(filled.to_string().contains("ulimit -n"), "{filled}");
        // Each try ends with a message after its pause, and each pause is twice as long.
        (0..5).for_each(|_| failures.recv().unwrap());
        drop(others);
        if begins_with_flush {
            db.flush().unwrap();
        }
        (0..3000).for_each(|n| db.put(key(n), value(n)).unwrap());
        db.wait_idle().unwrap();
    }
    assert_eq!(db.iter().map(Result::unwrap).count(), 3000);
    db.close().unwrap();
}

#[test]
fn the_error_of_a_lack_that_is_over_reaches_no_write() {
    let home = tempfile::tempdir().unwrap();
    run_child("ulimit -n 40", "child_whose_background_work_lacked_descriptors", home.path());
}

#[test]
fn child_with_too_few_descriptors() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let error = small().open(Path::new(&directory).join("new")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("16 files") && error.message().contains("20"), "{error}");
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0);
}

#[test]
fn too_few_descriptors_are_refused_in_words() {
    let home = tempfile::tempdir().unwrap();
    run_child("ulimit -n 16", "child_with_too_few_descriptors", home.path());
}
