//! Measures a load of sorted records: by batches, by sorted files that are copied in, and by ones
//! that are moved in; and a plain copy of the same bytes. For each: time, and the bytes that the
//! kernel wrote for this process.
//!
//! `cargo run --release --example measure_ingest -- [DIRECTORY] [MEGABYTES] [THREADS]`
#![allow(clippy::print_stdout)]

use base::random::Random;
use shingle::{Db, WriteOptions};
use shingle::{IngestOptions, Options, Result, SortedFileOptions, SortedFileWriter, WriteBatch};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

const VALUE_BYTES: usize = 400;
const KEY_BYTES: u64 = 20;
/// Bytes of keys and values in one sorted file.
const FILE_BYTES: u64 = 64 << 20;

type Outcome<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The record of a number: half of the value is noise, so that compression has something to do.
fn record(number: u64) -> (String, Vec<u8>) {
    let mut value = vec![b'v'; VALUE_BYTES];
    Random::new(number).fill(&mut value[..VALUE_BYTES / 2]);
    (format!("{number:020}"), value)
}

/// Bytes that the kernel sent to the disk for this process.
fn disk_bytes() -> Outcome<u64> {
    let text = std::fs::read_to_string("/proc/self/io")?;
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    Ok(line.ok_or("the kernel does not count write_bytes")?.trim().parse()?)
}

fn measure(what: &str, user_bytes: u64, run: impl FnOnce() -> Outcome) -> Outcome {
    let (before, begin) = (disk_bytes()?, Instant::now());
    run()?;
    let (seconds, written) = (begin.elapsed().as_secs_f64(), disk_bytes()? - before);
    let (rate, mega) = (user_bytes as f64 / 1e6 / seconds, written as f64 / 1e6);
    let ratio = written as f64 / user_bytes as f64;
    println!("{what:24} {seconds:7.2} s {rate:8.1} MB/s {mega:9.1} MB written {ratio:6.2}");
    Ok(())
}

fn by_batches(db: &Db, records: u64) -> Outcome {
    let mut batch = WriteBatch::new();
    for number in 0..records {
        let (key, value) = record(number);
        batch.put(key, value)?;
        if number % 1000 == 999 {
            db.write(std::mem::take(&mut batch), &WriteOptions::default())?;
        }
    }
    db.write(batch, &WriteOptions::default())?;
    db.flush()?;
    Ok(db.wait_idle()?)
}

fn write_file(path: &Path, numbers: std::ops::Range<u64>) -> Result<()> {
    let mut file = SortedFileWriter::create(path, &SortedFileOptions::default())?;
    for number in numbers {
        let (key, value) = record(number);
        file.put(key, value)?;
    }
    file.finish().map(drop)
}

/// The threads write the files in turn.
fn write_files(dir: &Path, records: u64, threads: u64) -> Outcome<Vec<PathBuf>> {
    let share = FILE_BYTES / (KEY_BYTES + VALUE_BYTES as u64);
    let count = records.div_ceil(share);
    let path = |file: u64| dir.join(format!("{file:06}.sorted"));
    std::thread::scope(|scope| {
        let write = |thread: u64| {
            let path = &path;
            scope.spawn(move || {
                (thread..count).step_by(threads as usize).try_for_each(|file| {
                    write_file(&path(file), file * share..((file + 1) * share).min(records))
                })
            })
        };
        let running: Vec<_> = (0..threads).map(write).collect();
        running.into_iter().try_for_each(|thread| thread.join().expect("a writer panicked"))
    })?;
    Ok((0..count).map(path).collect())
}

fn copy(files: &[PathBuf], target: &Path) -> Outcome {
    let mut out = File::create_new(target)?;
    for file in files {
        std::io::copy(&mut File::open(file)?, &mut out)?;
    }
    Ok(out.sync_all()?)
}

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().unwrap_or_else(|| ".".into());
    let megabytes: u64 = arguments.next().map_or(Ok(1000), |text| text.parse())?;
    let threads: u64 = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let home = tempfile::tempdir_in(dir)?;
    let records = megabytes * 1_000_000 / (KEY_BYTES + VALUE_BYTES as u64);
    let user_bytes = records * (KEY_BYTES + VALUE_BYTES as u64);
    println!("{records} records, {user_bytes} bytes of keys and values, {threads} writers");
    measure("records alone", user_bytes, || {
        (0..records).for_each(|number| drop(std::hint::black_box(record(number))));
        Ok(())
    })?;
    let db = Options::new().open(home.path().join("batches"))?;
    measure("batches, compacted", user_bytes, || by_batches(&db, records))?;
    db.close()?;
    let mut files = Vec::new();
    measure("sorted files", user_bytes, || {
        files = write_files(home.path(), records, threads)?;
        Ok(())
    })?;
    measure("cp of the files, synced", user_bytes, || copy(&files, &home.path().join("copy")))?;
    for (what, move_files) in [("ingest, copied", false), ("ingest, moved", true)] {
        let db = Options::new().open(home.path().join(what))?;
        let options = IngestOptions { move_files, ..IngestOptions::default() };
        measure(what, user_bytes, || Ok(db.ingest(&files, &options).map(drop)?))?;
        measure("  settled after it", user_bytes, || Ok(db.wait_idle()?))?;
        db.close()?;
    }
    Ok(())
}
