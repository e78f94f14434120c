//! The text that db_bench prints, line for line as scripts look for it.

use super::benchmarks::{Benchmark, Operation, Wanted};
use super::config::Config;
use crate::amplification::Amplification;
use crate::record::{Record, Tally};
use std::fmt::Write;

const MIB: f64 = 1_048_576.0;

/// The block above the results.
pub(super) fn header(config: &Config) -> String {
    let (key, value) = (config.key_size as f64, config.value_size.mean());
    let compressed = value * config.compression_ratio;
    let num = config.num as f64;
    let compression = config.engine.get("compression_type").map_or("default", String::as_str);
    let mut text = String::new();
    let _ = writeln!(text, "Keys:       {key} bytes each");
    let _ = writeln!(
        text,
        "Values:     {value:.0} bytes each ({compressed:.0} bytes after compression)"
    );
    let _ = writeln!(text, "Entries:    {}", config.num);
    let _ = writeln!(text, "RawSize:    {:.1} MB (estimated)", (key + value) * num / MIB);
    let _ = writeln!(text, "FileSize:   {:.1} MB (estimated)", (key + compressed) * num / MIB);
    let _ = writeln!(text, "Write rate: {} bytes/second", config.write_rate_bytes);
    let _ = writeln!(text, "Read rate:  {} ops/second", config.read_rate);
    let _ = writeln!(text, "Compression: {compression}");
    if let Some(theta) = config.zipf {
        let flavour = if theta < 1.0 { "zipfian_c" } else { "zipf_rejection_inversion" };
        let _ = writeln!(text, "Random keys: {flavour}, theta {theta}");
    }
    text + "------------------------------------------------\n"
}

/// The line of a benchmark that needs an empty store and did not get one.
pub(super) fn skipped(name: &str) -> String {
    format!("{name:<12} : skipped (--use_existing_db is true)\n")
}

/// The line of a result.
pub(super) fn line(benchmark: &Benchmark, record: &Record, tally: &Tally) -> String {
    let mut extra = String::new();
    let bytes = tally.read_bytes + record.user_bytes;
    if bytes > 0 && record.seconds > 0.0 {
        let _ = write!(extra, " {:6.1} MB/s", bytes as f64 / MIB / record.seconds);
    }
    extra += &message(benchmark, tally);
    let micros = tally.thread_ns as f64 / 1e3 / tally.ops.max(1) as f64;
    format!(
        "{:<12} : {micros:11.3} micros/op {:.0} ops/sec {:.3} seconds {} operations;{extra}\n",
        benchmark.name,
        record.ops_per_second.floor(),
        record.seconds,
        tally.ops,
    )
}

fn message(benchmark: &Benchmark, tally: &Tally) -> String {
    let Tally { ops, lookups, found, .. } = *tally;
    match benchmark.operation {
        Operation::ReadRandom(Wanted::All | Wanted::Missing | Wanted::Hot | Wanted::Batch)
        | Operation::Seek
        | Operation::SeekFirst => format!(" ({found} of {lookups} found)"),
        Operation::Update | Operation::Append => format!(" ( updates:{ops} found:{found})"),
        Operation::ReadOrWrite => {
            let writes = ops - lookups;
            format!(" ( reads:{lookups} writes:{writes} total:{ops} found:{found})")
        }
        Operation::Checksum => " (4096 per op)".to_string(),
        _ => String::new(),
    }
}

/// The blocks of `--histogram`.
pub(super) fn histograms(benchmark: &Benchmark, tally: &Tally) -> String {
    let blocks = [(benchmark.read_label(), &tally.read), (benchmark.write_label(), &tally.write)];
    let block = |(label, latency): &(&str, &crate::latency::Latency)| {
        (latency.count() > 0).then(|| format!("Microseconds per {label}:\n{}\n", latency.text()))
    };
    blocks.iter().filter_map(block).collect()
}

/// What the original tools do not tell: one indented line, when there is anything to tell.
pub(super) fn extras(record: &Record) -> String {
    let mut parts = Vec::new();
    let Amplification { wa, wa_without_wal, awa, mwa, ara, mra, .. } = record.amplification;
    if let Some(wa) = wa {
        let without = wa_without_wal.map(|wa| format!(" ({wa:.2} without WAL)"));
        parts.push(format!("write amplification {wa:.2}{}", without.unwrap_or_default()));
    }
    if let (Some(awa), Some(mwa)) = (awa, mwa) {
        parts.push(format!("of the device {awa:.2}, of both {mwa:.2}"));
    }
    if let Some(ra) = record.amplification.merge_ra.filter(|ra| *ra > 0.0) {
        parts.push(format!("read by merges {ra:.2}"));
    }
    if let (Some(ara), Some(mra)) = (ara, mra) {
        parts.push(format!("by the device {ara:.2}, by both {mra:.2}"));
    }
    let mut bytes = |name: &str, bytes: Option<u64>| {
        if let Some(bytes) = bytes {
            parts.push(format!("{name} {:.1} MB", bytes as f64 / MIB));
        }
    };
    bytes("host written", record.host_write_bytes);
    bytes("host read", record.host_read_bytes);
    bytes("media written", record.media_write_bytes);
    bytes("space", record.space_bytes);
    bytes("peak memory", record.peak_rss_bytes);
    if let Some(seconds) = record.stall_seconds {
        parts.push(format!("stalled {seconds:.3} s"));
    }
    for (part, seconds) in &record.value_seconds {
        parts.push(format!("values {} {seconds:.3} s", part.replace('_', " ")));
    }
    for (label, summary) in [("read", record.latency_ns.read), ("write", record.latency_ns.write)] {
        if let Some(summary) = summary {
            let us = |ns: u64| ns as f64 / 1e3;
            let (p99, p9999) = (us(summary.p99), us(summary.p9999));
            parts.push(format!("{label} p99 {p99:.1} us, p99.99 {p9999:.1} us"));
        }
    }
    if parts.is_empty() { String::new() } else { format!("    {}\n", parts.join("; ")) }
}
