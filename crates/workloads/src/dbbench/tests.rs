//! Every benchmark on a small store: what it leaves there, and what it prints.

use super::*;
use crate::clock::WallClock;
use crate::memory_store::MemoryStore;
use crate::observe::{Progress, Silent};
use parking_lot::Mutex;
use std::collections::BTreeSet;

struct Outcome {
    store: MemoryStore,
    records: Vec<Record>,
    text: String,
}

fn run_on(store: &MemoryStore, arguments: &str) -> Outcome {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let config = parse(&arguments).unwrap().config;
    let mut text = Vec::new();
    let records = run(&config, store, &WallClock::default(), &Silent, &mut text).unwrap();
    Outcome { store: store.clone(), records, text: String::from_utf8(text).unwrap() }
}

fn run_new(arguments: &str) -> Outcome {
    run_on(&MemoryStore::default(), arguments)
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:016}").into_bytes()
}

#[test]
fn fillseq_writes_every_key_once() {
    let outcome = run_new("--benchmarks=fillseq --num=100");
    let keys: Vec<Vec<u8>> = outcome.store.entries().keys().cloned().collect();
    assert_eq!(keys, (0..100).map(key).collect::<Vec<_>>());
    assert!(outcome.store.entries().values().all(|value| value.len() == 100));
    let record = &outcome.records[0];
    assert_eq!((record.ops, record.user_bytes), (100, 11_600));
    let amplification = record.amplification;
    assert_eq!((amplification.wa, amplification.wa_without_wal), (Some(2.0), Some(1.0)));
    assert_eq!(record.latency_ns.read, None);
}

#[test]
fn fillrandom_draws_leveldbs_keys_when_asked() {
    let outcome = run_new("--benchmarks=fillrandom --num=1000 --key_generator=leveldb --seed=1000");
    let mut lehmer = crate::random::Lehmer::new(1000);
    let expected: BTreeSet<Vec<u8>> =
        (0..1000).map(|_| key(u64::from(lehmer.next_u32()) % 1000)).collect();
    assert_eq!(outcome.store.entries().keys().cloned().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn filluniquerandom_reaches_every_key_with_any_number_of_threads() {
    for threads in [1, 3] {
        let outcome =
            run_new(&format!("--benchmarks=filluniquerandom --num=1000 --threads={threads}"));
        assert_eq!(outcome.store.entries().len(), 1000);
        assert_eq!(outcome.records[0].ops, 1000);
    }
}

#[test]
fn special_fills_sync_batch_and_enlarge() {
    let outcome = run_new("--benchmarks=fillsync --num=5000");
    assert_eq!((outcome.records[0].ops, outcome.store.syncs()), (5, 5));
    let outcome = run_new("--benchmarks=fill100K --num=2000");
    assert!(outcome.store.entries().values().all(|value| value.len() == 100_000));
    assert_eq!(outcome.records[0].ops, 2);
    let outcome = run_new("--benchmarks=fillbatch --num=2500");
    assert_eq!(outcome.store.entries().len(), 2500);
    assert_eq!(outcome.records[0].ops, 2500);
    let outcome = run_new("--benchmarks=fillseq,overwrite,multireadrandom --num=10 --batch_size=4");
    assert_eq!(outcome.store.entries().len(), 10);
    assert!(outcome.records.iter().all(|record| record.ops == 10));
}

#[test]
fn deletes_empty_the_store() {
    let outcome = run_new("--benchmarks=fillseq,deleteseq --num=100");
    assert!(outcome.store.entries().is_empty());
    let outcome = run_new("--benchmarks=fillseq,deleterandom --num=1000");
    let left = outcome.store.entries().len();
    assert!((330..410).contains(&left), "{left}");
}

#[test]
fn a_seek_to_the_first_key_finds_it_at_either_end() {
    for (is_reverse, deletes, found) in [(0, 90, 5), (1, 90, 5), (1, 100, 0)] {
        let outcome = run_new(&format!(
            "--benchmarks=fillseq,deleteseq,seekfirst --num=100 --deletes={deletes} --reads=5 \
             --seek_nexts=0 --reverse_iterator={is_reverse}"
        ));
        assert_eq!(outcome.records[2].ops, 5);
        assert!(outcome.text.contains(&format!("({found} of 5 found)")), "{}", outcome.text);
    }
}

#[test]
fn reads_find_what_is_there() {
    let outcome = run_new(
        "--benchmarks=fillseq,readseq,readreverse,readrandom,readmissing,readhot,multireadrandom,\
         seekrandom --num=1000 --batch_size=10 --seek_nexts=3",
    );
    for record in &outcome.records {
        assert_eq!(record.ops, 1000, "{}", record.benchmark);
    }
    let found: Vec<&str> = outcome.text.lines().filter(|line| line.contains("found)")).collect();
    let expected = ["(1000 of 1000", "(0 of 1000", "(1000 of 1000", "(1000 of 1000", "(1000 of"];
    assert_eq!(found.len(), expected.len(), "{}", outcome.text);
    for (line, expected) in found.iter().zip(expected) {
        assert!(line.contains(expected), "{line}");
    }
}

#[test]
fn mixed_benchmarks_read_and_write() {
    let names = "readrandomwriterandom,updaterandom,seekrandomwhilewriting,readwhilewriting";
    let outcome = run_new(&format!("--benchmarks=fillseq,{names},readwhilescanning --num=1000"));
    assert_eq!(outcome.store.entries().len(), 1000);
    let reads = |record: &Record| record.latency_ns.read.is_some();
    let writes = |record: &Record| record.latency_ns.write.is_some();
    assert!(outcome.records[1..].iter().all(reads));
    assert!(outcome.records[..5].iter().all(writes));
    assert!(outcome.records.iter().all(|record| record.ops == 1000));
    assert!(outcome.text.contains(" total:1000 found:"), "{}", outcome.text);
    assert!(outcome.text.contains("( updates:1000 found:1000)"), "{}", outcome.text);
}

#[test]
fn appendrandom_lengthens_values() {
    let outcome = run_new("--benchmarks=fillseq,appendrandom --num=100 --value_size=10");
    let total: usize = outcome.store.entries().values().map(Vec::len).sum();
    assert_eq!(total, 100 * 10 + 100 * 10);
}

#[test]
fn a_zipf_overwrite_hits_few_keys_and_keeps_the_others() {
    let overwritten = |zipf: &str| {
        let outcome = run_new("--benchmarks=fillseq --num=10000 --value_size=1");
        let flags = "--benchmarks=overwrite --num=10000 --value_size=2 --use_existing_db=1";
        run_on(&outcome.store, &format!("{flags}{zipf}"));
        let entries = outcome.store.entries();
        assert_eq!(entries.len(), 10_000);
        entries.values().filter(|value| value.len() == 2).count()
    };
    assert!((6200..6450).contains(&overwritten("")));
    let zipf = overwritten(" --zipf=0.99");
    assert!((1000..4000).contains(&zipf), "{zipf}");
    assert!(overwritten(" --zipf=1.5") < zipf);
}

#[test]
fn maintenance_and_reports() {
    let names = "fillseq,flush,compact,compactall,waitforcompaction,resetstats,stats,levelstats";
    let outcome = run_new(&format!("--benchmarks={names},crc32c --num=10"));
    assert_eq!(outcome.store.maintenance(), 4);
    assert!(outcome.text.contains("\nentries: 10\n"), "{}", outcome.text);
    assert!(outcome.text.contains("\nno levelstats here\n"), "{}", outcome.text);
    assert!(outcome.text.contains("128000 operations;"), "{}", outcome.text);
}

#[test]
fn every_name_runs() {
    let all: Vec<&str> = names().collect();
    run_new(&format!("--benchmarks={} --num=20 --threads=2", all.join(",")));
}

#[test]
fn an_existing_store_is_kept() {
    let outcome = run_new("--benchmarks=fillseq --num=10");
    let again = run_on(&outcome.store, "--benchmarks=fillseq,readseq --num=10 --use_existing_db");
    assert!(again.text.contains("fillseq      : skipped (--use_existing_db is true)\n"));
    assert_eq!(again.records.len(), 1);
    assert_eq!(again.records[0].ops, 10);
    run_on(&outcome.store, "--benchmarks=fillseq --num=3");
    assert_eq!(outcome.store.entries().len(), 3);
}

/// Whether `text` has the form of `pattern`, in which `@` stands for a number and a run of blanks
/// for any run of blanks.
fn has_form(text: &str, pattern: &str) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    let (text, pattern) = (words(text), words(pattern));
    text.len() == pattern.len()
        && text.iter().zip(&pattern).all(|(word, form)| match form.split_once('@') {
            None => word == form,
            Some((before, after)) => word
                .strip_prefix(before)
                .and_then(|rest| rest.strip_suffix(after))
                .is_some_and(|number| number.parse::<f64>().is_ok()),
        })
}

#[test]
fn result_lines_have_db_benchs_form() {
    let outcome = run_new("--benchmarks=fillrandom,readrandom,readseq,crc32c --num=1000");
    let lines: Vec<&str> = outcome.text.lines().collect();
    let header = lines.iter().position(|line| line.starts_with("-----")).unwrap();
    assert!(lines[..header].contains(&"Keys:       16 bytes each"), "{}", outcome.text);
    assert!(lines[..header].contains(&"Entries:    1000"), "{}", outcome.text);
    assert!(lines[..header].contains(&"RawSize:    0.1 MB (estimated)"), "{}", outcome.text);
    let results: Vec<&&str> = lines.iter().filter(|line| line.contains("micros/op")).collect();
    let form = "@ micros/op @ ops/sec @ seconds 1000 operations; @ MB/s";
    assert!(has_form(results[0], &format!("fillrandom : {form}")), "{}", results[0]);
    assert!(has_form(results[1], &format!("readrandom : {form} (@ of 1000 found)")));
    assert!(results[1].starts_with("readrandom   : "));
    assert!(results[3].ends_with(" (4096 per op)"));
    for extra in lines[header + 1..].iter().filter(|line| !line.contains("micros/op")) {
        assert!(extra.starts_with("    "), "{extra}");
    }
}

#[test]
fn a_result_line_is_laid_out_to_the_column() {
    let benchmark = Benchmark::named("readrandom").unwrap();
    let tally = Tally {
        ops: 300_000,
        lookups: 300_000,
        found: 189_402,
        read_bytes: 21_970_632,
        thread_ns: 3_521_400_000,
        ..Tally::default()
    };
    let outcome = run_new("--benchmarks=fillseq --num=1");
    let mut record = outcome.records[0].clone();
    (record.seconds, record.ops_per_second, record.user_bytes) = (3.522, 85190.3, 0);
    assert_eq!(
        report::line(&benchmark, &record, &tally),
        "readrandom   :      11.738 micros/op 85190 ops/sec 3.522 seconds 300000 operations;    \
         5.9 MB/s (189402 of 300000 found)\n"
    );
}

#[test]
fn histograms_are_printed_when_asked() {
    let outcome = run_new("--benchmarks=fillseq,seekrandom --num=100 --histogram");
    assert!(outcome.text.contains("\nMicroseconds per write:\nCount: 100 Average: "));
    assert!(outcome.text.contains("\nMicroseconds per seek:\nCount: 100 Average: "));
}

#[test]
fn json_is_one_line_per_benchmark_with_fixed_fields() {
    let outcome = run_new("--benchmarks=fillseq,readrandom,stats --num=50 --json");
    let lines: Vec<&str> = outcome.text.lines().collect();
    assert_eq!(lines.len(), 3, "{}", outcome.text);
    let record: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
    let fields: BTreeSet<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = "benchmark ops seconds is_simulated ops_per_second user_bytes host_write_bytes \
                    host_read_bytes media_write_bytes wa wa_without_wal awa mwa merge_ra ara \
                    mra causes space_bytes stall_seconds value_seconds peak_rss_bytes \
                    latency_ns";
    assert_eq!(fields, expected.split_whitespace().collect::<BTreeSet<_>>());
    assert_eq!(record["latency_ns"]["read"], serde_json::Value::Null);
    for percentile in ["p50", "p90", "p99", "p999", "p9999", "max"] {
        assert!(record["latency_ns"]["write"][percentile].is_u64(), "{percentile}");
    }
    assert_eq!(record["host_read_bytes"], serde_json::Value::Null);
}

#[test]
fn reports_are_json_too() {
    let outcome = run_new("--benchmarks=fillseq,stats,levelstats --num=50 --json");
    let lines: Vec<&str> = outcome.text.lines().collect();
    assert_eq!(lines[1], r#"{"benchmark":"stats","report":{"entries": 50}}"#);
    assert_eq!(lines[2], r#"{"benchmark":"levelstats","report":"no levelstats here"}"#);
    assert_eq!(outcome.records.len(), 1, "a report is no result");
}

#[test]
fn a_rate_spreads_the_operations_over_time() {
    let expected = [
        ("--rate=1000", 0.099),
        ("--benchmark_write_rate_limit=116000", 0.099),
        ("--rate=1000 --threads=2", 0.199),
        ("--rate=1000 --batch_size=10", 0.090),
    ];
    for (flags, due_seconds) in expected {
        let outcome = run_new(&format!("--benchmarks=fillseq --num=100 {flags}"));
        let seconds = outcome.records[0].seconds;
        assert!(seconds >= due_seconds, "{flags}: {seconds}");
    }
}

#[test]
fn duration_ends_random_benchmarks_by_time() {
    let outcome = run_new("--benchmarks=fillseq,readrandom --num=10 --duration=1 --threads=2");
    assert_eq!(outcome.records[0].ops, 20);
    assert!(outcome.records[1].ops > 20);
    assert!(outcome.records[1].seconds >= 1.0);
}

#[derive(Default)]
struct Listener {
    last: Mutex<Option<(String, u64, Option<u64>)>>,
    notes: Mutex<Vec<String>>,
}

impl Observer for Listener {
    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&self, progress: &Progress<'_>) {
        let state = (progress.benchmark.to_string(), progress.done, progress.total);
        *self.last.lock() = Some(state);
    }

    fn note(&self, line: &str) {
        self.notes.lock().push(line.to_string());
    }
}

#[test]
fn progress_notes_and_the_report_file_follow_a_run() {
    let path = std::env::temp_dir().join(format!("shingle-lab-report-{}.csv", std::process::id()));
    let flags = ["--benchmarks=fillseq", "--num=1300", "--rate=1000", "--stats_interval_seconds=1"];
    let mut config = parse(&flags).unwrap().config;
    config.report_file = Some(path.to_str().unwrap().to_string());
    let listener = Listener::default();
    let store = MemoryStore::default();
    run(&config, &store, &WallClock::default(), &listener, &mut Vec::new()).unwrap();
    let last = listener.last.lock().clone();
    assert_eq!(last, Some(("fillseq".to_string(), 1300, Some(1300))));
    assert!(listener.notes.lock()[0].contains("ops/second in ("));
    let report = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut lines = report.lines();
    let header = lines.next().unwrap();
    assert!(header.starts_with("secs_elapsed,interval_qps,interval_wa,"), "{report}");
    assert!(header.contains(",wa,wa_without_wal,awa,mwa,merge_ra,ara,mra"), "{report}");
    let row: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!((row[0], row.len()), ("1", header.split(',').count()), "{report}");
    // This store writes every byte twice, and has no device that tells.
    assert_eq!((row[2], row[3], row[4], row[9]), ("2.0000", "1.0000", "", "2.0000"), "{report}");
    assert!(listener.notes.lock()[0].contains(" wa (2.00,2.00)"));
}

#[test]
fn an_unknown_benchmark_is_an_error_before_anything_runs() {
    let config = parse(&["--benchmarks=fillseq,fillfast"]).unwrap().config;
    let store = MemoryStore::default();
    let error = run(&config, &store, &WallClock::default(), &Silent, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("fillfast"), "{error}");
    assert!(store.entries().is_empty());
}
