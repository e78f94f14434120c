//! Measures opening and closing: `cargo run --release -p shingle --example measure_open -- MIB
//! OPENS` (10,240 and 1,000 by default), in the directory `SHINGLE_MEASURE_DIR` or the system's
//! temporary one. First a small database is opened and closed repeatedly with a write in each
//! session: time, resident set and open descriptors (Linux). Then it is opened as often without a
//! write, which must not make the resident set grow. Last comes a database of `MIB` MiB, after a
//! clean close.

#![allow(clippy::print_stdout)]

use shingle::{Db, Options};
use std::path::{Path, PathBuf};
use std::time::Instant;

fn resident_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0)
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Milliseconds of `work`.
fn ms<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begin = Instant::now();
    let done = work();
    (done, begin.elapsed().as_secs_f64() * 1e3)
}

fn open(path: &Path) -> shingle::Result<Db> {
    Options::new().open(path)
}

fn small(path: &Path, opens: u64) -> shingle::Result<()> {
    let db = open(path)?;
    for n in 0..1000u64 {
        db.put(n.to_be_bytes(), [7; 100])?;
    }
    db.close()?;
    let (mut opening, mut closing) = (Vec::new(), Vec::new());
    for n in 0..opens {
        let (db, opened_ms) = ms(|| open(path));
        let db = db?;
        db.put((1000 + n).to_be_bytes(), [7; 100])?;
        assert!(db.get(500u64.to_be_bytes())?.is_some(), "a key is lost");
        let (closed, closed_ms) = ms(|| db.close());
        closed?;
        opening.push(opened_ms);
        closing.push(closed_ms);
        if n % (opens / 5).max(1) == 0 || n + 1 == opens {
            let (kib, open) = (resident_kib(), descriptors());
            println!("open {n:5}: resident {kib} KiB, {open} descriptors");
        }
    }
    for (what, times) in [("opening", &mut opening), ("closing", &mut closing)] {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        println!("{what}: p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms", at(0.5), at(0.99), at(1.0));
    }
    let db = open(path)?;
    println!("tables after {opens} short sessions: {}", db.files().len());
    db.close()?;
    let before = resident_kib();
    for _ in 0..opens {
        open(path)?.close()?;
    }
    println!("{opens} sessions without a write: resident {before} to {} KiB", resident_kib());
    Ok(())
}

fn large(path: &Path, mib: u64) -> shingle::Result<()> {
    let db = open(path)?;
    for n in 0..mib << 10 {
        let mut value = [0; 1016];
        for (at, word) in value.chunks_exact_mut(8).enumerate() {
            // Bytes that do not compress.
            word.copy_from_slice(
                &(n << 7 | at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(),
            );
        }
        db.put(n.to_be_bytes(), value)?;
    }
    let (closed, closed_ms) = ms(|| db.close());
    closed?;
    for round in 0..5 {
        let (db, opened_ms) = ms(|| open(path));
        let db = db?;
        let (found, get_ms) = ms(|| db.get((round * (mib << 10) / 7).to_be_bytes()));
        assert!(found?.is_some(), "a key is lost");
        let (tables, bytes) = (db.files().len(), db.stats().live_bytes);
        println!(
            "{bytes} bytes, {tables} tables: opened in {opened_ms:.2} ms, first get {get_ms:.2} ms"
        );
        db.close()?;
    }
    println!("the load's close took {closed_ms:.1} ms");
    Ok(())
}

fn main() -> shingle::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|n| n.parse::<u64>().unwrap_or(0));
    let mib = arguments.next().unwrap_or(10 << 10);
    let opens = arguments.next().unwrap_or(1000);
    let dir = std::env::var_os("SHINGLE_MEASURE_DIR").map_or(std::env::temp_dir(), PathBuf::from);
    let dir = dir.join("shingle-measure-open");
    let _ = std::fs::remove_dir_all(&dir);
    small(&dir.join("small"), opens)?;
    large(&dir.join("large"), mib)?;
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}
