//! Checkpoints, the check of a closed database, and the memory that a hostile one may take.

use crate::build::{Writer, content, database, open, options, runtime, setups};
use crate::image::{everything_in, temporary};
use crate::memory::peak_bytes;
use base::ErrorKind;
use base::random::Random;
use shingle::check_closed;

#[test]
fn a_checkpoint_is_the_moment_of_its_flush_and_stands_alone() {
    for setup in setups() {
        let (home, copies) = (temporary(), temporary());
        let target = copies.path().join("checkpoint");
        let db = setup.options().open(home.path()).unwrap();
        let mut writer = Writer::new(db, 3);
        writer.fill();
        let expected = writer.state.clone();
        writer.db.checkpoint(&target).unwrap();
        let refused = writer.db.checkpoint(&target).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{refused}");
        let before = everything_in(&target);
        writer.fill();
        writer.db.compact().unwrap();
        drop(writer);
        home.close().unwrap();
        let unchanged = everything_in(&target);
        assert!(before.iter().all(|(name, (bytes, _))| unchanged[name].0 == *bytes), "{setup:?}");
        let report = check_closed(&target, &mut |_| {}).unwrap();
        assert!(report.is_clean() && report.entries > 0, "{:?}", report.problems);
        let db = setup.options().create(false).open(&target).unwrap();
        assert!(content(&db).unwrap() == expected, "{setup:?}");
        let mut writer = Writer { db, ..again(expected) };
        writer.fill();
        assert!(content(&writer.db).unwrap() == writer.state, "{setup:?}");
    }
}

/// A writer that goes on from `state`; the caller replaces its database.
fn again(state: crate::build::State) -> Writer {
    let store = crate::image::Image::default().in_memory();
    let db = options().open_in(store, runtime(1)).unwrap();
    let history = crate::build::History { states: vec![state.clone()], ..Default::default() };
    Writer { db, random: Random::new(8), state, history }
}

#[test]
fn the_check_of_a_closed_database_changes_nothing_and_tells_damage() {
    let (image, _) = database(1);
    let directory = image.in_directory();
    let before = everything_in(directory.path());
    assert!(check_closed(directory.path(), &mut |_| {}).unwrap().is_clean());
    for (&name, bytes) in &image.files {
        let mut damaged = bytes.to_vec();
        damaged[bytes.len() / 3] ^= 4;
        let directory = image.with(name, damaged).in_directory();
        let before = everything_in(directory.path());
        let report = check_closed(directory.path(), &mut |_| {}).unwrap();
        let named = report.problems.iter().any(|problem| problem.contains(&name.to_string()));
        let db = open(image.without(name).in_memory(), true);
        assert!(named || db.is_ok() || name.kind == media::FileKind::Wal, "{name}: {report:?}");
        assert!(everything_in(directory.path()) == before);
    }
    assert!(everything_in(directory.path()) == before);
}

#[test]
fn opening_a_hostile_database_takes_little_memory_and_time() {
    let (image, _) = database(1);
    let mut random = Random::new(21);
    let names: Vec<_> = image.files.keys().copied().collect();
    let mut peak = 0;
    for _ in 0..400 * crate::scale() {
        let name = names[random.below(names.len() as u64) as usize];
        let mut bytes = image.files[&name].to_vec();
        for _ in 0..1 + random.below(20) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random.next_u64() as u8][random.below(6) as usize];
        }
        let store = image.with(name, bytes).in_memory();
        let (_, bytes) = peak_bytes(|| {
            if let Ok(db) = open(store, random.one_in(2)) {
                db.iter().count();
                drop(db.check(&mut |_| {}));
            }
        });
        peak = peak.max(bytes);
        assert!(bytes < 32 << 20, "{name}: {bytes} bytes");
    }
    println!("peak memory of opening, scanning and checking: {} KiB", peak >> 10);
}
