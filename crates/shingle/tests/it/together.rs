//! Databases that share their memory, their threads and the limit of their background work.

use base::env::{Event, Runtime, Worker};
use base::random::Random;
use media::FileKind;
use media::faulty::{Effect, Fault, FaultPlan, FaultyStore, Filter, Operation};
use media::mem::MemStore;
use parking_lot::Mutex;
use shingle::{Db, KeyspaceOptions, Options, ResourceLimits, Resources, WriteBatch, WriteOptions};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const MEMORY_BYTES: u64 = 10 << 20;
const DATABASES: usize = 100;

fn resources() -> Resources {
    let (background_threads, background_bytes_per_second) = (2, 0);
    Resources::within(&ResourceLimits {
        memory_bytes: MEMORY_BYTES,
        background_threads,
        background_bytes_per_second,
    })
}

fn opened(root: &Path, shared: &Resources, count: usize) -> Vec<Db> {
    let open = |index| Options::new().resources(shared).open(root.join(format!("{index}")));
    (0..count).map(|index| open(index).unwrap()).collect()
}

/// Threads of this process whose names begin so.
#[cfg(target_os = "linux")]
fn threads(start: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.starts_with(start)).count()
}

#[test]
fn many_databases_stay_within_one_budget_and_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let shared = resources();
    let databases = opened(dir.path(), &shared, DATABASES);
    #[cfg(target_os = "linux")]
    assert!(threads("shingle-pool") >= 2);
    let without_log = KeyspaceOptions { without_wal: true, ..KeyspaceOptions::default() };
    for db in &databases {
        db.create_keyspace("entries", without_log.clone()).unwrap();
    }
    let mut random = Random::new(7);
    let mut written = vec![0u32; DATABASES];
    let mut most_bytes = 0;
    for _ in 0..60_000 {
        // Most writes go to a few of them.
        let index = (random.below(DATABASES as u64) * random.below(100) / 100) as usize;
        let db = &databases[index];
        let entries = db.keyspace("entries").unwrap();
        let number = written[index];
        let mut batch = WriteBatch::new();
        batch.put_in(&entries, number.to_be_bytes(), [number as u8; 1000]).unwrap();
        db.write(batch, &WriteOptions::default()).unwrap();
        written[index] += 1;
        most_bytes = most_bytes.max(shared.memtable_bytes());
    }
    // Memtables have 20 %, and writers wait at 40 %; a commit tells of 64 KiB at once.
    let slack = (DATABASES as u64) * (64 << 10);
    assert!(most_bytes <= MEMORY_BYTES * 2 / 5 + slack, "{most_bytes}");
    assert!(most_bytes > MEMORY_BYTES / 10, "{most_bytes}: the test writes too little");
    for db in databases {
        db.close().unwrap();
    }
    assert_eq!(shared.memtable_bytes(), 0);
    for (db, written) in opened(dir.path(), &shared, DATABASES).iter().zip(written) {
        let entries = db.keyspace("entries").unwrap();
        let found = entries.iter().map(|entry| entry.unwrap().0.to_vec());
        let expected = (0..written).map(|number| number.to_be_bytes().to_vec());
        assert!(found.eq(expected));
        assert!(db.check(&mut |_| {}).unwrap().problems.is_empty());
    }
}

#[test]
fn a_flush_of_one_database_is_not_held_up_by_a_limit_that_others_have_reached() {
    let dir = tempfile::tempdir().unwrap();
    let limits = ResourceLimits {
        memory_bytes: MEMORY_BYTES,
        background_threads: 1,
        background_bytes_per_second: 1, // the first compaction exhausts it for the whole test
    };
    let shared = Resources::within(&limits);
    let databases = opened(dir.path(), &shared, 2);
    for number in 0..3000u32 {
        databases[0].put((number % 100).to_be_bytes(), [1; 1000]).unwrap();
        if number % 100 == 99 {
            databases[0].flush().unwrap();
        }
    }
    for _ in 0..20 {
        databases[1].put("key", "value").unwrap();
        databases[1].flush().unwrap();
    }
    let waited: u64 = databases.iter().map(|db| db.stats().limit_wait_ns).sum();
    assert!(waited > 0, "nothing was limited");
}

/// Takes turns as a pool does: a step must not wait.
#[derive(Default)]
struct Turns {
    now_ns: AtomicU64,
    worker: Mutex<Option<Arc<dyn Worker>>>,
}

impl Turns {
    fn worker(&self) -> Arc<dyn Worker> {
        self.worker.lock().clone().unwrap()
    }

    /// Makes steps until one finds nothing to do.
    fn steps(&self) -> usize {
        let worker = self.worker();
        (0..1000).take_while(|_| worker.step()).count()
    }
}

impl Runtime for Turns {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(SeqCst)
    }
    fn wall_micros(&self) -> u64 {
        0
    }
    fn random_u64(&self) -> u64 {
        7
    }
    fn wait(&self, _event: &Event, _seen: u64, _deadline_ns: Option<u64>) {
        panic!("a step waits, and holds up a thread that others need");
    }
    fn start(&self, worker: Arc<dyn Worker>, _workers: usize) {
        *self.worker.lock() = Some(worker);
    }
    fn wake(&self) {}
    fn waits_in_steps(&self) -> bool {
        false
    }
    fn stop(&self) {
        *self.worker.lock() = None;
    }
}

#[test]
fn a_database_whose_flushes_fail_holds_up_no_thread_of_the_others() {
    let plan = Arc::new(FaultPlan::default());
    let store = MemStore::new(Arc::default());
    let faulty = FaultyStore::new(Arc::new(store), plan.clone());
    let turns = Arc::<Turns>::default();
    let db = Options::new().open_in(Arc::new(faulty), turns.clone()).unwrap();
    turns.steps();
    db.put("key", "value").unwrap();
    let filter = Filter { operation: Some(Operation::Create), kind: Some(FileKind::Table) };
    plan.add(Fault { filter, after: 0, is_sticky: true, effect: Effect::NoSpace });
    db.begin_flush().unwrap();
    turns.steps();
    let failures = plan.failures();
    assert!(failures > 0);
    assert!(db.stats().background_error.is_some());
    // Until the pause is over, the turns of the database do nothing.
    assert_eq!((turns.steps(), plan.failures()), (0, failures));
    let pause_ns = turns.worker().next_ns().expect("a time for the next try");
    turns.now_ns.fetch_add(pause_ns, SeqCst);
    plan.clear();
    assert!(turns.steps() > 0);
    assert!(db.stats().background_error.is_none());
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}

#[test]
fn an_option_that_is_shared_is_the_one_of_the_resources() {
    let dir = tempfile::tempdir().unwrap();
    let shared = resources();
    let options = Options::new().memory_bytes(900 << 20).background_threads(60).resources(&shared);
    let db = options.open(dir.path()).unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let capacity = db.property("rocksdb.block-cache-capacity").unwrap();
    assert!(capacity.parse::<u64>().unwrap() <= MEMORY_BYTES, "{capacity}");
    #[cfg(target_os = "linux")]
    assert!(threads("shingle-59") == 0);
}
