//! Transactions: the known anomalies as scenarios, one by one; then random histories whose
//! dependencies must form no cycle.

use crate::config::Config;
use media::mem::MemStore;
use shingle::runtime::Stepped;
use shingle::{
    Db, ErrorKind, Isolation, KeyspaceOptions, Options, Transaction, TransactionOptions,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub const SNAPSHOT: TransactionOptions =
    TransactionOptions { isolation: Isolation::Snapshot, lock_timeout: None };
pub const SERIALIZABLE: TransactionOptions =
    TransactionOptions { isolation: Isolation::Serializable, lock_timeout: None };

fn locking(timeout_ms: u64) -> TransactionOptions {
    let lock_timeout = Some(Duration::from_millis(timeout_ms));
    TransactionOptions { lock_timeout, ..TransactionOptions::default() }
}

fn open() -> Db {
    Options::new().open_store(Arc::new(MemStore::new(Arc::default()))).unwrap()
}

/// A database with the keys `1` (10) and `2` (20), and two transactions.
fn two(options: TransactionOptions) -> (Db, Transaction, Transaction) {
    let db = open();
    db.put("1", "10").unwrap();
    db.put("2", "20").unwrap();
    let (one, other) = (db.transaction_with(options), db.transaction_with(options));
    (db, one, other)
}

fn value(transaction: &mut Transaction, key: &str) -> String {
    let value = transaction.get(key).unwrap();
    value.map_or("-".into(), |value| String::from_utf8_lossy(&value).into())
}

fn all(db: &Db) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    db.iter().map(Result::unwrap).map(|(key, value)| (text(&key), text(&value))).collect()
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn conflict(committed: shingle::Result<()>) -> Vec<u8> {
    let error = committed.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    error.key().expect("a conflict names its key").to_vec()
}

const BOTH: [TransactionOptions; 2] = [SERIALIZABLE, SNAPSHOT];

/// G0, dirty writes: the writes of two transactions never mix.
#[test]
fn write_cycles_do_not_happen() {
    for options in BOTH {
        let (db, mut one, mut other) = two(options);
        one.put("1", "11").unwrap();
        other.put("1", "12").unwrap();
        one.put("2", "21").unwrap();
        one.commit().unwrap();
        other.put("2", "22").unwrap();
        let later = other.commit();
        match options.isolation {
            // Blind writes: the second simply comes later.
            Isolation::Serializable => later.unwrap(),
            Isolation::Snapshot => assert_eq!(conflict(later), b"1"),
        }
        let expected = match options.isolation {
            Isolation::Serializable => pairs(&[("1", "12"), ("2", "22")]),
            Isolation::Snapshot => pairs(&[("1", "11"), ("2", "21")]),
        };
        assert_eq!(all(&db), expected);
    }
}

/// G1a and G1b: no transaction reads what was discarded, or what is not the final value.
#[test]
fn aborted_and_intermediate_writes_are_never_read() {
    for options in BOTH {
        let (db, mut one, mut other) = two(options);
        one.put("1", "101").unwrap();
        assert_eq!(value(&mut other, "1"), "10");
        drop(one);
        assert_eq!(value(&mut other, "1"), "10");
        other.commit().unwrap();
        let mut writer = db.transaction_with(options);
        let mut reader = db.transaction_with(options);
        writer.put("1", "101").unwrap();
        assert_eq!(value(&mut reader, "1"), "10");
        writer.put("1", "11").unwrap();
        writer.commit().unwrap();
        assert_eq!(value(&mut reader, "1"), "10");
        assert_eq!(db.get("1").unwrap().as_deref(), Some(&b"11"[..]));
    }
}

/// G1c, circular information flow.
#[test]
fn two_transactions_do_not_read_each_other() {
    for options in BOTH {
        let (_, mut one, mut other) = two(options);
        one.put("1", "11").unwrap();
        other.put("2", "22").unwrap();
        assert_eq!((value(&mut one, "2"), value(&mut other, "1")), ("20".into(), "10".into()));
        one.commit().unwrap();
        let later = other.commit();
        match options.isolation {
            Isolation::Serializable => assert_eq!(conflict(later), b"1"),
            Isolation::Snapshot => later.unwrap(),
        }
    }
}

/// PMP, predicate-many-preceders: a range that was read, and into which another writes.
#[test]
fn a_phantom_in_a_range_that_was_read_is_a_conflict() {
    let (db, mut one, _) = two(SERIALIZABLE);
    assert_eq!(one.range("1".."5").unwrap().count(), 2);
    one.put("sum", "30").unwrap();
    db.put("3", "30").unwrap();
    assert_eq!(conflict(one.commit()), b"3");
}

#[test]
fn a_deletion_in_a_range_that_was_read_is_a_conflict() {
    let (db, mut one, mut other) = two(SERIALIZABLE);
    assert_eq!(one.iter().unwrap().rev().count(), 2);
    one.put("sum", "30").unwrap();
    assert_eq!(other.range("2".."3").unwrap().count(), 1);
    other.put("other", "20").unwrap();
    db.delete_range("1", "15").unwrap();
    assert_eq!(conflict(one.commit()), b"1");
    other.commit().unwrap();
}

#[test]
fn what_a_scan_did_not_reach_is_no_conflict() {
    let (db, mut one, mut other) = two(SERIALIZABLE);
    let first = one.iter().unwrap().next().unwrap().unwrap();
    assert_eq!(&first.0[..], b"1");
    one.put("first", "10").unwrap();
    let last = other.iter().unwrap().next_back().unwrap().unwrap();
    assert_eq!(&last.0[..], b"2");
    other.put("last", "20").unwrap();
    db.put("15", "x").unwrap();
    one.commit().unwrap();
    // `first` came behind the last key that was read.
    assert_eq!(conflict(other.commit()), b"first");
}

#[test]
fn a_missing_key_that_was_read_is_watched() {
    let (db, mut one, mut other) = two(SERIALIZABLE);
    assert_eq!(value(&mut one, "name"), "-");
    assert_eq!(value(&mut other, "name"), "-");
    one.put("name", "one").unwrap();
    other.put("name", "other").unwrap();
    other.commit().unwrap();
    assert_eq!(conflict(one.commit()), b"name");
    assert_eq!(db.get("name").unwrap().as_deref(), Some(&b"other"[..]));
}

/// P4.
#[test]
fn updates_are_not_lost() {
    for options in BOTH {
        let (_, mut one, mut other) = two(options);
        assert_eq!((value(&mut one, "1"), value(&mut other, "1")), ("10".into(), "10".into()));
        one.put("1", "11").unwrap();
        other.put("1", "11").unwrap();
        one.commit().unwrap();
        assert_eq!(conflict(other.commit()), b"1");
    }
}

/// G-single, read skew.
#[test]
fn reads_are_of_one_moment() {
    for options in BOTH {
        let (_, mut one, mut other) = two(options);
        assert_eq!(value(&mut one, "1"), "10");
        other.put("1", "12").unwrap();
        other.put("2", "18").unwrap();
        other.commit().unwrap();
        assert_eq!(value(&mut one, "2"), "20");
        assert_eq!(one.iter().unwrap().map(Result::unwrap).count(), 2);
        one.commit().unwrap();
    }
}

/// G2-item, write skew: the one anomaly that tells the two isolations apart.
#[test]
fn write_skew_needs_the_weaker_isolation() {
    for options in BOTH {
        let (db, mut one, mut other) = two(options);
        for transaction in [&mut one, &mut other] {
            assert_eq!(value(transaction, "1"), "10");
            assert_eq!(value(transaction, "2"), "20");
        }
        one.put("1", "0").unwrap();
        other.put("2", "0").unwrap();
        one.commit().unwrap();
        let later = other.commit();
        match options.isolation {
            Isolation::Serializable => assert_eq!(conflict(later), b"1"),
            Isolation::Snapshot => {
                later.unwrap();
                assert_eq!(all(&db), pairs(&[("1", "0"), ("2", "0")]));
            }
        }
    }
}

#[test]
fn reading_for_update_protects_at_the_weaker_isolation() {
    let (_, mut one, mut other) = two(SNAPSHOT);
    one.get_for_update("2").unwrap();
    other.get_for_update("1").unwrap();
    one.put("1", "0").unwrap();
    other.put("2", "0").unwrap();
    one.commit().unwrap();
    assert_eq!(conflict(other.commit()), b"1");
}

#[test]
fn reading_for_update_is_checked_without_a_write() {
    for options in BOTH {
        let (db, mut one, mut other) = two(options);
        one.get_for_update("1").unwrap();
        other.get_for_update("2").unwrap();
        other.set_savepoint();
        other.put("3", "taken back").unwrap();
        assert!(other.roll_back());
        db.put("1", "11").unwrap();
        assert_eq!(conflict(one.commit()), b"1", "{options:?}");
        other.commit().unwrap();
    }
}

/// A scan that is open goes on at its moment. Reading for update with locks moved the transaction
/// to a newer one, and what the scan showed later was compared with the wrong moment.
#[test]
fn an_open_scan_does_not_mix_two_moments() {
    let (db, mut one, _) = two(locking(1000));
    let mut scan = one.iter().unwrap();
    assert_eq!(scan.next().unwrap().unwrap().0[..], b"1"[..]);
    let mut batch = shingle::WriteBatch::new();
    batch.put("2", "21").unwrap();
    batch.put("3", "31").unwrap();
    db.write(batch, &Default::default()).unwrap();
    // It cannot show the new value of 3 beside the old one of 2.
    assert_eq!(one.get_for_update("3").unwrap_err().kind(), ErrorKind::Conflict);
    drop(one);

    // Where nothing changed that it shows, the scan goes on, and so does the transaction.
    let mut one = db.transaction_with(locking(1000));
    let mut scan = one.iter().unwrap();
    scan.next().unwrap().unwrap();
    db.put("9", "late").unwrap();
    assert_eq!(one.get_for_update("2").unwrap().as_deref(), Some(&b"21"[..]));
    assert_eq!(scan.next().unwrap().unwrap().0[..], b"2"[..]);
    one.put("sum", "52").unwrap();
    one.commit().unwrap();

    // A scan that has ended, or that is gone, holds the transaction at no moment.
    let mut one = db.transaction_with(locking(1000));
    drop(one.iter().unwrap());
    db.put("3", "newest").unwrap();
    assert_eq!(one.get_for_update("3").unwrap().as_deref(), Some(&b"newest"[..]));
}

/// The weaker isolation does not watch what it reads, so a transaction that has read stays at its
/// moment: reading for update moved it, and an update between was lost.
#[test]
fn reading_for_update_loses_no_update_at_the_weaker_isolation() {
    let options = TransactionOptions { isolation: Isolation::Snapshot, ..locking(1000) };
    let (db, mut one, mut other) = two(options);
    assert_eq!(value(&mut one, "1"), "10");
    other.put("1", "11").unwrap();
    other.commit().unwrap();
    assert_eq!(one.get_for_update("2").unwrap().as_deref(), Some(&b"20"[..]));
    assert_eq!(value(&mut one, "1"), "10", "reads see one moment");
    one.put("1", "10 and one").unwrap();
    assert_eq!(conflict(one.commit()), b"1");

    // Without such a read it gives the newest value.
    let mut one = db.transaction_with(options);
    db.put("2", "22").unwrap();
    assert_eq!(one.get_for_update("2").unwrap().as_deref(), Some(&b"22"[..]));
    // After one, a key that has changed is a conflict at once.
    one.get("1").unwrap();
    db.put("3", "33").unwrap();
    assert_eq!(one.get_for_update("3").unwrap_err().key(), Some(&b"3"[..]));
}

/// The snapshot of a transaction shows no expired value either, so a deletion of what has expired
/// since it was read looked like no change.
#[test]
fn a_value_that_has_expired_since_it_was_read_is_a_conflict() {
    type Read = fn(&mut Transaction) -> shingle::Result<()>;
    let reads: [Read; 3] = [
        |one| one.get("lease").map(drop),
        |one| one.iter()?.next().transpose().map(drop),
        |one| one.iter()?.next_back().transpose().map(drop),
    ];
    for (number, read) in reads.iter().enumerate() {
        for is_deleted in [false, true] {
            let runtime = Arc::new(Stepped::new(1, 1));
            let store = Arc::new(MemStore::new(Arc::default()));
            let db = Options::new().open_in(store, runtime.clone()).unwrap();
            db.put_with_ttl("lease", "mine", Duration::from_secs(1)).unwrap();
            let (mut one, mut late) = (db.transaction(), db.transaction());
            read(&mut one).unwrap();
            if is_deleted {
                db.delete("lease").unwrap();
            }
            runtime.pass(2_000_000_000);
            one.put("document", "new").unwrap();
            assert_eq!(conflict(one.commit()), b"lease", "read {number}, {is_deleted}");
            // What was not there any more when it was read does not change.
            read(&mut late).unwrap();
            late.put("document", "new").unwrap();
            late.commit().unwrap();
        }
    }
}

#[test]
fn a_transaction_sees_its_own_writes_everywhere() {
    let db = open();
    let sums = KeyspaceOptions { merge_operator: Some("append".into()), ..Default::default() };
    let texts = db.create_keyspace("texts", sums).unwrap();
    for key in ["a", "b", "c", "d", "e"] {
        db.put(key, "old").unwrap();
        texts.put(key, "old").unwrap();
    }
    let mut one = db.transaction();
    one.put("bb", "new").unwrap();
    one.delete("c").unwrap();
    one.delete_range_in(&db.keyspace("default").unwrap(), "d", "f").unwrap();
    one.put("e", "again").unwrap();
    let shown = |iter: shingle::TransactionIter| -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        iter.map(Result::unwrap).map(|(k, v)| format!("{}={}", text(&k), text(&v))).collect()
    };
    assert_eq!(shown(one.iter().unwrap()), ["a=old", "b=old", "bb=new", "e=again"]);
    let mut both = one.range("a"..="e").unwrap();
    let mut keys = Vec::new();
    while let Some(pair) = if keys.len() % 2 == 0 { both.next() } else { both.next_back() } {
        keys.push(String::from_utf8_lossy(&pair.unwrap().0).into_owned());
    }
    assert_eq!(keys, ["a", "e", "b", "bb"]);
    assert_eq!(one.multi_get(&["c", "d", "e"]).unwrap()[2].as_deref(), Some(&b"again"[..]));
    one.merge_in(&texts, "a", "+1").unwrap();
    one.merge_in(&texts, "new", "x").unwrap();
    one.merge_in(&texts, "new", "y").unwrap();
    assert_eq!(one.get_in(&texts, "a").unwrap().as_deref(), Some(&b"old+1"[..]));
    assert_eq!(one.get_in(&texts, "new").unwrap().as_deref(), Some(&b"xy"[..]));
    assert_eq!(shown(one.range_in(&texts, "n".."o").unwrap()), ["new=xy"]);
    assert_eq!(all(&db).len(), 5);
    one.commit().unwrap();
    assert_eq!(all(&db), pairs(&[("a", "old"), ("b", "old"), ("bb", "new"), ("e", "again")]));
    assert_eq!(texts.get("new").unwrap().as_deref(), Some(&b"xy"[..]));
}

#[test]
fn a_savepoint_takes_back_what_came_after_it() {
    let db = open();
    db.put("a", "0").unwrap();
    let mut one = db.transaction();
    one.put("a", "1").unwrap();
    one.set_savepoint();
    one.put("a", "2").unwrap();
    one.delete_range_in(&db.keyspace("default").unwrap(), "a", "z").unwrap();
    assert_eq!(value(&mut one, "a"), "-");
    assert!(one.roll_back());
    assert_eq!(value(&mut one, "a"), "1");
    assert!(!one.roll_back());
    one.commit().unwrap();
    assert_eq!(all(&db), pairs(&[("a", "1")]));
}

#[test]
fn a_change_back_is_no_conflict_and_a_flush_hides_no_conflict() {
    for flushes in [false, true] {
        let (db, mut one, mut other) = two(SERIALIZABLE);
        for transaction in [&mut one, &mut other] {
            value(transaction, "1");
            transaction.range("2".."9").unwrap().count();
        }
        db.put("1", "changed").unwrap();
        db.put("5", "passing").unwrap();
        db.put("1", "10").unwrap();
        db.delete("5").unwrap();
        if flushes {
            db.flush().unwrap();
            db.compact().unwrap();
        }
        one.put("x", "one").unwrap();
        one.commit().unwrap();
        db.put("2", "changed").unwrap();
        if flushes {
            db.flush().unwrap();
            db.compact().unwrap();
        }
        other.put("y", "other").unwrap();
        assert_eq!(conflict(other.commit()), b"2");
    }
}

#[test]
fn merges_alone_do_not_conflict() {
    let db = open();
    let sums = KeyspaceOptions { merge_operator: Some("add-u64".into()), ..Default::default() };
    let sums = db.create_keyspace("sums", sums).unwrap();
    let (mut one, mut other) = (db.transaction(), db.transaction());
    for transaction in [&mut one, &mut other] {
        transaction.merge_in(&sums, "n", 1u64.to_le_bytes()).unwrap();
        transaction.merge_in(&sums, "n", 2u64.to_le_bytes()).unwrap();
    }
    one.commit().unwrap();
    other.commit().unwrap();
    assert_eq!(sums.get("n").unwrap().as_deref(), Some(&6u64.to_le_bytes()[..]));
    let refused = db.transaction().merge_in(&sums, "n", "xyz").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_transaction_moves_between_threads_and_refuses_foreign_keyspaces() {
    let (db, mut one, _) = two(SERIALIZABLE);
    let foreign = open();
    let error = one.get_in(foreign.default_keyspace(), "1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    one.put("1", "moved").unwrap();
    std::thread::spawn(move || one.commit()).join().unwrap().unwrap();
    assert_eq!(db.get("1").unwrap().as_deref(), Some(&b"moved"[..]));
    assert_eq!(db.stats().transactions.committed, 1);
}

#[test]
fn locks_make_writers_wait_and_see_the_newest_value() {
    let db = open();
    db.put("n", "0").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let mut one = db.transaction_with(locking(60_000));
                    let n: u64 = {
                        let value = one.get_for_update("n").unwrap().unwrap();
                        std::str::from_utf8(&value).unwrap().parse().unwrap()
                    };
                    one.put("n", (n + 1).to_string()).unwrap();
                    // Everybody locks, so that there are no conflicts.
                    one.commit().unwrap();
                }
            });
        }
    });
    assert_eq!(db.get("n").unwrap().as_deref(), Some(&b"400"[..]));
}

#[test]
fn a_deadlock_is_a_conflict_and_a_lock_ends_with_its_transaction() {
    let (_, mut one, mut other) = two(locking(60_000));
    one.put("1", "one").unwrap();
    other.put("2", "other").unwrap();
    let one = std::thread::spawn(move || {
        let got = one.put("2", "one");
        // A refused transaction ends, and gives its locks back.
        got.and_then(|()| one.commit())
    });
    // Whichever of the two is second closes the circle.
    let got = other.put("1", "other");
    let other = got.and_then(|()| other.commit());
    let refused: Vec<_> = [one.join().unwrap(), other].into_iter().filter(Result::is_err).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    conflict(refused.into_iter().next().unwrap());
}

#[test]
fn a_close_ends_the_waits_for_locks() {
    let (db, mut one, mut other) = two(locking(3_600_000));
    one.put("1", "11").unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| other.put("1", "12").unwrap_err().kind());
        // Now it waits, most probably; the close ends it in any case.
        std::thread::sleep(Duration::from_millis(50));
        db.close().unwrap();
        assert_eq!(waiting.join().unwrap(), ErrorKind::Closed);
    });
}

#[test]
fn a_lock_that_stays_is_a_conflict_after_the_timeout() {
    let db = open();
    let mut one = db.transaction_with(locking(60_000));
    one.put("k", "1").unwrap();
    let mut other = db.transaction_with(locking(1));
    assert_eq!(conflict(other.put("k", "2")), b"k");
    // Without locks, the check at the commit is all there is, and a blind write passes it.
    db.put("k", "3").unwrap();
    one.commit().unwrap();
    other.put("k", "2").unwrap();
}

/// Four threads, each adding 1,000 times: what a get and a put would lose.
#[test]
fn increments_by_every_way_are_all_there() {
    let config = Config { stepped: None, ..Config::draw(5) };
    let db = config.open(Arc::new(MemStore::new(Arc::default()))).unwrap();
    let number =
        |value: Option<&[u8]>| value.map_or(0, |v| u64::from_le_bytes(v.try_into().unwrap()));
    let attempts = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..1000u32 {
                    match n % 3 {
                        0 => {
                            let add = |value: Option<&[u8]>| {
                                Some((number(value) + 1).to_le_bytes().to_vec())
                            };
                            db.update("n", add).unwrap();
                        }
                        1 => loop {
                            attempts.fetch_add(1, Ordering::Relaxed);
                            let before = db.get("n").unwrap();
                            let next = (number(before.as_deref()) + 1).to_le_bytes();
                            let swapped = db.compare_and_swap("n", before.as_deref(), Some(&next));
                            if swapped.unwrap().is_ok() {
                                break;
                            }
                        },
                        _ => db
                            .transact(|one| {
                                let before = one.get("n")?;
                                one.put("n", (number(before.as_deref()) + 1).to_le_bytes())
                            })
                            .unwrap(),
                    }
                }
            });
        }
    });
    assert_eq!(number(db.get("n").unwrap().as_deref()), 4000);
    println!("{} attempts to swap, {:?}", attempts.into_inner(), db.stats().transactions);
}
