//! A program that reads a database while another one writes it.
//!
//! `cargo run --example follower -- write DIRECTORY` counts up in a database; beside it,
//! `cargo run --example follower -- read DIRECTORY` prints how far the counter is. Without
//! arguments it does both for a moment, in a temporary directory.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use shingle::{Options, Result};
use std::path::Path;
use std::time::Duration;

/// Writes `count` numbers, one after the other.
fn write(path: &Path, count: u64) -> Result<()> {
    let db = Options::new().open(path)?;
    for number in 1..=count {
        db.put("counter", number.to_string())?;
        std::thread::sleep(Duration::from_millis(1));
    }
    db.close()
}

/// Prints the counter `times` times.
fn read(path: &Path, times: u64) -> Result<()> {
    let follower = Options::new().follow(path)?;
    for _ in 0..times {
        std::thread::sleep(Duration::from_millis(100));
        follower.catch_up()?;
        let counter = follower.db().get("counter")?.unwrap_or_default();
        println!("the counter is {}", String::from_utf8_lossy(&counter));
    }
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write", path] => write(Path::new(path), u64::MAX)?,
        ["read", path] => read(Path::new(path), u64::MAX)?,
        [] => {
            let home = tempfile::tempdir()?;
            let path = home.path().join("counter.db");
            Options::new().open(&path)?.close()?;
            let writer = {
                let path = path.clone();
                std::thread::spawn(move || write(&path, 500))
            };
            read(&path, 5)?;
            writer.join().map_err(|_| "the writer panicked")??;
        }
        _ => eprintln!("usage: follower [write DIRECTORY | read DIRECTORY]"),
    }
    Ok(())
}
