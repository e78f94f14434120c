//! Prints the models' figures beside the tables that they are calibrated to.
//!
//! ```text
//! cargo run --release -p shingle-devices --example calibrate
//! ```

#![allow(clippy::print_stdout)]

use base::Result;
use devices::Access::{Read, Write};
use devices::calibration::Bench;
use devices::models;

/// Requests of a random phase, and those before it that fill a write cache.
const COUNT: u64 = 20_000;
const WARM_UP: u64 = 1_000;

fn main() -> Result<()> {
    println!(
        "sequential read and write MB/s, random 4 KiB read and write IOPS; in brackets: table"
    );
    show("hdd", [169, 155, 64, 143])?;
    show("ssd", [1200, 901, 8647, 19712])
}

fn show(text: &str, table: [u32; 4]) -> Result<()> {
    let mut bench = Bench::new(models::make(text)?);
    let mut figures = vec![
        bench.sequential(Read)?.megabytes,
        bench.sequential(Write)?.megabytes,
        bench.random(Read, COUNT)?.requests,
    ];
    bench.random(Write, WARM_UP)?;
    figures.push(bench.random(Write, COUNT)?.requests);
    let pairs = figures.iter().zip(table).map(|(figure, table)| format!("{figure:.1} ({table})"));
    println!("{text:<40} {}", pairs.collect::<Vec<_>>().join("  "));
    Ok(())
}
