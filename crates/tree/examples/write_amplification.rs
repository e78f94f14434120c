//! Prints what each scheme writes under a few workloads, by simulation.
//!
//! `cargo run --release -p shingle-tree --features simulate --example write_amplification`
//! With the argument `ldc`: the workloads, thresholds and fan-outs of that paper.
#![allow(clippy::print_stdout)]

use tree::policy::{Limits, by_name, registry};
use tree::simulate::{Keys, Workload};

fn main() -> base::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("ldc") => paper_of_ldc(),
        _ => all_schemes(),
    }
}

/// The shape of the LDC paper: 16 B keys, 1 KiB values, 2 MB tables, 10 M requests.
fn paper_of_ldc() -> base::Result<()> {
    let requests = 10_000_000;
    let base = Workload {
        keys: Keys::Uniform,
        writes: requests,
        keys_count: requests,
        entry_bytes: 1040,
        memtable_bytes: 4 << 20,
        scale: 8,
        moves_per_flush: None,
        reads_share: 0.0,
    };
    let ldc = by_name("ldc")?;
    for (title, reads_share) in [("WO", 0.0), ("WH", 0.3), ("RWB", 0.5), ("RH", 0.7)] {
        let writes = (requests as f64 * (1.0 - reads_share)) as u64;
        let workload = Workload { writes, reads_share, ..base };
        println!("{title}");
        let mut compacted = Vec::new();
        for scheme in registry() {
            let report = workload.run(scheme)?;
            compacted.push((scheme.name, report.written_bytes.iter().sum::<u64>() as f64));
            println!("  {report}");
        }
        let leveldb = compacted.iter().find(|(name, _)| *name == "leveldb").map_or(1.0, |c| c.1);
        for (name, bytes) in compacted {
            println!("  {name}: compaction writes {:.3} of leveldb's", bytes / leveldb);
        }
    }
    println!("thresholds, RWB");
    let balanced = Workload { writes: requests / 2, reads_share: 0.5, ..base };
    for links in [2, 5, 10, 20, 40] {
        let limits = Limits { links_max: Some(links), ..(ldc.limits)(4 << 20) };
        println!("  {links}: {}", balanced.run_under(ldc, limits)?);
    }
    println!("fan-outs, RWB");
    for fan_out in [3, 5, 10, 15, 25, 40, 60, 100] {
        for scheme in [by_name("leveldb")?, ldc] {
            let limits = Limits { fan_out: f64::from(fan_out), ..(scheme.limits)(4 << 20) };
            println!("  {fan_out}: {}", balanced.run_under(scheme, limits)?);
        }
    }
    Ok(())
}

fn all_schemes() -> base::Result<()> {
    let base = Workload {
        keys: Keys::Uniform,
        writes: 10_000_000,
        keys_count: 10_000_000,
        entry_bytes: 116,
        memtable_bytes: 64 << 20,
        scale: 40,
        moves_per_flush: None,
        reads_share: 0.0,
    };
    let small = Workload {
        writes: 2_500_000,
        keys_count: 2_500_000,
        memtable_bytes: 4 << 20,
        scale: 10,
        ..base
    };
    let large = Workload { writes: 100_000_000, keys_count: 100_000_000, scale: 200, ..base };
    let shingled = Workload { writes: 2_500_000, keys_count: 2_500_000, ..Workload::SHINGLED };
    let workloads = [
        ("10 M uniform, 64 MiB memtable", base),
        ("2.5 M uniform, 4 MiB memtable", small),
        ("100 M uniform, 64 MiB memtable", large),
        ("30 M writes over 2.5 M keys, 4 MiB memtable", Workload { writes: 30_000_000, ..small }),
        ("10 M Zipf 0.99, 64 MiB memtable", Workload { keys: Keys::Zipf(0.99), ..base }),
        ("10 M sequential, 64 MiB memtable", Workload { keys: Keys::Sequential, ..base }),
        ("2.5 M uniform of 4 KiB, 4 MiB memtable", shingled),
    ];
    for (title, workload) in workloads {
        println!("{title}");
        for scheme in registry() {
            println!("  {}", workload.run(scheme)?);
        }
    }
    Ok(())
}
