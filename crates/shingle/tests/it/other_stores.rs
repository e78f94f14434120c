//! The pages for users of other stores: their code is compiled and run. That the names in their
//! tables exist is a rule of `cargo xtask tidy`.

use shingle::{KeyspaceOptions, Options, Result};
use std::path::Path;

mod rocksdb {
    include!("pages/rocksdb.rs");
    pub const RUN: super::Run = orders;
    pub const CODE: &str = include_str!("pages/rocksdb.rs");
}

mod copied {
    include!("pages/copy.rs");
    pub const CODE: &str = include_str!("pages/copy.rs");

    pub fn run(pairs: &[(String, String)], path: &std::path::Path) -> shingle::Result<u64> {
        copy(pairs.iter().map(|(key, value)| (key, value)), path)
    }
}

mod leveldb {
    include!("pages/leveldb.rs");
    pub const RUN: super::Run = fruit;
    pub const CODE: &str = include_str!("pages/leveldb.rs");
}

mod fjall {
    include!("pages/fjall.rs");
    pub const RUN: super::Run = items;
    pub const CODE: &str = include_str!("pages/fjall.rs");
}

mod sled {
    include!("pages/sled.rs");
    pub const RUN: super::Run = users;
    pub const CODE: &str = include_str!("pages/sled.rs");
}

mod redb {
    include!("pages/redb.rs");
    pub const RUN: super::Run = scores;
    pub const CODE: &str = include_str!("pages/redb.rs");
}

type Run = fn(&Path) -> Result<()>;

/// Runs the code of a page twice, compares it with the page, and returns what its keyspace `name`
/// has then.
fn check(page: &str, code: &str, run: Run, name: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let block = page.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(block, Some(code));
    let directory = tempfile::tempdir().unwrap();
    run(directory.path()).unwrap();
    run(directory.path()).unwrap();
    let db = Options::new().create(false).open(directory.path()).unwrap();
    let keyspace = db.open_or_create_keyspace(name, KeyspaceOptions::default()).unwrap();
    let pairs = keyspace.iter().map(|pair| pair.unwrap());
    pairs.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

fn pairs<const N: usize>(expected: [(&str, &str); N]) -> Vec<(Vec<u8>, Vec<u8>)> {
    expected.map(|(key, value)| (key.into(), value.into())).to_vec()
}

#[test]
fn the_code_for_users_of_rocksdb_runs() {
    let page = include_str!("../../../../docs/manual/from-rocksdb.md");
    let found = check(page, rocksdb::CODE, rocksdb::RUN, "orders");
    assert_eq!(found, pairs([("2026-11-01/1", "3 apples")]));
}

#[test]
fn the_code_that_copies_a_store_copies_all_of_it() {
    let page = include_str!("../../../../docs/manual/from-rocksdb.md");
    assert!(page.contains(&format!("```rust\n{}```", copied::CODE)));
    let old: Vec<(String, String)> =
        (0..10_000).map(|n| (format!("key {n:05}"), format!("value {n}"))).collect();
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(copied::run(&old, directory.path()).unwrap(), 10_000);
    let db = Options::new().open(directory.path()).unwrap();
    assert!(
        db.iter()
            .map(|pair| pair.unwrap())
            .eq(old.iter().map(|(key, value)| (key.as_bytes().into(), value.as_bytes().into())))
    );
}

#[test]
fn the_code_for_users_of_leveldb_runs() {
    let page = include_str!("../../../../docs/manual/from-leveldb.md");
    let found = check(page, leveldb::CODE, leveldb::RUN, "default");
    assert_eq!(found, pairs([("apple", "red"), ("pear", "green")]));
}

#[test]
fn the_code_for_users_of_fjall_runs() {
    let page = include_str!("../../../../docs/manual/from-fjall.md");
    assert_eq!(check(page, fjall::CODE, fjall::RUN, "items"), pairs([("b", "world")]));
}

#[test]
fn the_code_for_users_of_sled_runs() {
    let page = include_str!("../../../../docs/manual/from-sled.md");
    assert_eq!(check(page, sled::CODE, sled::RUN, "users"), pairs([("8", "Bo")]));
}

#[test]
fn the_code_for_users_of_redb_runs() {
    let page = include_str!("../../../../docs/manual/from-redb.md");
    let expected = (7u64.to_be_bytes().to_vec(), 100u64.to_le_bytes().to_vec());
    assert_eq!(check(page, redb::CODE, redb::RUN, "scores"), [expected]);
}
