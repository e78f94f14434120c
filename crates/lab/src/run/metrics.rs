//! From what was seen before and after a phase to named numbers.

use super::machine::{Machine, Moment};
use super::probe::Calls;
use crate::settings::Settings;
use base::ledger::LedgerSnapshot;
use base::{Cause, Result};
use direct::{Extent, Layout};
use std::collections::BTreeMap;
use workloads::Record;

/// Metrics of one phase by name.
pub type Values = BTreeMap<&'static str, f64>;

/// Every metric: its name, its unit, and what it is.
pub const CATALOGUE: &[(&str, &str, &str)] = &[
    ("ops", "", "operations"),
    ("seconds", "s", "virtual time"),
    ("ops_per_second", "1/s", "operations in a second"),
    ("mb_per_second", "MB/s", "bytes of keys and values that the user wrote and read"),
    ("user_bytes", "B", "bytes of keys and values written by the user"),
    ("user_read_bytes", "B", "bytes of keys and values that the user read"),
    ("wa", "", "tables and values written to the device over user bytes (WA, WA1)"),
    ("wa_all", "", "all host writes over user bytes: log, manifest and store metadata too"),
    ("index_wa", "", "tables alone over user bytes"),
    ("value_wa", "", "values, and their garbage collection, over user bytes"),
    ("ra", "", "bytes that merges read over user bytes written (RA)"),
    ("read_ra", "", "bytes read for gets and scans over user bytes read"),
    ("awa", "", "device writes over host bytes written (AWA, WA2)"),
    ("awa_tables", "", "the same for tables alone: neither log nor manifest nor metadata"),
    ("ara", "", "bytes that the medium read for writes and merges over those that merges read"),
    ("mwa", "", "wa times awa"),
    ("mra", "", "ra times ara"),
    ("host_write_bytes", "B", "all host writes"),
    ("media_write_bytes", "B", "all writes of the medium"),
    ("wal_bytes", "B", "the log"),
    ("compactions", "", "merges, moves by an edit alone left out"),
    ("compaction_read_bytes", "B", "read by merges"),
    ("compaction_write_bytes", "B", "written by merges"),
    ("compaction_mean_bytes", "B", "written by one merge on average"),
    ("compaction_seconds", "s", "sum over merges, from begin to end"),
    ("compaction_mean_seconds", "s", "of one merge"),
    ("compaction_busy_seconds", "s", "processor and device time of background steps"),
    ("processor_seconds", "s", "processor time of operations and background steps"),
    ("background_processor_seconds", "s", "processor time of background steps"),
    ("same_level_share", "", "bytes that moves into a level read from it, over all they read"),
    ("tables_per_compaction", "", "compaction_mean_bytes over the size of a table"),
    ("bands_per_compaction", "", "bands that a merge writes into"),
    ("stall_seconds", "s", "time that writes were stalled"),
    ("value_write_seconds", "s", "flushes and merges wrote separated values"),
    ("value_collect_read_seconds", "s", "garbage collection read segments"),
    (
        "value_collect_lookup_seconds",
        "s",
        "garbage collection asked the index which records are live",
    ),
    ("value_collect_write_seconds", "s", "garbage collection wrote live values"),
    ("value_collect_pointer_seconds", "s", "garbage collection changed pointers in the index"),
    ("space_bytes", "B", "all files at the end"),
    ("live_bytes", "B", "live slices and values at the end"),
    ("space_amp", "", "bytes of all files over live bytes"),
    ("space_efficiency", "", "live bytes over bytes of bands in use"),
    ("span_bytes", "B", "from the first to the last byte of tables on the device"),
    ("fragment_share", "", "free space in pieces below a mean merge over the span in use"),
    ("tables", "", "table files at the end"),
    ("metadata_bytes", "B", "indexes, filters and footers of all tables (phase check)"),
    ("reads", "", "gets and scans"),
    ("blocks_per_read", "", "read requests of the device for a get"),
    ("read_mean_us", "us", "mean time of a get or scan"),
    ("write_mean_us", "us", "mean time of a put"),
    ("mean_us", "us", "mean time of an operation"),
    ("p99_us", "us", "99th percentile over puts, or gets where there are none"),
    ("p999_us", "us", "99.9th percentile"),
    ("p9999_us", "us", "99.99th percentile"),
    ("write_spread", "", "largest over smallest mean put time among a hundred equal intervals"),
];

/// Division, where nothing by nothing is 0, and anything else by nothing no number.
fn over(a: f64, b: f64) -> f64 {
    match (a, b) {
        (0.0, _) => 0.0,
        (_, 0.0) => f64::NAN,
        _ => a / b,
    }
}

/// The metrics of a phase. Without `before`, the database was opened in it.
pub fn measure(
    machine: &Machine,
    settings: &Settings,
    before: Option<Moment>,
    record: Option<Record>,
    calls: &Calls,
) -> Result<Values> {
    let after = machine.look();
    let ledger = match &before {
        Some(before) => after.stats.ledger.since(&before.stats.ledger),
        None => after.stats.ledger.clone(),
    };
    let mut values = Values::new();
    bytes(&mut values, &ledger);
    merges(&mut values, settings, before.as_ref(), &after)?;
    time(&mut values, before.as_ref(), &after, record.as_ref(), calls, &ledger);
    space(&mut values, &after, machine);
    Ok(values)
}

fn bytes(values: &mut Values, ledger: &LedgerSnapshot) {
    let user = ledger.user_write_bytes as f64;
    let all = ledger.host();
    let tables = ledger.traffic(|cause| cause.is_compaction() || cause == Cause::Flush);
    let apart = ledger.traffic(|cause| matches!(cause, Cause::ValueWrite | Cause::ValueGc));
    let merged = ledger.merges();
    let reads = ledger.traffic(|cause| matches!(cause, Cause::Get | Cause::Scan));
    let media_reads = ledger.without_user_reads();
    let index_wa = over(tables.write_bytes as f64, user);
    let value_wa = over(apart.write_bytes as f64, user);
    let awa = over(all.media_write_bytes as f64, all.write_bytes as f64);
    let ra = over(merged.read_bytes as f64, user);
    let ara = over(media_reads.media_read_bytes as f64, merged.read_bytes as f64);
    values.extend([
        ("user_bytes", user),
        ("user_read_bytes", ledger.user_read_bytes as f64),
        ("index_wa", index_wa),
        ("value_wa", value_wa),
        ("wa", index_wa + value_wa),
        ("wa_all", over(all.write_bytes as f64, user)),
        ("ra", ra),
        ("read_ra", over(reads.read_bytes as f64, ledger.user_read_bytes as f64)),
        ("awa", awa),
        ("awa_tables", over(tables.media_write_bytes as f64, tables.write_bytes as f64)),
        ("ara", ara),
        ("mwa", (index_wa + value_wa) * awa),
        ("mra", ra * ara),
        ("host_write_bytes", all.write_bytes as f64),
        ("media_write_bytes", all.media_write_bytes as f64),
        ("wal_bytes", ledger.cause(Cause::Wal).write_bytes as f64),
    ]);
}

fn merges(
    values: &mut Values,
    settings: &Settings,
    before: Option<&Moment>,
    after: &Moment,
) -> Result<()> {
    let since = |get: &dyn Fn(&Moment) -> f64| get(after) - before.map_or(0.0, get);
    let sum = |get: fn(&shingle::LevelStats) -> f64| {
        move |moment: &Moment| moment.stats.levels.iter().map(get).sum::<f64>()
    };
    let count = since(&|moment| moment.stats.compaction.count as f64);
    let seconds = since(&|moment| moment.stats.compaction.sum_ns as f64 / 1e9);
    let merged = |moment: &Moment| moment.stats.ledger.merges();
    let written = since(&|moment| merged(moment).write_bytes as f64);
    let read = since(&|moment| merged(moment).read_bytes as f64);
    let upper = since(&sum(|level| level.read_bytes_upper as f64));
    let same = since(&sum(|level| level.read_bytes_lower as f64));
    let table = match settings.get("table_bytes_max") {
        Some(_) => settings.bytes("table_bytes_max")?,
        None => (2 << 20) as f64,
    };
    let mean = over(written, count);
    values.extend([
        ("compactions", count),
        ("compaction_read_bytes", read),
        ("compaction_write_bytes", written),
        ("compaction_mean_bytes", mean),
        ("compaction_seconds", seconds),
        ("compaction_mean_seconds", over(seconds, count)),
        ("compaction_busy_seconds", since(&sum(|level| level.seconds))),
        ("same_level_share", over(same, same + upper)),
        ("tables_per_compaction", mean / (table * settings.scale().sizes)),
        ("bands_per_compaction", over(since(&|moment| moment.bands as f64), count)),
        ("stall_seconds", since(&|moment| moment.stats.stall_ns() as f64 / 1e9)),
    ]);
    let value = |get: fn(&shingle::ValueTimes) -> u64| {
        since(&|moment| get(&moment.stats.values.times) as f64 / 1e9)
    };
    values.extend([
        ("value_write_seconds", value(|times| times.write_ns)),
        ("value_collect_read_seconds", value(|times| times.collect_read_ns)),
        ("value_collect_lookup_seconds", value(|times| times.collect_lookup_ns)),
        ("value_collect_write_seconds", value(|times| times.collect_write_ns)),
        ("value_collect_pointer_seconds", value(|times| times.collect_pointer_ns)),
    ]);
    Ok(())
}

fn time(
    values: &mut Values,
    before: Option<&Moment>,
    after: &Moment,
    record: Option<&Record>,
    calls: &Calls,
    ledger: &LedgerSnapshot,
) {
    let (reads, writes) = (calls.reads.count as f64, calls.writes.count as f64);
    let start_ns = before.map_or(0, |before| before.now_ns);
    let seconds = record.map_or((after.now_ns - start_ns) as f64 / 1e9, |record| record.seconds);
    let user = (ledger.user_write_bytes + ledger.user_read_bytes) as f64;
    let spent = |get: fn(&Moment) -> u64| (get(after) - before.map_or(0, get)) as f64 / 1e9;
    let foreground = spent(|moment| moment.processor.foreground_ns);
    let background = spent(|moment| moment.processor.background_ns);
    let us = |times: &super::probe::Times| over(times.sum_ns as f64 / 1e3, times.count as f64);
    let sum_us = (calls.reads.sum_ns + calls.writes.sum_ns) as f64 / 1e3;
    let ops = record.map_or(0.0, |record| record.ops as f64);
    let gets = ledger.cause(Cause::Get).read_ops as f64;
    values.extend([
        ("ops", ops),
        ("seconds", seconds),
        ("ops_per_second", over(ops, seconds)),
        ("mb_per_second", over(user / 1e6, seconds)),
        ("reads", reads),
        ("blocks_per_read", over(gets, reads)),
        ("read_mean_us", us(&calls.reads)),
        ("write_mean_us", us(&calls.writes)),
        ("mean_us", over(sum_us, reads + writes)),
        ("write_spread", spread(&calls.series)),
        ("processor_seconds", foreground + background),
        ("background_processor_seconds", background),
    ]);
    let latency = record.map(|record| record.latency_ns);
    if let Some(summary) = latency.and_then(|latency| latency.write.or(latency.read)) {
        let us = |ns: u64| ns as f64 / 1e3;
        values.extend([
            ("p99_us", us(summary.p99)),
            ("p999_us", us(summary.p999)),
            ("p9999_us", us(summary.p9999)),
        ]);
    }
}

const INTERVALS: u64 = 100;

/// Largest over smallest mean among equal intervals of time.
fn spread(series: &[(u64, u64)]) -> f64 {
    let (Some(first), Some(last)) = (series.first(), series.last()) else { return 0.0 };
    let length = (last.0 - first.0) / INTERVALS + 1;
    let mut sums = BTreeMap::<u64, (u64, u64)>::new();
    for (at, ns) in series {
        let (count, sum) = sums.entry((at - first.0) / length).or_default();
        *count += 1;
        *sum += ns;
    }
    let means = || sums.values().map(|(count, sum)| *sum as f64 / *count as f64);
    over(means().fold(0.0, f64::max), means().fold(f64::INFINITY, f64::min))
}

fn space(values: &mut Values, after: &Moment, machine: &Machine) {
    let mean = values.get("compaction_mean_bytes").copied().unwrap_or(0.0);
    let (span, fragments) = span(&after.layout, mean);
    let used: u64 = after.layout.free.iter().map(|free| free.bytes).sum();
    let used = after.layout.data.bytes.saturating_sub(used) as f64;
    let live = after.stats.live_bytes as f64;
    values.extend([
        ("space_bytes", after.stats.space_bytes as f64),
        ("live_bytes", live),
        ("space_amp", over(after.stats.space_bytes as f64, live)),
        ("space_efficiency", over(live, used)),
        ("span_bytes", span),
        ("fragment_share", over(fragments, used)),
        ("tables", machine.tables() as f64),
    ]);
}

/// Bytes up to the end of the last table, and free bytes within in pieces below `piece_bytes`.
fn span(layout: &Layout, piece_bytes: f64) -> (f64, f64) {
    let tables = layout.files.iter().filter(|file| !file.is_log);
    let extents: Vec<Extent> = tables.flat_map(|file| file.extents.iter().copied()).collect();
    let start = extents.iter().map(|extent| extent.start).min().unwrap_or(0);
    let end = extents.iter().map(|extent| extent.end()).max().unwrap_or(0);
    let within = layout.free.iter().filter(|free| free.start > start && free.end() < end);
    let small = within.map(|free| free.bytes as f64).filter(|bytes| *bytes < piece_bytes);
    ((end - start) as f64, small.sum())
}
