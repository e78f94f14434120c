//! Prints what each scheme writes under a few workloads, by simulation.
//!
//! `cargo run --release -p shingle-tree --features simulate --example write_amplification`
#![allow(clippy::print_stdout)]

use tree::policy::registry;
use tree::simulate::{Keys, Workload};

fn main() -> base::Result<()> {
    let base = Workload {
        keys: Keys::Uniform,
        writes: 10_000_000,
        keys_count: 10_000_000,
        entry_bytes: 116,
        memtable_bytes: 64 << 20,
        scale: 40,
        moves_per_flush: None,
    };
    let small = Workload {
        writes: 2_500_000,
        keys_count: 2_500_000,
        memtable_bytes: 4 << 20,
        scale: 10,
        ..base
    };
    let large = Workload { writes: 100_000_000, keys_count: 100_000_000, scale: 200, ..base };
    let paper = Workload {
        writes: 2_500_000,
        keys_count: 2_500_000,
        entry_bytes: 4112,
        memtable_bytes: 4 << 20,
        scale: 16,
        ..base
    };
    let workloads = [
        ("10 M uniform, 64 MiB memtable", base),
        ("2.5 M uniform, 4 MiB memtable", small),
        ("100 M uniform, 64 MiB memtable", large),
        ("30 M writes over 2.5 M keys, 4 MiB memtable", Workload { writes: 30_000_000, ..small }),
        ("10 M Zipf 0.99, 64 MiB memtable", Workload { keys: Keys::Zipf(0.99), ..base }),
        ("10 M sequential, 64 MiB memtable", Workload { keys: Keys::Sequential, ..base }),
        ("2.5 M uniform of 4 KiB, 4 MiB memtable", paper),
    ];
    for (title, workload) in workloads {
        println!("{title}");
        for scheme in registry() {
            println!("  {}", workload.run(scheme)?);
        }
    }
    Ok(())
}
