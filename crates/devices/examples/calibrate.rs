//! Prints the models' figures beside the tables that they are calibrated to, and how many requests
//! each model serves in a second of this machine.
//!
//! ```text
//! cargo run --release -p shingle-devices --example calibrate
//! ```

#![allow(clippy::print_stdout)]

use base::Result;
use devices::Access::{Read, Write};
use devices::calibration::Bench;
use devices::models;
use std::time::Instant;

/// Requests of a random phase, and those before it that fill a write cache.
const COUNT: u64 = 20_000;
const WARM_UP: u64 = 1_000;

/// Writes after which the map of a log is full and its cleaning steady, at its default size.
const LOG_FILLED: u64 = 1_200_000;

/// Table 2 of LWC-tree, Table II of SEALDB: sequential read and write, random read and write.
const HDD: [&str; 4] = ["169", "155", "64", "143"];
const SMR: [&str; 4] = ["165", "148", "70", "5-140"];
const SSD: [&str; 4] = ["1200", "901", "8647", "19712"];
const NONE: [&str; 4] = ["-"; 4];

fn main() -> Result<()> {
    println!("Sequential MB/s, random 4 KiB requests/s, one at a time; in brackets the table.");
    println!(
        "{:<52} {:>13} {:>13} {:>12} {:>13}  served/s",
        "device", "seq. read", "seq. write", "random read", "random write"
    );
    show("hdd", HDD, WARM_UP)?;
    show("smr-banded", SMR, 0)?;
    show("smr-banded:used=yes", SMR, LOG_FILLED)?;
    show("smr-banded:used=yes,media-cache=set-associative", SMR, WARM_UP)?;
    show("smr-banded:used=yes,media-cache=none", SMR, WARM_UP)?;
    show_streams("smr-raw", SMR)?;
    show("raid:level=0", NONE, WARM_UP)?;
    show("raid:level=5", NONE, WARM_UP)?;
    show("raid:level=6", NONE, WARM_UP)?;
    show_streams("zoned", SMR)?;
    show("ssd", SSD, 0)?;
    show("ssd:wear=filled", SSD, 0)
}

/// The four figures; random writes are measured after `warm_up` of them.
fn show(text: &str, table: [&str; 4], warm_up: u64) -> Result<()> {
    let begun = Instant::now();
    let mut bench = Bench::new(models::make(text)?);
    let read = bench.sequential(Read)?.megabytes;
    let write = bench.sequential(Write)?.megabytes;
    let random_read = bench.random(Read, COUNT)?.requests;
    bench.random(Write, warm_up)?;
    let random_write = bench.random(Write, COUNT)?.requests;
    let served = (2 * COUNT + warm_up + 2048) as f64 / begun.elapsed().as_secs_f64();
    let device = if warm_up > WARM_UP { format!("{text}, cache full") } else { text.to_string() };
    line(&device, &[read, write, random_read, random_write], table, served);
    Ok(())
}

/// Streams alone, where random writes are refused or destroy what was written.
fn show_streams(text: &str, table: [&str; 4]) -> Result<()> {
    let begun = Instant::now();
    let mut bench = Bench::new(models::make(text)?);
    let write = bench.sequential(Write)?.megabytes;
    let read = bench.sequential(Read)?.megabytes;
    line(text, &[read, write], table, 2048.0 / begun.elapsed().as_secs_f64());
    Ok(())
}

fn line(device: &str, figures: &[f64], table: [&str; 4], served: f64) {
    let pairs = figures.iter().zip(table);
    let pairs: Vec<String> =
        pairs.map(|(figure, table)| format!("{:>13}", format!("{figure:.1} ({table})"))).collect();
    println!("{device:<52} {:<55}  {served:.0}", pairs.join(" "));
}
