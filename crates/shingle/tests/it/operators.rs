//! Merge operators that refuse, and keyspaces whose operator this process does not know.

use media::mem::MemStore;
use shingle::runtime::Stepped;
use shingle::{
    Db, ErrorKind, Keyspace, KeyspaceOptions, MergeOperator, Options, ReadOptions, Result,
    WriteBatch, WriteOptions,
};
use std::sync::Arc;

const LAYOUTS: [&str; 3] = ["inline", "log", "hashed"];

fn options(values: &str) -> Options {
    Options::new().values(values).value_threshold_bytes(16).write_buffer_bytes(16 << 10).expert(
        |e| {
            e.scheme.table_bytes_max = Some(4096);
            e.values.log_segment_bytes = Some(4096);
        },
    )
}

fn open(store: &MemStore, options: Options) -> Result<Db> {
    options.open_in(Arc::new(store.clone()), Arc::new(Stepped::new(1, 4)))
}

fn keyspace(db: &Db, operator: &str) -> Keyspace {
    let merge_operator = Some(operator.to_string());
    let options = KeyspaceOptions { merge_operator, ..KeyspaceOptions::default() };
    db.create_keyspace("sums", options).unwrap()
}

fn number(n: u64) -> [u8; 8] {
    n.to_le_bytes()
}

#[test]
fn an_operand_of_a_wrong_length_is_refused_before_it_is_written() {
    let db = open(&MemStore::new(Arc::default()), options("inline")).unwrap();
    let sums = keyspace(&db, "add-u64");
    sums.merge("a", number(1)).unwrap();
    let mut batch = WriteBatch::new();
    batch.merge_in(&sums, "a", number(2)).unwrap();
    batch.merge_in(&sums, "bad", "abc").unwrap();
    for error in [
        sums.merge("bad", "abc").unwrap_err(),
        db.write(batch, &WriteOptions::default()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        for part in ["sums", "add-u64", "bad", "3 bytes"] {
            assert!(error.message().contains(part), "{error}");
        }
    }
    assert_eq!(sums.get("a").unwrap().as_deref(), Some(&number(1)[..]));
    assert_eq!(sums.get("bad").unwrap(), None);
    assert_eq!(sums.iter().count(), 1);
}

/// Makes values that are too long to be stored. Their bytes are never touched.
struct TooLong;

impl MergeOperator for TooLong {
    fn name(&self) -> &str {
        "too-long"
    }

    fn merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Result<Option<Vec<u8>>> {
        Ok(Some(vec![0; base::key::VALUE_BYTES_MAX + 1]))
    }
}

#[test]
fn a_merged_value_that_is_too_long_fails_its_reads_and_nothing_else() {
    for values in LAYOUTS {
        let store = MemStore::new(Arc::default());
        let options = options(values).merge_operator(Arc::new(TooLong));
        let db = open(&store, options.clone()).unwrap();
        let sums = keyspace(&db, "too-long");
        for round in 0..3u8 {
            for operand in 0..3u8 {
                sums.merge("long", [round, operand]).unwrap();
            }
            sums.put([b'k', round], "short").unwrap();
            db.flush().unwrap();
        }
        db.compact().unwrap();
        db.close().unwrap();
        let db = open(&store, options).unwrap();
        let sums = db.keyspace("sums").unwrap();
        let error = sums.get("long").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        for part in ["sums", "too-long", "long", "1073741825 bytes"] {
            assert!(error.message().contains(part), "{error}");
        }
        assert_eq!(sums.get([b'k', 2]).unwrap().as_deref(), Some(&b"short"[..]));
        sums.put("long", "written anew").unwrap();
        assert_eq!(sums.get("long").unwrap().as_deref(), Some(&b"written anew"[..]));
    }
}

/// Keys `0..20` of which 10 has a value that operands cannot be added to, and 11 was deleted.
fn spoil(sums: &Keyspace) {
    for n in 0..20u64 {
        let text = "a text that no number can be added to";
        match n {
            10 => sums.put(n.to_be_bytes(), text).unwrap(),
            _ => sums.put(n.to_be_bytes(), number(n)).unwrap(),
        }
        sums.merge(n.to_be_bytes(), number(100)).unwrap();
    }
    sums.delete(11u64.to_be_bytes()).unwrap();
}

/// All but the key 10, which is an error, from both ends and from the middle.
fn verify(sums: &Keyspace, operator: &str) {
    let bad = 10u64.to_be_bytes();
    let names = |error: &shingle::Error| {
        let name = base::key::display_key(&bad).to_string();
        [&*name, operator, "`sums`"].iter().all(|part| error.message().contains(part))
    };
    for n in (0..20u64).filter(|n| ![10, 11].contains(n)) {
        let value = sums.get(n.to_be_bytes()).unwrap();
        assert_eq!(value.as_deref(), Some(&number(100 + n)[..]));
    }
    assert_eq!(sums.get(11u64.to_be_bytes()).unwrap(), None);
    assert!(names(&sums.get(bad).unwrap_err()));
    assert!(names(&sums.multi_get(&[number(9), bad]).unwrap_err()));
    let expected: Vec<Option<u64>> = (0..20).filter(|n| *n != 11).map(good).collect();
    let shown = |pair: Result<(shingle::Bytes, shingle::Bytes)>| match pair {
        Ok((key, _)) => Some(u64::from_be_bytes(key[..].try_into().unwrap())),
        Err(error) => {
            assert!(names(&error), "{error}");
            None
        }
    };
    let forward: Vec<_> = sums.iter().map(shown).collect();
    assert_eq!(forward, expected);
    let mut backward: Vec<_> = sums.iter().rev().map(shown).collect();
    backward.reverse();
    assert_eq!(backward, expected);
    // From both ends in turn: the bad key is shown once.
    let mut both = sums.iter();
    let mut pairs = Vec::new();
    while let Some(pair) = both.next() {
        pairs.push(shown(pair));
        pairs.extend(both.next_back().map(shown));
    }
    assert_eq!(pairs.len(), expected.len());
    assert_eq!(pairs.iter().filter(|pair| pair.is_none()).count(), 1);
    let mut cursor = sums.cursor(ReadOptions::default());
    assert!(names(&cursor.seek(bad).unwrap_err()));
    assert!(cursor.valid() && cursor.key() == bad && cursor.value().is_empty());
    cursor.prev().unwrap();
    assert_eq!(cursor.key(), 9u64.to_be_bytes());
    assert!(names(&cursor.next().unwrap_err()));
    cursor.next().unwrap();
    assert_eq!(cursor.key(), 12u64.to_be_bytes());
}

fn good(n: u64) -> Option<u64> {
    (n != 10).then_some(n)
}

#[test]
fn an_operand_that_cannot_be_applied_is_its_keys_error_alone() {
    for values in LAYOUTS {
        let store = MemStore::new(Arc::default());
        let db = open(&store, options(values)).unwrap();
        let sums = keyspace(&db, "add-u64");
        spoil(&sums);
        verify(&sums, "add-u64");
        db.flush().unwrap();
        verify(&sums, "add-u64");
        sums.compact().unwrap();
        verify(&sums, "add-u64");
        sums.merge("more", number(1)).unwrap();
        drop((sums, db));
        // What is replayed is flushed.
        let db = open(&store, options(values)).unwrap();
        let sums = db.keyspace("sums").unwrap();
        sums.delete("more").unwrap();
        verify(&sums, "add-u64");
        let report = db.check(&mut |_| {}).unwrap();
        assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
        assert!(report.problems[0].contains("add-u64"), "{:?}", report.problems);
    }
}

/// Joins operands with commas; no operator of the engine's own.
struct Commas;

impl MergeOperator for Commas {
    fn name(&self) -> &str {
        "commas"
    }

    fn merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>> {
        let parts: Vec<&[u8]> = existing.into_iter().chain(operands.iter().copied()).collect();
        Ok(Some(parts.join(&b',')))
    }
}

/// A closed keyspace of [`Commas`] with a key that has only a value, one with only operands, and
/// one with both.
fn lists(store: &MemStore, values: &str) {
    let db = open(store, options(values).merge_operator(Arc::new(Commas))).unwrap();
    db.put("plain", "1").unwrap();
    let lists = keyspace(&db, "commas");
    lists.put("alone", "x").unwrap();
    lists.put("based", "a value that is long enough for a segment").unwrap();
    // Their flush cannot see what is below the operands, so they stay operands.
    db.flush().unwrap();
    for operand in ["a", "b"] {
        lists.merge("based", operand).unwrap();
        lists.merge("bare", operand).unwrap();
    }
    db.close().unwrap();
}

const BASED: &str = "a value that is long enough for a segment,a,b";

/// The operands of [`lists`] are not merged, and everything else is there.
fn verify_unmerged(db: &Db) {
    assert_eq!(db.get("plain").unwrap().as_deref(), Some(&b"1"[..]));
    let lists = db.keyspace("sums").unwrap();
    assert_eq!(lists.get("alone").unwrap().as_deref(), Some(&b"x"[..]));
    assert_eq!(lists.get("absent").unwrap(), None);
    for key in ["bare", "based"] {
        let error = lists.get(key).unwrap_err();
        assert!(error.message().contains(key) && error.message().contains("commas"), "{error}");
    }
    let mut cursor = lists.cursor(ReadOptions::default());
    cursor.seek("bare").unwrap_err();
    let held = cursor.unmerged().unwrap();
    assert_eq!((held.base.as_deref(), held.operands.len()), (None, 2));
    cursor.next().unwrap_err();
    let held = cursor.unmerged().unwrap();
    let operands: Vec<&[u8]> = held.operands.iter().map(|o| &o[..]).collect();
    assert_eq!(operands, [b"a", b"b"]);
    assert_eq!(held.base.as_deref().map(|base| base.len()), Some(BASED.len() - 4));
    assert_eq!(lists.iter().filter(Result::is_ok).count(), lists.iter().count() - 2);
}

#[test]
fn an_unknown_operator_does_not_lock_the_database() {
    let store = MemStore::new(Arc::default());
    lists(&store, "inline");
    let db = open(&store, options("inline").read_only(true)).unwrap();
    verify_unmerged(&db);
    assert!(db.check(&mut |_| {}).unwrap().is_clean());
    drop(db);
    let error = open(&store, options("inline")).err().unwrap();
    for part in ["sums", "commas", "Options::merge_operator", "Options::absent_operators"] {
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn operands_outlive_a_life_without_their_operator() {
    for values in LAYOUTS {
        let store = MemStore::new(Arc::default());
        lists(&store, values);
        let db = open(&store, options(values).absent_operators(true)).unwrap();
        let without = db.keyspace("sums").unwrap();
        let error = without.merge("bare", "c").unwrap_err();
        assert!(error.message().contains("commas"), "{error}");
        assert!(
            db.create_keyspace(
                "more",
                KeyspaceOptions {
                    merge_operator: Some("unheard of".into()),
                    ..KeyspaceOptions::default()
                }
            )
            .is_err()
        );
        for round in 0..40u64 {
            for n in 0..20 {
                without.put(format!("other {n}"), [round as u8; 300]).unwrap();
            }
            db.flush().unwrap();
            db.wait_idle().unwrap();
        }
        without.compact().unwrap();
        let collected = db.stats().values.collected.count;
        assert!(values == "inline" || collected > 0, "nothing was collected");
        verify_unmerged(&db);
        drop((without, db));
        let options = options(values).merge_operator(Arc::new(Commas));
        let db = open(&store, options).unwrap();
        let lists = db.keyspace("sums").unwrap();
        assert_eq!(lists.get("bare").unwrap().as_deref(), Some(&b"a,b"[..]));
        assert_eq!(lists.get("based").unwrap().as_deref(), Some(BASED.as_bytes()));
    }
}

#[test]
fn salvage_copies_operands_whose_operator_it_does_not_know() {
    let store = MemStore::new(Arc::default());
    lists(&store, "inline");
    let home = tempfile::tempdir().unwrap();
    let target = home.path().join("target");
    let store: Arc<MemStore> = Arc::new(store);
    let report = shingle::salvage_store(store, &target, Options::new(), &mut |_| {}).unwrap();
    assert!(report.losses.is_empty(), "{:?}", report.losses);
    let db = Options::new().merge_operator(Arc::new(Commas)).open(&target).unwrap();
    let lists = db.keyspace("sums").unwrap();
    assert_eq!(lists.get("based").unwrap().as_deref(), Some(BASED.as_bytes()));
}
