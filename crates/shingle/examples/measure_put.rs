//! Puts and nothing else, to count the instructions of a put. Run it twice, with N and with 2 N
//! puts, and divide the difference by N:
//!
//! ```text
//! valgrind --tool=callgrind measure_put N [VALUE_BYTES] [LAYOUT]
//! ```
//!
//! Nothing is flushed, and the process ends without closing the database.

#![allow(clippy::print_stdout)]

use shingle::Options;
use std::time::Instant;

fn main() -> shingle::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let value_bytes: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(100);
    let layout = arguments.next().unwrap_or("inline".into());
    let dir = std::env::temp_dir().join("shingle-measure-put");
    let _ = std::fs::remove_dir_all(&dir);
    let db = Options::new()
        .values(&layout)
        .memory_bytes(4 << 30)
        .write_buffer_bytes(2 << 30)
        .expert(|e| e.memtable_bytes = Some(1 << 30))
        .open(&dir)?;
    let value = vec![b'v'; value_bytes];
    let mut key = [0; 16];
    let begin = Instant::now();
    for n in 0..count {
        // Every bit of the number counts, and no two keys are equal.
        key[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        db.put(key, &value)?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!("{:.3} micros/put", seconds * 1e6 / count as f64);
    // No destructor flushes.
    std::process::exit(0);
}
