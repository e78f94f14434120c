//! Garbage collection of values under a schedule explorer. Acts of users happen between any two of
//! its steps and, as another thread's would, during any of its reads, one position after another.
//!
//! Positions are: between two steps; each read that a step makes of the store; and each place where
//! a step is between two reads of what it shares with others in memory (`Runtime::interleave`).
//!
//! Each schedule starts from the same database, in which GC is due. The runtime makes a step only
//! when the explorer says so; the store reports each read of a step. Whatever the schedule, nothing
//! that a user wrote or deleted is lost or comes back, snapshots see what they saw, and every byte
//! of every segment is accounted for at the end.

use crate::script::Script;
use crate::volume::scaled;
use crate::watched::{Hook, Watched};
use base::random::Random;
use base::{Cause, Result};
use media::mem::{MemStore, Personality};
use media::{FileKind, FileStore};
use parking_lot::Mutex;
use shingle::{Db, Durability, Keyspace, KeyspaceOptions, Options, Snapshot};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Weak};

/// What a user does to the key that GC moves, or to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    PutLarge,
    PutSmall,
    Delete,
    Merge,
    Snapshot,
    DropSnapshots,
    /// A value that is in a run before the next look.
    PutAndFlush,
    /// The current memtable is full, and takes no more.
    Seal,
    /// A value in a newer memtable than the current one.
    SealAndPut,
    DeleteRange,
    Flush,
    /// A flush that later steps make, between those of the work in progress.
    AskFlush,
    /// A get, and reads of many keys at one moment, during which the following acts happen.
    Read,
    Reopen,
    /// Power is lost, and with it everything that is not synced.
    Crash,
}

impl Act {
    const ALL: [Act; 15] = [
        Act::PutLarge,
        Act::PutSmall,
        Act::Delete,
        Act::Merge,
        Act::Snapshot,
        Act::DropSnapshots,
        Act::PutAndFlush,
        Act::Seal,
        Act::SealAndPut,
        Act::DeleteRange,
        Act::Flush,
        Act::AskFlush,
        Act::Read,
        Act::Reopen,
        Act::Crash,
    ];

    /// Another thread may do it here. While a step reads the store it may hold locks. Flushes,
    /// which make steps of their own, must not need these locks, or wait for a flush in progress.
    /// GC and users read without locks.
    fn falls(self, here: Here) -> bool {
        match self {
            Act::Read | Act::Reopen | Act::Crash => here == Here::Between,
            Act::DropSnapshots | Act::DeleteRange => !matches!(here, Here::Read(_)),
            Act::PutAndFlush | Act::Flush => match here {
                Here::Between => true,
                Here::Read(cause) => matches!(cause, Cause::Get | Cause::Scan | Cause::ValueGc),
                Here::Place(place) => !place.starts_with("flush:"),
            },
            _ => true,
        }
    }
}

/// The kind of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Here {
    /// Between two steps.
    Between,
    /// A step reads the store.
    Read(Cause),
    /// A step is between two reads of shared state, and holds no lock.
    Place(&'static str),
}

#[derive(Clone, Copy, Debug)]
struct Config {
    layout: &'static str,
    hotness: bool,
}

const CONFIGS: [Config; 3] = [
    Config { layout: "log", hotness: false },
    Config { layout: "hashed", hotness: false },
    Config { layout: "hashed", hotness: true },
];

const KEYSPACE: &str = "values";
const LARGE_BYTES: usize = 200;
const KEYS: u64 = 12;
/// A key whose first value is live, in the oldest segment.
const VICTIM: &[u8] = b"key01";
/// A key without values in segments.
const OTHER: &[u8] = b"other";

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(store: Arc<dyn FileStore>, config: Config, script: &Arc<Script>, ratio: f64) -> Db {
    let options = Options::new()
        .values(config.layout)
        .value_threshold_bytes(64)
        .durability(Durability::Synced)
        .write_buffer_bytes(32 << 10)
        // Look-ups read, so that acts can happen during them.
        .cache_bytes(0)
        .expert(|e| {
            e.memtable_bytes = Some(8 << 10);
            e.scheme.table_bytes_max = Some(8 << 10);
            e.block_bytes = Some(128);
            e.scheme.level_bytes_base = Some(16 << 10);
            e.values.segment_bytes = Some(1 << 10);
            e.values.log_segment_bytes = Some(256);
            e.values.reserved_ratio = Some(ratio);
            e.values.hotness = Some(config.hotness);
        });
    options.open_in(store, script.clone()).unwrap()
}

fn keyspace(db: &Db) -> Keyspace {
    db.keyspace(KEYSPACE).unwrap()
}

/// A database in which GC is due, and its content.
fn prepare(config: Config) -> (MemStore, Content) {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store.clone()), config, &Arc::default(), 100.0);
    let merge_operator = Some("append".into());
    db.create_keyspace(KEYSPACE, KeyspaceOptions { merge_operator, ..Default::default() }).unwrap();
    let values = keyspace(&db);
    let mut content = Content::new();
    // Every later sequence number takes two bytes.
    for _ in 0..150 {
        db.put("number", "small").unwrap();
    }
    let mut put = |n: u64, byte: u8| {
        let (key, value) = (format!("key{n:02}").into_bytes(), vec![byte; LARGE_BYTES]);
        values.put(&key, &value).unwrap();
        content.insert(key, value);
    };
    (0..KEYS).for_each(|n| put(n, b'a'));
    db.flush().unwrap();
    (0..KEYS).step_by(2).for_each(|n| put(n, b'b'));
    db.flush().unwrap();
    values.compact().unwrap();
    db.wait_idle().unwrap();
    assert!(db.stats().values.dead_bytes > 0);
    db.close().unwrap();
    (store, content)
}

/// The database under a schedule, and its expected content.
struct World {
    config: Config,
    script: Arc<Script>,
    store: MemStore,
    hook: Hook,
    db: Option<Db>,
    content: Content,
    snapshots: Vec<(Snapshot, Content)>,
    /// Positions in ascending order, and what happens there.
    schedule: VecDeque<(usize, Act)>,
    position: usize,
    acts: u8,
    /// A read is to be made, during which others may act.
    reads: bool,
    /// What the read may find: the content when it began, and after each act since.
    contents: Vec<Content>,
}

impl World {
    fn open(&mut self) {
        let store =
            Watched { inner: self.store.clone(), hook: self.hook.clone(), in_memory: false };
        self.db = Some(open(Arc::new(store), self.config, &self.script, 0.2));
    }

    fn values(&self) -> Keyspace {
        keyspace(self.db.as_ref().unwrap())
    }

    /// Called at the next position.
    fn pass(&mut self, here: Here) {
        let position = self.position;
        self.position += 1;
        while let Some(&(at, act)) = self.schedule.front()
            && at <= position
            && act.falls(here)
        {
            self.schedule.pop_front();
            self.script.has_second.store(true, SeqCst);
            self.act(act);
            self.contents.push(self.content.clone());
            self.script.has_second.store(false, SeqCst);
            if self.reads {
                break;
            }
        }
    }

    fn act(&mut self, act: Act) {
        self.acts += 1;
        let put = |world: &mut World, bytes: usize| {
            let value = vec![b'0' + world.acts; bytes];
            world.values().put(VICTIM, &value).unwrap();
            world.content.insert(VICTIM.to_vec(), value);
        };
        match act {
            Act::PutLarge => put(self, LARGE_BYTES),
            Act::PutSmall => put(self, 3),
            Act::Delete => {
                self.values().delete(VICTIM).unwrap();
                self.content.remove(VICTIM);
            }
            Act::Merge => {
                self.values().merge(VICTIM, "+").unwrap();
                self.content.entry(VICTIM.to_vec()).or_default().push(b'+');
            }
            Act::Snapshot => {
                let snapshot = self.db.as_ref().unwrap().snapshot().of(&self.values()).unwrap();
                self.snapshots.push((snapshot, self.content.clone()));
            }
            Act::DropSnapshots => {
                self.look_at_snapshots();
                self.snapshots.clear();
            }
            Act::DeleteRange => {
                self.values().delete_range("key01", "key04").unwrap();
                self.content.retain(|key, _| &key[..] < b"key01" || &key[..] >= b"key04");
            }
            Act::PutAndFlush => {
                put(self, LARGE_BYTES);
                self.act(Act::Flush);
            }
            Act::Seal => {
                // Makes sure that the memtable has an entry to seal.
                self.values().put(OTHER, "small").unwrap();
                self.content.insert(OTHER.to_vec(), b"small".to_vec());
                self.contents.push(self.content.clone());
                self.values().seal_for_test().unwrap();
            }
            Act::SealAndPut => {
                self.act(Act::Seal);
                put(self, LARGE_BYTES);
            }
            Act::Flush => self.db.as_ref().unwrap().flush().unwrap(),
            Act::Read => self.reads = true,
            Act::AskFlush => self.values().ask_flush_for_test().unwrap(),
            Act::Reopen => {
                self.look_at_snapshots();
                self.snapshots.clear();
                self.db.take().unwrap().close().unwrap();
                self.open();
            }
            Act::Crash => {
                self.look_at_snapshots();
                self.snapshots.clear();
                let lost = Personality::LoseUnsynced;
                let image = self.store.crash_image(&mut Random::new(1), lost);
                self.store.stop_after(0);
                drop(self.db.take());
                self.store = image;
                self.open();
            }
        }
    }

    fn look_at_snapshots(&self) {
        for (snapshot, content) in &self.snapshots {
            let found = snapshot.iter().map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec())));
            assert_eq!(&found.collect::<Result<Content>>().unwrap(), content, "a snapshot");
        }
    }

    fn look(&self) {
        let values = self.values();
        let found = values.iter().map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec())));
        assert_eq!(found.collect::<Result<Content>>().unwrap(), self.content);
        for (key, value) in &self.content {
            assert_eq!(values.get(key).unwrap().as_deref(), Some(&value[..]));
        }
        assert_eq!(
            values.get(VICTIM).unwrap().as_deref(),
            self.content.get(VICTIM).map(|v| &v[..])
        );
    }

    /// After all work is settled: all garbage is known, no live value counts as garbage, and every
    /// file is listed.
    fn account(&self) {
        let version = self.values().tree_for_test().unwrap();
        let live: u64 = version.segments.iter().map(|segment| segment.live_bytes()).sum();
        let large = self.content.iter().filter(|(_, value)| value.len() >= 64);
        let expected: usize =
            large.map(|(key, value)| values::record::record_bytes(999, key, Some(value))).sum();
        // Tags are no user's values, and go with the next GC of their group.
        let slack = if self.config.hotness { KEYS as usize * 16 } else { 0 };
        assert!(
            (expected..=expected + slack).contains(&(live as usize)),
            "{live} bytes live, {expected} expected: {:?}",
            version.segments
        );
        let listed: u64 = version.segments.iter().map(|segment| segment.bytes).sum();
        let files = self.store.list().unwrap();
        let there = files.iter().filter(|file| file.name.kind == FileKind::Value);
        assert_eq!(there.map(|file| file.bytes).sum::<u64>(), listed, "leaked");
    }

    fn settle(&self) {
        let db = self.db.as_ref().unwrap();
        for _ in 0..4 {
            db.flush().unwrap();
            self.values().compact().unwrap();
            db.wait_idle().unwrap();
        }
    }
}

/// Hands positions inside steps to the world, if no other call holds it. Reads and places of users'
/// own acts, some of which make steps, are no positions.
fn pass_in_step(world: &Weak<Mutex<World>>, script: &Script, here: Here) {
    if script.is_raced()
        && let Some(world) = world.upgrade()
        && let Some(mut world) = world.try_lock()
    {
        world.pass(here);
    }
}

/// Reads as a user does, while others act. Each read finds the whole content of one moment since it
/// began; a snapshot finds that of its own moment.
fn read(world: &Mutex<World>, script: &Script) {
    let begin = |world: &Mutex<World>| {
        let mut world = world.lock();
        world.contents = vec![world.content.clone()];
        world.reads = false;
        (world.values(), world.content.clone())
    };
    let racing = |read: &dyn Fn() -> Content, what: &str, known: &dyn Fn(&Content) -> Content| {
        script.is_reading.store(true, SeqCst);
        let found = read();
        script.is_reading.store(false, SeqCst);
        let contents = std::mem::take(&mut world.lock().contents);
        assert!(contents.iter().any(|content| known(content) == found), "{what}: {found:?}");
    };
    let pairs = |found: shingle::Iter| -> Content {
        found.map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect()
    };
    let keys: Vec<Vec<u8>> = (0..KEYS).map(|n| format!("key{n:02}").into_bytes()).collect();
    let all = |found: Vec<Option<shingle::Bytes>>| -> Content {
        let found = keys.iter().zip(found);
        found.filter_map(|(key, value)| Some((key.clone(), value?.to_vec()))).collect()
    };
    let of_keys = |content: &Content| {
        let known = content.iter().filter(|(key, _)| keys.contains(key));
        known.map(|(key, value)| (key.clone(), value.clone())).collect::<Content>()
    };
    let of_victim = |content: &Content| {
        let value = content.get(VICTIM).cloned();
        value.into_iter().map(|value| (VICTIM.to_vec(), value)).collect::<Content>()
    };
    let (values, _) = begin(world);
    let get = || {
        let value = values.get(VICTIM).unwrap();
        value.into_iter().map(|value| (VICTIM.to_vec(), value.to_vec())).collect()
    };
    racing(&get, "a get", &of_victim);
    let (values, _) = begin(world);
    racing(&|| all(values.multi_get(&keys).unwrap()), "a get of many", &of_keys);
    let (values, _) = begin(world);
    racing(&|| pairs(values.iter()), "a scan", &Content::clone);
    let (values, now) = begin(world);
    let snapshot = values.snapshot();
    racing(&|| pairs(snapshot.iter()), "a scan of a snapshot", &|_| now.clone());
    let (_, _) = begin(world);
    racing(&|| all(snapshot.multi_get(&keys).unwrap()), "a snapshot", &|_| of_keys(&now));
}

/// Runs one schedule. Returns its number of positions.
fn explore(config: Config, start: &(MemStore, Content), schedule: &[(usize, Act)]) -> usize {
    let script = Arc::<Script>::default();
    let store = start.0.crash_image(&mut Random::new(1), Personality::KeepAll);
    let world = Arc::new_cyclic(|weak: &Weak<Mutex<World>>| {
        let (world, of_step) = (weak.clone(), Arc::downgrade(&script));
        script.at_place(Arc::new(move |place| {
            let script = of_step.upgrade();
            script.iter().for_each(|script| pass_in_step(&world, script, Here::Place(place)));
        }));
        let (world, of_step) = (weak.clone(), script.clone());
        let hook: Hook = Arc::new(move |request| {
            let cause = request.cause.into_iter();
            cause.for_each(|cause| pass_in_step(&world, &of_step, Here::Read(cause)));
        });
        Mutex::new(World {
            config,
            script: script.clone(),
            store,
            hook,
            db: None,
            content: start.1.clone(),
            snapshots: Vec::new(),
            schedule: schedule.iter().copied().collect(),
            position: 0,
            acts: 0,
            reads: false,
            contents: Vec::new(),
        })
    });
    world.lock().open();
    for steps in 0.. {
        assert!(steps < 5000, "it goes on for ever");
        world.lock().pass(Here::Between);
        while world.lock().reads {
            read(&world, &script);
            world.lock().pass(Here::Between);
        }
        if !script.step() {
            let mut world = world.lock();
            let Some((_, act)) = world.schedule.pop_front() else { break };
            world.act(act);
        }
    }
    let mut world = world.lock();
    world.look();
    world.look_at_snapshots();
    world.settle();
    world.look();
    world.look_at_snapshots();
    world.snapshots.clear();
    // Values that only snapshots kept are found at the next writes of their keys.
    world.act(Act::Delete);
    world.settle();
    world.look();
    let report = world.db.as_ref().unwrap().check(&mut |_| {}).unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    world.account();
    let positions = world.position;
    world.act(Act::Reopen);
    world.look();
    positions
}

fn explore_named(config: Config, start: &(MemStore, Content), schedule: &[(usize, Act)]) -> usize {
    let run = std::panic::AssertUnwindSafe(|| explore(config, start, schedule));
    std::panic::catch_unwind(run).unwrap_or_else(|_| panic!("{config:?}, {schedule:?}"))
}

/// The copies of GC look like garbage until the tree points to them. Regression: a second GC gave
/// them up, and the values that pointers named by then were lost.
#[test]
fn gc_leaves_what_a_running_gc_has_written() {
    for config in CONFIGS {
        let (script, start) = (Arc::default(), prepare(config).0);
        let db = open(Arc::new(start), config, &script, 0.2);
        let mut seen = 0;
        loop {
            let segments = keyspace(&db).tree_for_test().unwrap().segments.clone();
            let due = keyspace(&db).due_collection_for_test().unwrap();
            for segment in segments.iter().filter(|segment| segment.is_provisional) {
                let id = segment.file.id;
                assert!(due.as_ref().is_none_or(|due| !due.files.contains(&id)), "{config:?}");
                seen += 1;
            }
            if !script.step() {
                break;
            }
        }
        assert!(seen > 0, "{config:?}");
    }
}

#[test]
fn one_act_of_a_user_at_any_position_of_gc() {
    let mut count = 0;
    for config in CONFIGS {
        let start = prepare(config);
        let positions = explore_named(config, &start, &[]);
        assert!(positions > 10, "{positions} positions");
        for at in 0..=positions {
            for act in Act::ALL {
                explore_named(config, &start, &[(at, act)]);
                count += 1;
            }
        }
        println!("{config:?}: {positions} positions");
    }
    println!("{count} schedules");
}

/// A read takes its parts from memory one by one. A view and a sequence number that did not belong
/// together would show a state that never existed.
#[test]
fn acts_of_users_at_any_position_of_a_read() {
    let mut schedules = Vec::new();
    for config in CONFIGS {
        let start = prepare(config);
        let positions = explore_named(config, &start, &[]);
        for at in 0..=positions {
            let alone = explore_named(config, &start, &[(at, Act::Read)]);
            for into in at + 1..=at + (alone - positions) {
                let pairs = [
                    [Act::SealAndPut, Act::AskFlush],
                    [Act::PutLarge, Act::PutAndFlush],
                    [Act::Merge, Act::SealAndPut],
                    [Act::Delete, Act::Flush],
                    [Act::DeleteRange, Act::Seal],
                ];
                schedules.extend(pairs.map(|acts| (config, at, into, acts)));
            }
        }
    }
    let starts = CONFIGS.map(prepare);
    let stride = (schedules.len() as u64 / scaled(400)).max(1) as usize;
    for (config, at, into, acts) in schedules.iter().step_by(stride | 1) {
        let index = CONFIGS
            .iter()
            .position(|other| other.layout == config.layout && other.hotness == config.hotness);
        let schedule = [(*at, Act::Read), (*into, acts[0]), (*into + 1, acts[1])];
        explore_named(*config, &starts[index.unwrap()], &schedule);
    }
    println!("{} of {} schedules", schedules.len() / (stride | 1), schedules.len());
}

/// A flush continues a segment that GC wrote, and adds values that are older than the listing of
/// the copies. A snapshot may need them when GC reads that segment in turn.
#[test]
fn a_snapshot_sees_what_a_flush_added_to_the_segments_of_gc() {
    for config in CONFIGS {
        let start = prepare(config);
        let positions = explore_named(config, &start, &[]);
        for at in 0..=positions {
            let mut schedule = vec![(at, Act::PutLarge), (at, Act::Snapshot)];
            schedule.extend([(usize::MAX, Act::PutAndFlush); 12]);
            explore_named(config, &start, &schedule);
        }
    }
}

#[test]
fn two_acts_of_users_at_any_positions_of_gc() {
    let (mut count, mut all) = (0, 0);
    let wanted = scaled(600);
    for config in CONFIGS {
        let start = prepare(config);
        let positions = explore_named(config, &start, &[]);
        let firsts = (0..=positions).flat_map(|at| Act::ALL.map(|act| (at, act)));
        let pairs: Vec<_> = firsts
            .flat_map(|first| {
                let seconds = first.0..=positions;
                seconds.flat_map(move |at| Act::ALL.map(|act| [first, (at, act)]))
            })
            .collect();
        // All of them when the volume is large enough, else a sample from everywhere.
        let stride = (pairs.len() as u64 / wanted).max(1) as usize;
        for pair in pairs.iter().step_by(stride | 1) {
            explore_named(config, &start, pair);
            count += 1;
        }
        all += pairs.len();
    }
    println!("{count} of {all} schedules");
}
