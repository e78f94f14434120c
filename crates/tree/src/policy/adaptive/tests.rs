//! Picks, as text, and what the scheme costs, by simulation.

use super::{ADAPTIVE, Adaptive};
use crate::policy::{Descriptor, Policy, leveled, tiered};
use crate::scenario::run_file;
use crate::simulate::{Entry, Keys, Report, Store, Workload};

#[test]
fn picks() {
    run_file("src/policy/adaptive/testdata/picks.txt");
}

/// 120 MB over memtables of 256 KiB: as many memtables as 2 GB has of 4 MiB.
const LOAD: Workload = Workload {
    keys: Keys::Uniform,
    writes: 1_000_000,
    keys_count: 1_000_000,
    entry_bytes: 120,
    memtable_bytes: 256 << 10,
    scale: 20,
    moves_per_flush: None,
    reads_share: 0.0,
};

fn run(workload: Workload, scheme: &Descriptor) -> Report {
    workload.run(scheme).unwrap()
}

#[test]
fn overwrites_cost_half_of_leveled_in_the_space_that_garbage_may_take() {
    let overwrites = Workload { writes: 3_000_000, ..LOAD };
    let (report, leveled) = (run(overwrites, &ADAPTIVE), run(overwrites, &leveled::MODERN));
    let share = report.write_amplification() / leveled.write_amplification();
    assert!(share <= 0.5, "{share:.2}\n{report}\n{leveled}");
    assert!(report.space_amplification_max <= 1.45, "{report}");
    assert!(run(overwrites, &tiered::TIERED).space_amplification_max > 2.0);
}

/// What no slice shows of a file counts too: level 0 went onto the nodes by an edit, and its files
/// stayed until the last of these was merged.
#[test]
fn space_is_bounded_where_level_0_is_merged_with_all_nodes() {
    let memtables = 17;
    let small = LOAD.memtable_bytes / LOAD.entry_bytes * memtables;
    let report =
        run(Workload { writes: 3 * small, keys_count: small, scale: 1, ..LOAD }, &ADAPTIVE);
    assert!(report.space_amplification_max <= 1.5, "{report}");
    // An append of level 0, which the nodes' merges write again, made it 2.89.
    assert!(report.write_amplification() <= 2.5, "{report}");
}

/// Stacks that are as high as they may be hold no writer back; what comes on top of them does.
#[test]
fn runs_of_a_stack_are_debt_beyond_the_maximum() {
    let mut store = Store::new(Box::new(Adaptive), (ADAPTIVE.limits)(1000), 100);
    let onto = crate::policy::FlushCut { level: 6, table_bytes_max: u64::MAX };
    for height in 1..=store.limits.stack_max as u64 + 5 {
        let entry = |key| Entry { key, sequence: height, is_delete: false };
        store.flush_onto(&(0..10).map(entry).collect::<Vec<_>>(), onto).unwrap();
        let debt = store.policy().debt(&store.view());
        assert_eq!(debt.level0_runs, height.saturating_sub(store.limits.stack_max as u64));
    }
}

#[test]
fn keys_that_are_new_are_hardly_merged() {
    let new = Workload { keys_count: 100_000_000, ..LOAD };
    let (report, leveled) = (run(new, &ADAPTIVE), run(new, &leveled::MODERN));
    let merged = |report: &Report| report.write_amplification() - 1.0;
    assert!(merged(&report) < 0.25 * merged(&leveled), "{report}\n{leveled}");
    let ascending = run(Workload { keys: Keys::Sequential, ..LOAD }, &ADAPTIVE);
    assert!(ascending.write_amplification() < 1.01, "{ascending}");
}

/// The reason for the nodes: each merge frees its inputs when it ends, and takes a small part.
#[test]
fn no_move_takes_more_than_a_small_part_of_the_tree() {
    let mut store = loaded(&Workload { writes: 2_000_000, ..LOAD });
    let mut sequence = 10_000_000;
    for _ in 0..400 {
        flush_evenly(&mut store, &mut sequence);
        while let Some(plan) = Adaptive.pick(&store.view()) {
            let all = store.version.bytes();
            assert!(plan.write_bytes <= all / 8, "{} of {all}: {plan:?}", plan.write_bytes);
            let work = store.begin(plan);
            store.finish(work).unwrap();
        }
    }
}

/// An idle database gives half of its garbage back, and then rests.
#[test]
fn idle_time_is_not_spent_beyond_the_garbage() {
    let mut store = loaded(&Workload { writes: 3_000_000, ..LOAD });
    let (live, before) = (1_000_000 * 120, store.version.bytes());
    let written_before: u64 = store.written_bytes.iter().sum();
    store.observed.is_idle = true;
    let reason = Adaptive.pick(&store.view()).map(|plan| plan.reason);
    assert_eq!(reason, Some(crate::plan::Reason::Idle));
    while store.step().unwrap() {}
    let after = store.version.bytes();
    assert!(before > live * 128 / 100 && after < live * 122 / 100, "{before} {after} {live}");
    let written = store.written_bytes.iter().sum::<u64>() - written_before;
    // What is rewritten for a byte that is given back.
    assert!(written < 3 * (before - after), "{written} {before} {after}");
}

/// After an opening no run has a sketch, and no merge has told how much was superseded.
#[test]
fn an_opening_alone_rewrites_nothing_and_slows_nobody() {
    let mut store = loaded_by(&Workload { keys_count: 100_000_000, ..LOAD }, false);
    store.observed = crate::policy::Observed::default();
    assert_eq!(Adaptive.pick(&store.view()), None);
    let debt = Adaptive.debt(&store.view());
    assert!(debt.garbage_percent <= 110 && debt.pending_bytes == 0, "{debt:?}");
    // Then the first write comes.
    store.observed.reads_share = Some(0.0);
    let expects_the_worst = Adaptive.pick(&store.view()).expect("stacks of new keys");
    assert_eq!(expects_the_worst.reason, crate::plan::Reason::Garbage);
    store.observed.is_idle = true;
    assert_eq!(Adaptive.pick(&store.view()), None);
}

#[test]
fn reads_pay_for_the_stacks_that_they_pass() {
    let mut store = loaded(&LOAD);
    let last = store.version.levels.len() as u8 - 1;
    let stacked = |store: &Store| -> Vec<_> {
        let nodes = store.version.level(last).nodes.iter();
        nodes.filter(|node| node.slices.len() > 1).map(|node| (node.id, node.bytes())).collect()
    };
    let before = stacked(&store);
    assert!(before.len() > 2 && !store.step().unwrap(), "{}", before.len());
    let (read, bytes) = before[1];
    let price = store.limits.seek_bytes;
    store.observed.seeks.insert((last, read), bytes / price.unwrap() + 1);
    store.limits.seek_bytes = None;
    assert!(!store.step().unwrap(), "reads that pay nothing caused a merge");
    store.limits.seek_bytes = price;
    assert!(store.step().unwrap() && !store.step().unwrap());
    assert_eq!(stacked(&store).len(), before.len() - 1);
}

/// The store after a workload, settled.
fn loaded(workload: &Workload) -> Store {
    loaded_by(workload, true)
}

/// The same, with or without sketches of what the runs hold.
fn loaded_by(workload: &Workload, knows_keys: bool) -> Store {
    let limits = (ADAPTIVE.limits)(workload.memtable_bytes);
    let mut store = Store::new((ADAPTIVE.make)(), limits, workload.entry_bytes * workload.scale);
    store.knows_keys = knows_keys;
    store.observed.reads_share = Some(workload.reads_share);
    let mut random = base::random::Random::new(3);
    let keys_count = workload.keys_count / workload.scale;
    let per_memtable = workload.memtable_bytes / (workload.entry_bytes * workload.scale);
    let mut sequence = 0;
    for _ in 0..workload.writes / workload.scale / per_memtable {
        let mut memtable: Vec<Entry> = (0..per_memtable)
            .map(|_| {
                sequence += 1;
                let key = crate::simulate::spread(random.below(keys_count) as u32, keys_count);
                Entry { key, sequence, is_delete: false }
            })
            .collect();
        memtable.sort_by_key(|entry| (entry.key, std::cmp::Reverse(entry.sequence)));
        memtable.dedup_by_key(|entry| entry.key);
        store.flush(&memtable).unwrap();
        while store.step().unwrap() {}
    }
    store
}

fn flush_evenly(store: &mut Store, sequence: &mut u64) {
    let count = LOAD.memtable_bytes / store.entry_bytes;
    let entries: Vec<Entry> = (0..count)
        .map(|at| {
            *sequence += 1;
            let key = ((at << 32) / count) as u32 + (*sequence % 1_000_000) as u32;
            Entry { key, sequence: *sequence, is_delete: false }
        })
        .collect();
    store.flush(&entries).unwrap();
}

/// The sketches tell new keys from overwritten ones before any merge has, and when the workload
/// changes from one to the other.
#[test]
fn garbage_is_what_the_runs_have_in_common() {
    let garbage = |store: &Store| {
        let view = store.view();
        let account = super::Account::new(&view);
        account.garbage_bytes / (account.live_bytes + account.garbage_bytes)
    };
    const KEYS: u64 = 20_000;
    let mut store = Store::new((ADAPTIVE.make)(), (ADAPTIVE.limits)(256 << 10), 2400);
    store.observed.reads_share = Some(0.0);
    let memtable = |first: u64, sequence| {
        let key = |at: u64| crate::simulate::spread((at * 7919 % KEYS) as u32, KEYS);
        let entry = |at| Entry { key: key(at), sequence, is_delete: false };
        let mut entries: Vec<Entry> = (first..first + 100).map(entry).collect();
        entries.sort_by_key(|entry| entry.key);
        entries
    };
    let onto = crate::policy::FlushCut { level: 6, table_bytes_max: 1 << 20 };
    for first in (0..KEYS).step_by(100) {
        store.flush_onto(&memtable(first, 1), onto).unwrap();
        while store.step().unwrap() {}
    }
    let new = garbage(&store);
    assert!(new < 0.08, "{new}");
    // All keys once more, and none of the moves that are due.
    for first in (0..KEYS).step_by(100) {
        store.flush_onto(&memtable(first, 2), onto).unwrap();
    }
    let overwritten = garbage(&store);
    assert!((overwritten - 0.5).abs() < 0.08, "{overwritten}");
}

/// Deletions of missing keys hide nothing, whatever a tombstone is expected to do.
#[test]
fn tombstones_of_missing_keys_are_no_garbage() {
    let onto = crate::policy::FlushCut { level: 6, table_bytes_max: 1 << 20 };
    let mut store = Store::new((ADAPTIVE.make)(), (ADAPTIVE.limits)(64 << 10), 100);
    store.observed.reads_share = Some(0.0);
    for first in (0..20_000u32).step_by(1000) {
        let entry = |at: u32| {
            let is_delete = first >= 10_000;
            Entry { key: at * 7919 % 20_011, sequence: 1, is_delete }
        };
        let mut entries: Vec<Entry> = (first..first + 1000).map(entry).collect();
        entries.sort_by_key(|entry| entry.key);
        store.flush_onto(&entries, onto).unwrap();
    }
    let picked = Adaptive.pick(&store.view()).map(|plan| plan.reason);
    assert_ne!(picked, Some(crate::plan::Reason::Garbage));
    let debt = Adaptive.debt(&store.view());
    assert!(debt.garbage_percent < 100, "{debt:?}");
}

/// A range deletion or a filter takes entries that no sketch tells of: merges do.
#[test]
fn what_merges_drop_beyond_the_sketches_counts_as_garbage() {
    let onto = crate::policy::FlushCut { level: 6, table_bytes_max: 1 << 30 };
    let mut store = Store::new((ADAPTIVE.make)(), (ADAPTIVE.limits)(64 << 10), 100);
    for sequence in 1..=3 {
        let entry = |key: u32| Entry { key: 3 * key + sequence as u32, sequence, is_delete: false };
        store.flush_onto(&(0..1000).map(entry).collect::<Vec<_>>(), onto).unwrap();
    }
    let inputs = vec![crate::Input::whole(6, &store.version.level(6).nodes[0])];
    let mut observed = store.observed.clone();
    observed.note_merge(&store.version, &inputs, 3000, 0);
    assert_eq!(observed.unseen_share, 0.0);
    for _ in 0..20 {
        observed.note_merge(&store.version, &inputs, 3000, 1500);
    }
    // 1,500 of the 2,000 beside the largest, less what the sketches may be wrong by.
    assert!((0.5..0.85).contains(&observed.unseen_share), "{}", observed.unseen_share);
}

/// 25 % of the keys, written anew, is garbage that may stay; deleted, it hides as much again.
#[test]
fn a_tombstone_counts_with_what_it_hides() {
    let reason_after = |is_delete| {
        let mut store = Store::new((ADAPTIVE.make)(), (ADAPTIVE.limits)(1 << 20), 1000);
        store.observed.reads_share = Some(0.0);
        for (sequence, keys, is_delete) in [(1, 0..1000u32, false), (2, 0..250, is_delete)] {
            let entry = |key: u32| Entry { key: key << 20, sequence, is_delete };
            store.flush(&keys.map(entry).collect::<Vec<_>>()).unwrap();
        }
        Adaptive.pick(&store.view()).map(|plan| plan.reason)
    };
    assert_eq!(reason_after(false), None);
    assert_eq!(reason_after(true), Some(crate::plan::Reason::Garbage));
}

#[test]
fn a_flush_is_cut_where_its_parts_are_large_enough() {
    let mut store = Store::new((ADAPTIVE.make)(), (ADAPTIVE.limits)(1 << 20), 1000);
    let entry = |key: u32| Entry { key: key << 16, sequence: 1, is_delete: false };
    store.flush(&(0..8000).map(entry).collect::<Vec<_>>()).unwrap();
    assert_eq!(store.version.level(6).nodes.len(), 8);
    let all = base::KeyRange::all();
    assert!(Adaptive.flush_cut(&store.view(), &all, 1_000_000).is_none());
    assert!(Adaptive.flush_cut(&store.view(), &all, 1_100_000).is_some());
}
