//! Change feeds: on every scheme and layout they give what the database holds, over reopenings and
//! beside the writer; a consumer that is too late learns it; a full medium takes the logs back.

use crate::config::Config;
use crate::fault::faulty;
use crate::history::{Generator, profile};
use crate::medium::{Direct, KINDS, Medium};
use crate::mirror::Mirror;
use crate::model::Model;
use crate::run::{Failure, Runner, read_all, replay};
use crate::volume::{ByCell, seeds_for_cells};
use base::random::Random;
use media::faulty::{Effect, Fault, FaultPlan, Filter, Operation as Access};
use media::mem::MemStore;
use media::{FileHint, FileKind, FileName, FileStore};
use parking_lot::Mutex;
use shingle::options::Expert;
use shingle::runtime::Stepped;
use shingle::{
    Cause, Changes, ChangesOptions, Db, ErrorKind, KeyspaceOptions, Operation, Options, Since,
    WriteBatch, WriteOptions,
};
use std::sync::Arc;
use std::time::Duration;

/// Small logs.
fn options(retention_bytes: u64) -> Options {
    Options::new().write_buffer_bytes(16 << 10).changes_retention_bytes(retention_bytes)
}

fn memory() -> Arc<MemStore> {
    Arc::new(MemStore::new(Arc::default()))
}

fn open(store: &Arc<MemStore>, options: Options) -> Db {
    options.open_in(store.clone(), Arc::new(Stepped::new(1, 2))).unwrap()
}

fn fill(db: &Db, keys: std::ops::Range<u32>) {
    for key in keys {
        db.put(format!("key {key:06}"), vec![b'v'; 200]).unwrap();
    }
}

fn keys(changes: &mut Changes) -> Vec<String> {
    let mut keys = Vec::new();
    for change in changes {
        for (_, operation) in change.unwrap().operations() {
            match operation {
                Operation::Put { key, .. } | Operation::Delete { key } => {
                    keys.push(String::from_utf8(key.to_vec()).unwrap());
                }
                other => panic!("{other:?}"),
            }
        }
    }
    keys
}

fn logs(store: &MemStore) -> Vec<FileName> {
    let files = store.list().unwrap();
    files.iter().map(|file| file.name).filter(|name| name.kind == FileKind::Wal).collect()
}

fn bytes_of(store: &MemStore, name: FileName) -> Vec<u8> {
    let file = store.open(name, false).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes, Cause::Check).unwrap();
    bytes
}

fn replace(store: &MemStore, name: FileName, bytes: &[u8]) {
    let _ = store.remove(name);
    let mut file = store.create(name, &FileHint::default()).unwrap();
    file.append(bytes, Cause::Check).unwrap();
    file.sync(Cause::Check).unwrap();
}

/// A consumer beside a history: over reopenings it goes on where it was.
fn mirror_history(config: &Config, seed: u64) -> Result<u64, Failure> {
    let store: Arc<dyn FileStore> = Arc::new(MemStore::new(Arc::default()));
    let model = Arc::new(Mutex::new(Model::new()));
    let mut runner = Runner::open(config, store.clone(), model, seed)?;
    let follower = config.options().follow_in(store, config.runtime())?;
    let (mut mirror, mut behind) = (Mirror::default(), Mirror::default());
    let mut batches = 0;
    for (at, step) in Generator::new(seed, profile(300)).steps().iter().enumerate() {
        runner.step(step)?;
        if at % 11 == 0 {
            batches += mirror.follow(&mut runner.db.changes(mirror.position)?)?;
            // What a drop and a creation make of a keyspace is not in the feed.
            let found = read_all(&runner.db)?;
            let now_ms = config.clock.now_ms();
            mirror.compare(&found, now_ms, |slot| slot != 5)?;
            if batches > 0 {
                behind.follow(&mut follower.changes(behind.position)?)?;
                behind.compare(&found, now_ms, |slot| slot != 5)?;
            }
        }
    }
    runner.finish()?;
    Ok(batches)
}

#[test]
fn all_changes_are_what_the_database_holds_on_every_scheme_and_layout() {
    let mut counts = ByCell::default();
    for seed in seeds_for_cells(24) {
        let mut config = Config::draw(seed);
        config.keeps_changes = true;
        let batches = mirror_history(&config, seed).unwrap_or_else(|failure| {
            panic!("{} {config:?}", replay("all_changes_are", seed, &failure))
        });
        counts.add(&config, batches);
    }
    counts.finish("changes", 50);
}

#[test]
fn changes_come_in_commit_order_with_their_sequence_numbers() {
    let db = open(&memory(), options(1 << 20));
    let users = db.create_keyspace("users", KeyspaceOptions::default()).unwrap();
    let plain = KeyspaceOptions { without_wal: true, ..KeyspaceOptions::default() };
    let unlogged = db.create_keyspace("unlogged", plain).unwrap();
    db.put("a", "1").unwrap();
    unlogged.put("x", "1").unwrap();
    let mut batch = WriteBatch::new();
    batch.delete("a").unwrap();
    users.put("not in the batch", "").unwrap();
    db.write(batch, &WriteOptions::default()).unwrap();
    db.delete_range("b", "c").unwrap();
    let mut changes = db.changes(0).unwrap();
    let shown: Vec<String> =
        changes.by_ref().map(|change| format!("{:?}", change.unwrap())).collect();
    assert_eq!(shown.len(), 4, "{shown:?}");
    assert!(shown[0].starts_with("Change 1..=1 [(\"default\", Put"), "{shown:?}");
    assert!(shown[1].starts_with("Change 3..=3 [(\"users\", Put"), "{shown:?}");
    assert!(shown[2].starts_with("Change 4..=4 [(\"default\", Delete"), "{shown:?}");
    assert!(shown[3].starts_with("Change 5..=5 [(\"default\", DeleteRange"), "{shown:?}");
    assert!(changes.next().is_none());
    // It goes on.
    db.put("later", "").unwrap();
    assert_eq!(keys(&mut changes), ["later"]);
    assert_eq!(changes.sequence(), 6);
    // Those of a dropped keyspace are left out.
    db.drop_keyspace("users").unwrap();
    assert_eq!(db.changes(0).unwrap().count(), 4);
}

#[test]
fn a_feed_resumes_over_reopenings_by_its_sequence_number() {
    let store = memory();
    let db = open(&store, options(1 << 30));
    fill(&db, 0..500);
    let mut first = db.changes(0).unwrap();
    assert_eq!(keys(&mut first).len(), 500);
    let position = first.sequence();
    fill(&db, 500..900);
    db.close().unwrap();
    assert!(first.next().unwrap().is_err_and(|error| error.kind() == ErrorKind::Closed));
    assert!(logs(&store).len() > 3);

    let db = open(&store, options(1 << 30));
    let mut second = db.changes(position).unwrap();
    assert_eq!(keys(&mut second).len(), 400);
    fill(&db, 900..1000);
    assert_eq!(keys(&mut second).first().map(String::as_str), Some("key 000900"));
    assert_eq!(keys(&mut db.changes(Since::Oldest).unwrap()).len(), 1000);
    let stats = db.stats().changes;
    assert_eq!(stats.oldest_sequence, Some(1));
    assert!(stats.logs > 0 && stats.bytes > 500 * 200, "{stats:?}");
    db.close().unwrap();

    // A handle that only reads sees the same.
    let db = open(&store, Options::new().read_only(true));
    assert_eq!(keys(&mut db.changes(position).unwrap()).len(), 500);
    let durable = ChangesOptions::durable();
    let refused = db.changes_with(0, &durable).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
}

#[test]
fn a_late_consumer_learns_the_oldest_sequence_number() {
    let db = open(&memory(), options(64 << 10));
    fill(&db, 0..100);
    let mut slow = db.changes(0).unwrap();
    assert!(slow.next().unwrap().is_ok());
    fill(&db, 100..3000);
    db.flush().unwrap();
    let stats = db.stats().changes;
    let oldest = stats.oldest_sequence.unwrap();
    assert!(stats.bytes <= 64 << 10 && oldest > 1000, "{stats:?}");
    for late in [db.changes(0).err(), db.changes(oldest - 2).err()] {
        let error = late.unwrap();
        assert_eq!(error.kind(), ErrorKind::TooLate);
        let message = error.to_string();
        assert!(message.contains(&format!("after {}", oldest - 1)), "{message}");
        assert!(message.contains("changes_retention_bytes"), "{message}");
    }
    // It has what it had prefetched, and then comes to the end of what is there.
    let mut read = 1;
    let error = loop {
        match slow.next().unwrap() {
            Ok(change) => read = change.last_sequence(),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::TooLate, "{error} after {read}");
    let rest = keys(&mut db.changes(oldest - 1).unwrap());
    assert_eq!(rest.len() as u64, 3000 - (oldest - 1));
    assert_eq!(rest.last().map(String::as_str), Some("key 002999"));
    let beyond = db.changes(1 << 40).err().unwrap();
    assert_eq!(beyond.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn old_logs_go_by_age() {
    let store = memory();
    let runtime = Arc::new(Stepped::new(1, 2));
    let aged = || options(0).changes_retention_age(Duration::from_secs(3600));
    let db = aged().open_in(store.clone(), runtime.clone()).unwrap();
    fill(&db, 0..1000);
    db.flush().unwrap();
    assert_eq!(keys(&mut db.changes(0).unwrap()).len(), 1000);
    let wait = |seconds: u64| {
        use base::env::{Event, Runtime};
        let never = Event::default();
        let deadline_ns = runtime.now_ns() + seconds * 1_000_000_000;
        while runtime.now_ns() < deadline_ns {
            runtime.wait(&never, never.count(), Some(deadline_ns));
        }
    };
    wait(1800);
    fill(&db, 1000..2000);
    db.flush().unwrap();
    assert_eq!(keys(&mut db.changes(0).unwrap()).len(), 2000);
    wait(2000);
    wait(1);
    let oldest = db.stats().changes.oldest_sequence.unwrap();
    assert!((900..1100).contains(&oldest), "{oldest}");
    assert_eq!(db.changes(0).err().unwrap().kind(), ErrorKind::TooLate);
    // The time is in the logs, so it goes on over an opening.
    db.close().unwrap();
    let db = aged().open_in(store.clone(), runtime.clone()).unwrap();
    assert_eq!(db.stats().changes.oldest_sequence, Some(oldest));
    wait(2000);
    wait(1);
    let newest = db.stats().changes.oldest_sequence.unwrap();
    assert!(newest > 1900, "{newest}");
}

#[test]
fn without_retention_no_log_is_kept_and_there_is_no_feed() {
    let store = memory();
    let db = open(&store, options(1 << 30));
    fill(&db, 0..500);
    db.close().unwrap();
    assert!(!logs(&store).is_empty());
    let db = open(&store, options(0));
    assert_eq!(db.changes(0).err().unwrap().kind(), ErrorKind::Unsupported);
    assert_eq!(db.stats().changes.oldest_sequence, None);
    assert!(logs(&store).is_empty());
    fill(&db, 500..600);
    db.close().unwrap();
    assert!(logs(&store).is_empty());
    // What was written meanwhile is in no feed.
    let db = open(&store, options(1 << 30));
    assert_eq!(db.changes(0).err().unwrap().kind(), ErrorKind::TooLate);
    assert_eq!(keys(&mut db.changes(Since::Oldest).unwrap()).len(), 0);
    fill(&db, 600..601);
    assert_eq!(keys(&mut db.changes(Since::Oldest).unwrap()).len(), 1);
}

#[test]
fn a_log_without_batches_does_not_end_the_chain_when_power_is_lost() {
    let store = memory();
    let db = open(&store, options(1 << 30));
    let without_wal = KeyspaceOptions { without_wal: true, ..KeyspaceOptions::default() };
    let other = db.create_keyspace("other", without_wal).unwrap();
    fill(&db, 0..10);
    db.flush().unwrap();
    // Each flush of the other keyspace replaces a log to which nothing was written.
    for _ in 0..3 {
        other.put("a", "1").unwrap();
        db.flush().unwrap();
    }
    db.put_with("last", "1", &WriteOptions::synced()).unwrap();
    let mut random = Random::new(1);
    let left = store.crash_image(&mut random, media::mem::Personality::LoseUnsynced);
    let db = open(&Arc::new(left), options(1 << 30));
    assert_eq!(keys(&mut db.changes(0).unwrap()).len(), 11);
}

#[test]
fn logs_that_an_opening_without_retention_failed_to_remove_are_no_chain() {
    let store = memory();
    let db = open(&store, options(1 << 30));
    fill(&db, 0..100);
    db.close().unwrap();
    let old: Vec<(FileName, Vec<u8>)> =
        logs(&store).into_iter().map(|name| (name, bytes_of(&store, name))).collect();
    let db = open(&store, options(0));
    fill(&db, 100..200);
    db.close().unwrap();
    for (name, bytes) in old {
        replace(&store, name, &bytes);
    }
    let db = open(&store, options(1 << 30));
    assert_eq!(db.changes(0).err().unwrap().kind(), ErrorKind::TooLate);
    assert_eq!(db.changes(Since::Oldest).unwrap().count(), 0);
}

#[test]
fn a_put_that_expires_has_its_moment() {
    let db = open(&memory(), options(1 << 20));
    db.put_with_ttl("a", "1", Duration::from_secs(60)).unwrap();
    db.put("b", "2").unwrap();
    let mut found = Vec::new();
    for change in db.changes(0).unwrap() {
        for (_, operation) in change.unwrap().operations() {
            let Operation::Put { value, expires, .. } = operation else { panic!("{operation:?}") };
            found.push((value.to_vec(), expires.is_some()));
        }
    }
    assert_eq!(found, [(b"1".to_vec(), true), (b"2".to_vec(), false)]);
}

#[test]
fn durable_changes_wait_for_a_sync() {
    let db = open(&memory(), options(1 << 30));
    let durable = ChangesOptions::durable();
    let mut changes = db.changes_with(0, &durable).unwrap();
    db.put("a", "").unwrap();
    assert!(changes.next().is_none());
    assert_eq!(db.changes(0).unwrap().count(), 1);
    db.put_with("b", "", &WriteOptions::synced()).unwrap();
    db.put("c", "").unwrap();
    assert_eq!(keys(&mut changes), ["a", "b"]);
    // A flush makes changes durable too.
    db.flush().unwrap();
    assert_eq!(keys(&mut changes), ["c"]);
}

#[test]
fn garbage_collection_is_no_change_and_takes_no_value_from_a_feed() {
    for values in ["log", "hashed"] {
        let small = |expert: &mut Expert| {
            expert.values.segment_bytes = Some(4096);
            expert.values.log_segment_bytes = Some(4096);
            expert.values.reserved_ratio = Some(0.1);
        };
        let options = options(1 << 30).values(values).value_threshold_bytes(100).expert(small);
        let db = open(&memory(), options);
        let value = |round: u32| format!("{round:>300}");
        for round in 0..20 {
            for key in 0..50 {
                if key % 5 != 0 || round == 0 {
                    db.put(format!("key {key}"), value(round)).unwrap();
                }
            }
            db.flush().unwrap();
            db.wait_idle().unwrap();
        }
        assert!(db.stats().values.collected.count > 0, "{values}: nothing was collected");
        let sequence = db.snapshot().pins().sequence;
        let mut changes = db.changes(0).unwrap();
        let (mut count, mut next) = (0, Vec::new());
        for round in 0..20 {
            let written = (0..50).filter(|key| key % 5 != 0 || round == 0);
            next.extend(written.map(|key| (format!("key {key}"), value(round))));
        }
        for (change, (key, value)) in changes.by_ref().zip(&next) {
            let change = change.unwrap();
            let operation = change.operations().next().unwrap();
            let ("default", Operation::Put { key: found, value: of_it, .. }) = operation else {
                panic!("{operation:?}");
            };
            assert_eq!((found, of_it), (key.as_bytes(), value.as_bytes()));
            count += 1;
        }
        assert_eq!(count, next.len());
        assert!(changes.next().is_none());
        assert!(sequence > count as u64 && changes.sequence() > count as u64, "{values}");
    }
}

/// A process writes `keys`, the sync of the log fails, and the process dies. The system still shows
/// the bytes, and no later sync writes them.
fn die_of_a_failed_sync(store: &Arc<MemStore>, keys: std::ops::Range<u32>) {
    let filter = Filter { operation: Some(Access::Sync), kind: Some(FileKind::Wal) };
    let plan = Arc::new(FaultPlan::default());
    let below = faulty(&**store, &plan).unwrap();
    let db = options(1 << 30).write_buffer_bytes(1 << 20);
    let db = db.open_in(below, Arc::new(Stepped::new(1, 2))).unwrap();
    fill(&db, keys);
    plan.add(Fault { filter, after: 0, is_sticky: false, effect: Effect::Io });
    assert_eq!(db.sync().unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn a_log_whose_sync_failed_is_restated_by_the_next_opening() {
    let store = memory();
    die_of_a_failed_sync(&store, 0..100);
    let before = logs(&store);
    let db = open(&store, options(1 << 30));
    assert!(logs(&store).iter().all(|log| !before.contains(log)), "an old log is still there");
    assert_eq!(keys(&mut db.changes(0).unwrap()).len(), 100);
    db.put_with("key later", "", &WriteOptions::synced()).unwrap();
    for (title, image) in [("dead", store.with_all()), ("off", store.without_unsynced())] {
        let image = Arc::new(image);
        let db = open(&image, options(1 << 30));
        let shown = keys(&mut db.changes(0).unwrap());
        assert_eq!(shown.len(), 101, "{title}: {:?}", shown.last());
        assert_eq!(shown.last().map(String::as_str), Some("key later"), "{title}");
        let report = db.check(&mut |_| {}).unwrap();
        assert!(report.is_clean(), "{title}: {:?}", report.problems);
        db.close().unwrap();
        let db = open(&image, Options::new().read_only(true));
        assert_eq!(keys(&mut db.changes(0).unwrap()), shown, "{title}, read only");
    }
}

#[test]
fn a_follower_s_feed_goes_on_in_the_log_that_restates_its_own() {
    let store = memory();
    die_of_a_failed_sync(&store, 0..100);
    let runtime = Arc::new(Stepped::new(1, 2));
    let follower = Options::new().follow_in(store.clone(), runtime).unwrap();
    let (mut quick, mut slow) = (follower.changes(0).unwrap(), follower.changes(0).unwrap());
    assert!(slow.next().unwrap().is_ok());
    let mut seen = keys(&mut quick);
    assert_eq!(seen.len(), 100);
    for restart in 1..=3 {
        if restart == 2 {
            die_of_a_failed_sync(&store, 200..300);
        }
        let db = open(&store, options(1 << 30));
        seen.extend(keys(&mut quick));
        fill(&db, 100 * restart + 1000..100 * restart + 1100);
        seen.extend(keys(&mut quick));
    }
    let all = keys(&mut follower.changes(0).unwrap());
    assert_eq!((all.len(), &seen), (500, &all));
    assert_eq!(all[1..], keys(&mut slow)[..]);
}

/// At each of its operations, an opening dies that restates logs. No operand counts twice, for the
/// next opening, for the feed and for salvage.
#[test]
fn the_log_that_a_dead_opening_restated_counts_for_no_reader() {
    let store = memory();
    let dying = open(&store, options(1 << 30));
    let sums = KeyspaceOptions { merge_operator: Some("add-u64".into()), ..Default::default() };
    let sums = dying.create_keyspace("sums", sums).unwrap();
    (0..50).for_each(|_| sums.merge("sum", 1u64.to_le_bytes()).unwrap());
    let sum = |db: &Db| {
        let value = db.keyspace("sums").unwrap().get("sum").unwrap().unwrap();
        u64::from_le_bytes(value.as_ref().try_into().unwrap())
    };
    let (mut deaths, mut restated) = (0, 0);
    loop {
        let image = Arc::new(store.with_all());
        let before = logs(&image).len();
        image.stop_after(deaths);
        let runtime = Arc::new(Stepped::new(1, 2));
        if options(1 << 30).open_in(image.clone(), runtime).is_ok() {
            break;
        }
        deaths += 1;
        let image = Arc::new(image.with_all());
        restated += u32::from(logs(&image).len() > before);
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("salvaged");
        let source = Arc::new(image.with_all());
        shingle::salvage_store(source, &target, Options::new(), &mut |_| {}).unwrap();
        assert_eq!(sum(&Options::new().open(&target).unwrap()), 50, "salvage, death {deaths}");
        assert_eq!(sum(&open(&image, Options::new().read_only(true))), 50, "death {deaths}");
        let db = open(&image, options(1 << 30));
        assert_eq!(sum(&db), 50, "death {deaths}");
        assert_eq!(db.changes(0).unwrap().count(), 50, "death {deaths}");
    }
    assert!(deaths > 10 && restated > 2, "{deaths} {restated}");
}

/// Between too little space to open and enough to restate: the changes go, and the feed says so.
#[test]
fn an_opening_on_a_full_medium_gives_up_changes_and_nothing_else() {
    let (mut refused, mut given_up, mut whole) = (0, 0, 0);
    for free_bytes in (0..240u64 << 10).step_by(8 << 10) {
        let store = memory();
        die_of_a_failed_sync(&store, 0..400);
        let used: u64 = store.list().unwrap().iter().map(|file| file.bytes).sum();
        store.set_capacity_bytes(Some(used + free_bytes));
        let opened = options(1 << 30).open_in(store.clone(), Arc::new(Stepped::new(1, 2)));
        store.set_capacity_bytes(None);
        let db = match opened {
            Ok(db) => db,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{free_bytes}: {error}");
                refused += 1;
                open(&store, options(1 << 30))
            }
        };
        assert_eq!(db.iter().count(), 400, "{free_bytes}");
        match db.changes(0) {
            Ok(mut changes) => {
                assert_eq!(keys(&mut changes).len(), 400, "{free_bytes}");
                whole += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TooLate, "{free_bytes}: {error}");
                assert!(db.events().iter().any(|line| line.contains("changes_given_up")));
                given_up += 1;
            }
        }
        db.put("key later", "").unwrap();
        let last = keys(&mut db.changes(Since::Oldest).unwrap()).pop();
        assert_eq!(last.as_deref(), Some("key later"), "{free_bytes}");
    }
    assert!(given_up > 0 && whole > 0, "{refused} {given_up} {whole}");
}

/// The first log after the changes were given up continues none. Where its first record finds no
/// space, the log that continues it names its end as the next opening finds it.
#[test]
fn a_database_that_gave_up_changes_opens_after_a_log_without_records() {
    let mut broken = 0;
    for after in 0..8 {
        let store = memory();
        die_of_a_failed_sync(&store, 0..100);
        let of = |operation| Filter { operation: Some(operation), kind: Some(FileKind::Wal) };
        let no_space = |operation, after| Fault {
            filter: of(operation),
            after,
            is_sticky: false,
            effect: Effect::NoSpace,
        };
        let plan = Arc::new(FaultPlan::default());
        plan.add(no_space(Access::Create, 0));
        let below = faulty(&*store, &plan).unwrap();
        let db = options(1 << 30).open_in(below, Arc::new(Stepped::new(1, 2))).unwrap();
        assert!(db.events().iter().any(|line| line.contains("changes_given_up")));
        plan.add(no_space(Access::Append, after));
        let mut expected = 100;
        for key in ["first", "second", "third"] {
            match db.put(key, "1") {
                Ok(()) => expected += 1,
                Err(error) => assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}"),
            }
        }
        broken += u64::from(expected == 102);
        let image = Arc::new(store.with_all());
        let opened = options(1 << 30).open_in(image, Arc::new(Stepped::new(1, 2)));
        let db = opened.unwrap_or_else(|error| panic!("append {after}: {error}"));
        assert_eq!(db.iter().count(), expected, "append {after}");
        let found = db.changes(Since::Oldest).unwrap().map(Result::unwrap).count();
        assert_eq!(found, expected - 100, "append {after}");
    }
    assert!(broken > 1, "{broken}");
}

/// A device of 32 MiB gets five times as many bytes of the same keys.
#[test]
fn a_full_medium_takes_kept_logs_before_it_refuses_a_write() {
    for kind in [&KINDS[0], &KINDS[10]] {
        let medium = Direct::new(kind);
        let options = options(1 << 40).write_buffer_bytes(1 << 20);
        let db = options.open_in(medium.store().unwrap(), Arc::new(Stepped::new(1, 4))).unwrap();
        let mut value = vec![0; 4000];
        let mut random = Random::new(1);
        for round in 0..40_000u32 {
            random.fill(&mut value);
            let key = format!("key {}", round % 200);
            db.put(key, &value).unwrap_or_else(|error| panic!("{}, {round}: {error}", kind.name));
        }
        let oldest = db.stats().changes.oldest_sequence.unwrap();
        assert!(oldest > 20_000, "{}: {oldest}", kind.name);
        let told = db.events().iter().any(|line| line.contains("changes_given_up"));
        assert!(told, "{}: no event says that logs were removed", kind.name);
        assert_eq!(keys(&mut db.changes(oldest - 1).unwrap()).len() as u64, 40_001 - oldest);
    }
}

#[test]
fn a_waiting_feed_wakes_with_the_commit_and_with_the_close() {
    let store = memory();
    let db = options(1 << 30).open_store(store).unwrap();
    let mut changes = db.changes(0).unwrap();
    assert!(!changes.wait(Duration::from_millis(1)).unwrap());
    let reader = std::thread::spawn(move || {
        let woken = changes.wait(Duration::from_secs(60)).unwrap();
        let first = changes.next().unwrap().unwrap().last_sequence();
        let closed = changes.wait(Duration::from_secs(60)).unwrap_err().kind();
        (woken, first, closed)
    });
    std::thread::sleep(Duration::from_millis(20));
    db.put("a", "").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    db.close().unwrap();
    assert_eq!(reader.join().unwrap(), (true, 1, ErrorKind::Closed));
}

#[test]
fn any_changed_byte_of_a_kept_log_ends_the_feed_and_changes_nothing_else() {
    let store = memory();
    let db = open(&store, options(1 << 30));
    fill(&db, 0..300);
    db.close().unwrap();
    let (mut damaged, mut cut) = (0, 0);
    for name in logs(&store) {
        let bytes = bytes_of(&store, name);
        for at in (0..bytes.len()).step_by(61) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            let copy = Arc::new(store.with_all());
            replace(&copy, name, &bytes);
            let db = open(&copy, options(1 << 30));
            assert_eq!(db.iter().count(), 300);
            let mut changes = match db.changes(0) {
                Ok(changes) => changes,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::TooLate, "{name} at {at}: {error}");
                    cut += 1;
                    continue;
                }
            };
            let mut count = 0;
            let error = loop {
                match changes.next() {
                    Some(Ok(change)) => {
                        count += 1;
                        assert_eq!(change.first_sequence(), count, "{name} at {at}");
                    }
                    Some(Err(error)) => break error,
                    None => panic!("{name} at {at}: {count} changes, and no error"),
                }
            };
            let kind = error.kind();
            assert!(kind == ErrorKind::Corruption || kind == ErrorKind::TooLate, "{error}");
            damaged += 1;
        }
    }
    assert!(damaged > 500 && cut > 20, "{damaged} {cut}");
}

#[test]
fn a_damaged_log_ends_the_feed_with_its_place() {
    let store = memory();
    let db = open(&store, options(1 << 30));
    fill(&db, 0..500);
    db.close().unwrap();
    let name = logs(&store)[0];
    let mut bytes = bytes_of(&store, name);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    replace(&store, name, &bytes);
    let db = open(&store, options(1 << 30));
    let mut changes = db.changes(0).unwrap();
    let error = changes.find_map(Result::err).unwrap();
    assert_eq!((error.kind(), error.file()), (ErrorKind::Corruption, Some(&*name.to_string())));
    assert!(changes.next().unwrap().is_err());
    let report = db.check(&mut |_| {}).unwrap();
    assert!(
        report.problems.iter().any(|problem| problem.contains(&name.to_string())),
        "{report:?}"
    );
    // The rest of the database needs that log no more.
    assert!(db.get("key 000001").unwrap().is_some());
}
