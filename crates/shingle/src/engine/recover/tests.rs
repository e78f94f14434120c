//! Scenarios of recovery, as text: what is on the medium, and what opening gives.
//!
//! The form is that of [`base::scenario`]. With `REWRITE=1` the file is rewritten with what comes
//! out.
//!
//! | command | prints |
//! |---|---|
//! | `medium` + lines | nothing; begins anew with these files, as an engine writes them |
//! | `damage` + lines | nothing; the files of `medium`, and this happened to them |
//! | `open` | what the database contains then, and its files; or the error |
//!
//! Lines of `medium` and of `damage` are described in [`medium`] and [`damage`]. Each `open` also
//! checks what must hold of every opening:
//!
//! - A read-only opening gives the same, and changes nothing.
//! - An opening that fails changes no file.
//! - An opening that is stopped at any operation, with or without power loss, and power loss right
//!   after an opening, lead to the same state again.

mod damage;
mod medium;

use super::{Replayed, find, replay};
use crate::runtime::Stepped;
use crate::{Db, Options};
use base::random::Random;
use base::{Cause, ErrorKind, Ledger, Result};
use damage::damaged;
use media::mem::{MemStore, Personality};
use media::{FileHint, FileName, FileStore};
use medium::{Medium, Records};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Every file of a store, and its root.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
struct Image {
    root: Option<Vec<u8>>,
    files: BTreeMap<FileName, Vec<u8>>,
}

impl Image {
    fn of(store: &dyn FileStore) -> Image {
        let read = |name| {
            let file = store.open(name, false).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_at(0, &mut bytes, Cause::Check).unwrap();
            (name, bytes)
        };
        let files = store.list().unwrap().iter().map(|file| read(file.name)).collect();
        Image { root: store.root().unwrap(), files }
    }

    /// A store in memory that has it durably.
    fn store(&self) -> MemStore {
        let store = MemStore::new(Arc::new(Ledger::default()));
        for (&name, bytes) in &self.files {
            let mut file = store.create(name, &FileHint::default()).unwrap();
            file.append(bytes, Cause::Check).unwrap();
            file.sync(Cause::Check).unwrap();
        }
        store.sync_names().unwrap();
        if let Some(root) = &self.root {
            store.set_root(root).unwrap();
        }
        store
    }
}

fn open(store: &MemStore, read_only: bool) -> Result<Db> {
    // Nothing is written but by the opening itself.
    let options = Options::new().read_only(read_only).expert(|expert| {
        expert.no_threads = true;
        expert.reserve_bytes = Some(0);
    });
    options.open_in(Arc::new(store.clone()), Arc::new(Stepped::new(1, u64::MAX)))
}

/// The entries of every keyspace, a line for each.
fn content(db: &Db) -> String {
    let mut text = String::new();
    for name in db.keyspaces() {
        text.push_str(&format!("{name}:"));
        for entry in db.keyspace(&name).unwrap().iter() {
            match entry {
                Ok((key, value)) => {
                    let (key, value) =
                        (String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
                    text.push_str(&format!(" {key}={value}"));
                }
                Err(error) => text.push_str(&format!(" error: {error}")),
            }
        }
        text.push('\n');
    }
    text
}

fn last_sequence(db: &Db) -> u64 {
    db.default_keyspace().engine().snapshots.visible()
}

/// What an opening leads to, however it is interrupted.
fn state(store: &MemStore, read_only: bool) -> Result<String> {
    let db = open(store, read_only)?;
    Ok(format!("sequence {}\n{}", last_sequence(&db), content(&db)))
}

struct Scene {
    pristine: Image,
    records: Records,
    image: Image,
}

impl Scene {
    fn command(&mut self, line: &str, body: &[&str]) -> String {
        match line {
            "medium" => {
                (self.pristine, self.records) = Medium::build(body);
                self.image = self.pristine.clone();
                String::new()
            }
            "damage" => {
                self.image = self.pristine.clone();
                for line in body {
                    damaged(&mut self.image, &self.records, line);
                }
                String::new()
            }
            "open" => self.open(),
            _ => panic!("no such command: {line}"),
        }
    }

    fn open(&self) -> String {
        let store = self.image.store();
        let found = state(&store, true);
        assert_eq!(Image::of(&store), self.image, "a read-only opening changed something");
        match (found, open(&store, false)) {
            (Ok(expected), Ok(db)) => self.opened(&store, &db, &expected),
            // A database is created.
            (Err(error), Ok(db)) if error.kind() == ErrorKind::NotFound => {
                let expected = format!("sequence 0\n{}", content(&db));
                format!("read-only: {error:?}\n{}", self.opened(&store, &db, &expected))
            }
            (Err(expected), Err(error)) => {
                assert_eq!(Image::of(&store), self.image, "a failed opening changed something");
                assert_eq!(error.to_string(), expected.to_string());
                format!("{error:?}\n")
            }
            (Ok(_), Err(error)) => {
                assert_eq!(Image::of(&store), self.image, "a failed opening changed something");
                format!("read-only alone: {error:?}\n")
            }
            (Err(error), Ok(_)) => panic!("opens, but not read-only: {error}"),
        }
    }

    /// The answer for `db`, which has just been opened in `store`; its state must be `expected`.
    fn opened(&self, store: &MemStore, db: &Db, expected: &str) -> String {
        let (sequence, found) = (last_sequence(db), content(db));
        assert_eq!(format!("sequence {sequence}\n{found}"), expected);
        let files: Vec<String> =
            store.list().unwrap().iter().map(|file| file.name.to_string()).collect();
        let lost = store.crash_image(&mut Random::new(1), Personality::LoseUnsynced);
        assert_eq!(state(&lost, false).unwrap(), expected, "power lost after the opening");
        self.interrupt(expected);
        let lost_logs = self.lost_logs();
        format!("opens: sequence {sequence}{lost_logs}\n{found}files: {}\n", files.join(" "))
    }

    /// Stops an opening at each of its operations; the next one must lead to the same state.
    fn interrupt(&self, expected: &str) {
        for stop in 0.. {
            let store = self.image.store();
            store.stop_after(store.operations() + stop);
            let opened = open(&store, false);
            for personality in Personality::ALL {
                let image = store.crash_image(&mut Random::new(stop), personality);
                match state(&image, false) {
                    Ok(found) => assert_eq!(found, expected, "stopped at {stop}, {personality:?}"),
                    Err(error) => panic!("stopped at {stop}, {personality:?}: {error}"),
                }
            }
            if opened.is_ok() {
                return;
            }
        }
    }

    /// The logs that replay gave up.
    fn lost_logs(&self) -> String {
        let store = self.image.store();
        let Some(found) = find(&store).unwrap() else { return String::new() };
        let Replayed { lost_logs, .. } = replay(&store, &found, 1 << 20).unwrap();
        match &lost_logs[..] {
            [] => String::new(),
            logs => {
                let logs: Vec<String> = logs.iter().map(|log| log.0.to_string()).collect();
                format!(", lost logs {}", logs.join(" "))
            }
        }
    }
}

#[test]
fn recoveries() {
    let path = "src/engine/recover/testdata/recovery.txt";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut scene =
        Scene { pristine: Image::default(), records: Records::default(), image: Image::default() };
    let name = path.display().to_string();
    let out = base::scenario::answered(&text, &name, |line, body| scene.command(line, body));
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, &out).unwrap();
    }
    base::scenario::assert_same(&text, &out, &name);
}
