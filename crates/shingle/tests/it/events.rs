//! Events: the listener learns what `LOG` tells, in the same order, and cannot harm the engine.

use crate::config::Config;
use base::Cause;
use media::faulty::{Effect, Fault, FaultPlan, FaultyStore, Filter, Operation};
use media::mem::MemStore;
use media::{FileKind, Notes};
use parking_lot::Mutex;
use shingle::event::Field;
use shingle::{
    Db, Durability, ErrorKind, Event, EventListener, Options, StallCondition, WriteOptions,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Takes events and their times.
#[derive(Default)]
struct Seen(Mutex<Vec<(Event, u64)>>);

impl EventListener for Seen {
    fn on_event(&self, event: &Event, time_micros: u64) {
        self.0.lock().push((event.clone(), time_micros));
    }
}

impl Seen {
    fn lines(&self) -> Vec<String> {
        let seen = self.0.lock();
        seen.iter().map(|(event, at)| format!("EVENT_LOG_v1 {}", event.to_json(*at))).collect()
    }
}

/// What holds for the events of every database, whatever it does. A violation is a panic of the
/// thread that drops the listener.
#[derive(Default)]
pub struct Lawful(Mutex<Laws>);

#[derive(Default)]
struct Laws {
    /// Jobs in progress, with the name of their first event.
    jobs: BTreeMap<u64, &'static str>,
    last_job: u64,
    condition: Option<StallCondition>,
    violations: Vec<String>,
}

impl EventListener for Lawful {
    fn on_event(&self, event: &Event, _: u64) {
        self.0.lock().take(event);
    }
}

impl Laws {
    fn take(&mut self, event: &Event) {
        let number = |name: &str| {
            event.fields().iter().find_map(|(known, field)| match field {
                Field::Number(number) if known == name => Some(*number),
                _ => None,
            })
        };
        match (event, number("job")) {
            (Event::StallConditionsChanged { condition, previous, .. }, _) => {
                if *previous != self.condition.unwrap_or(StallCondition::Normal) {
                    self.violations.push(format!("a gap before {event:?}"));
                }
                self.condition = Some(*condition);
            }
            (Event::TrivialMove { .. }, Some(job)) => self.last_job = self.last_job.max(job),
            (_, Some(job)) if event.name().ends_with("_started") => {
                // A flush may have several keyspaces: one event for each.
                if job <= self.last_job && self.jobs.get(&job) != Some(&event.name()) {
                    self.violations.push(format!("an old number: {event:?}"));
                }
                self.jobs.insert(job, event.name());
                self.last_job = self.last_job.max(job);
            }
            (_, Some(job)) if !self.jobs.contains_key(&job) => {
                self.violations.push(format!("no job has begun: {event:?}"));
            }
            _ => {}
        }
    }
}

impl Drop for Lawful {
    fn drop(&mut self) {
        let violations = std::mem::take(&mut self.0.lock().violations);
        assert!(violations.is_empty() || std::thread::panicking(), "{violations:#?}");
    }
}

/// Writes, flushes and compacts.
fn work(db: &Db) {
    for round in 0..4u64 {
        for n in 0..500u64 {
            db.put((n * 7 + round).to_be_bytes(), [round as u8; 100]).unwrap();
        }
        db.flush().unwrap();
    }
    db.compact().unwrap();
}

#[test]
fn the_listener_gets_the_lines_of_the_log_in_their_order() {
    let (store, seen) = (MemStore::new(Arc::default()), Arc::new(Seen::default()));
    let db =
        Options::new().event_listener(seen.clone()).open_store(Arc::new(store.clone())).unwrap();
    work(&db);
    let live: BTreeSet<String> = db.files().into_iter().map(|file| file.name).collect();
    let recent = db.events();
    db.close().unwrap();
    let lines = seen.lines();
    assert_eq!(lines[..recent.len()], recent, "the listener has them all, and later ones");
    let tail = String::from_utf8(store.read_note("LOG").unwrap().unwrap()).unwrap();
    assert!(tail.lines().all(|line| lines.iter().any(|other| other == line)), "{tail}");
    assert!(lines.last().unwrap().contains("traffic"), "closing is told before it returns");

    let (mut files, mut started, mut finished) = (BTreeSet::new(), 0, 0);
    for (event, _) in seen.0.lock().iter() {
        match event {
            Event::TableFileCreation { file_number, file_size, .. } => {
                assert!(*file_size > 0);
                files.insert(format!("{file_number:06}.table"));
            }
            Event::TableFileDeletion { file_number, .. } => {
                assert!(files.remove(&format!("{file_number:06}.table")), "{file_number}");
            }
            Event::FlushStarted { .. } | Event::CompactionStarted { .. } => started += 1,
            Event::FlushFinished { .. } | Event::CompactionFinished { .. } => finished += 1,
            _ => {}
        }
    }
    assert_eq!(files, live);
    assert!(started == finished && finished >= 5, "{started} {finished}");
}

/// A listener that reads the database it listens to.
#[derive(Default)]
struct Curious {
    db: Mutex<Option<Db>>,
    calls: AtomicU64,
}

impl EventListener for Curious {
    fn on_event(&self, event: &Event, _: u64) {
        let db = self.db.lock().clone();
        let Some(db) = db else { return };
        let stats = db.stats();
        assert!(stats.ledger.cause(Cause::Wal).write_bytes > 0, "{event:?}");
        db.get("absent").unwrap();
        db.property("rocksdb.num-snapshots").unwrap();
        self.calls.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_listener_may_read_and_ask_for_statistics() {
    let curious = Arc::new(Curious::default());
    let db = Options::new()
        .write_buffer_bytes(64 << 10)
        .background_threads(1)
        .event_listener(curious.clone())
        .open_store(Arc::new(MemStore::new(Arc::default())))
        .unwrap();
    db.put("first", "value").unwrap();
    *curious.db.lock() = Some(db.clone());
    work(&db);
    db.wait_idle().unwrap();
    *curious.db.lock() = None;
    db.close().unwrap();
    assert!(curious.calls.load(Relaxed) >= 4);
}

/// A listener with a defect.
struct Panics;

impl EventListener for Panics {
    fn on_event(&self, event: &Event, _: u64) {
        assert!(event.name() != "flush_finished", "a defect of the program");
    }
}

#[test]
fn a_listener_that_panics_does_not_stop_the_database() {
    let store = MemStore::new(Arc::default());
    let db = Options::new()
        .event_listener(Arc::new(Panics))
        .open_store(Arc::new(store.clone()))
        .unwrap();
    work(&db);
    assert_eq!(db.stats().background_error, None);
    db.close().unwrap();
    let log = String::from_utf8(store.read_note("LOG").unwrap().unwrap()).unwrap();
    let told = log.lines().filter(|line| line.contains("listener_panicked"));
    let told: Vec<&str> = told.collect();
    assert!(told.len() == 1 && told[0].contains("a defect of the program"), "{log}");
}

#[test]
fn stalls_begin_and_end_with_their_reason() {
    let seen = Arc::new(Seen::default());
    let db = Options::new()
        .write_buffer_bytes(16 << 10)
        .event_listener(seen.clone())
        .open_in(
            Arc::new(MemStore::new(Arc::default())),
            Arc::new(shingle::runtime::Stepped::new(1, u64::MAX)),
        )
        .unwrap();
    // Nothing is flushed between operations, so memtables pile up until writes wait; a value larger
    // than the write buffer fills what is left at once.
    for n in 0..2000u64 {
        db.put(n.to_be_bytes(), [1; 100]).unwrap();
    }
    for n in 0..4u64 {
        db.put(n.to_be_bytes(), [1; 20 << 10]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    db.close().unwrap();
    let changes: Vec<_> = seen
        .0
        .lock()
        .iter()
        .filter_map(|(event, _)| match event {
            Event::StallConditionsChanged { condition, previous, reason, .. } => {
                Some((*previous, *condition, *reason))
            }
            _ => None,
        })
        .collect();
    assert_eq!(changes.first().map(|change| change.0), Some(StallCondition::Normal));
    assert_eq!(changes.last().map(|change| change.1), Some(StallCondition::Normal));
    assert!(changes.iter().any(|change| change.1 == StallCondition::Stopped), "{changes:?}");
    let reason = shingle::StallReason::MemoryFull;
    assert!(changes.iter().any(|change| change.2 == reason), "{changes:?}");
    assert!(changes.windows(2).all(|pair| pair[0].1 == pair[1].0), "{changes:?}");
}

/// Writes until writes have waited many times, and waits until they no longer do.
fn stall(db: &Db) {
    for n in 0..2000u64 {
        db.put(n.to_be_bytes(), [1; 100]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

#[test]
fn the_log_has_a_line_of_the_begin_of_a_stall_and_one_of_its_end() {
    let (store, seen) = (MemStore::new(Arc::default()), Arc::new(Seen::default()));
    let runtime = Arc::new(shingle::runtime::Stepped::new(1, u64::MAX));
    let db = Options::new()
        .write_buffer_bytes(16 << 10)
        .event_listener(seen.clone())
        .open_in(Arc::new(store.clone()), runtime.clone())
        .unwrap();
    let of_stalls = |lines: Vec<String>| -> Vec<String> {
        lines.into_iter().filter(|line| line.contains("\"stall_")).collect()
    };
    stall(&db);
    assert_eq!(of_stalls(db.events()).len(), 1, "it may go on within a second");
    stall(&db);
    assert_eq!(of_stalls(db.events()).len(), 1, "it went on");
    let first: Vec<shingle::Stall> = db.stats().stalls;
    runtime.pass(1_000_000_000);
    stall(&db);
    let told = of_stalls(db.events());
    let names = told.iter().map(|line| line.contains("\"stall_finished\"")).collect::<Vec<_>>();
    assert_eq!(names, [false, true, false], "{told:#?}");
    let memory = first.iter().find(|stall| stall.reason == shingle::StallReason::MemoryFull);
    let shingle::Stall { count, ns, .. } = memory.unwrap();
    assert!(*count > 10 && told[1].contains(&format!("\"stall-memory-full\": [{count}, {ns}]")));
    db.close().unwrap();

    let note = |name| String::from_utf8(store.read_note(name).unwrap().unwrap()).unwrap();
    let last = of_stalls(note("LOG").lines().map(String::from).collect()).pop().unwrap();
    assert!(last.contains("\"stall_finished\""), "closing ends a stall: {last}");
    let heard = of_stalls(seen.lines());
    assert!(heard.len() > 20 && told.iter().all(|line| heard.contains(line)), "{}", heard.len());
}

#[test]
fn the_begin_of_a_stall_does_not_wait_for_a_batch_of_lines() {
    let store = MemStore::new(Arc::default());
    let runtime = Arc::new(shingle::runtime::Stepped::new(1, u64::MAX));
    let db = Options::new()
        .write_buffer_bytes(16 << 10)
        .open_in(Arc::new(store.clone()), runtime)
        .unwrap();
    let log = || store.read_note("LOG").unwrap().unwrap_or_default();
    let has_begun = || String::from_utf8(log()).unwrap().contains("stall_conditions_changed");
    for n in 0..2000u64 {
        db.put(n.to_be_bytes(), [1; 100]).unwrap();
        if db.events().iter().any(|line| line.contains("stall_conditions_changed")) {
            break;
        }
    }
    assert!(!has_begun(), "a writer writes no event log");
    db.flush().unwrap();
    assert!(has_begun() && db.events().len() < 64, "{}", db.events().len());
}

#[test]
fn a_poisoned_database_tells_its_error() {
    let (seen, plan) = (Arc::new(Seen::default()), Arc::new(FaultPlan::default()));
    let store = FaultyStore::new(Arc::new(MemStore::new(Arc::default())), plan.clone());
    let db = Options::new()
        .event_listener(seen.clone())
        .open_in(Arc::new(store), Config::draw(1).runtime())
        .unwrap();
    let filter = Filter { operation: Some(Operation::Sync), kind: Some(FileKind::Wal) };
    plan.add(Fault { filter, after: 0, is_sticky: true, effect: Effect::Io });
    let synced = WriteOptions { durability: Some(Durability::Synced), ..WriteOptions::default() };
    db.put_with("key", "value", &synced).unwrap_err();
    assert!(db.close().is_err());
    let seen = seen.0.lock();
    let told = seen.iter().find_map(|(event, _)| match event {
        Event::Poisoned { error, .. } => Some(error.kind()),
        _ => None,
    });
    assert_eq!(told, Some(ErrorKind::Io));
}
