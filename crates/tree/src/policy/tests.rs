//! Conformance: what every policy of the registry must keep to, on random trees and random work.

use crate::invariant;
use crate::moves;
use crate::plan::{Cut, Input, Move, Plan, Reason};
use crate::policy::leveled::LevelDb;
use crate::policy::{Descriptor, Policy, Wanted, by_name, registry};
use crate::simulate::{Entry, Store};
use crate::version::{LEVEL0_NODE, Level, Slice};
use base::KeyRange;
use base::random::Random;
use std::collections::BTreeMap;

const KIB: u64 = 1 << 10;

fn store(scheme: &Descriptor) -> Store {
    let mut limits = (scheme.limits)(4 * KIB);
    // Small levels, so that a small tree has several.
    limits.level_bytes_base = 16 * KIB;
    limits.fan_out = 4.0;
    limits.table_bytes_max = 2 * KIB;
    limits.overlap_bytes_max = limits.overlap_bytes_max.map(|_| 20 * KIB);
    limits.expansion_bytes_max = 50 * KIB;
    limits.memtable_bytes = 4 * KIB;
    Store::new((scheme.make)(), limits, 100)
}

fn flush(store: &mut Store, random: &mut Random, sequence: &mut u64) {
    let from = random.below(20_000);
    let width = if random.one_in(2) { 20_000 } else { 300 };
    let mut keys: Vec<u32> = (0..40).map(|_| (from + random.below(width)) as u32).collect();
    keys.sort_unstable();
    keys.dedup();
    let entry = |key| {
        *sequence += 1;
        Entry { key, sequence: *sequence, is_delete: key % 5 == 0 }
    };
    let entries: Vec<Entry> = keys.into_iter().map(entry).collect();
    store.flush(&entries).unwrap();
}

#[test]
fn plans_are_pure_free_of_conflicts_and_keep_recency() {
    for scheme in registry() {
        let mut random = Random::new(7);
        let mut sequence = 0;
        let mut store = store(scheme);
        let mut under_way = Vec::new();
        for _ in 0..600 {
            flush(&mut store, &mut random, &mut sequence);
            while let Some(plan) = store.policy().pick(&store.view()) {
                let again = (scheme.make)().pick(&store.view());
                assert_eq!(again.as_ref(), Some(&plan), "{}", scheme.name);
                assert!(!store.busy.conflicts(&store.version, &plan), "{}: {plan:?}", scheme.name);
                let (inputs, to_level) = (plan.action.inputs(), plan.action.to_level());
                moves::check_inputs(&store.version, &inputs, to_level).unwrap();
                under_way.push(store.begin(plan));
                if random.one_in(2) {
                    break;
                }
            }
            while !under_way.is_empty() && random.one_in(2) {
                let at = random.below(under_way.len() as u64) as usize;
                store.finish(under_way.swap_remove(at)).unwrap();
                invariant::check(&store.version, &store.policy().shape()).unwrap();
            }
        }
        assert!(store.moves > 100, "{}: {}", scheme.name, store.moves);
    }
}

/// A store under a scheme, with runs of these keys flushed one after the other.
fn flushed(scheme: &Descriptor, runs: &[std::ops::Range<u32>]) -> Store {
    let mut store = store(scheme);
    store.limits.level0_runs_trigger = 4;
    store.limits.parallel_max = 4;
    store.limits.flush_level_max = 0;
    for (sequence, keys) in (1..).zip(runs) {
        let entry = |key| Entry { key, sequence, is_delete: false };
        store.flush(&keys.clone().map(entry).collect::<Vec<_>>()).unwrap();
    }
    store
}

/// What the scheme picks is free of conflicts and passes nothing older.
fn pick_fits(store: &Store) {
    let Some(plan) = store.policy().pick(&store.view()) else { return };
    let (inputs, to_level) = (plan.action.inputs(), plan.action.to_level());
    let name = store.policy().name();
    moves::check_inputs(&store.version, &inputs, to_level)
        .unwrap_or_else(|error| panic!("{name}: {error}: {plan:?}"));
    assert!(!store.busy.conflicts(&store.version, &plan), "{name}: {plan:?}");
}

/// A merge of runs of level 0 was picked across a manual compaction of runs around them, which
/// failed when it was done.
#[test]
fn no_scheme_merges_across_a_manual_compaction_of_level_0() {
    for scheme in registry() {
        let runs = [40..60, 0..2, 90..92, 5..7, 80..82, 50..70];
        let mut store = flushed(scheme, &runs);
        let keys = KeyRange::closed(&50u32.to_be_bytes(), &55u32.to_be_bytes());
        let wanted = Wanted { range: keys, ..Wanted::all() };
        let Some(plan) = LevelDb.pick_manual(&store.view(), &wanted, None) else {
            panic!("{}: nothing to compact", scheme.name);
        };
        store.begin(plan);
        pick_fits(&store);
    }
}

/// A push was picked past a level that waits for a busy one below it to be emptied.
#[test]
fn no_scheme_passes_a_level_that_is_being_emptied() {
    for scheme in registry() {
        let mut store = flushed(scheme, &[]);
        for (sequence, keys, to_level) in [(1, 60..80, 3), (2, 60..80, 2), (3, 0..20, 1)] {
            let entry = |key| Entry { key, sequence, is_delete: false };
            store.flush(&keys.map(entry).collect::<Vec<_>>()).unwrap();
            let input = Input::of(0, LEVEL0_NODE, store.version.level0());
            let push = Move::Push { input, to_level };
            let work = store.begin(Plan::new(push, Reason::Manual, 1.0, 0));
            store.finish(work).unwrap();
        }
        let whole = |level| Input::whole(level, &store.version.level(level).nodes[0]);
        let inputs = vec![whole(2), whole(3)];
        let cut = Cut { table_bytes_max: 4 * KIB, overlap_bytes_max: None };
        let (to_level, one_file, parallel_max) = (3, false, 1);
        let down = Move::Merge { inputs, to_level, cut, one_file, parallel_max };
        store.begin(Plan::new(down, Reason::Manual, 1.0, 0));
        for run in 0..6 {
            let entry = |key| Entry { key, sequence: 20 + u64::from(run), is_delete: false };
            store.flush(&(3 * run..3 * run + 2).map(entry).collect::<Vec<_>>()).unwrap();
            pick_fits(&store);
        }
    }
}

#[test]
fn policies_come_to_rest_and_are_never_idle_over_a_limit() {
    for scheme in registry() {
        let mut random = Random::new(11);
        let mut sequence = 0;
        let mut store = store(scheme);
        for _ in 0..400 {
            flush(&mut store, &mut random, &mut sequence);
            let mut steps = 0;
            while store.step().unwrap() {
                steps += 1;
                assert!(steps < 2_000, "{} does not settle", scheme.name);
            }
            let most = store.policy().scores(&store.view()).into_iter().fold(0.0, f64::max);
            assert!(most < 1.0, "{} rests at {most}", scheme.name);
        }
    }
}

/// What moves drop is what is no longer there, and each entry of it once.
#[test]
fn every_superseded_entry_is_dropped_at_most_once() {
    for scheme in registry() {
        let (mut random, mut sequence) = (Random::new(29), 0);
        let mut store = store(scheme);
        store.dropped = Some(Vec::new());
        for _ in 0..200 {
            flush(&mut store, &mut random, &mut sequence);
            while store.step().unwrap() {}
        }
        let dropped = store.dropped.take().unwrap();
        let mut sequences: Vec<u64> = dropped.iter().map(|entry| entry.sequence).collect();
        sequences.sort_unstable();
        sequences.dedup();
        assert_eq!(sequences.len(), dropped.len(), "{}", scheme.name);
        assert!(dropped.len() > 50, "{}: {}", scheme.name, dropped.len());
        for entry in &dropped {
            let newest = store.get(entry.key);
            let is_superseded = newest.is_none_or(|newest| newest.sequence > entry.sequence);
            assert!(is_superseded, "{}: {entry:?} {newest:?}", scheme.name);
        }
    }
}

#[test]
fn work_at_rest_ends_and_writes_each_byte_at_most_once_more() {
    for scheme in registry() {
        let mut random = Random::new(23);
        let mut sequence = 0;
        let mut store = store(scheme);
        for _ in 0..100 {
            for _ in 0..random.below(6) {
                flush(&mut store, &mut random, &mut sequence);
                while store.step().unwrap() {}
            }
            let bytes: u64 = store.version.levels.iter().map(|level| level.bytes()).sum();
            let before: u64 = store.written_bytes.iter().sum();
            store.observed.is_idle = true;
            let mut steps = 0;
            while store.step().unwrap() {
                steps += 1;
                assert!(steps < 100, "{} does not settle", scheme.name);
            }
            store.observed.is_idle = false;
            let written = store.written_bytes.iter().sum::<u64>() - before;
            assert!(written <= bytes, "{}: {written} of {bytes}", scheme.name);
        }
    }
}

#[test]
fn any_policy_goes_on_from_the_tree_of_any_other() {
    let mut random = Random::new(13);
    let mut sequence = 0;
    let mut tree = store(&registry()[0]);
    for round in 0..30 {
        let scheme = &registry()[round % registry().len()];
        tree.set_policy((scheme.make)());
        for _ in 0..20 {
            flush(&mut tree, &mut random, &mut sequence);
            while tree.step().unwrap() {}
        }
        invariant::check(&tree.version, &invariant::Shape::ANY).unwrap();
    }
}

#[test]
fn manual_compaction_ends_with_everything_on_one_level() {
    for scheme in registry() {
        let mut random = Random::new(17);
        let mut sequence = 0;
        let mut store = store(scheme);
        for _ in 0..100 {
            flush(&mut store, &mut random, &mut sequence);
            store.step().unwrap();
        }
        let mut steps = 0;
        while let Some(plan) = store.policy().pick_manual(&store.view(), &Wanted::all(), None) {
            let work = store.begin(plan);
            store.finish(work).unwrap();
            steps += 1;
            assert!(steps < 2_000, "{}", scheme.name);
        }
        let used = store.version.levels.iter().filter(|level| level.bytes() > 0).count();
        assert_eq!(used, 1, "{}", scheme.name);
    }
}

/// Each flush gave a manual compaction more to do: it had no end while writes went on.
#[test]
fn manual_compaction_ends_while_writes_go_on() {
    for scheme in registry() {
        let mut random = Random::new(19);
        let mut sequence = 0;
        let mut store = store(scheme);
        for _ in 0..100 {
            flush(&mut store, &mut random, &mut sequence);
            store.step().unwrap();
        }
        let wanted = Wanted { written_through: sequence, ..Wanted::all() };
        let mut steps = 0;
        while let Some(plan) = store.policy().pick_manual(&store.view(), &wanted, None) {
            let work = store.begin(plan);
            store.finish(work).unwrap();
            flush(&mut store, &mut random, &mut sequence);
            steps += 1;
            assert!(steps < 300, "{}", scheme.name);
        }
        let is_old = |slice: &Slice| slice.run.sequence_min <= wanted.written_through;
        let has_old = |level: &&Level| level.nodes.iter().flat_map(|node| &node.slices).any(is_old);
        let used = store.version.levels.iter().filter(has_old).count();
        assert_eq!(used, 1, "{}", scheme.name);
    }
}

#[test]
fn reads_find_the_newest_entry_under_every_policy() {
    for scheme in registry() {
        let mut random = Random::new(23);
        let mut store = store(scheme);
        let mut newest = BTreeMap::new();
        let mut sequence = 0;
        for _ in 0..200 {
            let mut keys: Vec<u32> = (0..40).map(|_| random.below(2_000) as u32 * 9).collect();
            keys.sort_unstable();
            keys.dedup();
            let mut entries = Vec::new();
            for key in keys {
                sequence += 1;
                let entry = Entry { key, sequence, is_delete: random.one_in(4) };
                newest.insert(key, entry);
                entries.push(entry);
            }
            store.flush(&entries).unwrap();
            while store.step().unwrap() {}
        }
        for (key, entry) in newest {
            let found = store.get(key).filter(|found| !found.is_delete);
            let expected = Some(entry).filter(|entry| !entry.is_delete);
            assert_eq!(found, expected, "{}: key {key}", scheme.name);
        }
    }
}

#[test]
#[ignore = "a measurement: run it with --release and --nocapture"]
fn pick_ns() {
    for scheme in registry() {
        let mut random = Random::new(19);
        let mut sequence = 0;
        let mut store = store(scheme);
        for _ in 0..300 {
            flush(&mut store, &mut random, &mut sequence);
            store.step().unwrap();
        }
        (0..8).for_each(|_| flush(&mut store, &mut random, &mut sequence));
        let start = std::time::Instant::now();
        for _ in 0..10_000 {
            std::hint::black_box(store.policy().pick(&store.view()));
        }
        println!("{}: {:?} for a pick", scheme.name, start.elapsed() / 10_000);
    }
}

#[test]
fn sequential_writes_are_moved_and_never_rewritten() {
    for scheme in registry() {
        let mut store = store(scheme);
        for run in 0..200u32 {
            let keys = run * 40..(run + 1) * 40;
            let entry = |key| Entry { key, sequence: u64::from(key) + 1, is_delete: false };
            store.flush(&keys.map(entry).collect::<Vec<_>>()).unwrap();
            while store.step().unwrap() {}
        }
        assert_eq!(store.written_bytes.iter().sum::<u64>(), 0, "{}", scheme.name);
    }
}

#[test]
fn every_option_that_a_manual_names_is_explained() {
    for scheme in registry() {
        for option in scheme.options {
            let field = super::LIMIT_FIELDS.iter().find(|field| field.name == *option);
            assert!(field.is_some(), "{}: {option}", scheme.name);
        }
    }
}

#[test]
fn an_unknown_name_is_an_error_that_lists_the_names() {
    let error = by_name("levelled").err().unwrap().to_string();
    assert!(error.contains("leveled, leveldb"), "{error}");
    for scheme in registry() {
        assert_eq!((scheme.make)().name(), scheme.name);
        assert!(matches!(by_name(scheme.name), Ok(found) if found.name == scheme.name));
    }
}

#[test]
fn parameters_that_would_stop_a_tree_are_refused() {
    for (name, text) in [
        ("links_max", "0"),
        ("fan_out", "1"),
        ("levels", "1"),
        ("parallel_max", "0"),
        ("stack_max", "0"),
        ("table_bytes_max", "0"),
    ] {
        let field = super::LIMIT_FIELDS.iter().find(|field| field.name == name).unwrap();
        let mut parameters = super::Parameters::default();
        assert!(field.set(&mut parameters, text).is_err(), "{name} {text}");
        assert_eq!(parameters, super::Parameters::default());
    }
}
