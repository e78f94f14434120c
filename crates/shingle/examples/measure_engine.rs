//! Measures the engine on one thread: `cargo run --release -p shingle --example measure_engine --
//! N`.

#![allow(clippy::print_stdout)]

use base::random::Random;
use shingle::{Compression, Options};
use std::time::Instant;

fn main() -> shingle::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let buffer: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(64);
    let preset = arguments.next().unwrap_or("modern".into());
    let dir = std::env::temp_dir().join("shingle-measure");
    let _ = std::fs::remove_dir_all(&dir);
    let db = Options::new()
        .set("preset", &preset)?
        .compression(Compression::None)
        .write_buffer_bytes(buffer << 20)
        .cache_bytes(if buffer > 16 { 256 << 20 } else { 8 << 20 })
        .open(&dir)?;
    let key = |n: u64| format!("{n:016}");
    let value = [b'v'; 100];
    let mut random = Random::new(1);
    let measure = |name: &str, ops: u64, run: &mut dyn FnMut(u64)| {
        let begin = Instant::now();
        (0..ops).for_each(&mut *run);
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "{name:12}: {:8.0} ops/s, {:.3} micros/op",
            ops as f64 / seconds,
            seconds * 1e6 / ops as f64
        );
    };
    measure("fillrandom", count, &mut |_| db.put(key(random.below(count)), value).expect("put"));
    let begin = Instant::now();
    db.flush()?;
    db.wait_idle()?;
    println!("settle {:.2} s", begin.elapsed().as_secs_f64());
    println!("{}", db.stats());
    let reads = (count / 5).max(100_000);
    let mut found = 0;
    for _ in 0..2 {
        measure("readrandom", reads, &mut |_| {
            found += u64::from(db.get(key(random.below(count))).expect("get").is_some());
        });
    }
    measure("readmissing", reads, &mut |_| {
        assert!(db.get(key(random.below(count)) + ".").expect("get").is_none());
    });
    measure("seekrandom", reads / 10, &mut |_| {
        let mut cursor = db.cursor(shingle::ReadOptions::default());
        cursor.seek(key(random.below(count))).expect("seek");
        for _ in 0..10 {
            cursor.next().expect("next");
        }
    });
    let begin = Instant::now();
    let mut cursor = db.cursor(shingle::ReadOptions::default());
    cursor.seek_to_first()?;
    let mut entries = 0u64;
    while cursor.valid() {
        entries += 1;
        cursor.next()?;
    }
    println!("readseq     : {:8.0} ops/s", entries as f64 / begin.elapsed().as_secs_f64());
    measure("overwrite", count / 5, &mut |_| db.put(key(random.below(count)), value).expect("put"));
    println!("found {found} entries {entries}");
    db.close()
}
