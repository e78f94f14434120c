//! YCSB's output lines.

use super::chooser::Chooser;
use super::client::{Kind, Measured};
use super::properties::{Flavour, Workload};
use super::shared::Phase;
use crate::record::Record;
use std::fmt::Write;

/// The lines of one phase.
pub(super) fn text(
    workload: &Workload,
    phase: Phase,
    record: &Record,
    measured: &Measured,
) -> String {
    let mut text = String::new();
    let mut line = |section: &str, name: &str, value: String| {
        let _ = writeln!(text, "[{section}], {name}, {value}");
    };
    line("OVERALL", "RunTime(ms)", format!("{:.0}", record.seconds * 1e3));
    line("OVERALL", "Throughput(ops/sec)", format!("{}", record.ops_per_second));
    let flavour = if workload.flavour == Flavour::Java { "java" } else { "c" };
    line("OVERALL", "Flavour", flavour.to_string());
    if let (Phase::Run, Ok(chooser)) = (phase, Chooser::new(workload)) {
        line("OVERALL", "RequestDistribution", chooser.name().to_string());
    }
    let from = if workload.target > 0.0 { "intended start" } else { "start" };
    line("OVERALL", "LatencyFrom", from.to_string());
    let amplification = &record.amplification;
    let numbers = [
        ("HostWriteBytes", record.host_write_bytes.map(|bytes| bytes as f64)),
        ("HostReadBytes", record.host_read_bytes.map(|bytes| bytes as f64)),
        ("SpaceBytes", record.space_bytes.map(|bytes| bytes as f64)),
        ("WriteAmplification", amplification.wa),
        ("WriteAmplificationWithoutWal", amplification.wa_without_wal),
        ("MediaWriteBytes", record.media_write_bytes.map(|bytes| bytes as f64)),
        ("AuxiliaryWriteAmplification", amplification.awa),
        ("MultiplicativeWriteAmplification", amplification.mwa),
        ("MergeReadAmplification", amplification.merge_ra),
        ("AuxiliaryReadAmplification", amplification.ara),
        ("MultiplicativeReadAmplification", amplification.mra),
        ("StallTime(s)", record.stall_seconds),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            line("OVERALL", name, number.to_string());
        }
    }
    for kind in Kind::ALL {
        section(kind, measured, &mut line);
    }
    text
}

fn section(kind: Kind, measured: &Measured, line: &mut impl FnMut(&str, &str, String)) {
    let latency = measured.latency(kind);
    let count = latency.count();
    if count == 0 {
        return;
    }
    let label = kind.label();
    line(label, "Operations", count.to_string());
    line(label, "AverageLatency(us)", format!("{}", latency.mean_ns() / 1e3));
    line(label, "MinLatency(us)", (latency.min_ns() / 1000).to_string());
    line(label, "MaxLatency(us)", (latency.max_ns() / 1000).to_string());
    let quantiles =
        [("50th", 0.5), ("95th", 0.95), ("99th", 0.99), ("99.9", 0.999), ("99.99", 0.9999)];
    for (name, quantile) in quantiles {
        let name = format!("{name}PercentileLatency(us)");
        line(label, &name, (latency.quantile_ns(quantile) / 1000).to_string());
    }
    if kind == Kind::ReadModifyWrite {
        return;
    }
    let missing = if kind == Kind::Read { measured.missing } else { 0 };
    line(label, "Return=OK", (count - missing).to_string());
    if missing > 0 {
        line(label, "Return=NOT_FOUND", missing.to_string());
    }
}
