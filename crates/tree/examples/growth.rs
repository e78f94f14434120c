//! Prints what schemes write as the data grows, by simulation: a load in random order, then twice
//! as many overwrites as there are keys.
//!
//! `cargo run --release -p shingle-tree --features simulate --example growth -- \
//!     leveled,adaptive 116 64 uniform 1000,2000,4000`
//! The arguments: schemes, bytes of an entry, MiB of a memtable, `uniform` or `zipf`, and sizes in
//! MB.
#![allow(clippy::print_stdout)]

use base::{Error, Result};
use tree::policy::by_name;
use tree::simulate::{Keys, Workload};

/// Entries that a simulated store has at most: it finishes in minutes.
const ENTRIES_MAX: u64 = 4_000_000;
/// Entries of a simulated memtable, at least as far as there are.
const MEMTABLE_ENTRIES: u64 = 2_000;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [schemes, entry, memtable, keys, sizes] = &arguments[..] else {
        return Err(Error::invalid(
            "give schemes, entry bytes, memtable MiB, keys and sizes in MB",
        ));
    };
    let (entry_bytes, memtable_bytes) = (number(entry)?, number(memtable)? << 20);
    let keys = match keys.as_str() {
        "uniform" => Keys::Uniform,
        "zipf" => Keys::Zipf(0.99),
        other => return Err(Error::invalid(format!("keys are uniform or zipf, not {other}"))),
    };
    for size in sizes.split(',') {
        let count = number(size)? * 1_000_000 / entry_bytes;
        let by_memtable = memtable_bytes / entry_bytes / MEMTABLE_ENTRIES;
        let load = Workload {
            keys,
            writes: count,
            keys_count: count,
            entry_bytes,
            memtable_bytes,
            scale: by_memtable.max(count / ENTRIES_MAX).max(1),
            moves_per_flush: None,
            reads_share: 0.0,
        };
        for scheme in schemes.split(',') {
            let scheme = by_name(scheme)?;
            println!("{size} MB, load:       {}", load.run(scheme)?);
            let all = Workload { writes: 3 * count, ..load };
            println!("{size} MB, overwrites: {}", all.run(scheme)?);
        }
    }
    Ok(())
}

fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::invalid(format!("{text} is no number")))
}
