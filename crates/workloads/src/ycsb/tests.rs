//! The workloads that we ship on a small store: what they leave there, and what they print.

use super::*;
use crate::clock::WallClock;
use crate::memory_store::MemoryStore;
use crate::observe::Silent;
use std::collections::BTreeSet;

fn workload(letter: char, more: &str) -> Workload {
    let path =
        format!("{}/../../workloads/workload{letter}.properties", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let properties = Properties::parse(&format!("{text}\n{more}")).unwrap();
    Workload::new(&format!("workload{letter}"), &properties).unwrap()
}

struct Outcome {
    store: MemoryStore,
    record: Record,
    text: String,
}

impl Outcome {
    /// The value of a line of the output; 0 when there is none.
    fn number(&self, section: &str, name: &str) -> f64 {
        let start = format!("[{section}], {name}, ");
        let line = self.text.lines().find_map(|line| line.strip_prefix(&start));
        line.map_or(0.0, |number| number.parse().unwrap())
    }
}

fn phase(workload: &Workload, phase: Phase, store: &MemoryStore) -> Outcome {
    let mut text = Vec::new();
    let clock = WallClock::default();
    let record = run(workload, phase, store, &clock, &Silent, &mut text).unwrap();
    Outcome { store: store.clone(), record, text: String::from_utf8(text).unwrap() }
}

fn load_and_run(letter: char, more: &str) -> Outcome {
    let workload = workload(letter, more);
    let store = MemoryStore::default();
    let loaded = phase(&workload, Phase::Load, &store);
    assert_eq!(loaded.number("INSERT", "Return=OK"), workload.record_count as f64);
    phase(&workload, Phase::Run, &store)
}

#[test]
fn load_inserts_every_record() {
    for threads in [1, 3] {
        let workload = workload('a', &format!("threadcount={threads}"));
        let store = MemoryStore::default();
        let outcome = phase(&workload, Phase::Load, &store);
        assert_eq!(outcome.record.benchmark, "workloada-load");
        assert_eq!(outcome.record.ops, 1000);
        let entries = store.entries();
        assert_eq!(entries.len(), 1000);
        assert!(entries.values().all(|value| value.len() == 1000));
        assert!(entries.keys().all(|key| key.starts_with(b"user") && key.len() <= 23));
    }
}

#[test]
fn keys_can_be_ordered_and_padded() {
    let workload = workload('a', "insertorder=ordered\nzeropadding=20\nvaluebytes=7");
    let store = MemoryStore::default();
    phase(&workload, Phase::Load, &store);
    let entries = store.entries();
    let (key, value) = entries.first_key_value().unwrap();
    assert_eq!((key.as_slice(), value.len()), (b"user00000000000000000000".as_slice(), 7));
}

#[test]
fn every_workload_has_its_mix() {
    let expected = [
        ('a', [500.0, 500.0, 0.0, 0.0]),
        ('b', [950.0, 50.0, 0.0, 0.0]),
        ('c', [1000.0, 0.0, 0.0, 0.0]),
        ('d', [950.0, 0.0, 50.0, 0.0]),
        ('e', [0.0, 0.0, 50.0, 950.0]),
        ('f', [1000.0, 500.0, 0.0, 0.0]),
    ];
    for (letter, mix) in expected {
        for more in ["", "flavour=c", "threadcount=2"] {
            let outcome = load_and_run(letter, more);
            let sections = ["READ", "UPDATE", "INSERT", "SCAN"];
            for (section, expected) in sections.iter().zip(mix) {
                let count = outcome.number(section, "Operations");
                assert!((count - expected).abs() < 60.0, "{letter} {section}: {count}");
            }
            let inserted = outcome.number("INSERT", "Operations");
            assert_eq!(outcome.store.entries().len() as f64, 1000.0 + inserted, "{letter}");
            assert_eq!(outcome.number("READ", "Return=NOT_FOUND"), 0.0, "{letter}");
            assert_eq!(outcome.record.ops, 1000);
        }
    }
}

#[test]
fn workload_f_reports_its_pairs() {
    let outcome = load_and_run('f', "");
    let pairs = outcome.number("READ-MODIFY-WRITE", "Operations");
    assert_eq!(outcome.number("UPDATE", "Operations"), pairs);
}

#[test]
fn workload_d_reads_what_it_inserts_only_in_javas_flavour() {
    for (flavour, reads_inserts) in [("java", true), ("c", false)] {
        let workload = workload('d', &format!("flavour={flavour}"));
        let store = MemoryStore::default();
        phase(&workload, Phase::Load, &store);
        let loaded: BTreeSet<Vec<u8>> = store.entries().keys().cloned().collect();
        phase(&workload, Phase::Run, &store);
        assert_eq!(!store.keys_read().is_subset(&loaded), reads_inserts, "{flavour}");
    }
}

#[test]
fn output_has_ycsbs_lines() {
    let outcome = load_and_run('a', "");
    let names: Vec<&str> = outcome
        .text
        .lines()
        .filter(|line| line.starts_with("[READ]"))
        .map(|line| line.split(", ").nth(1).unwrap())
        .collect();
    let expected = [
        "Operations",
        "AverageLatency(us)",
        "MinLatency(us)",
        "MaxLatency(us)",
        "50thPercentileLatency(us)",
        "95thPercentileLatency(us)",
        "99thPercentileLatency(us)",
        "99.9PercentileLatency(us)",
        "99.99PercentileLatency(us)",
        "Return=OK",
    ];
    assert_eq!(names, expected);
    assert!(outcome.text.starts_with("[OVERALL], RunTime(ms), "));
    assert!(outcome.number("OVERALL", "Throughput(ops/sec)") > 0.0);
    assert!(outcome.text.contains("[OVERALL], Flavour, java\n"));
    assert!(outcome.text.contains("[OVERALL], RequestDistribution, zipfian_java\n"));
    assert!(load_and_run('a', "flavour=c").text.contains("RequestDistribution, zipfian_c\n"));
}

#[test]
fn json_is_the_record() {
    let mut workload = workload('c', "");
    let store = MemoryStore::default();
    phase(&workload, Phase::Load, &store);
    workload.json = true;
    let outcome = phase(&workload, Phase::Run, &store);
    let record: serde_json::Value = serde_json::from_str(&outcome.text).unwrap();
    assert_eq!(record["benchmark"], "workloadc-run");
    assert_eq!(record["ops"], 1000);
    assert_eq!(record["wa"], serde_json::Value::Null);
    assert!(record["latency_ns"]["read"]["p9999"].is_u64());
}

#[test]
fn a_target_spreads_the_operations_over_time() {
    let outcome = load_and_run('c', "target=5000\nthreadcount=2");
    assert!(outcome.record.seconds >= 0.199, "{}", outcome.record.seconds);
    assert!(outcome.text.contains("[OVERALL], LatencyFrom, intended start\n"));
}

#[test]
fn the_same_seed_leaves_the_same_content() {
    let content = || load_and_run('a', "seed=7").store.entries().clone();
    assert!(content() == content());
    assert!(content() != load_and_run('a', "seed=8").store.entries().clone());
}

#[test]
fn broken_properties_are_errors() {
    assert!(Properties::parse("recordcount").is_err());
    let wrong = [
        "recordcount=x",
        "recordcount=0",
        "readproportion=2",
        "requestdistribution=pareto",
        "threadcount=0",
        "flavour=cpp",
        "minscanlength=9\nmaxscanlength=8",
        "readproportion=0\nupdateproportion=0",
    ];
    for text in wrong {
        assert!(Workload::new("x", &Properties::parse(text).unwrap()).is_err(), "{text}");
    }
}
