//! Databases that RocksDB 7.8.3 and 11.8.1 made: those in `data/rocksdb`, and random ones where its
//! library is.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod rocks;

use base::{Error, ErrorKind};
use foreign::rocksdb::RocksDb;
use rocks::{Found, copied, data, files, found, found_in};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What RocksDB found in each database, by column family. Empty: the reader must refuse it.
fn expected() -> BTreeMap<String, Found> {
    let text = std::fs::read_to_string(data().join("expected.tsv")).unwrap();
    let mut all = BTreeMap::<String, Found>::new();
    for line in text.lines() {
        let fields: Vec<_> = line.split('\t').collect();
        let of_name = all.entry(fields[0].to_string()).or_default();
        if let [_, family, count, digest] = fields[..] {
            let digest = u64::from_str_radix(digest, 16).unwrap();
            of_name.insert(family.to_string(), (count.parse().unwrap(), digest));
        }
    }
    all
}

#[test]
fn each_database_has_what_rocksdb_finds_in_it() {
    let mut read = 0;
    for (name, expected) in expected() {
        let found = found(&name);
        match name.starts_with("refused") || name == "bzip2" {
            true => {
                let error = found.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}: {error}");
            }
            false => {
                assert_eq!(
                    found.unwrap_or_else(|error| panic!("{name}: {error}")),
                    expected,
                    "{name}"
                );
                read += 1;
            }
        }
        let path = data().join(format!("{name}.rocksdb"));
        assert!(RocksDb::is_at(&path), "{name}");
    }
    assert!(read > 60, "{read}");
}
