//! The advisor against closed forms, and what it must not do.

use super::*;
use crate::trace::{Bounds, Collector, Kind, Operation, Scope};
use base::random::Random;

const KEYS: u64 = 20_000;

/// Writes of `value_bytes`; `key` draws the key of each.
fn trace(writes: u64, value_bytes: u64, mut key: impl FnMut(u64) -> u64) -> Collector {
    let mut collector = Collector::new(Bounds::default()).unwrap();
    for write in 0..writes {
        let key = key(write).to_be_bytes();
        collector.take(&Operation::new(None, Kind::Put, &key).value(value_bytes));
    }
    collector
}

fn uniform(writes: u64, value_bytes: u64) -> Collector {
    let mut random = Random::new(7);
    trace(writes, value_bytes, |_| random.below(KEYS))
}

fn workload(collector: &Collector, memtable_bytes: u64) -> Workload {
    let scope =
        Scope { memtable_bytes, value_threshold_bytes: 1024, grow: 1, bounds: Bounds::default() };
    Workload::new(&collector.sample, &collector.summary(), &scope)
}

fn question(schemes: &[&str], layouts: &[&str], goal: Goal) -> Question {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
    let (schemes, layouts) = (names(schemes), names(layouts));
    Question { schemes, layouts, fan_outs: vec![4.0, 10.0], goal, device: 0 }
}

fn find<'a>(advice: &'a Advice, scheme: &str, values: &str) -> &'a Candidate {
    let is_it = |c: &&Candidate| (c.scheme, c.values) == (scheme, values) && c.is_default;
    advice.candidates.iter().find(is_it).unwrap()
}

/// Each byte goes down each level of a tiered tree once; in a leveled one it takes up to `fan_out`
/// others along. So tiered is best at writing and leveled at reading.
#[test]
fn random_writes_are_cheapest_tiered_and_their_reads_leveled() {
    let workload = workload(&uniform(60_000, 92), 100 * 100);
    let schemes = ["leveled", "tiered"];
    let write = advise(&workload, &question(&schemes, &["inline"], Goal::Write), &|_| {}).unwrap();
    let (tiered, leveled) = (find(&write, "tiered", "inline"), find(&write, "leveled", "inline"));
    assert_eq!(write.candidates[0].scheme, "tiered");
    assert!(write.recommendation.starts_with("Take tiered"), "{}", write.recommendation);
    // 600 memtables, four to a level: written at the flush and once for each of log4(600) levels.
    let form = 1.0 + 600f64.log(4.0);
    let off = tiered.write_amplification / form - 1.0;
    assert!(off.abs() < 0.3, "{} {form}", tiered.write_amplification);
    assert!(leveled.write_amplification > tiered.write_amplification);
    let space = advise(&workload, &question(&schemes, &["inline"], Goal::Space), &|_| {}).unwrap();
    assert_eq!(space.candidates[0].scheme, "leveled");
    assert!(tiered.is_on_front);
}

/// Keys in ascending order are never rewritten: tables move down as they are.
#[test]
fn ascending_keys_cost_one_write() {
    let collector = trace(20_000, 92, |write| write);
    let workload = workload(&collector, 100 * 100);
    assert_eq!(collector.summary().ascending_share, 1.0);
    let advice = advise(&workload, &question(&["leveled"], &["inline"], Goal::Write), &|_| {});
    let advice = advice.unwrap();
    assert!(advice.candidates[0].write_amplification < 1.01, "{:?}", advice.candidates[0]);
    assert!((advice.candidates[0].space_amplification - 1.0).abs() < 0.01);
}

/// Segment groups cost `1 + 1 / (2 r)`, 2.67 at the reserved share of 0.3, and the tree of pointers
/// next to nothing; a tree with the values in it costs several times that.
#[test]
fn large_values_under_updates_belong_apart() {
    let workload = workload(&uniform(200_000, 16 << 10), 16 << 20);
    let layouts = ["inline", "hashed", "log"];
    let advice =
        advise(&workload, &question(&["leveldb"], &layouts, Goal::Write), &|_| {}).unwrap();
    let (inline, hashed) = (find(&advice, "leveldb", "inline"), find(&advice, "leveldb", "hashed"));
    assert!(advice.candidates[0].values != "inline", "{}", advice.recommendation);
    let form = 1.0 + 1.0 / (2.0 * 0.3);
    assert!((hashed.write_amplification / form - 1.0).abs() < 0.2, "{hashed:?}");
    assert!(inline.write_amplification > 1.5 * hashed.write_amplification);
}

/// Only merges find garbage. The LWC-tree seldom merges: values are collected late, cost no second
/// write and take up space. LevelDB's tree finds garbage soon.
#[test]
fn values_take_more_room_under_a_scheme_that_seldom_merges() {
    let workload = workload(&uniform(60_000, 16 << 10), 16 << 20);
    let question = question(&["leveldb", "lwc"], &["hashed", "log"], Goal::Write);
    let advice = advise(&workload, &question, &|_| {}).unwrap();
    for layout in ["hashed", "log"] {
        let (leveldb, lwc) = (find(&advice, "leveldb", layout), find(&advice, "lwc", layout));
        assert!(lwc.write_amplification < 1.1, "{lwc:?}");
        assert!(lwc.space_amplification > 2.0, "{lwc:?}");
        assert!(leveldb.write_amplification > 1.5, "{leveldb:?}");
        assert!(leveldb.space_amplification < 1.6, "{leveldb:?}");
    }
}

/// A key that is written again and again: a memtable keeps one write of it. In a log of values the
/// commit wrote them all, in groups the flush writes the last.
#[test]
fn a_log_has_every_write_of_a_hot_key() {
    let workload = workload(&trace(20_000, 2000, |write| write % 10), 1 << 20);
    let question = question(&["leveled"], &["hashed", "log"], Goal::Write);
    let advice = advise(&workload, &question, &|_| {}).unwrap();
    let (hashed, log) = (find(&advice, "leveled", "hashed"), find(&advice, "leveled", "log"));
    assert!(hashed.write_amplification < 0.1, "{hashed:?}");
    assert!((log.write_amplification - 1.0).abs() < 0.1, "{log:?}");
}

#[test]
fn the_same_trace_gives_the_same_answer() {
    let answer = || {
        let workload = workload(&uniform(20_000, 92), 100 * 100);
        let question = question(&["leveled", "ldc", "lwc"], &["inline"], Goal::Time);
        advise(&workload, &question, &|_| {}).unwrap()
    };
    assert_eq!(answer(), answer());
}

/// A sample of the keys estimates what the whole trace costs.
#[test]
fn a_sample_tells_what_the_whole_would() {
    let collector = uniform(60_000, 92);
    let summary = collector.summary();
    let cost = |keys: usize| {
        let bounds = Bounds { keys, events: usize::MAX };
        let scope = Scope { memtable_bytes: 50_000, value_threshold_bytes: 1024, grow: 1, bounds };
        let workload = Workload::new(&collector.sample, &summary, &scope);
        let question = question(&["leveled", "tiered"], &["inline"], Goal::Write);
        let advice = advise(&workload, &question, &|_| {}).unwrap();
        ["leveled", "tiered"].map(|name| find(&advice, name, "inline").write_amplification)
    };
    let (whole, part) = (cost(usize::MAX), cost(5_000));
    for (whole, part) in whole.into_iter().zip(part) {
        assert!((part / whole - 1.0).abs() < 0.15, "{part} of a sample, {whole} of the whole");
    }
}

#[test]
fn a_trace_without_writes_and_an_empty_one_are_answered() {
    let question = question(&["leveled"], &["inline", "log"], Goal::Read);
    let mut collector = Collector::new(Bounds::default()).unwrap();
    let empty = advise(&workload(&collector, 1000), &question, &|_| {}).unwrap();
    assert_eq!(empty.candidates[0].write_amplification, 0.0);
    for key in 0..2000u64 {
        collector.take(&Operation::new(None, Kind::Get, &key.to_be_bytes()));
    }
    let advice = advise(&workload(&collector, 1000), &question, &|_| {}).unwrap();
    assert!((advice.candidates[0].read_amplification - 1.0).abs() < 0.01, "{advice:?}");
}

#[test]
fn unknown_names_and_sizes_beyond_reason_are_refused() {
    let collector = uniform(100, 92);
    let workload_ = workload(&collector, 1000);
    assert!(advise(&workload_, &question(&["no"], &["inline"], Goal::Read), &|_| {}).is_err());
    assert!(advise(&workload_, &question(&["leveled"], &["no"], Goal::Read), &|_| {}).is_err());
    let scope = Scope {
        memtable_bytes: 1000,
        value_threshold_bytes: 1024,
        grow: u64::MAX,
        bounds: Bounds::default(),
    };
    let huge = Workload::new(&collector.sample, &collector.summary(), &scope);
    let error = advise(&huge, &question(&["leveled"], &["inline"], Goal::Read), &|_| {});
    assert!(error.unwrap_err().to_string().contains("1 GiB"));
}

fn candidate(scheme: &'static str, write_amplification: f64, busy_seconds: f64) -> Candidate {
    Candidate {
        scheme,
        values: "inline",
        fan_out: None,
        is_default: true,
        write_amplification,
        read_amplification: 1.0,
        space_amplification: 1.0,
        busy_seconds: [busy_seconds; DEVICES.len()],
        is_on_front: false,
    }
}

#[test]
fn candidates_with_equal_device_times_are_told() {
    let question = question(&[], &[], Goal::Write);
    let told = |times: [f64; 3]| {
        let [lwc, adaptive, tiered] = times;
        let candidates = [
            candidate("lwc", 2.0, lwc),
            candidate("tiered", 3.0, tiered),
            candidate("adaptive", 4.0, adaptive),
        ];
        recommend(&candidates, &question)
    };
    let rest = ": compare writes, reads and space.";
    let both = told([24.0, 24.1, 23.9]);
    let words = " The ssd is busy for as long under 2 of the 2 others, the default included";
    assert!(both.ends_with(&format!("{words}{rest}")), "{both}");
    let one = told([24.0, 30.0, 24.0]);
    assert!(one.ends_with(&format!("under 1 of the 2 others{rest}")), "{one}");
    let none = told([24.0, 24.2, 23.8]);
    assert!(none.ends_with("busy for 24.2 s."), "{none}");
}
