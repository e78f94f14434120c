//! A close concurrent with every other call. All changes of the store have ended before the lock is
//! given back, and the next opening finds everything that was acknowledged.
//!
//! Each call is stopped before each of its changes of the store, one after another, until the close
//! has ended, or waits. A runtime without workers leaves all work to the calls.

use crate::guarded::{Guarded, Watch};
use base::env::{Event, Runtime, Worker};
use media::mem::MemStore;
use shingle::{Db, ErrorKind, KeyspaceOptions, Options, Result};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

/// Stops one thread before one of its changes.
#[derive(Default)]
struct Turnstile {
    state: Mutex<Position>,
    moved: Condvar,
}

#[derive(Default)]
struct Position {
    /// The thread that is counted, and the number of changes that may pass.
    thread: Option<(ThreadId, u64)>,
    /// The thread is stopped before the change.
    is_held: bool,
    /// The close has ended, or waits for another thread.
    is_open: bool,
    /// The call waits for another thread.
    is_waiting: bool,
    /// The call has ended.
    is_over: bool,
    /// The closer, which is stopped before its next change until the call is stopped, or over.
    closer: Option<ThreadId>,
}

impl Turnstile {
    fn count(&self, thread: ThreadId, passes: u64) {
        *self.state.lock().unwrap() =
            Position { thread: Some((thread, passes)), ..Position::default() };
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        if state.closer == Some(std::thread::current().id()) {
            state.closer = None;
            let goes_on = |state: &mut Position| !state.is_held && !state.is_over;
            let wait = Duration::from_secs(2);
            state = self.moved.wait_timeout_while(state, wait, goes_on).unwrap().0;
        }
        let Some((thread, passes)) = &mut state.thread else { return };
        if *thread != std::thread::current().id() {
            return;
        }
        match passes.checked_sub(1) {
            Some(left) => *passes = left,
            None => {
                state.thread = None;
                state.is_held = true;
                self.moved.notify_all();
                // A close that waits for a lock of the stopped thread cannot report that.
                let wait = Duration::from_millis(5);
                drop(self.moved.wait_timeout_while(state, wait, |state| !state.is_open).unwrap());
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Position)) {
        change(&mut self.state.lock().unwrap());
        self.moved.notify_all();
    }

    /// Waits until the call is stopped, or waits itself, or is over; returns whether it is stopped.
    fn arrival(&self) -> bool {
        let state = self.state.lock().unwrap();
        let goes_on = |state: &mut Position| !state.is_held && !state.is_waiting && !state.is_over;
        self.moved.wait_while(state, goes_on).unwrap().is_held
    }
}

/// Threads that wait for each other, and no workers.
#[derive(Default)]
struct Idle {
    now_ns: AtomicU64,
    turnstile: Arc<Turnstile>,
    closer: Mutex<Option<ThreadId>>,
}

impl Runtime for Idle {
    fn now_ns(&self) -> u64 {
        self.now_ns.fetch_add(100, SeqCst)
    }
    fn wall_micros(&self) -> u64 {
        0
    }
    fn random_u64(&self) -> u64 {
        self.now_ns()
    }
    fn wait(&self, event: &Event, seen: u64, _deadline_ns: Option<u64>) {
        let is_closer = *self.closer.lock().unwrap() == Some(std::thread::current().id());
        self.turnstile.change(|state| match is_closer {
            true => state.is_open = true,
            false => state.is_waiting = true,
        });
        event.block(seen, Some(5_000_000));
    }
    fn start(&self, _worker: Arc<dyn Worker>, _workers: usize) {}
    fn wake(&self) {}
    fn stop(&self) {}
}

fn options(no_threads: bool) -> Options {
    Options::new().values("hashed").value_threshold_bytes(64).write_buffer_bytes(16 << 10).expert(
        |e| {
            e.no_threads = no_threads;
            e.memtable_bytes = Some(4 << 10);
            e.scheme.table_bytes_max = Some(2 << 10);
            e.scheme.level_bytes_base = Some(4 << 10);
            e.values.segment_bytes = Some(1 << 10);
        },
    )
}

struct World {
    store: MemStore,
    watch: Arc<Watch>,
    runtime: Arc<Idle>,
    db: Db,
}

fn world(no_threads: bool) -> World {
    let store = MemStore::new(Arc::default());
    let runtime = Arc::new(Idle::default());
    let turnstile = runtime.turnstile.clone();
    let guarded = Guarded::calling(Arc::new(store.clone()), Arc::new(move |_| turnstile.pass()));
    let watch = guarded.watch.clone();
    let db = options(no_threads).open_in(Arc::new(guarded), runtime.clone()).unwrap();
    db.create_keyspace("old", KeyspaceOptions::default()).unwrap();
    for n in 0..40u64 {
        db.put(n.to_be_bytes(), [n as u8; 100]).unwrap();
    }
    World { store, watch, runtime, db }
}

type Call = fn(&Db) -> Result<()>;

const CALLS: [(&str, Call); 11] = [
    ("flush", |db| db.flush()),
    ("begin_flush", |db| db.begin_flush()),
    ("compact", |db| db.compact()),
    ("wait_idle", |db| db.wait_idle()),
    ("sync", |db| db.sync()),
    ("put", |db| (0..30u64).try_for_each(|n| db.put(n.to_be_bytes(), [7; 300]))),
    ("delete_range", |db| db.delete_range([0; 8], [0xff; 8])),
    ("create", |db| db.create_keyspace("new", KeyspaceOptions::default()).map(drop)),
    ("drop", |db| db.drop_keyspace("old")),
    ("threshold", |db| db.keep_value_threshold(99)),
    ("check", |db| db.check(&mut |_| {}).map(drop)),
];

/// Runs `call`, with a close that comes when the call is stopped before change `passes`. `false`:
/// the call makes fewer changes.
fn interrupted(no_threads: bool, name: &str, call: Call, passes: u64) -> bool {
    let World { store, watch, runtime, db } = world(no_threads);
    let turnstile = runtime.turnstile.clone();
    let (user, closer) = (db.clone(), db);
    let is_held = std::thread::scope(|scope| {
        let (of_call, of_close) = (turnstile.clone(), turnstile.clone());
        let called = scope.spawn(move || {
            of_call.count(std::thread::current().id(), passes);
            let ended = call(&user);
            of_call.change(|state| state.is_over = true);
            ended
        });
        let is_held = turnstile.arrival();
        let watch = watch.clone();
        let closed = scope.spawn(move || {
            *runtime.closer.lock().unwrap() = Some(std::thread::current().id());
            let closed = closer.close();
            assert!(watch.is_given_back());
            of_close.change(|state| state.is_open = true);
            closed
        });
        closed.join().unwrap().unwrap_or_else(|error| panic!("{name}, {passes}: {error}"));
        let ended = called.join().unwrap();
        let kind = ended.as_ref().err().map(|error| error.kind());
        assert!(kind.is_none_or(|k| k == ErrorKind::Closed), "{name}, {passes}: {ended:?}");
        is_held
    });
    assert!(watch.violations().is_empty(), "{name}, {passes}: {:?}", watch.violations());
    let db = options(true).open_in(Arc::new(store), Arc::new(Idle::default())).unwrap();
    assert!(db.check(&mut |_| {}).unwrap().is_clean(), "{name}, {passes}");
    if name != "delete_range" {
        assert_eq!(db.iter().map(Result::unwrap).count(), 40, "{name}, {passes}");
    }
    is_held
}

#[test]
fn a_close_gives_the_lock_back_after_the_last_change_of_others() {
    for no_threads in [true, false] {
        for (name, call) in CALLS {
            let positions = (0..60).take_while(|&n| interrupted(no_threads, name, call, n)).count();
            println!("{name}: {positions} positions");
            let waits = ["wait_idle", "check"].contains(&name) || !no_threads;
            assert!(positions > 0 || waits, "{name} changes nothing");
        }
    }
}

/// Calls wait for workers that never come, and then for a close, which does the work that they wait
/// for.
#[test]
fn calls_that_wait_for_workers_leave_the_work_to_a_close() {
    for (name, call) in [CALLS[0], CALLS[1], CALLS[2]] {
        let World { store, watch, runtime, db } = world(false);
        let user = db.clone();
        let ended = std::thread::scope(|scope| {
            let turnstile = runtime.turnstile.clone();
            let called = scope.spawn(move || {
                let ended = call(&user);
                turnstile.change(|state| state.is_over = true);
                ended
            });
            runtime.turnstile.arrival();
            // None of its changes may pass once the close has begun.
            runtime.turnstile.count(called.thread().id(), 0);
            let turnstile = runtime.turnstile.clone();
            let closer = Some(std::thread::current().id());
            *runtime.closer.lock().unwrap() = closer;
            turnstile.change(|state| state.closer = closer);
            db.close().unwrap();
            turnstile.change(|state| state.is_open = true);
            called.join().unwrap()
        });
        let kind = ended.as_ref().err().map(|error| error.kind());
        assert!(kind.is_none_or(|k| k == ErrorKind::Closed), "{name}: {ended:?}");
        assert!(name != "flush" || ended.is_ok(), "{ended:?}");
        assert!(watch.violations().is_empty(), "{name}: {:?}", watch.violations());
        let db = options(true).open_in(Arc::new(store), Arc::new(Idle::default())).unwrap();
        assert_eq!(db.iter().map(Result::unwrap).count(), 40, "{name}");
    }
}
