//! Kafka Streams on Shingle from end to end: the programs of `java/e2e` and `java/examples`, as
//! their pages say to run them. They take minutes, so they run only where all languages are asked
//! for.

#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// How long the example may take to count its first orders, and to end.
const PATIENCE_SECONDS: u64 = 180;

/// What Maven builds stays in the target folder, for the next run.
const BUILD: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/kafka_e2e");

/// One test at a time: brokers need the processors, and Maven its folder.
static TURN: Mutex<()> = Mutex::new(());

fn java() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../java").canonicalize().unwrap()
}

/// The turn of a test, or nothing with a notice.
fn turn() -> Option<MutexGuard<'static, ()>> {
    if std::env::var_os("SHINGLE_TEST_LANGUAGES").is_none() {
        println!("notice: Kafka Streams was not tested end to end: set SHINGLE_TEST_LANGUAGES=all");
        return None;
    }
    Some(TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// A script of the repository, on the library that cargo built for this test.
fn script(path: &str) -> Command {
    let library = std::env::current_exe().unwrap().with_file_name("libshingle_jni.so");
    assert!(library.exists(), "no {}", library.display());
    let mut command = Command::new(java().join(path));
    command.env("SHINGLE_LIBRARY", library).env("SHINGLE_BUILD", Path::new(BUILD).join(path));
    command
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// The comparison of a store at the end, as a row of the outcome has it.
#[derive(Debug)]
struct Total {
    store: String,
    entries: u64,
    wrong: u64,
    missing: u64,
    excused: u64,
    expired: u64,
}

/// The comparisons of all stores with each guarantee.
fn totals(outcome: &str) -> Vec<Total> {
    let cells = |row: &str| -> Vec<String> {
        row.split('|').map(|cell| cell.trim().replace(',', "")).collect()
    };
    let mut lines = outcome.lines().skip_while(|line| !line.contains("| wrong | missing |"));
    let head = cells(lines.next().unwrap());
    let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells = cells(row);
        let cell = |name: &str| &cells[head.iter().position(|title| title == name).unwrap()];
        let number = |name: &str| cell(name).parse::<u64>().unwrap();
        Total {
            store: cell("store").clone(),
            entries: number("entries"),
            wrong: number("wrong"),
            missing: number("missing"),
            excused: number("excused"),
            expired: number("expired"),
        }
    })
    .collect()
}

/// The options of a program, from its message about a wrong one, are those of its page.
fn has_options_of_page(path: &str, page: &str) {
    let output = script(path).args(["--wrong", "1"]).output().unwrap();
    let message = printed(&output);
    assert!(!output.status.success() && message.contains("there are"), "{message}");
    let page = std::fs::read_to_string(java().join(page)).unwrap();
    let list = message.split_once("there are").unwrap().1.lines().next().unwrap();
    let is_part = |letter: char| letter == '-' || letter.is_ascii_lowercase();
    let words = list.split(|letter: char| !is_part(letter));
    let options: Vec<&str> = words.filter(|word| word.starts_with("--")).collect();
    assert!(options.len() >= 5, "{message}");
    for option in options {
        // A folder for the processes is for those who look for a mistake.
        assert!(option == "--folder" || page.contains(&format!("`{option}")), "{option}: {page}");
    }
}

#[test]
fn every_count_is_exact_after_kills() {
    let Some(_turn) = turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("outcome");
    let mut run = script("e2e/run");
    let output = run.args(["--short", "--out"]).arg(&out).output().unwrap();
    let printed = printed(&output);
    assert!(output.status.success(), "{printed}");
    let outcome = std::fs::read_to_string(out.join("outcome.md")).unwrap();
    println!("{outcome}");
    // Six stores with each of two guarantees, before and after a restart of all instances.
    let totals = totals(&outcome);
    assert_eq!(totals.len(), 24, "{printed}");
    for total in totals {
        assert!(total.entries > 0 && total.wrong + total.missing == 0, "{total:?}: {printed}");
        // Only the store of recent orders may let entries go, and only those that have expired.
        let expires = total.store == "recent-orders-by-window";
        assert_eq!(expires, total.excused > 0, "{total:?}: {printed}");
        assert!(total.excused <= total.expired, "{total:?}: {printed}");
    }
    has_options_of_page("e2e/run", "e2e/README.md");
}

#[test]
fn stores_are_compared() {
    let Some(_turn) = turn() else { return };
    let mut compare = script("e2e/compare");
    compare.args(["--stores", "rocksdb,shingle,shingle-hashed", "--rounds", "1"]);
    compare.args(["--state-bytes", "3_000_000", "--commit-records", "10_000"]);
    let output = compare.output().unwrap();
    let printed = printed(&output);
    assert!(output.status.success(), "{printed}");
    let row = |name: &str| -> Vec<String> {
        let line = printed.lines().find(|line| line.starts_with(&format!("| {name} |")));
        let cells = line.unwrap_or_else(|| panic!("no {name}: {printed}")).split('|').skip(2);
        cells.map(|cell| cell.trim().to_string()).filter(|cell| !cell.is_empty()).collect()
    };
    for name in ["put p99.9, us", "restore, s per GB", "space, GB", "reopen after kill -9, ms"] {
        assert_eq!(row(name).len(), 3, "{printed}");
    }
    has_options_of_page("e2e/compare", "e2e/README.md");
}

/// A process that does not outlive its test; its own processes end with it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a server answers; nothing while it does not serve.
fn get(address: &str, path: &str) -> String {
    let mut text = String::new();
    if let Ok(mut stream) = TcpStream::connect(address) {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let _ = stream.read_to_string(&mut text);
    }
    text
}

#[test]
fn the_example_counts_orders_and_ends_cleanly() {
    let Some(_turn) = turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let broker = folder.path().join("broker");
    let mut run = script("examples/orders/run");
    run.args(["--port", "0", "--folder"]).arg(&broker);
    let mut shop = Running(run.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(shop.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.starts_with("http://")).unwrap();
    let address = line.trim_start_matches("http://").split('/').next().unwrap().to_string();
    let mut data = String::new();
    for _ in 0..PATIENCE_SECONDS {
        data = get(&address, "/data");
        if data.contains("\"north\":") {
            break;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    assert!(data.contains("\"north\":"), "{data}");
    assert!(get(&address, "/").contains("<title>Orders</title>"));
    // Not SIGINT: shells let programs in the background ignore it, and so their children.
    let asked = Command::new("kill").args(["-TERM", &shop.0.id().to_string()]).status().unwrap();
    assert!(asked.success());
    let ended = (0..PATIENCE_SECONDS).any(|_| {
        std::thread::sleep(Duration::from_secs(1));
        shop.0.try_wait().unwrap().is_some()
    });
    assert!(ended, "the example runs {PATIENCE_SECONDS} s after it was asked to end");
    assert!(!broker.exists(), "the folder of the broker is left");
    has_options_of_page("examples/orders/run", "examples/orders/README.md");
}
