//! Edits and roots: round trips, known bytes, hostile bytes.

use super::*;
use base::random::Random;
use base::{DatabaseId, ErrorKind, Expiry, ExpirySpan, FileId, Key, KeyRange, KeyspaceId, RunId};
use media::FileName;
use proptest::prelude::*;
use tree::edit::{KeyspaceRecord, RunRecord, SliceRecord};
use tree::segments::GROUP_DEPTH_MAX;
use tree::{Change, DatabaseEdit, Group, KeyspaceEdit, KnownKeys, NodeId, SegmentChange, Tier};

fn decode(bytes: &[u8]) -> base::Result<DatabaseEdit> {
    decode_edit(bytes, FileName::manifest(FileId(3)), 80)
}

fn encode(edit: &DatabaseEdit) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_edit(edit, &mut bytes);
    bytes
}

fn keys() -> impl Strategy<Value = Key> {
    prop::collection::vec(any::<u8>(), 0..12).prop_map(Key::from)
}

fn ranges() -> impl Strategy<Value = KeyRange> {
    (keys(), prop::option::of(keys())).prop_map(|(start, end)| KeyRange { start, end })
}

fn slices() -> impl Strategy<Value = Vec<SliceRecord>> {
    let slice = (any::<u64>(), ranges(), any::<u64>())
        .prop_map(|(run, range, bytes)| SliceRecord { run: RunId(run), range, bytes });
    prop::collection::vec(slice, 0..4)
}

fn runs() -> impl Strategy<Value = RunRecord> {
    let sequences = 0..=base::key::SEQUENCE_MAX;
    let expiry = prop::option::of((1u64.., any::<[u64; 2]>()).prop_map(|(entries, [a, b])| {
        let (first, last) = (Expiry::from_millis(a.min(b)), Expiry::from_millis(a.max(b)));
        ExpirySpan { entries, first, last }
    }));
    (any::<[u64; 5]>(), any::<[u32; 2]>(), ranges(), sequences.clone(), sequences, expiry).prop_map(
        |(numbers, extent, range, sequence_min, sequence_max, expiry)| RunRecord {
            id: RunId(numbers[0]),
            file: FileId(numbers[1]),
            offset: extent[0].into(),
            bytes: extent[1].into(),
            range,
            entries: numbers[2],
            deletes: numbers[3],
            range_deletes: numbers[4],
            sequence_min,
            sequence_max,
            expiry,
            keys: KnownKeys::default(),
        },
    )
}

fn segment_changes() -> impl Strategy<Value = Change> {
    let sequences = 0..=base::key::SEQUENCE_MAX;
    let change = prop_oneof![
        (any::<u64>(), 0..=GROUP_DEPTH_MAX, any::<u64>(), any::<[bool; 3]>()).prop_map(
            |(hash, depth, bytes, [is_cold, is_provisional, is_in_cold_store])| {
                let tier = if is_cold { Tier::Cold } else { Tier::Main };
                let group = Group::of(tier, hash, depth);
                SegmentChange::Add { group, bytes, is_provisional, is_in_cold_store }
            }
        ),
        Just(SegmentChange::Confirm),
        any::<u64>().prop_map(SegmentChange::Grow),
        any::<u64>().prop_map(SegmentChange::Bury),
        sequences.prop_map(SegmentChange::Retire),
        Just(SegmentChange::Remove),
    ];
    (any::<u64>(), change).prop_map(|(file, change)| Change::Segment { file: FileId(file), change })
}

fn changes() -> impl Strategy<Value = Change> {
    let place = || (any::<u8>(), any::<u64>().prop_map(NodeId));
    prop_oneof![
        any::<(u64, u64)>().prop_map(|(file, bytes)| Change::File { file: FileId(file), bytes }),
        any::<(u64, u64, u64)>().prop_map(|(file, bytes, identity)| Change::IngestedFile {
            file: FileId(file),
            bytes,
            identity: DatabaseId(identity),
        }),
        runs().prop_map(Change::AddRun),
        (place(), ranges(), slices()).prop_map(|((level, node), range, slices)| {
            Change::AddNode { level, node, range, slices }
        }),
        place().prop_map(|(level, node)| Change::RemoveNode { level, node }),
        (place(), slices()).prop_map(|((level, node), slices)| Change::PushSlices {
            level,
            node,
            slices
        }),
        (place(), prop::collection::vec(any::<u64>().prop_map(RunId), 0..4))
            .prop_map(|((level, node), runs)| Change::RemoveSlices { level, node, runs }),
        (place(), any::<u64>(), slices()).prop_map(|((level, node), run, to)| {
            Change::NarrowSlice { level, node, run: RunId(run), to }
        }),
        (place(), ranges()).prop_map(|((level, node), range)| Change::SetRange {
            level,
            node,
            range
        }),
        (0..=base::key::SEQUENCE_MAX).prop_map(|sequence| Change::SetFlushed { sequence }),
        (any::<u8>(), prop::option::of(keys()))
            .prop_map(|(level, key)| Change::SetCursor { level, key }),
        segment_changes(),
        Just(Change::AllowExpiry),
    ]
}

fn edits() -> impl Strategy<Value = DatabaseEdit> {
    let created = (any::<u32>(), ".{0,8}", "([a-z]+ = [0-9]+\n){0,2}")
        .prop_map(|(id, name, options)| KeyspaceRecord { id: KeyspaceId(id), name, options });
    let keyspace = (any::<u32>(), prop::collection::vec(changes(), 0..6))
        .prop_map(|(keyspace, changes)| KeyspaceEdit { keyspace: KeyspaceId(keyspace), changes });
    (
        prop::collection::vec(created, 0..3),
        prop::collection::vec(any::<u32>().prop_map(KeyspaceId), 0..3),
        prop::collection::vec(keyspace, 0..3),
        any::<[Option<u64>; 4]>(),
        any::<Option<u32>>(),
        prop::option::of(0..=base::key::SEQUENCE_MAX),
    )
        .prop_map(|(created, dropped, keyspaces, numbers, next_keyspace, last_sequence)| {
            DatabaseEdit {
                created,
                dropped,
                keyspaces,
                next_file: numbers[0],
                next_run: numbers[1],
                next_keyspace,
                last_sequence,
                log_floor: numbers[2].map(FileId),
                cold_mark: numbers[3],
            }
        })
}

proptest! {
    #[test]
    fn edits_come_back(edit in edits()) {
        prop_assert_eq!(decode(&encode(&edit)).unwrap(), edit);
    }

    #[test]
    fn a_cut_edit_is_no_longer_the_edit(edit in edits(), cut in 0.0..1.0f64) {
        // No bytes at all are the edit without changes.
        prop_assume!(edit != DatabaseEdit::default());
        let bytes = encode(&edit);
        let cut = (bytes.len() as f64 * cut) as usize;
        prop_assert!(decode(&bytes[..cut]).ok() != Some(edit));
    }

    #[test]
    fn text_has_one_line_for_each_change(edit in edits()) {
        let changes: usize = edit.keyspaces.iter().map(|k| k.changes.len()).sum();
        let numbers = [edit.next_file, edit.next_run, edit.last_sequence, edit.cold_mark];
        let numbers = numbers.iter().flatten().count()
            + edit.log_floor.iter().count()
            + edit.next_keyspace.iter().count();
        let lines = edit.created.len() + edit.dropped.len() + changes + numbers;
        prop_assert_eq!(render_edit(&edit).lines().count(), lines);
    }
}

fn sample() -> DatabaseEdit {
    let range = KeyRange::new(&b"a"[..], Some(b"m\xff".as_slice().into()));
    let slice = SliceRecord { run: RunId(5), range: range.clone(), bytes: 300 };
    let changes = vec![
        Change::File { file: FileId(4), bytes: 1000 },
        Change::AddNode { level: 1, node: NodeId(2), range, slices: vec![slice] },
        Change::RemoveSlices { level: 0, node: NodeId(0), runs: vec![RunId(1), RunId(2)] },
        Change::SetCursor { level: 1, key: Some(b"m".as_slice().into()) },
    ];
    DatabaseEdit {
        dropped: vec![KeyspaceId(9)],
        keyspaces: vec![KeyspaceEdit { keyspace: KeyspaceId(1), changes }],
        log_floor: Some(FileId(7)),
        ..DatabaseEdit::default()
    }
}

#[test]
fn the_bytes_of_an_edit_are_fixed() {
    let range = [1, b'a', 1, 2, b'm', 0xff];
    let changes = [
        &[2, 3, 4, 0xe8, 7][..],
        &[6, 18, 1, 2],
        &range,
        &[1, 5],
        &range,
        &[0xac, 2],
        &[12, 5, 0, 0, 2, 1, 2],
        &[18, 4, 1, 1, 1, b'm'],
    ]
    .concat();
    let length = changes.len() as u8 + 1;
    let expected = [&[1, 4, 1, 9, 6, length, 1], &changes[..], &[14, 1, 7]].concat();
    let bytes = encode(&sample());
    assert_eq!(bytes, expected);
    assert_eq!(decode(&bytes).unwrap(), sample());
}

#[test]
fn a_program_without_expiry_refuses_what_it_allows() {
    let run = RunRecord {
        id: RunId(5),
        file: FileId(4),
        offset: 36,
        bytes: 200,
        range: KeyRange::closed(b"a", b"b"),
        entries: 2,
        deletes: 0,
        range_deletes: 0,
        sequence_min: 1,
        sequence_max: 2,
        expiry: Some(ExpirySpan {
            entries: 1,
            first: Expiry::from_millis(3),
            last: Expiry::from_millis(300),
        }),
        keys: KnownKeys::default(),
    };
    let of = |changes: Vec<Change>| DatabaseEdit {
        keyspaces: vec![KeyspaceEdit { keyspace: KeyspaceId(1), changes }],
        ..DatabaseEdit::default()
    };
    // Both tags are even: required.
    assert_eq!(encode(&of(vec![Change::AllowExpiry])), [1, 6, 3, 1, 34, 0]);
    let bytes = encode(&of(vec![Change::AddRun(run.clone())]));
    assert_eq!(bytes[..4], [1, 6, bytes.len() as u8 - 3, 1]);
    assert_eq!((bytes[4], &bytes[bytes.len() - 4..]), (36, &[1, 3, 0xac, 2][..]));
    let plain = RunRecord { expiry: None, ..run.clone() };
    assert_eq!(encode(&of(vec![Change::AddRun(plain)]))[4], 4);
    let text = render_edit(&of(vec![Change::AddRun(run)]));
    assert!(text.ends_with("sequences 1..=2 expiring 1 from 3 to 300 ms\n"), "{text}");
}

#[test]
fn text_is_for_people() {
    let text = render_edit(&sample());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "drop keyspace 9");
    assert_eq!(lines[1], "keyspace 1: file 4 has 1000 bytes");
    assert!(
        lines[2].starts_with("keyspace 1: add node 2 on level 1 range [a, 0x6dff) [run 5 [a, "),
        "{text}"
    );
    assert_eq!(lines[3], "keyspace 1: remove from node 0 on level 0 runs 1 2");
    assert_eq!(lines[4], "keyspace 1: set cursor of level 1 to m");
    assert_eq!(lines[5], "log floor 7");
}

#[test]
fn unknown_optional_tags_are_skipped_and_required_ones_refused_by_name() {
    let mut bytes = vec![VERSION, 4, 1, 9, 101, 2, 0xff, 0xff];
    assert_eq!(decode(&bytes).unwrap().dropped, vec![KeyspaceId(9)]);
    bytes.extend_from_slice(&[6, 5, 1, 103, 2, 1, 1]);
    assert_eq!(decode(&bytes).unwrap().keyspaces[0].changes, vec![]);
    for unknown in [&[100u8, 0][..], &[6, 3, 1, 100, 0]] {
        let error = decode(&[&bytes[..], unknown].concat()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Incompatible);
        assert!(error.message().contains("tag 100"), "{error}");
    }
    assert_eq!(decode(&[2]).unwrap_err().kind(), ErrorKind::Incompatible);
}

#[test]
fn what_is_no_edit_is_corruption_with_its_place() {
    // An empty record changes nothing: it proves that what stands before it was durable.
    assert_eq!(decode(&[]).unwrap(), DatabaseEdit::default());
    for bytes in [&[1, 4][..], &[1, 4, 9, 1], &[1, 4, 2, 9, 9], &[1, 8, 1, 1, 8, 1, 2]] {
        let error = decode(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{bytes:?}");
        assert_eq!((error.file(), error.offset()), (Some("MANIFEST-000003"), Some(80)));
    }
}

#[test]
fn mutated_edits_decode_or_fail() {
    let original = encode(&sample());
    let mut random = Random::new(5);
    for _ in 0..100_000 {
        let mut bytes = original.clone();
        for _ in 0..=random.below(3) {
            let at = 1 + random.below(bytes.len() as u64 - 1) as usize;
            bytes[at] = random.next_u64() as u8;
        }
        if let Ok(edit) = decode(&bytes) {
            assert_eq!(decode(&encode(&edit)).unwrap(), edit);
        }
    }
}

#[test]
fn a_root_comes_back_and_every_flip_is_seen() {
    let root = Root { database: DatabaseId(7), manifest: FileId(3), manifest_bytes_min: 1 << 40 };
    let bytes = encode_root(&root);
    assert_eq!(decode_root(&bytes).unwrap(), root);
    for at in 0..bytes.len() {
        assert!(decode_root(&bytes[..at]).is_err());
        for bit in 0..8 {
            let mut damaged = bytes;
            damaged[at] ^= 1 << bit;
            let kind = decode_root(&damaged).unwrap_err().kind();
            assert_eq!(kind == ErrorKind::Incompatible, at < 8, "byte {at}");
        }
    }
}

#[test]
fn a_newer_root_is_incompatible() {
    let root = Root { database: DatabaseId(7), manifest: FileId(3), manifest_bytes_min: 0 };
    let mut bytes = encode_root(&root).to_vec();
    bytes[8] = 2;
    let place = base::checksum::Place {
        database: root.database,
        file: root.manifest,
        offset: 0,
        kind: 0x30,
    };
    let sum = place.hash64(&bytes[..ROOT_BYTES - 8]);
    bytes[ROOT_BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
    let error = decode_root(&bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible);
    assert!(error.message().contains("version 2"));
}
