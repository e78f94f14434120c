//! Runs of random entries against a sorted list of them, for every layout.

use super::*;
use crate::{Entry, IterOptions, Probe};
use base::key::{compare_internal, internal_key, split_internal_key, trailer, trailer_sequence};
use base::{EntryKind, KeyRange, SequenceNumber};
use proptest::prelude::*;

/// Keys that collide, share prefixes, are empty, and have many versions.
fn user_keys() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::collection::vec(b'a'..b'd', 0..4),
        2 => prop::collection::vec(any::<u8>(), 0..6),
        1 => (0usize..300, any::<u8>()).prop_map(|(n, b)| {
            let mut key = vec![b'z'; n];
            key.push(b);
            key
        }),
    ]
}

fn entries() -> impl Strategy<Value = Entries> {
    let kinds = [EntryKind::Put, EntryKind::Delete, EntryKind::Merge, EntryKind::Pointer];
    let entry = (
        user_keys(),
        0u64..40,
        prop::sample::select(kinds.to_vec()),
        prop_oneof![
            4 => prop::collection::vec(any::<u8>(), 0..12),
            1 => prop::collection::vec(0u8..2, 100..400),
        ],
    );
    prop::collection::vec(entry, 0..120).prop_map(|list| {
        let mut entries: Entries = list
            .into_iter()
            .map(|(key, sequence, kind, value)| (internal_key(&key, sequence, kind), value))
            .collect();
        entries.sort_by(|a, b| compare_internal(&a.0, &b.0));
        entries.dedup_by(|a, b| a.0[..a.0.len() - 7] == b.0[..b.0.len() - 7] || a.0 == b.0);
        entries
    })
}

fn model_get<'a>(
    entries: &'a Entries,
    key: &[u8],
    snapshot: SequenceNumber,
) -> Option<(u64, &'a [u8])> {
    let search = internal_key(key, snapshot, EntryKind::SEARCH);
    let at = entries.partition_point(|entry| compare_internal(&entry.0, &search).is_lt());
    let (found, value) = entries.get(at)?;
    let (user, trailer) = split_internal_key(found)?;
    (user == key).then_some((trailer, value))
}

fn check_gets(run: &Run, entries: &Entries, strangers: &[Vec<u8>]) {
    let own = entries.iter().map(|entry| base::key::user_key(&entry.0));
    let mut keys: Vec<&[u8]> = own.chain(strangers.iter().map(|key| &key[..])).collect();
    keys.sort_unstable();
    for snapshot in [0, 7, 20, 39, base::key::SEQUENCE_MAX] {
        let check = |key: &[u8], found: &Option<Entry>| {
            let found = found.as_ref().map(|e| (trailer(e.sequence, e.kind), &e.value[..]));
            assert_eq!(found, model_get(entries, key, snapshot), "{key:?} at {snapshot}");
        };
        for key in &keys {
            check(key, &run.get(key, hash(key), snapshot, Cause::Get).unwrap());
        }
        let probes: Vec<Probe<'_>> =
            keys.iter().map(|key| Probe { key, hash: hash(key), snapshot }).collect();
        let found = run.get_many(&probes, Cause::Get).unwrap();
        keys.iter().zip(&found).for_each(|(key, found)| check(key, found));
    }
}

fn at(iter: &dyn EntryIter) -> Option<(&[u8], &[u8])> {
    iter.valid().then(|| (iter.key(), iter.value()))
}

fn nth(entries: &Entries, index: Option<usize>) -> Option<(&[u8], &[u8])> {
    let (key, value) = entries.get(index?)?;
    Some((key, value))
}

/// Seeks to every entry and between entries, and takes a few steps to and fro from there.
fn check_iteration(iter: &mut dyn EntryIter, entries: &Entries, strangers: &[Vec<u8>]) {
    assert_eq!(collect(iter).unwrap(), *entries);
    iter.seek_to_last().unwrap();
    for index in (0..entries.len()).rev() {
        assert_eq!(at(iter), nth(entries, Some(index)));
        iter.prev().unwrap();
    }
    assert!(!iter.valid());
    let between = strangers.iter().map(|key| internal_key(key, 20, EntryKind::SEARCH));
    for target in entries.iter().map(|entry| entry.0.clone()).chain(between) {
        let ge = entries.partition_point(|entry| compare_internal(&entry.0, &target).is_lt());
        let gt = entries.partition_point(|entry| compare_internal(&entry.0, &target).is_le());
        iter.seek(&target).unwrap();
        assert_eq!(at(iter), nth(entries, Some(ge)));
        iter.prev().unwrap();
        let before = if ge < entries.len() { ge.checked_sub(1) } else { None };
        assert_eq!(at(iter), nth(entries, before));
        iter.seek_for_prev(&target).unwrap();
        let le = gt.checked_sub(1);
        assert_eq!(at(iter), nth(entries, le));
        iter.next().unwrap();
        assert_eq!(at(iter), nth(entries, le.map(|le| le + 1)));
        iter.prev().unwrap();
        let back = le.filter(|le| le + 1 < entries.len());
        assert_eq!(at(iter), nth(entries, back));
    }
}

fn check_summary(summary: &RunSummary, entries: &Entries) {
    assert_eq!(summary.run.entries, entries.len() as u64);
    let sequences = || {
        entries.iter().filter_map(|e| split_internal_key(&e.0)).map(|(_, t)| trailer_sequence(t))
    };
    assert_eq!(summary.run.sequence_min, sequences().min().unwrap_or(0));
    assert_eq!(summary.run.sequence_max, sequences().max().unwrap_or(0));
    for (key, _) in entries {
        assert!(summary.run.range.contains(base::key::user_key(key)));
    }
    // Versions of a key are one key.
    if let Some(keys) = summary.run.keys.count() {
        let different =
            entries.chunk_by(|a, b| base::key::user_key(&a.0) == base::key::user_key(&b.0)).count();
        assert_eq!(keys, different as u64);
    }
}

fn check_ranges(run: &Run, entries: &Entries, range: &KeyRange) {
    let bytes = run.approximate_bytes(range, Cause::Scan).unwrap();
    assert!(bytes <= run.summary().run.bytes);
    let inside = |entry: &&(Vec<u8>, Vec<u8>)| range.contains(base::key::user_key(&entry.0));
    if entries.iter().any(|entry| inside(&entry)) {
        assert!(bytes > 0);
    }
    let points = run.split_points(range, 4, Cause::Scan).unwrap();
    assert!(points.len() < 4);
    assert!(points.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(points.iter().all(|key| range.contains(key) && *key != range.start));
}

fn check_run(
    options: &TableOptions,
    entries: &Entries,
    strangers: &[Vec<u8>],
    tombstones: &[Tombstone],
) {
    let (file, summary) = write_run(options, entries, tombstones);
    for capacity in [0, 1 << 20] {
        let cache = BlockCache::new(capacity);
        let run = open(&file, &summary, &cache).unwrap();
        assert_eq!(*run.summary(), summary);
        if tombstones.is_empty() {
            check_summary(&summary, entries);
        }
        check_gets(&run, entries, strangers);
        check_iteration(&mut run.iter(IterOptions::cached(Cause::Scan)), entries, strangers);
        for ahead in [1, 300, 1 << 20] {
            let mut options = IterOptions::streaming(Cause::Compaction(1), ahead);
            check_iteration(&mut run.iter(options.clone()), entries, strangers);
            options.range = Some(KeyRange::new(*b"ab", Some((*b"b").into())));
            check_iteration(&mut run.iter(options), entries, strangers);
        }
        for key in strangers.iter().chain(entries.iter().map(|entry| &entry.0)) {
            let is_prefix = entries.iter().any(|e| base::key::user_key(&e.0).starts_with(key));
            let may = run.may_contain_prefix(key, Cause::Scan).unwrap();
            assert!(may || !is_prefix, "the prefix {key:?} is denied");
        }
        check_ranges(&run, entries, &KeyRange::new(*b"a", Some((*b"bb").into())));
        check_ranges(&run, entries, &KeyRange::all());
        let mut verified = 0;
        assert_eq!(run.verify(&mut |bytes| verified += bytes).unwrap(), summary);
        assert_eq!(verified, summary.run.bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn runs_give_back_what_was_written(
        entries in entries(),
        strangers in prop::collection::vec(user_keys(), 0..12),
        tombstones in prop::collection::vec((user_keys(), user_keys(), 0u64..40), 0..4),
        layout in any::<prop::sample::Index>(),
    ) {
        let tombstones: Vec<Tombstone> =
            tombstones.into_iter().filter(|(start, end, _)| start < end).collect();
        check_run(layout.get(&all_options()), &entries, &strangers, &tombstones);
    }
}

#[test]
fn every_layout_gives_back_a_run_of_many_versions_and_shapes() {
    let mut entries = Entries::new();
    for n in 0..60u64 {
        let key = format!("{:b}", n % 23).into_bytes();
        let value = vec![b'v'; (n * n % 150) as usize];
        entries.push((internal_key(&key, n, EntryKind::Put), value));
    }
    entries.push((internal_key(b"", 5, EntryKind::Delete), Vec::new()));
    entries.sort_by(|a, b| compare_internal(&a.0, &b.0));
    let strangers: Vec<Vec<u8>> = vec![b"".into(), b"1".into(), b"10101x".into(), b"zz".into()];
    let tombstones = vec![(b"1".to_vec(), b"2".to_vec(), 9)];
    for options in all_options() {
        check_run(&options, &entries, &strangers, &tombstones);
    }
}
