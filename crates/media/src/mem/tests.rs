//! The store in memory: what a simulated crash keeps is what was synced, and every personality of
//! a disk behaves as its kind does.

use super::*;
use crate::conformance;
use base::FileId;
use base::random::Random;
use std::collections::BTreeSet;

const HINT: FileHint = FileHint::NONE;

fn store() -> MemStore {
    MemStore::new(Arc::default())
}

fn table(id: u64) -> FileName {
    FileName::table(FileId(id))
}

/// A file of `bytes` in `store`, synced with its name.
fn durable(store: &MemStore, id: u64, bytes: &[u8]) -> Box<dyn AppendFile> {
    let mut file = store.create(table(id), &HINT).unwrap();
    file.append(bytes, Cause::Flush).unwrap();
    file.sync(Cause::Flush).unwrap();
    store.sync_names().unwrap();
    file
}

fn bytes_of(store: &MemStore, id: u64) -> Option<Vec<u8>> {
    let file = store.open(table(id), false).ok()?;
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes, Cause::Get).unwrap();
    Some(bytes)
}

fn images(store: &MemStore, personality: Personality) -> impl Iterator<Item = MemStore> {
    (0..200).map(move |seed| store.crash_image(&mut Random::new(seed), personality))
}

fn any_image(store: &MemStore, test: impl FnMut(MemStore) -> bool) -> bool {
    store.crash_images(500, 7).any(test)
}

fn every_image(store: &MemStore, test: impl FnMut(MemStore) -> bool) -> bool {
    store.crash_images(500, 7).all(test)
}

#[test]
fn conforms() {
    conformance::check(&|| Arc::new(store()));
}

#[test]
fn sentence_1_synced_bytes_and_lengths_survive() {
    let store = store();
    let mut file = durable(&store, 1, b"synced");
    file.append(&[b'x'; 3000], Cause::Flush).unwrap();
    assert!(every_image(&store, |image| bytes_of(&image, 1).unwrap().starts_with(b"synced")));
    file.sync(Cause::Flush).unwrap();
    assert!(every_image(&store, |image| bytes_of(&image, 1).unwrap().len() == 3006));
}

#[test]
fn sentence_2_unsynced_bytes_may_all_be_missing() {
    let store = store();
    let mut file = durable(&store, 1, b"");
    file.append(b"seen", Cause::Flush).unwrap();
    assert_eq!(bytes_of(&store, 1).unwrap(), b"seen");
    assert!(any_image(&store, |image| bytes_of(&image, 1).unwrap().is_empty()));
    let strict = store.crash_image(&mut Random::new(0), Personality::LoseUnsynced);
    assert_eq!(bytes_of(&strict, 1).unwrap(), b"");
}

#[test]
fn sentence_3_the_death_of_the_process_loses_nothing() {
    let store = store();
    let mut file = store.create(table(1), &HINT).unwrap();
    file.append(b"appended", Cause::Flush).unwrap();
    store.write_note("events", b"noted", true).unwrap();
    let kept = store.crash_image(&mut Random::new(0), Personality::KeepAll);
    assert_eq!(kept.content_hash(), store.content_hash());
    assert_eq!(kept.read_note("events").unwrap().unwrap(), b"noted");
    drop(file);
    let restarted = store.with_ledger(Arc::default());
    assert_eq!(bytes_of(&restarted, 1).unwrap(), b"appended");
    assert!(restarted.pending_pieces() > 0, "what was not synced can still be lost");
}

#[test]
fn sentence_4_a_later_write_of_another_file_may_survive_an_earlier_one() {
    let store = store();
    let (mut first, mut second) = (durable(&store, 1, b""), durable(&store, 2, b""));
    first.append(b"first", Cause::Flush).unwrap();
    second.append(b"second", Cause::Flush).unwrap();
    let is_reordered = |image: MemStore| {
        bytes_of(&image, 1).unwrap().is_empty() && bytes_of(&image, 2).unwrap() == b"second"
    };
    assert!(any_image(&store, is_reordered));
    assert!(images(&store, Personality::PrefixPerFile).any(is_reordered));
}

#[test]
fn sentence_5_any_sectors_of_a_write_may_survive_and_the_rest_is_zeros() {
    let store = store();
    let mut file = durable(&store, 1, b"");
    file.append(&[1; 512 * 3 + 100], Cause::Flush).unwrap();
    let mut seen = BTreeSet::new();
    for image in images(&store, Personality::Subset) {
        let bytes = bytes_of(&image, 1).unwrap();
        assert!(bytes.last().is_none_or(|last| *last == 1), "the length ends with a survivor");
        let sectors: Vec<u8> = bytes.chunks(512).map(|sector| sector[0]).collect();
        for (sector, value) in bytes.chunks(512).zip(&sectors) {
            assert!(sector.iter().all(|byte| byte == value), "a sector is whole");
        }
        seen.insert(sectors);
    }
    assert_eq!(seen.len(), 16, "every subset of four sectors");
}

#[test]
fn sentence_6_a_length_may_survive_without_its_data() {
    let store = store();
    durable(&store, 2, &[2; 4096]);
    let mut file = durable(&store, 1, b"");
    file.append(&[1; 2048], Cause::Flush).unwrap();
    let found: Vec<Vec<u8>> = images(&store, Personality::LengthBeforeData)
        .map(|image| bytes_of(&image, 1).unwrap())
        .collect();
    assert!(found.iter().all(|bytes| bytes.len() == 2048));
    assert!(found.iter().any(|bytes| bytes.contains(&0)), "zeros");
    assert!(found.iter().any(|bytes| bytes.contains(&2)), "another file's bytes");
    assert!(found.iter().any(|bytes| bytes.iter().any(|byte| *byte > 2)), "noise");
}

#[test]
fn sentence_7_a_synced_byte_is_safe_from_its_sector() {
    let store = store();
    let mut file = durable(&store, 1, &[9; 700]);
    file.append(&[1; 700], Cause::Flush).unwrap();
    for personality in Personality::ALL {
        for image in images(&store, personality) {
            assert_eq!(bytes_of(&image, 1).unwrap()[..700], [9; 700], "{personality:?}");
        }
    }
}

#[test]
fn sentence_8_a_created_file_may_be_gone_with_its_synced_bytes() {
    let store = store();
    let mut file = store.create(table(1), &HINT).unwrap();
    file.append(b"synced", Cause::Flush).unwrap();
    file.sync(Cause::Flush).unwrap();
    assert!(any_image(&store, |image| bytes_of(&image, 1).is_none()));
    store.sync_names().unwrap();
    assert!(every_image(&store, |image| bytes_of(&image, 1).is_some()));
}

#[test]
fn sentence_9_a_removed_file_may_be_back() {
    let store = store();
    durable(&store, 1, b"old");
    store.remove(table(1)).unwrap();
    assert!(any_image(&store, |image| bytes_of(&image, 1).as_deref() == Some(b"old")));
    assert!(any_image(&store, |image| bytes_of(&image, 1).is_none()));
    store.sync_names().unwrap();
    assert!(every_image(&store, |image| bytes_of(&image, 1).is_none()));
}

#[test]
fn sentence_10_directory_changes_survive_in_any_combination() {
    let store = store();
    durable(&store, 1, b"1");
    for id in 2..5 {
        store.create(table(id), &HINT).unwrap();
    }
    store.remove(table(1)).unwrap();
    let names = |image: MemStore| image.list().unwrap().iter().map(|file| file.name).collect();
    let lagged: BTreeSet<Vec<_>> = images(&store, Personality::DirectoryLag).map(names).collect();
    assert_eq!(lagged.len(), 16);
    assert_eq!(store.crash_images(100, 1).map(names).collect::<BTreeSet<_>>(), lagged);
}

#[test]
fn sentence_11_a_root_brings_the_names_before_it() {
    let store = store();
    store.create(table(1), &HINT).unwrap();
    store.set_root(b"new").unwrap();
    store.create(table(2), &HINT).unwrap();
    assert!(every_image(&store, |image| {
        image.root().unwrap().unwrap() == b"new" && bytes_of(&image, 1).is_some()
    }));
    assert!(any_image(&store, |image| bytes_of(&image, 2).is_none()));
}

#[test]
fn sentence_12_bytes_cut_away_may_be_back() {
    let store = store();
    durable(&store, 1, b"keep and cut");
    let mut file = store.extend(table(1), 4, &HINT).unwrap();
    assert_eq!(bytes_of(&store, 1).unwrap(), b"keep");
    assert!(any_image(&store, |image| bytes_of(&image, 1).unwrap() == b"keep and cut"));
    file.append(b"!", Cause::Flush).unwrap();
    assert!(any_image(&store, |image| bytes_of(&image, 1).unwrap() == b"keep!and cut"));
    file.sync(Cause::Flush).unwrap();
    assert!(every_image(&store, |image| bytes_of(&image, 1).unwrap() == b"keep!"));
}

#[test]
fn sentence_13_what_a_failed_sync_dropped_no_later_sync_saves() {
    let store = store();
    let mut file = durable(&store, 1, b"safe ");
    file.append(b"dropped ", Cause::Flush).unwrap();
    store.fail_next_sync(table(1));
    assert_eq!(file.sync(Cause::Flush).unwrap_err().kind(), ErrorKind::Io);
    file.append(b"later", Cause::Flush).unwrap();
    file.sync(Cause::Flush).unwrap();
    assert_eq!(bytes_of(&store, 1).unwrap(), b"safe dropped later");
    let expected = b"safe \0\0\0\0\0\0\0\0later";
    assert!(every_image(&store, |image| bytes_of(&image, 1).unwrap() == expected));
}

#[test]
fn sentence_14_notes_may_be_gone() {
    let store = store();
    store.write_note("events", b"x", true).unwrap();
    let image = store.crash_image(&mut Random::new(0), Personality::LoseUnsynced);
    assert_eq!(image.read_note("events").unwrap(), None);
}

#[test]
fn images_are_distinct_and_exhaustive_when_the_pieces_are_few() {
    let store = store();
    let mut file = durable(&store, 1, b"");
    for byte in 0..6 {
        file.append(&[byte + 1; 10], Cause::Flush).unwrap();
    }
    assert_eq!(store.pending_pieces(), 6);
    let hashes: Vec<u64> = store.crash_images(300, 3).map(|image| image.content_hash()).collect();
    assert_eq!(hashes.iter().collect::<BTreeSet<_>>().len(), hashes.len());
    for mask in 0..64u64 {
        let mut expected = Vec::new();
        for byte in (0..6).filter(|byte| mask >> byte & 1 == 1) {
            expected.resize(byte * 10, 0);
            expected.extend([byte as u8 + 1; 10]);
        }
        let found = store.crash_images(300, 3).any(|i| bytes_of(&i, 1).unwrap() == expected);
        assert!(found, "{mask:b}");
    }
    assert_eq!(bytes_of(&store.image_only_one(0), 1).unwrap(), [1; 10]);
    assert_eq!(bytes_of(&store.image_all_but_one(5), 1).unwrap().len(), 50);
    assert_eq!(store.crash_images(5, 3).count(), 5);
}

#[test]
fn an_image_is_drawn_again_from_its_seed_and_lives_alone() {
    let store = store();
    let mut file = durable(&store, 1, b"");
    file.append(&[5; 9000], Cause::Flush).unwrap();
    for personality in Personality::ALL {
        let draw = || store.crash_image(&mut Random::new(42), personality);
        let image = draw();
        assert_eq!(image.content_hash(), draw().content_hash());
        assert_eq!(image.pending_pieces(), 0);
        image.extend(table(1), 0, &HINT).unwrap().append(b"other", Cause::Flush).unwrap();
        assert_eq!(bytes_of(&store, 1).unwrap(), [5; 9000]);
        image.lock().unwrap();
    }
}

#[test]
fn sentence_15_a_synced_log_may_have_zeros_behind_its_end() {
    let hint = FileHint { zeros_at_end: true, ..HINT };
    for (may_be_ahead, hint) in [(true, hint), (false, HINT)] {
        let store = store();
        let mut file = store.create(table(1), &hint).unwrap();
        file.append(b"synced", Cause::Wal).unwrap();
        store.sync_names().unwrap();
        let is_longer = |image: MemStore| bytes_of(&image, 1).unwrap().len() > 6;
        assert!(!images(&store, Personality::KeepAll).any(is_longer), "only a sync pays");
        file.sync(Cause::Wal).unwrap();
        assert!(every_image(&store, |image| {
            let bytes = bytes_of(&image, 1).unwrap();
            bytes.starts_with(b"synced") && bytes[6..].iter().all(|&byte| byte == 0)
        }));
        assert_eq!(images(&store, Personality::KeepAll).any(is_longer), may_be_ahead);
        assert_eq!(any_image(&store, is_longer), may_be_ahead);
        store.set_capacity_bytes(Some(6));
        assert!(!any_image(&store, is_longer), "a full medium has no space for them");
        assert_eq!(bytes_of(&store, 1).unwrap(), b"synced", "who is alive sees none");
    }
}

#[test]
fn the_machine_stops_at_the_operation_it_is_told() {
    for stop in 0..4 {
        let store = store();
        store.stop_after(stop);
        let run = || -> Result<()> {
            let mut file = store.create(table(1), &HINT)?;
            file.append(b"x", Cause::Flush)?;
            file.sync(Cause::Flush)?;
            store.sync_names()
        };
        let error = run().unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Io, "the machine stopped"));
        assert_eq!(store.operations(), stop);
        assert!(store.list().is_err() && store.root().is_err(), "nothing works any more");
        let image = store.crash_image(&mut Random::new(0), Personality::KeepAll);
        assert_eq!(bytes_of(&image, 1).is_some(), stop > 0);
    }
}

#[test]
fn a_full_medium_takes_what_fits_and_goes_on_with_room() {
    let store = store();
    store.set_capacity_bytes(Some(1000));
    let mut file = store.create(table(1), &HINT).unwrap();
    file.append(&[1; 900], Cause::Flush).unwrap();
    assert_eq!(store.space().unwrap(), Space { total_bytes: 1000, free_bytes: 100 });
    assert_eq!(file.append(&[2; 200], Cause::Flush).unwrap_err().kind(), ErrorKind::NoSpace);
    let mut second = store.create(table(2), &HINT).unwrap();
    assert_eq!(second.append(b"x", Cause::Flush).unwrap_err().kind(), ErrorKind::NoSpace);
    store.remove(table(1)).unwrap();
    second.append(&[3; 1000], Cause::Flush).unwrap();
    store.set_capacity_bytes(Some(2000));
    second.append(&[3; 1000], Cause::Flush).unwrap();
    assert_eq!(store.ledger().snapshot().host().write_bytes, 3000);
}

#[test]
fn the_ledger_agrees_with_the_bytes_received() {
    let store = store();
    durable(&store, 1, &[1; 1234]);
    store.set_root(b"root").unwrap();
    store.write_note("events", b"event", true).unwrap();
    bytes_of(&store, 1);
    store.root().unwrap();
    store.read_note("events").unwrap();
    let host = store.ledger().snapshot().host();
    assert_eq!((host.write_bytes, host.read_bytes), (1243, 1243));
    assert_eq!(store.raw_write_bytes(), host.write_bytes);
    assert_eq!(store.raw_read_bytes(), host.read_bytes);
    assert_eq!(store.raw().sync_ops, host.sync_ops);
}

#[test]
fn damage_is_durable() {
    let store = store();
    durable(&store, 1, b"good");
    store.overwrite(table(1), 3, b"fXX").unwrap();
    assert_eq!(bytes_of(&store, 1).unwrap(), b"goof");
    assert!(every_image(&store, |image| bytes_of(&image, 1).unwrap() == b"goof"));
}
