//! Measures the memory of a process while it loads a database under a memory budget and reads it at
//! random: `cargo run --release -p shingle --example measure_memory -- MIB KEYS VALUE_BYTES` (64,
//! 5,000,000 and 1,024 by default), in the directory `SHINGLE_MEASURE_DIR` or the system's
//! temporary one. Prints the peak of the resident set (Linux: `VmHWM`) after each phase, beside the
//! database's memory account.

#![allow(clippy::print_stdout)]

use base::random::Random;
use shingle::{Db, Options};
use std::path::PathBuf;
use std::time::Instant;

/// A field of the process's status, in MiB; 0 where the system does not report it.
fn status_mib(field: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    let kib = line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<f64>();
    kib.unwrap_or(0.0) / 1024.0
}

fn report(phase: &str, db: &Db, begin: Instant) {
    let stats = db.stats();
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "{phase:8} {:6.1} s  peak {:6.1} MiB, now {:6.1}; memtables {:.1}, cache {:.1} of {}, \
         open runs {:.1}, background {:.1}",
        begin.elapsed().as_secs_f64(),
        status_mib("VmHWM:"),
        status_mib("VmRSS:"),
        mib(stats.memtable_bytes),
        mib(stats.cache_bytes),
        db.property("rocksdb.block-cache-capacity").unwrap_or_default(),
        mib(stats.open_runs_bytes),
        mib(stats.background_buffer_bytes),
    );
}

fn main() -> shingle::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|n| n.parse::<u64>().unwrap_or(0));
    let memory_mib = arguments.next().unwrap_or(64);
    let keys = arguments.next().unwrap_or(5_000_000);
    let value_bytes = arguments.next().unwrap_or(1024) as usize;
    let dir = std::env::var_os("SHINGLE_MEASURE_DIR").map_or(std::env::temp_dir(), PathBuf::from);
    let dir = dir.join("shingle-measure-memory");
    let _ = std::fs::remove_dir_all(&dir);
    let db = Options::new().memory_bytes(memory_mib << 20).open(&dir)?;
    let mut random = Random::new(1);
    let mut value = vec![0; value_bytes];
    let begin = Instant::now();
    for n in 0..keys {
        random.fill(&mut value);
        // An odd factor: every key once, in an order that looks random.
        db.put(n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), &value)?;
        if (n + 1) % (keys / 5).max(1) == 0 {
            report("loading", &db, begin);
        }
    }
    db.flush()?;
    db.wait_idle()?;
    report("settled", &db, begin);
    let begin = Instant::now();
    let reads = keys / 5;
    let mut found = 0;
    for _ in 0..reads {
        let key = random.below(keys).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        found += u64::from(db.get(key)?.is_some());
    }
    report("reading", &db, begin);
    println!("{}\nfound {found} of {reads}", db.stats());
    db.close()?;
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}
