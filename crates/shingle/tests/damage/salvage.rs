//! Salvage after every class of damage: everything outside the damage is saved, and the source is
//! untouched.

use crate::build::{
    Content, DEFAULT_SETUP, History, State, Writer, content, database, database_under, options,
    runtime, setups,
};
use crate::image::{Image, everything_in, temporary};
use crate::verdict::difference;
use base::random::Random;
use base::{Cause, Ledger};
use media::mem::MemStore;
use media::{FileKind, FileName, FileStore};
use shingle::{KeyspaceOptions, Options, SalvageReport};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use table::log::{LogIdentity, LogKind, Salvage};
use table::manifest::decode_root;

/// Salvages a directory; returns the content of the target.
fn salvaged(source: &Path) -> (State, SalvageReport) {
    let target = temporary();
    let before = everything_in(source);
    let report = shingle::salvage(source, target.path(), &mut |_| {}).unwrap();
    assert!(everything_in(source) == before, "salvage changed the source");
    let db = Options::new().create(false).open(target.path()).unwrap();
    assert!(db.check(&mut |_| {}).unwrap().is_clean());
    (content(&db).unwrap(), report)
}

/// One keyspace without obsolete files: whatever is lost of the manifest, no old run brings back a
/// key.
fn settled(seed: u64) -> (Image, Content) {
    let store = Arc::new(MemStore::new(Arc::new(Ledger::default())));
    let db = options().open_in(store.clone(), runtime(seed)).unwrap();
    let mut random = Random::new(seed);
    let mut model = Content::new();
    for round in 0..6 {
        for _ in 0..80 {
            let key = format!("key{:03}", random.below(300)).into_bytes();
            match random.below(8) {
                0 => {
                    db.delete(&key).unwrap();
                    model.remove(&key);
                }
                _ => {
                    let value = random.next_u64().to_le_bytes().repeat(3);
                    db.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
            }
        }
        if round < 5 {
            db.flush().unwrap();
            db.wait_idle().unwrap();
        }
        if round == 2 {
            db.delete_range("key100", "key130").unwrap();
            model.retain(|key, _| &key[..] < b"key100" || &key[..] >= b"key130");
        }
    }
    (Image::of(&*store), model)
}

/// The number of keys with another value, without one, or too many.
fn differing(found: &State, expected: &State) -> usize {
    let empty = Content::new();
    let of_keyspace = |(name, expected): (&String, &Content)| {
        let found = found.get(name).unwrap_or(&empty);
        let wrong = expected.iter().filter(|(key, value)| found.get(*key) != Some(value)).count();
        wrong + found.keys().filter(|key| !expected.contains_key(*key)).count()
    };
    expected.iter().map(of_keyspace).sum()
}

#[test]
fn an_intact_database_is_salvaged_whole() {
    for setup in setups() {
        for seed in [1, 2, 3] {
            let (image, history) = database_under(setup, seed, Writer::fill);
            let (found, report) = salvaged(image.in_directory().path());
            assert!(found == *history.last(), "{setup:?}: {}", difference(&found, history.last()));
            assert!(report.losses.is_empty(), "{setup:?}: {:?}", report.losses);
        }
    }
}

#[test]
fn damage_in_a_table_costs_no_more_than_its_block_or_run() {
    let (image, history): (Image, History) = database(1);
    let total: usize = history.last().values().map(Content::len).sum();
    let mut small = 0;
    for (&name, bytes) in image.files.iter().filter(|(name, _)| name.kind == FileKind::Table) {
        for at in [60, bytes.len() / 3, bytes.len() - 150, bytes.len() - 60] {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 0x10;
            let directory = image.with(name, damaged).in_directory();
            let (found, report) = salvaged(directory.path());
            let wrong = differing(&found, history.last());
            assert!(wrong == 0 || !report.losses.is_empty(), "{name} at {at}: {wrong} in silence");
            assert!(wrong < total / 2, "{name} at {at}: {wrong} of {total} keys");
            // A data block here has at most a dozen entries.
            small += usize::from(at == 60 && wrong <= 12);
            assert!(
                at != 60 || wrong <= 12,
                "{name}: a block cost {wrong} keys: {:?}",
                report.losses
            );
        }
    }
    assert!(small > 0);
}

/// Damages the end of every table from `from_end` bytes before its end on.
fn without_ends(image: &Image, from_end: usize) -> Image {
    let mut damaged = image.clone();
    for (&name, bytes) in image.files.iter().filter(|(name, _)| name.kind == FileKind::Table) {
        let mut bytes = bytes.to_vec();
        let from = bytes.len() - from_end;
        bytes[from..].iter_mut().for_each(|byte| *byte ^= 0x5a);
        damaged = damaged.with(name, bytes);
    }
    damaged
}

#[test]
fn runs_without_footer_or_index_still_give_their_entries() {
    // The footer; the footer, the summary and the top index.
    for from_end in [128, 300] {
        let (image, history) = database(1);
        let (found, report) = salvaged(without_ends(&image, from_end).in_directory().path());
        let total: usize = history.last().values().map(Content::len).sum();
        let wrong = differing(&found, history.last());
        // Range deletions are lost: what they hid is back, but nothing else is wrong.
        assert!(wrong < total / 4, "{wrong} of {total}: {:?}", report.losses);
        assert!(!report.losses.is_empty());
        for (name, expected) in history.last() {
            let found = &found[name];
            let missing = expected.keys().filter(|key| !found.contains_key(*key)).count();
            assert!(missing * 20 <= expected.len(), "{missing} keys of {name} are lost");
        }
    }
}

#[test]
fn runs_without_footer_are_found_without_a_manifest_too() {
    let (image, model) = settled(3);
    let name = *image.files.keys().find(|name| name.kind == FileKind::Manifest).unwrap();
    let image = without_ends(&image.without(name), 128);
    let (found, report) = salvaged(image.in_directory().path());
    let found = &found["default"];
    let missing = model.keys().filter(|key| !found.contains_key(*key)).count();
    assert!(missing * 20 <= model.len(), "{missing} of {}: {:?}", model.len(), report.losses);
}

#[test]
fn damage_in_a_log_costs_one_record() {
    let (image, history) = database(1);
    for (&name, bytes) in image.files.iter().filter(|(name, _)| name.kind == FileKind::Wal) {
        let mut damaged = bytes.to_vec();
        damaged[bytes.len() / 2] ^= 1;
        let (found, report) = salvaged(image.with(name, damaged).in_directory().path());
        let wrong = differing(&found, history.last());
        assert!(wrong <= 60, "{name}: {wrong} keys: {:?}", report.losses);
        assert!(wrong == 0 || !report.losses.is_empty());
    }
}

fn logs_of(image: &Image) -> Vec<FileName> {
    image.files.keys().filter(|name| name.kind == FileKind::Wal).copied().collect()
}

/// A loss of `report` that names `log` and what may be missing.
fn names_missing_commits(report: &SalvageReport, log: FileName) -> bool {
    let names = |loss: &String| {
        loss.contains(&log.to_string()) && loss.contains("commits after sequence number")
    };
    report.losses.iter().any(names)
}

/// The last commits are in several logs; the log before the last one.
fn of_several_logs() -> (Image, History, FileName) {
    let store = Arc::new(MemStore::new(Arc::new(Ledger::default())));
    let options = options().expert(|expert| expert.log_bytes = Some(1 << 10));
    let mut writer = Writer::new(options.open_in(store.clone(), runtime(1)).unwrap(), 1);
    writer.commits(20);
    writer.flush();
    writer.commits(70);
    let image = Image::of(&*store);
    let logs = logs_of(&image);
    let log = logs[logs.len() - 2];
    (image, writer.history, log)
}

#[test]
fn a_missing_log_before_another_is_a_loss() {
    let (image, history, log) = of_several_logs();
    let (found, report) = salvaged(image.without(log).in_directory().path());
    assert!(differing(&found, history.last()) > 0);
    assert!(names_missing_commits(&report, log), "{log}: {:?}", report.losses);
}

#[test]
fn a_log_that_lost_whole_records_before_another_is_a_loss() {
    let (image, _, log) = of_several_logs();
    let bytes = image.files[&log].to_vec();
    let file = image.in_memory().open(log, false).unwrap();
    let database = decode_root(image.root.as_ref().unwrap()).unwrap().database;
    let identity = LogIdentity { database, file: log.id, kind: LogKind::Wal };
    let mut records = Salvage::open(&*file, identity, Cause::Check).unwrap();
    let mut ends = Vec::new();
    while records.next().unwrap().is_some() {
        ends.push(records.end() as usize);
    }
    for end in [ends[0], ends[ends.len() / 2], ends[ends.len() - 2]] {
        let cut = image.with(log, bytes[..end].to_vec());
        let (_, report) = salvaged(cut.in_directory().path());
        assert!(names_missing_commits(&report, log), "{end}: {:?}", report.losses);
    }
}

#[test]
fn a_missing_log_that_the_manifest_needs_is_a_loss() {
    let (image, _) = database_under(DEFAULT_SETUP, 1, |writer| {
        writer.commits(20);
        writer.flush();
        writer.commits(3);
    });
    let (mut image, log) = (image.clone(), *logs_of(&image).last().unwrap());
    image.files.retain(|name, _| name.kind != FileKind::Wal);
    let (_, report) = salvaged(image.in_directory().path());
    assert!(names_missing_commits(&report, log), "{:?}", report.losses);
}

#[test]
fn a_closed_database_misses_no_log() {
    for commits in [0, 3, 50] {
        let (image, history) = database_under(DEFAULT_SETUP, 1, |writer| {
            writer.commits(commits);
            writer.db.clone().close().unwrap();
        });
        let (found, report) = salvaged(image.in_directory().path());
        assert!(found == *history.last() && report.losses.is_empty(), "{:?}", report.losses);
    }
}

#[test]
fn a_lost_or_damaged_root_costs_nothing() {
    let (image, history) = database(1);
    let directory = image.in_directory();
    let root = directory.path().join("CURRENT");
    for damage in [None, Some(&b"MANIFEST-000001\n"[..]), Some(b"")] {
        match damage {
            Some(bytes) => std::fs::write(&root, bytes).unwrap(),
            None => std::fs::remove_file(&root).unwrap(),
        }
        let (found, report) = salvaged(directory.path());
        assert!(found == *history.last(), "{}", difference(&found, history.last()));
        assert!(report.losses[0].contains("root"), "{:?}", report.losses);
    }
}

#[test]
fn without_a_manifest_every_run_is_found_by_its_footer() {
    for seed in 1..5 {
        let (image, model) = settled(seed);
        let expected = State::from([("default".to_string(), model)]);
        let name = *image.files.keys().find(|name| name.kind == FileKind::Manifest).unwrap();
        let mut damaged = image.files[&name].to_vec();
        damaged[100] ^= 1;
        let no_root = Image { root: None, ..image.without(name) };
        for image in [image.without(name), image.with(name, damaged), no_root] {
            let (found, report) = salvaged(image.in_directory().path());
            assert!(found == expected, "{}", difference(&found, &expected));
            assert!(!report.losses.is_empty());
        }
    }
}

#[test]
fn runs_before_garbage_at_the_end_of_a_table_are_found() {
    let (image, model) = settled(9);
    let mut image = image.clone();
    for (name, bytes) in image.files.clone() {
        match name.kind {
            FileKind::Manifest => image = image.without(name),
            FileKind::Table => image = image.with(name, [&bytes[..], &[7; 999]].concat()),
            _ => {}
        }
    }
    let (found, report) = salvaged(image.in_directory().path());
    let expected = State::from([("default".to_string(), model)]);
    assert!(found == expected, "{}", difference(&found, &expected));
    assert!(report.losses.iter().any(|loss| loss.contains(".table")));
}

/// A keyspace `users` that was dropped, and a later one of its name; both have entries
/// in a log. Also the table of another keyspace.
fn with_a_dropped_namesake() -> (Image, FileName) {
    let store = Arc::new(MemStore::new(Arc::new(Ledger::default())));
    let db = options().open_in(store.clone(), runtime(1)).unwrap();
    db.put("key", "default").unwrap();
    db.flush().unwrap();
    let table = *Image::of(&*store).files.keys().find(|n| n.kind == FileKind::Table).unwrap();
    for life in ["old", "new"] {
        let users = db.create_keyspace("users", KeyspaceOptions::default()).unwrap();
        for part in ["flushed", "logged"] {
            users.put(format!("{part} {life}"), life).unwrap();
            users.put(part, life).unwrap();
            if part == "flushed" {
                db.flush().unwrap();
            }
        }
        if life == "old" {
            db.drop_keyspace("users").unwrap();
        }
    }
    (Image::of(&*store), table)
}

#[test]
fn a_dropped_keyspace_does_not_come_back_in_its_namesake() {
    let (image, table) = with_a_dropped_namesake();
    // The tree is lost with a table of it, the edits are not.
    let image = image.without(table);
    let manifest = *image.files.keys().find(|name| name.kind == FileKind::Manifest).unwrap();
    let (found, _) = salvaged(image.in_directory().path());
    let expected = ["flushed", "flushed new", "logged", "logged new"];
    let expected = expected.map(|key| (key.as_bytes().to_vec(), b"new".to_vec()));
    assert!(found["users"] == Content::from(expected.clone()), "{:?}", found["users"]);
    // Any edit may be lost too, also the one that drops the keyspace.
    for at in (80..image.files[&manifest].len()).step_by(3) {
        let mut bytes = image.files[&manifest].to_vec();
        bytes[at] ^= 1;
        let (found, _) = salvaged(image.with(manifest, bytes).in_directory().path());
        let Some(users) = found.get("users") else { continue };
        let lives: BTreeSet<&[u8]> = users.values().map(|value| &value[..]).collect();
        assert!(lives.len() < 2, "byte {at}: {users:?}");
    }
}

/// Without manifest and root.
fn without_manifest(image: &Image) -> Image {
    let mut image = Image { root: None, ..image.clone() };
    image.files.retain(|name, _| name.kind != FileKind::Manifest);
    image
}

/// Keyspaces `default` and `users` with a run each, and the log has records of `logged` alone.
fn of_two_keyspaces(logged: &str) -> Image {
    let store = Arc::new(MemStore::new(Arc::new(Ledger::default())));
    let db = options().open_in(store.clone(), runtime(1)).unwrap();
    let users = db.create_keyspace("users", KeyspaceOptions::default()).unwrap();
    for n in 0..50 {
        db.put(format!("default {n}"), "default").unwrap();
        users.put(format!("users {n}"), "users").unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    db.keyspace(logged).unwrap().put("logged", logged).unwrap();
    Image::of(&*store)
}

#[test]
fn without_a_manifest_runs_of_other_keyspaces_than_the_logs_name_are_found_and_reported() {
    let image = without_manifest(&of_two_keyspaces("default"));
    let (found, report) = salvaged(image.in_directory().path());
    let default = &found["default"];
    for n in 0..50 {
        for name in ["default", "users"] {
            let key = format!("{name} {n}").into_bytes();
            assert_eq!(default.get(&key).map(Vec::as_slice), Some(name.as_bytes()));
        }
    }
    assert_eq!(default[&b"logged"[..]], b"default");
    let reported = |part: &str| report.losses.iter().filter(|loss| loss.contains(part)).count();
    assert_eq!(reported("which keyspaces there were"), 1, "{:?}", report.losses);
    assert_eq!(reported("there is no manifest"), 1, "{:?}", report.losses);
}

#[test]
fn without_a_manifest_the_name_of_a_keyspace_in_the_logs_is_a_loss() {
    let image = without_manifest(&of_two_keyspaces("users"));
    let (found, report) = salvaged(image.in_directory().path());
    assert_eq!(found["keyspace-1"][&b"logged"[..]], b"users");
    assert_eq!(found["salvaged"].len(), 100);
    let is_named = |loss: &String| loss.contains("the name and the options of keyspace 1");
    assert!(report.losses.iter().any(is_named), "{:?}", report.losses);
}

#[test]
fn an_invented_name_is_not_that_of_a_keyspace() {
    let store = Arc::new(MemStore::new(Arc::new(Ledger::default())));
    let db = options().open_in(store.clone(), runtime(1)).unwrap();
    let named = db.create_keyspace("salvaged", KeyspaceOptions::default()).unwrap();
    named.put("key", "named").unwrap();
    db.flush().unwrap();
    db.put("other", "default").unwrap();
    db.flush().unwrap();
    let image = Image::of(&*store);
    let manifest = *image.files.keys().find(|name| name.kind == FileKind::Manifest).unwrap();
    let mut unnamed = 0;
    for at in (80..image.files[&manifest].len()).step_by(3) {
        let mut bytes = image.files[&manifest].to_vec();
        bytes[at] ^= 1;
        // Without logs.
        let mut damaged = image.with(manifest, bytes);
        damaged.files.retain(|name, _| name.kind != FileKind::Wal);
        let (found, _) = salvaged(damaged.in_directory().path());
        let mixed = found.get("salvaged").is_some_and(|content| content.len() > 1);
        assert!(!mixed, "byte {at}: {found:?}");
        unnamed += usize::from(found.contains_key("salvaged-2"));
    }
    assert!(unnamed > 0);
}

#[test]
fn salvage_does_not_write_into_a_database() {
    let (image, _) = database(1);
    let (source, target) = (image.in_directory(), image.in_directory());
    let error = shingle::salvage(source.path(), target.path(), &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), base::ErrorKind::AlreadyExists, "{error}");
}
