//! Databases of `data/rocksdb`, and what is in them as a digest.

#![allow(dead_code, clippy::unwrap_used)] // each test uses a part

use base::{Error, Result};
use foreign::rocksdb::RocksDb;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// By column family: how many keys, and the digest of keys and values that `fill_rocks.cc` has.
pub type Found = BTreeMap<String, (u64, u64)>;

pub fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/rocksdb")
}

pub fn found(name: &str) -> Result<Found> {
    found_in(&data().join(format!("{name}.rocksdb")))
}

pub fn found_in(folder: &Path) -> Result<Found> {
    let db = RocksDb::open(folder)?;
    let names: Vec<_> = db.families().map(str::to_string).collect();
    let mut all = Found::new();
    for name in names {
        let (mut count, mut sum) = (0, 0xcbf2_9ce4_8422_2325);
        let mut last: Option<Vec<u8>> = None;
        db.read(&name, &mut |key, value| {
            assert!(last.as_deref().is_none_or(|last| last < key), "keys ascend");
            last = Some(key.to_vec());
            count += 1;
            add(&mut sum, key);
            add(&mut sum, value);
            Ok::<(), Error>(())
        })?;
        all.insert(name, (count, sum));
    }
    Ok(all)
}

/// FNV-1a of the length and the bytes.
fn add(sum: &mut u64, bytes: &[u8]) {
    let length = (bytes.len() as u64).to_le_bytes();
    for byte in length.iter().chain(bytes) {
        *sum = (*sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    }
}

/// A copy that a test may damage.
pub fn copied(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(data().join(format!("{name}.rocksdb"))).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let path = folder.path().to_path_buf();
    (folder, path)
}

/// The files of a folder, in the order of their names.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}
