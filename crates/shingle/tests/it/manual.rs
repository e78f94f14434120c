//! Compactions that a caller asks for: they end with the call, and in spite of writes.

use crate::script::Script;
use base::Cause;
use base::env::{Event as Waited, Runtime, Worker};
use base::random::Random;
use media::faulty::{Effect, Fault, FaultPlan, FaultyStore, Filter, Operation};
use media::mem::MemStore;
use media::{FileKind, FileStore};
use parking_lot::Mutex;
use shingle::runtime::{Stepped, Threads};
use shingle::{Compression, Db, ErrorKind, Event, EventListener, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use tree::policy::registry;

const SECOND_NS: u64 = 1_000_000_000;
const KEYS: u64 = 20_000;
/// After this number of merges no one writes any more.
const MERGES_MAX: u64 = 2000;
/// After this number of writes a writer ends.
const WRITES_MAX: u64 = 2_000_000;

fn options(scheme: &str) -> Options {
    let options = Options::new().scheme(scheme).compression(Compression::None);
    options.write_buffer_bytes(64 << 10).expert(|e| {
        e.memtable_bytes = Some(16 << 10);
        e.scheme.table_bytes_max = Some(8 << 10);
        e.scheme.level_bytes_base = Some(32 << 10);
    })
}

fn put(db: &Db, n: u64, value: u8) -> shingle::Result<()> {
    db.put(n.to_be_bytes(), [value; 100])
}

/// Makes the background steps of a minute.
fn pass_a_minute(runtime: &Stepped) {
    for _ in 0..600 {
        runtime.pass(SECOND_NS / 10);
        (0..20).for_each(|_| runtime.turn());
    }
}

/// Regression: the background tried a compaction that had failed again, for ever. On a full medium
/// it filled up what space there was each time.
#[test]
fn a_compaction_that_fails_is_over_with_its_call() {
    let plan = Arc::new(FaultPlan::default());
    let store = FaultyStore::new(Arc::new(MemStore::new(Arc::default())), plan.clone());
    let runtime = Arc::new(Stepped::new(1, 1));
    let db = options("leveled").open_in(Arc::new(store), runtime.clone()).unwrap();
    (0..3000).for_each(|n| put(&db, n * 7919 % 3000, 1).unwrap());
    db.wait_idle().unwrap();
    put(&db, 7, 2).unwrap();
    db.flush().unwrap();
    pass_a_minute(&runtime);
    let names = || db.files().into_iter().map(|file| file.name).collect::<Vec<_>>();
    let before = names();

    let filter = Filter { operation: Some(Operation::Append), kind: Some(FileKind::Table) };
    plan.add(Fault { filter, after: 0, is_sticky: true, effect: Effect::NoSpace });
    assert_eq!(db.compact().unwrap_err().kind(), ErrorKind::NoSpace);
    let appends = plan.count(filter);
    pass_a_minute(&runtime);
    assert_eq!(plan.count(filter), appends, "the background went on");
    plan.clear();
    pass_a_minute(&runtime);
    assert_eq!(names(), before, "the background compacted what no caller waits for");
    db.compact().unwrap();
    assert_ne!(names(), before);
}

/// Counts merges.
#[derive(Default)]
struct Merges(AtomicU64);

impl EventListener for Merges {
    fn on_event(&self, event: &Event, _: u64) {
        if event.name() == "compaction_finished" {
            self.0.fetch_add(1, SeqCst);
        }
    }
}

/// While a call waits, others write more after each merge.
#[derive(Default)]
struct Busy {
    script: Script,
    merges: Arc<Merges>,
    db: Mutex<Option<Arc<Db>>>,
    seen: AtomicU64,
    is_writing: AtomicBool,
    random: AtomicU64,
}

impl Busy {
    fn write_if_due(&self) {
        let merges = self.merges.0.load(SeqCst);
        let is_due = merges != self.seen.load(SeqCst) && merges < MERGES_MAX;
        let db = self.db.lock().clone().filter(|_| is_due);
        if self.is_writing.load(SeqCst) {
            return;
        }
        let Some(db) = db else { return };
        self.seen.store(merges, SeqCst);
        self.is_writing.store(true, SeqCst);
        let mut random = Random::new(self.random.fetch_add(1, SeqCst));
        for _ in 0..30 {
            put(&db, random.below(KEYS), 2).unwrap_or_else(|error| panic!("{error}"));
        }
        db.begin_flush().unwrap_or_else(|error| panic!("{error}"));
        self.is_writing.store(false, SeqCst);
    }
}

impl Runtime for Busy {
    fn now_ns(&self) -> u64 {
        self.script.now_ns()
    }
    fn wall_micros(&self) -> u64 {
        self.script.wall_micros()
    }
    fn random_u64(&self) -> u64 {
        self.script.random_u64()
    }
    fn wait(&self, event: &Waited, seen: u64, deadline_ns: Option<u64>) {
        while event.count() == seen {
            if self.script.depth.load(SeqCst) == 0 {
                self.write_if_due();
            }
            if !self.script.step() {
                return self.script.wait(event, seen, deadline_ns);
            }
        }
    }
    fn start(&self, worker: Arc<dyn Worker>, workers: usize) {
        self.script.start(worker, workers);
    }
    fn wake(&self) {}
    fn stop(&self) {
        self.script.stop();
    }
}

/// Moves are in progress all the time, in other threads.
#[test]
fn a_compaction_ends_beside_a_writer() {
    let keys = KEYS / 4;
    for scheme in registry() {
        let store: Arc<dyn FileStore> = Arc::new(MemStore::new(Arc::default()));
        let options = options(scheme.name).background_threads(2);
        let db = options.open_in(store, Arc::new(Threads::new())).unwrap();
        (0..keys).for_each(|n| put(&db, n * 7919 % keys, 1).unwrap());
        let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random::new(7);
                while !is_over.load(SeqCst) && written.fetch_add(1, SeqCst) < WRITES_MAX {
                    put(&db, random.below(keys), 2).unwrap();
                }
            });
            db.compact().unwrap();
            is_over.store(true, SeqCst);
        });
        let written = written.load(SeqCst);
        assert!(written < WRITES_MAX, "{}: it waited for the last write", scheme.name);
    }
}

/// Regression: each flush gave the compaction more to do.
#[test]
fn a_compaction_ends_while_others_write() {
    for scheme in registry() {
        let runtime = Arc::new(Busy::default());
        let store: Arc<dyn FileStore> = Arc::new(MemStore::new(Arc::default()));
        let options = options(scheme.name).event_listener(runtime.merges.clone());
        let db = Arc::new(options.open_in(store, runtime.clone()).unwrap());
        (0..KEYS).for_each(|n| put(&db, n * 7919 % KEYS, 1).unwrap());
        let written = |cause: Cause| db.stats().ledger.cause(cause).write_bytes;
        let compacted = || (0..8).map(|level| written(Cause::Compaction(level))).sum::<u64>();
        let before_bytes = compacted();
        let before = runtime.merges.0.load(SeqCst);
        runtime.seen.store(before, SeqCst);
        *runtime.db.lock() = Some(db.clone());
        db.compact().unwrap();
        *runtime.db.lock() = None;
        let merges = runtime.merges.0.load(SeqCst) - before;
        let bytes = compacted() - before_bytes;
        assert!(merges > 0 && merges < 300, "{}: {merges} merges", scheme.name);
        assert!(bytes < 3 * KEYS * 110, "{}: {bytes} bytes", scheme.name);
        assert_eq!(db.iter().map(Result::unwrap).count() as u64, KEYS, "{}", scheme.name);
    }
}
