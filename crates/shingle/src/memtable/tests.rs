//! The memtable against a sorted map, under concurrent readers, and at its limits. Sizes shrink
//! under Miri, which runs the same tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::key::{
    KEY_BYTES_MAX, SEQUENCE_MAX, compare_internal, internal_key, split_internal_key,
    trailer_sequence,
};
use base::random::Random;
use base::{EntryKind, ErrorKind, KeyRange, KeyspaceId};
use proptest::prelude::*;
use table::batch::Operation;

use super::{ChunkPool, MemEntry, MemIter, Memtable, Writer};

/// `large`, or `small` under Miri.
const fn sized(large: u64, small: u64) -> u64 {
    if cfg!(miri) { small } else { large }
}

fn memtable() -> (Arc<Memtable>, Writer) {
    memtable_of_keys_from(b"")
}

fn memtable_of_keys_from(start: &[u8]) -> (Arc<Memtable>, Writer) {
    Memtable::of_pool(&ChunkPool::new(64 << 10, 0, Arc::default()), start).expect("a little memory")
}

fn put(writer: &mut Writer, user_key: &[u8], sequence: u64, value: &[u8]) {
    insert(writer, user_key, sequence, EntryKind::Put, value).expect("within the limits");
}

fn insert(
    writer: &mut Writer,
    user_key: &[u8],
    sequence: u64,
    kind: EntryKind,
    value: &[u8],
) -> base::Result<()> {
    writer.insert(&Operation::new(KeyspaceId(0), kind, user_key, value)?, sequence)
}

/// Everything from the first entry on.
fn forward(cursor: &mut MemIter) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = Vec::new();
    cursor.seek_to_first();
    while cursor.valid() {
        entries.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.next();
    }
    entries
}

/// Everything from the last entry back.
fn backward(cursor: &mut MemIter) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = Vec::new();
    cursor.seek_to_last();
    while cursor.valid() {
        entries.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.prev();
    }
    entries
}

/// The model: user key, then newest first.
type Model = BTreeMap<(Vec<u8>, std::cmp::Reverse<u64>), (EntryKind, Vec<u8>)>;

fn model_get<'a>(model: &'a Model, user_key: &[u8], snapshot: u64) -> Option<MemEntry<'a>> {
    let from = (user_key.to_vec(), std::cmp::Reverse(snapshot));
    let ((found, sequence), (kind, value)) = model.range(from..).next()?;
    (found == user_key).then_some(MemEntry { sequence: sequence.0, kind: *kind, value })
}

/// Keys that share prefixes, are prefixes of each other, and end in 0x00 and 0xff.
fn nasty_key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(b'a'), Just(0xfe), Just(0xff)];
    let tail = proptest::collection::vec(byte.clone(), 0..4);
    prop_oneof![
        proptest::collection::vec(byte, 0..10),
        tail.clone().prop_map(|tail| [&[b's'; 8], &tail[..]].concat()),
        tail.clone().prop_map(|tail| [&[0xff; 8], &tail[..]].concat()),
        tail.prop_map(|tail| [&[0; 7], &tail[..]].concat()),
    ]
}

fn point_kind() -> impl Strategy<Value = EntryKind> {
    prop_oneof![
        Just(EntryKind::Put),
        Just(EntryKind::Delete),
        Just(EntryKind::Merge),
        Just(EntryKind::Pointer)
    ]
}

fn config() -> ProptestConfig {
    let cases = sized(200, 3) as u32;
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn it_is_a_sorted_map(
        start in nasty_key(),
        inserts in proptest::collection::vec(
            (nasty_key(), point_kind(), proptest::collection::vec(any::<u8>(), 0..20)),
            0..sized(300, 40) as usize,
        ),
        probes in proptest::collection::vec(
            (nasty_key(), 0..sized(320, 44)),
            sized(60, 10) as usize,
        ),
    ) {
        let (memtable, mut writer) = memtable_of_keys_from(&start);
        let mut model = Model::new();
        for (index, (key, kind, value)) in inserts.iter().enumerate() {
            let sequence = index as u64 + 1;
            insert(&mut writer, key, sequence, *kind, value).expect("within the limits");
            // A deletion has no value.
            let value = if *kind == EntryKind::Delete { Vec::new() } else { value.clone() };
            model.insert((key.clone(), std::cmp::Reverse(sequence)), (*kind, value));
        }
        let expected: Vec<_> = model
            .iter()
            .map(|((key, sequence), (kind, value))| {
                (internal_key(key, sequence.0, *kind), value.clone())
            })
            .collect();
        let mut cursor = memtable.iter();
        prop_assert_eq!(&forward(&mut cursor), &expected);
        let mut reversed = backward(&mut cursor);
        reversed.reverse();
        prop_assert_eq!(&reversed, &expected);
        for (key, snapshot) in &probes {
            prop_assert_eq!(memtable.get(key, *snapshot), model_get(&model, key, *snapshot));
            let probe = internal_key(key, *snapshot, EntryKind::SEARCH);
            check_seeks(&mut cursor, &expected, &probe);
        }
        for (key, _) in &expected {
            check_seeks(&mut cursor, &expected, key);
        }
        prop_assert_eq!(memtable.entries(), expected.len() as u64);
        let deletes = inserts.iter().filter(|(_, kind, _)| *kind == EntryKind::Delete).count();
        prop_assert_eq!(memtable.deletes(), deletes as u64);
        if let (Some(first), Some(last)) = (model.first_key_value(), model.last_key_value()) {
            prop_assert_eq!(memtable.user_range(), KeyRange::closed(&first.0.0, &last.0.0));
            let common = memtable.common_key_start().expect("there are keys");
            prop_assert!(inserts.iter().all(|(key, _, _)| key.starts_with(&common)));
            let longer = first.0.0.get(..common.len() + 1);
            prop_assert!(longer.is_none_or(|longer| !last.0.0.starts_with(longer)));
        }
    }
}

/// Both seeks, and one step each way from where they lead.
fn check_seeks(cursor: &mut MemIter, expected: &[(Vec<u8>, Vec<u8>)], probe: &[u8]) {
    let at = expected.partition_point(|(key, _)| compare_internal(key, probe).is_lt());
    let key_at = |index: Option<usize>| {
        index.and_then(|i| expected.get(i)).map(|(key, _)| key.as_slice()).unwrap_or_default()
    };
    cursor.seek(probe).expect("a whole internal key");
    assert_eq!(cursor.key(), key_at(Some(at)));
    cursor.next();
    assert_eq!(cursor.key(), key_at(Some(at + 1)));
    let after = expected.partition_point(|(key, _)| compare_internal(key, probe).is_le());
    cursor.seek_for_prev(probe).expect("a whole internal key");
    assert_eq!(cursor.key(), key_at(after.checked_sub(1)));
    cursor.prev();
    assert_eq!(cursor.key(), key_at(after.checked_sub(2)));
}

#[test]
fn an_empty_memtable_has_nothing() {
    let (memtable, _writer) = memtable();
    let mut cursor = memtable.iter();
    assert!(forward(&mut cursor).is_empty() && backward(&mut cursor).is_empty());
    cursor.seek(&internal_key(b"", SEQUENCE_MAX, EntryKind::SEARCH)).expect("whole");
    assert!(!cursor.valid());
    cursor.next();
    cursor.prev();
    assert!(!cursor.valid() && cursor.key().is_empty() && cursor.value().is_empty());
    assert_eq!(memtable.get(b"", SEQUENCE_MAX), None);
    assert!(memtable.is_empty() && memtable.user_range().is_empty());
    assert_eq!((memtable.sequence_min(), memtable.sequence_max()), (None, None));
    assert_eq!((memtable.range_deletes(&[]), memtable.range_deleted(b"", 9)), (vec![], None));
}

#[test]
fn a_key_of_ff_is_not_taken_for_the_end_of_the_list() {
    let (memtable, mut writer) = memtable();
    let keys: [&[u8]; 3] = [&[0xff; 8], &[0xff; 9], &[0xff; 7]];
    for (index, key) in keys.into_iter().enumerate() {
        assert_eq!(memtable.get(key, SEQUENCE_MAX), None);
        put(&mut writer, key, index as u64, b"v");
        assert_eq!(memtable.get(key, u64::MAX).map(|entry| entry.sequence), Some(index as u64));
    }
    let found: Vec<usize> = forward(&mut memtable.iter()).iter().map(|e| e.0.len() - 8).collect();
    assert_eq!(found, [7, 8, 9]);
}

#[test]
fn get_sees_the_newest_version_of_its_snapshot() {
    let (memtable, mut writer) = memtable();
    put(&mut writer, b"k", 3, b"three");
    insert(&mut writer, b"k", 7, EntryKind::Delete, b"").expect("within the limits");
    insert(&mut writer, b"k", 5, EntryKind::Merge, b"five").expect("sequences come in any order");
    let kind_at = |snapshot| memtable.get(b"k", snapshot).map(|e| (e.sequence, e.kind, e.value));
    assert_eq!(kind_at(2), None);
    assert_eq!(kind_at(4), Some((3, EntryKind::Put, &b"three"[..])));
    assert_eq!(kind_at(6), Some((5, EntryKind::Merge, &b"five"[..])));
    assert_eq!(kind_at(u64::MAX), Some((7, EntryKind::Delete, &b""[..])));
    let sequences: Vec<u64> = memtable.versions(b"k", 6).map(|e| e.sequence).collect();
    assert_eq!(sequences, [5, 3]);
    assert_eq!((memtable.sequence_min(), memtable.sequence_max()), (Some(3), Some(7)));
}

#[test]
fn an_entry_is_not_inserted_twice() {
    let (memtable, mut writer) = memtable();
    put(&mut writer, b"k", 3, b"first");
    let bytes = memtable.bytes();
    for _ in 0..2 {
        let error = insert(&mut writer, b"k", 3, EntryKind::Put, b"second").expect_err("exists");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        put(&mut writer, b"j", SEQUENCE_MAX - memtable.entries(), b"");
    }
    assert_eq!(memtable.get(b"k", 3).map(|e| e.value), Some(&b"first"[..]));
    assert_eq!(memtable.entries(), 3);
    assert!(memtable.bytes() > bytes);
}

#[test]
fn a_sequence_number_over_the_limit_is_refused() {
    let (memtable, mut writer) = memtable();
    let refused = insert(&mut writer, b"", SEQUENCE_MAX + 1, EntryKind::Put, b"").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(memtable.is_empty());
    assert!(memtable.iter().seek(b"1234567").is_err());
    assert!(memtable.iter().seek_for_prev(b"").is_err());
}

#[test]
fn the_longest_keys_and_large_values_fit() {
    let (memtable, mut writer) = memtable();
    let long = vec![0xff; KEY_BYTES_MAX];
    put(&mut writer, b"", 1, b"");
    put(&mut writer, &long, 2, &[7; 100]);
    let large = vec![b'x'; sized(40 << 20, 100 << 10) as usize];
    put(&mut writer, b"large", 3, &large);
    put(&mut writer, b"after", 4, b"small");
    assert_eq!(memtable.get(b"", 9).map(|e| e.value), Some(&b""[..]));
    assert_eq!(memtable.get(&long, 9).map(|e| e.value.len()), Some(100));
    assert!(memtable.get(b"large", 9).is_some_and(|e| e.value == large));
    assert_eq!(memtable.get(b"after", 9).map(|e| e.value), Some(&b"small"[..]));
    assert_eq!(memtable.user_range(), KeyRange::closed(b"", &long));
}

#[test]
fn bytes_are_exact() {
    let (memtable, mut writer) = memtable();
    let link_bytes = 16;
    let bytes = || memtable.bytes() - memtable.filter.bytes();
    let empty = bytes();
    assert_eq!(empty, 12 * link_bytes);
    let count = sized(4000, 60);
    let mut least = empty;
    for sequence in 0..count {
        let (key, value) = (sequence.to_be_bytes(), [0; 33]);
        let before = bytes();
        put(&mut writer, &key, sequence, &value);
        // One link, the lengths (4 + 2), the key with its trailer, the value; then more links.
        let node_bytes = (16 + 6 + 8 + 8 + 33u64).next_multiple_of(8);
        let links_bytes = bytes() - before - node_bytes;
        assert_eq!(links_bytes % link_bytes, 0);
        least += node_bytes;
    }
    // 25 % of the nodes reach each next level: a third of a link for each node.
    let links = (bytes() - least) as f64 / link_bytes as f64 / count as f64;
    assert!((0.1..0.7).contains(&links), "{links} links beyond the first for each node");
    assert!(memtable.reserved_bytes() >= memtable.bytes());
    let before = memtable.bytes();
    insert(&mut writer, b"a", count, EntryKind::DeleteRange, b"bcd").expect("within the limits");
    assert_eq!(memtable.bytes() - before, 4 + super::ranges::DELETE_BYTES as u64);
}

#[test]
fn a_large_memtable_asks_its_filter_first() {
    let (memtable, mut writer) = memtable();
    let other = || base::checksum::hash64(b"no key of this memtable");
    for sequence in 0..1024u64 {
        let first = memtable.get_by_hash(&0u64.to_be_bytes(), other, 9);
        assert_eq!(first.is_some(), sequence > 0, "a small memtable has no filter");
        put(&mut writer, &sequence.to_be_bytes(), sequence, b"v");
    }
    assert!(memtable.get_by_hash(&0u64.to_be_bytes(), other, 9).is_none());
    assert!((0..1024u64).all(|n| memtable.get(&n.to_be_bytes(), n).is_some()));
}

#[test]
fn range_deletions_lie_apart() {
    let (memtable, mut writer) = memtable();
    put(&mut writer, b"c", 1, b"v");
    insert(&mut writer, b"b", 2, EntryKind::DeleteRange, b"x").expect("within the limits");
    let early = memtable.range_deletes(&[]);
    insert(&mut writer, b"a", 3, EntryKind::DeleteRange, b"b").expect("within the limits");
    insert(&mut writer, b"m", 4, EntryKind::DeleteRange, b"m")
        .expect("an empty range adds nothing");
    let late = memtable.range_deletes(&[2]);
    assert_eq!((early.len(), late.len(), memtable.range_delete_count()), (1, 2, 2));
    assert_eq!((&*late[1].start, &*late[1].end, late[1].sequence), (&b"a"[..], &b"b"[..], 3));
    assert_eq!(memtable.get(b"c", 9).map(|e| e.sequence), Some(1));
    assert_eq!(memtable.user_range(), KeyRange::new(&b"a"[..], Some(b"x"[..].into())));
    assert_eq!((memtable.entries(), memtable.sequence_max()), (1, Some(3)));
    assert_eq!(forward(&mut memtable.iter()).len(), 1);
}

#[test]
fn a_cursor_outlives_memtable_and_writer() {
    let (memtable, mut writer) = memtable();
    let mut cursor = memtable.iter();
    put(&mut writer, b"k", 1, b"v");
    drop((memtable, writer));
    let entries = std::thread::spawn(move || forward(&mut cursor)).join().expect("no panic");
    assert_eq!(entries, [(internal_key(b"k", 1, EntryKind::Put), b"v".to_vec())]);
}

#[test]
fn every_order_of_insertion_gives_the_same_list() {
    let count = sized(3000, 80);
    let key = |n: u64| [&b"shared prefix "[..], &n.to_be_bytes()].concat();
    let ascending: Vec<u64> = (0..count).collect();
    let descending: Vec<u64> = (0..count).rev().collect();
    let streams: Vec<u64> = (0..count).map(|n| n / 4 + (n % 4) * count).collect();
    let mut random = Random::new(5);
    let mut shuffled = ascending.clone();
    (1..shuffled.len()).for_each(|n| shuffled.swap(n, random.below(n as u64 + 1) as usize));
    for order in [ascending, descending, streams, shuffled] {
        let (memtable, mut writer) = memtable();
        for (sequence, &n) in order.iter().enumerate() {
            put(&mut writer, &key(n), sequence as u64, &n.to_le_bytes());
            put(&mut writer, &key(n), sequence as u64 + count, b"newer");
        }
        let entries = forward(&mut memtable.iter());
        assert_eq!(entries.len() as u64, 2 * count);
        assert!(entries.is_sorted_by(|a, b| compare_internal(&a.0, &b.0).is_lt()));
        for &n in &order {
            let entry = memtable.get(&key(n), count - 1).expect("inserted");
            assert_eq!(entry.value, n.to_le_bytes());
        }
    }
}

/// The key of `sequence` in the concurrent tests: scattered, and every other pair of numbers in one
/// prefix, so that both prefixes and whole keys decide.
fn scattered_key(sequence: u64) -> Vec<u8> {
    let scattered = Random::new(sequence / 2).next_u64();
    [&scattered.to_be_bytes()[..], &sequence.to_be_bytes()].concat()
}

/// Few of the keys begin with 0x80: all others have the smallest or the largest prefix.
#[test]
fn readers_see_every_entry_published_before_they_looked() {
    for start in [&b""[..], &[0x80]] {
        check_readers(memtable_of_keys_from(start));
    }
}

fn check_readers((memtable, mut writer): (Arc<Memtable>, Writer)) {
    let count = sized(40_000, 80);
    let published = Arc::new(AtomicU64::new(0));
    let readers: Vec<_> = (0..sized(3, 2))
        .map(|reader| {
            let (memtable, published) = (Arc::clone(&memtable), Arc::clone(&published));
            std::thread::spawn(move || {
                let mut random = Random::new(reader);
                let mut seen = 0;
                while seen < count {
                    seen = published.load(Ordering::Acquire);
                    check_reads(&memtable, &mut random, seen);
                    std::thread::yield_now();
                }
            })
        })
        .collect();
    for sequence in 1..=count {
        put(&mut writer, &scattered_key(sequence), sequence, &sequence.to_le_bytes());
        published.store(sequence, Ordering::Release);
    }
    readers.into_iter().for_each(|reader| reader.join().expect("a reader saw all"));
}

/// Entries up to `seen` are there; what is around them is in order.
fn check_reads(memtable: &Memtable, random: &mut Random, seen: u64) {
    if seen == 0 {
        return;
    }
    let mut cursor = memtable.iter();
    for sequence in [seen, 1 + random.below(seen), 1 + random.below(seen)] {
        let key = scattered_key(sequence);
        let entry = memtable.get(&key, seen).expect("published");
        assert_eq!((entry.sequence, entry.value), (sequence, &sequence.to_le_bytes()[..]));
        let search = internal_key(&key, SEQUENCE_MAX, EntryKind::SEARCH);
        cursor.seek(&search).expect("a whole internal key");
        assert_eq!(cursor.value(), sequence.to_le_bytes());
        for _ in 0..5 {
            let last = cursor.key().to_vec();
            cursor.next();
            assert!(!cursor.valid() || compare_internal(&last, cursor.key()).is_lt());
        }
        cursor.seek_for_prev(&search).expect("a whole internal key");
        assert!(!cursor.valid() || compare_internal(cursor.key(), &search).is_lt());
        // A key that may or may not be there yet: the cursor must not be before it.
        let search = internal_key(&scattered_key(seen + 1), SEQUENCE_MAX, EntryKind::SEARCH);
        cursor.seek(&search).expect("a whole internal key");
        assert!(!cursor.valid() || compare_internal(cursor.key(), &search).is_gt());
    }
}

/// The writer inserts ever closer before one key, so that the link to this key changes all the
/// time. Meanwhile readers search for it and for the missing key before it.
#[test]
fn a_search_is_right_while_its_link_changes() {
    let count = sized(300_000, 150);
    let key = |n: u64| n.to_be_bytes();
    let (last, absent) = (u64::MAX - 1, u64::MAX - 2);
    let (memtable, mut writer) = memtable();
    put(&mut writer, &key(last), count, b"last");
    let running = Arc::new(AtomicBool::new(true));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (memtable, running) = (Arc::clone(&memtable), Arc::clone(&running));
            std::thread::spawn(move || {
                let mut cursor = memtable.iter();
                let search = internal_key(&key(absent), 0, EntryKind::SEARCH);
                while running.load(Ordering::Relaxed) {
                    assert!(memtable.get(&key(last), SEQUENCE_MAX).is_some());
                    assert!(memtable.get(&key(absent), SEQUENCE_MAX).is_none());
                    cursor.seek(&search).expect("a whole internal key");
                    assert_eq!(cursor.value(), b"last");
                    cursor.prev();
                    assert!(!cursor.valid() || cursor.key() < &search[..]);
                }
            })
        })
        .collect();
    for n in 0..count {
        put(&mut writer, &key(n), n, b"");
    }
    running.store(false, Ordering::Relaxed);
    readers.into_iter().for_each(|reader| reader.join().expect("a reader always found it"));
}

#[test]
fn a_scan_finds_all_that_was_published_when_it_began() {
    let count = sized(20_000, 60);
    let (memtable, mut writer) = memtable();
    let published = Arc::new(AtomicU64::new(0));
    let reader = {
        let (memtable, published) = (Arc::clone(&memtable), Arc::clone(&published));
        std::thread::spawn(move || {
            let mut seen = 0;
            while seen < count {
                seen = published.load(Ordering::Acquire);
                for entries in [forward(&mut memtable.iter()), backward(&mut memtable.iter())] {
                    let in_snapshot = entries.iter().filter(|(key, _)| {
                        let (_, trailer) = split_internal_key(key).expect("whole");
                        trailer_sequence(trailer) <= seen
                    });
                    assert_eq!(in_snapshot.count() as u64, seen);
                }
                std::thread::yield_now();
            }
        })
    };
    for sequence in 1..=count {
        put(&mut writer, &scattered_key(sequence), sequence, b"");
        published.store(sequence, Ordering::Release);
    }
    reader.join().expect("the reader saw all");
}
