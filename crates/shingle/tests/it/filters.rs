//! Compaction filters: what they see, what they decide, and what happens when they fail.

use crate::script::Script;
use media::mem::MemStore;
use parking_lot::Mutex;
use shingle::runtime::Stepped;
use shingle::{
    CleanupStats, CompactionFilter, Db, Error, FilterDecision, FilterEntry, Keyspace,
    KeyspaceOptions, Options, Result, Snapshot,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

const LAYOUTS: [&str; 3] = ["inline", "log", "hashed"];

/// Drops values that begin with `d`, replaces those with `r`, keeps the others. Notes what it sees.
#[derive(Default)]
struct Letters {
    seen: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    keeps_all: AtomicBool,
    fails: AtomicBool,
    panics: AtomicBool,
}

impl CompactionFilter for Letters {
    fn name(&self) -> &str {
        "letters"
    }

    fn filter(&self, entry: &FilterEntry<'_>) -> Result<FilterDecision> {
        if self.fails.load(SeqCst) {
            return Err(Error::invalid("out of ink"));
        }
        assert!(!self.panics.load(SeqCst), "out of paper");
        let value = entry.value()?;
        self.seen.lock().insert(entry.key().to_vec(), value.to_vec());
        Ok(match value.first().filter(|_| !self.keeps_all.load(SeqCst)) {
            Some(b'd') => FilterDecision::Drop,
            Some(b'r') => FilterDecision::Replace([b"x", &value[1..]].concat()),
            _ => FilterDecision::Keep,
        })
    }
}

fn options(scheme: &str, values: &str, filter: &Arc<Letters>) -> Options {
    let options = Options::new().scheme(scheme).values(values).value_threshold_bytes(16);
    options.compaction_filter(filter.clone()).write_buffer_bytes(16 << 10).expert(|e| {
        e.scheme.table_bytes_max = Some(4096);
        e.values.log_segment_bytes = Some(4096);
    })
}

fn create(db: &Db, merge_operator: Option<&str>) -> Keyspace {
    let options = KeyspaceOptions {
        compaction_filter: Some("letters".into()),
        merge_operator: merge_operator.map(str::to_string),
        ..KeyspaceOptions::default()
    };
    db.create_keyspace("letters", options).unwrap()
}

/// `count` values of 40 bytes for each letter.
fn fill(letters: &Keyspace, count: u64) {
    for n in 0..count {
        for letter in ["d", "k", "r"] {
            letters.put(format!("{letter}{n:04}"), letter.repeat(40)).unwrap();
        }
    }
}

fn verify_filtered(letters: &Keyspace, count: u64) {
    let pairs: Vec<_> = letters.iter().map(Result::unwrap).collect();
    assert_eq!(pairs.len() as u64, 2 * count);
    for (key, value) in pairs {
        let first = if key[0] == b'r' { b'x' } else { b'k' };
        assert_eq!((value[0], value.len()), (first, 40), "{key:?}");
    }
}

fn cleanup(db: &Db) -> CleanupStats {
    let mut all = db.stats().cleanup;
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn a_filter_keeps_drops_and_replaces_under_every_scheme_and_layout() {
    for scheme in tree::policy::registry() {
        for values in LAYOUTS {
            let filter = Arc::<Letters>::default();
            let store = MemStore::new(Arc::default());
            let open = || {
                let options = options(scheme.name, values, &filter);
                options.open_in(Arc::new(store.clone()), Arc::new(Stepped::new(1, 4))).unwrap()
            };
            let db = open();
            let letters = create(&db, None);
            fill(&letters, 100);
            letters.compact().unwrap();
            verify_filtered(&letters, 100);
            let of = cleanup(&db);
            assert_eq!((of.keyspace.as_str(), of.lacks_filter), ("letters", false));
            assert_eq!((of.filter_dropped, of.filter_replaced), (100, 100), "{of:?}");
            assert!(of.filter_kept >= 100, "{of:?}");
            assert!(db.stats().to_json().contains("\"filter_dropped\": 100"));
            assert!(db.stats().to_string().contains("100 dropped, 100 replaced"));
            assert!(db.check(&mut |_| {}).unwrap().is_clean());
            drop((letters, db));
            verify_filtered(&open().keyspace("letters").unwrap(), 100);
        }
    }
}

#[test]
fn a_flush_asks_no_filter_and_a_compaction_asks_about_the_newest_version_alone() {
    let filter = Arc::<Letters>::default();
    let options = options("leveled", "inline", &filter);
    let db =
        options.open_in(Arc::new(MemStore::new(Arc::default())), Arc::new(Stepped::new(1, 1000)));
    let db = db.unwrap();
    let letters = create(&db, Some("append"));
    letters.put("key", "d old").unwrap();
    letters.put("key", "k new").unwrap();
    letters.put("gone", "d").unwrap();
    letters.delete("gone").unwrap();
    letters.put_with_ttl("over", "d", Duration::ZERO).unwrap();
    db.flush().unwrap();
    assert_eq!(filter.seen.lock().len(), 0);
    letters.put("based", "d base").unwrap();
    db.flush().unwrap();
    // Operands on a value that expires stay operands.
    letters.put_with_ttl("held", "d held", Duration::from_secs(1000)).unwrap();
    letters.merge("held", "+").unwrap();
    letters.merge("based", "+").unwrap();
    letters.compact().unwrap();
    let seen: Vec<_> = filter.seen.lock().clone().into_iter().collect();
    assert_eq!(seen, [(b"key".to_vec(), b"k new".to_vec())]);
    assert_eq!(letters.get("based").unwrap().as_deref(), Some(&b"d base+"[..]));
    // Merged by now: the next compaction shows the result.
    letters.compact().unwrap();
    assert_eq!(letters.get("based").unwrap(), None);
    assert_eq!(letters.get("held").unwrap().as_deref(), Some(&b"d held+"[..]));
}

#[test]
fn a_replaced_value_keeps_its_expiry() {
    for values in LAYOUTS {
        let filter = Arc::<Letters>::default();
        let options = options("leveled", values, &filter);
        let store = Arc::new(MemStore::new(Arc::default()));
        let db = options.open_in(store, Arc::new(Stepped::new(1, 4))).unwrap();
        let letters = create(&db, None);
        letters.put_with_ttl("key", "r".repeat(40), Duration::from_secs(1000)).unwrap();
        let (_, before) = letters.get_with_expiry("key").unwrap().unwrap();
        letters.compact().unwrap();
        let (value, after) = letters.get_with_expiry("key").unwrap().unwrap();
        assert_eq!((value[0], after, after.is_some()), (b'x', before, true), "{values}");
    }
}

#[test]
fn what_a_snapshot_shows_is_shown_to_no_filter() {
    for values in LAYOUTS {
        let filter = Arc::<Letters>::default();
        let store = Arc::new(MemStore::new(Arc::default()));
        let options = options("leveled", values, &filter);
        let db = options.open_in(store, Arc::new(Stepped::new(1, 4))).unwrap();
        let letters = create(&db, None);
        fill(&letters, 50);
        let snapshot = db.snapshot().of(&letters).unwrap();
        letters.compact().unwrap();
        letters.put("d newer", "d").unwrap();
        letters.compact().unwrap();
        assert_eq!(filter.seen.lock().keys().collect::<Vec<_>>(), [&b"d newer".to_vec()]);
        assert_eq!((snapshot.iter().count(), letters.iter().count()), (150, 150));
        drop(snapshot);
        letters.compact().unwrap();
        verify_filtered(&letters, 50);
    }
}

/// A snapshot that is taken while a compaction works shows what it showed before, for as long as it
/// lives.
#[test]
fn a_snapshot_taken_during_a_compaction_goes_on_to_show_what_the_filter_drops() {
    for values in LAYOUTS {
        let filter = Arc::<Letters>::default();
        let (store, script) = (Arc::new(MemStore::new(Arc::default())), Arc::<Script>::default());
        let db = options("leveled", values, &filter).open_in(store, script.clone()).unwrap();
        let letters = create(&db, None);
        fill(&letters, 50);
        let taken = Arc::new(Mutex::new(None::<Snapshot>));
        let (user, keyspace, slot) = (db.clone(), letters.clone(), taken.clone());
        script.at_place(Arc::new(move |place| {
            if place == "compaction: before it is part of the tree" {
                slot.lock().get_or_insert_with(|| user.snapshot().of(&keyspace).unwrap());
            }
        }));
        letters.compact().unwrap();
        script.at_place(Arc::new(|_| {}));
        let snapshot = taken.lock().take().expect("a compaction ended");
        assert!(letters.get("d0001").unwrap().is_none());
        for _ in 0..2 {
            assert_eq!(snapshot.iter().count(), 150, "{values}");
            assert_eq!(snapshot.get("d0001").unwrap().as_deref(), Some(&[b'd'; 40][..]));
            assert_eq!(snapshot.get("r0001").unwrap().as_deref(), Some(&[b'r'; 40][..]));
            fill(&letters, 50);
            letters.compact().unwrap();
        }
        let later = db.snapshot().of(&letters).unwrap();
        assert!(later.get("d0001").unwrap().is_none());
        drop(snapshot);
        drop(later);
        letters.compact().unwrap();
        verify_filtered(&letters, 50);
        assert!(db.check(&mut |_| {}).unwrap().is_clean());
    }
}

/// A scan of the keyspace steps over what the filter dropped, at the sequence number of a snapshot
/// from before.
#[test]
fn what_a_filter_dropped_stays_in_the_scans_of_earlier_snapshots() {
    let filter = Arc::<Letters>::default();
    let (store, script) = (Arc::new(MemStore::new(Arc::default())), Arc::<Script>::default());
    let db = options("leveled", "inline", &filter).open_in(store, script.clone()).unwrap();
    // So that what is dropped becomes a deletion, which stays.
    let keeps = KeyspaceOptions {
        compaction_filter: Some("letters".into()),
        ingests_below: true,
        ..KeyspaceOptions::default()
    };
    let letters = db.create_keyspace("letters", keeps).unwrap();
    fill(&letters, 50);
    let taken = Arc::new(Mutex::new(None::<Snapshot>));
    let (user, keyspace, slot) = (db.clone(), letters.clone(), taken.clone());
    script.at_place(Arc::new(move |place| {
        if place == "compaction: before it is part of the tree" {
            slot.lock().get_or_insert_with(|| user.snapshot().of(&keyspace).unwrap());
        }
    }));
    letters.compact().unwrap();
    script.at_place(Arc::new(|_| {}));
    let snapshot = taken.lock().take().expect("a compaction ended");
    assert_eq!(letters.iter().count(), 100);
    assert_eq!(snapshot.iter().count(), 150);
    assert_eq!(letters.iter().count(), 100);
}

/// A filter's decision leaves no newer entry, so GC put the pointer of a dropped value back.
#[test]
fn garbage_collection_does_not_undo_what_a_filter_decides_meanwhile() {
    for values in ["log", "hashed"] {
        let filter = Arc::<Letters>::default();
        filter.keeps_all.store(true, SeqCst);
        let (store, script) = (Arc::new(MemStore::new(Arc::default())), Arc::<Script>::default());
        let db = options("leveled", values, &filter).open_in(store, script.clone()).unwrap();
        let letters = create(&db, None);
        let compacting = Arc::new(Mutex::new(None::<JoinHandle<Result<()>>>));
        let (keyspace, second, begins) = (letters.clone(), script.clone(), filter.clone());
        let slot = compacting.clone();
        script.at_place(Arc::new(move |place| {
            let is_first =
                place == "collect: before pointers change" && begins.keeps_all.swap(false, SeqCst);
            if is_first {
                second.has_second.store(true, SeqCst);
                let compacted = keyspace.clone();
                *slot.lock() = Some(std::thread::spawn(move || compacted.compact()));
                while keyspace.get("d0000").unwrap().is_some() {
                    std::thread::yield_now();
                }
            }
        }));
        for round in 0..200 {
            for n in 0..50 {
                if round == 0 {
                    letters.put(format!("d{n:04}"), "d".repeat(40)).unwrap();
                    letters.put(format!("r{n:04}"), "r".repeat(40)).unwrap();
                }
                letters.put(format!("k{n:04}"), "k".repeat(40)).unwrap();
            }
            db.flush().unwrap();
            db.wait_idle().unwrap();
            if !filter.keeps_all.load(SeqCst) {
                break;
            }
        }
        let compacting = compacting.lock().take();
        compacting.expect("pointers changed").join().expect("no panic").unwrap();
        verify_filtered(&letters, 50);
    }
}

#[test]
fn a_filter_that_fails_or_panics_fails_its_compaction_and_loses_nothing() {
    let filter = Arc::<Letters>::default();
    let store = Arc::new(MemStore::new(Arc::default()));
    let runtime = Arc::new(Stepped::new(1, 4));
    let db = options("leveled", "inline", &filter).open_in(store, runtime.clone()).unwrap();
    let letters = create(&db, None);
    fill(&letters, 100);
    for (flag, why) in [(&filter.fails, "out of ink"), (&filter.panics, "it panicked")] {
        flag.store(true, SeqCst);
        let error = letters.compact().unwrap_err();
        for part in ["`letters`", "at key ", why] {
            assert!(error.message().contains(part), "{error}");
        }
        assert_eq!(letters.iter().count(), 300);
        assert_eq!(cleanup(&db).filter_dropped, 0);
        // Other keyspaces go on, and so do writes.
        db.put("other", "value").unwrap();
        db.compact().unwrap();
        letters.put("k more", "k").unwrap();
        letters.delete("k more").unwrap();
        flag.store(false, SeqCst);
        runtime.pass(1_000_000_000_000);
    }
    letters.compact().unwrap();
    verify_filtered(&letters, 100);
}

#[test]
fn a_process_that_does_not_know_the_filter_goes_on_without_it() {
    let filter = Arc::<Letters>::default();
    let store = MemStore::new(Arc::default());
    let db = options("leveled", "inline", &filter)
        .open_in(Arc::new(store.clone()), Arc::new(Stepped::new(1, 4)))
        .unwrap();
    let letters = create(&db, None);
    fill(&letters, 10);
    drop((letters, db));
    let db = Options::new().open_in(Arc::new(store.clone()), Arc::new(Stepped::new(1, 4))).unwrap();
    let letters = db.keyspace("letters").unwrap();
    letters.compact().unwrap();
    assert_eq!(letters.iter().count(), 30);
    assert!(cleanup(&db).lacks_filter);
    assert!(db.stats().to_string().contains("its compaction filter is not known"));
    drop((letters, db));
    let db = options("leveled", "inline", &filter)
        .open_in(Arc::new(store), Arc::new(Stepped::new(1, 4)))
        .unwrap();
    let letters = db.keyspace("letters").unwrap();
    letters.compact().unwrap();
    verify_filtered(&letters, 10);
}
