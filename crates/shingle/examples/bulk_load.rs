//! A first load by sorted files: each thread writes a file of its own, outside of the database, and
//! one call brings all of them in.
//!
//! `cargo run --example bulk_load`
//!
//! What it shows: sorted files by several threads, an ingestion that copies nothing, a second one
//! over keys that are there, and what both wrote.
#![allow(clippy::print_stdout)]

use shingle::{Db, IngestOptions, Options, Result, SortedFileOptions, SortedFileWriter};
use std::ops::Range;
use std::path::{Path, PathBuf};

const THREADS: u64 = 4;
const RECORDS: u64 = 200_000;

fn key(number: u64) -> String {
    format!("user{number:012}")
}

/// Writes the records of `numbers`, in the order of their keys, to a file of `dir`.
fn write(dir: &Path, numbers: Range<u64>, mark: &str) -> Result<PathBuf> {
    let path = dir.join(format!("{mark}-{}.sorted", numbers.start));
    let mut file = SortedFileWriter::create(&path, &SortedFileOptions::default())?;
    for number in numbers {
        file.put(key(number), format!("{mark} {number}"))?;
    }
    file.finish()?;
    Ok(path)
}

/// A file by each thread, with its share of the keys.
fn write_in_parallel(dir: &Path) -> Result<Vec<PathBuf>> {
    let share = RECORDS / THREADS;
    std::thread::scope(|scope| {
        let part =
            |part: u64| scope.spawn(move || write(dir, part * share..(part + 1) * share, "first"));
        let threads: Vec<_> = (0..THREADS).map(part).collect();
        threads.into_iter().map(|thread| thread.join().expect("a writer panicked")).collect()
    })
}

fn show(db: &Db, number: u64) -> Result<String> {
    let value = db.get(key(number))?;
    Ok(value.map_or("nothing".into(), |value| String::from_utf8_lossy(&value).into_owned()))
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    // Beside the database, so that its files can be links to these.
    let db = Options::new().open(home.path().join("users.db"))?;
    let files = write_in_parallel(home.path())?;
    let moving = IngestOptions { move_files: true, ..IngestOptions::default() };
    let done = db.ingest(&files, &moving)?;
    println!(
        "{} records in {} files, {} bytes copied",
        done.entries, done.files, done.copied_bytes
    );
    println!("files below level 0: {}", done.files_below_level0);
    println!("files left outside: {}", files.iter().filter(|file| file.exists()).count());

    // Newer values for some of the keys: older snapshots keep what they saw.
    let before = db.snapshot();
    let update = write(home.path(), 100..200, "second")?;
    db.ingest(&[update], &moving)?;
    println!("99: {}, 100: {}", show(&db, 99)?, show(&db, 100)?);
    let old = before.get(key(100))?.unwrap_or_default();
    println!("100, before the second ingestion: {}", String::from_utf8_lossy(&old));

    let ingested = db.stats().ingestions;
    println!("{} ingestions, {} entries", ingested.ingestions, ingested.entries);
    db.close()?;
    Ok(())
}
