//! Picks, as text, and what the scheme writes, by simulation.

use super::SMRDB;
use crate::policy::leveled;
use crate::scenario::run_file;
use crate::simulate::{Keys, Workload};

#[test]
fn picks_what_overlaps_most() {
    run_file("src/policy/smrdb/testdata/smrdb.txt");
}

const PAPER: Workload = Workload {
    reads_share: 0.0,
    keys: Keys::Uniform,
    writes: 1_000_000,
    keys_count: 1_000_000,
    entry_bytes: 4112,
    memtable_bytes: 4 << 20,
    scale: 16,
    moves_per_flush: None,
};

#[test]
fn fewer_bytes_than_leveldb_in_fewer_and_larger_merges() {
    let smrdb = PAPER.run(&SMRDB).unwrap();
    let leveldb = PAPER.run(&leveled::LEVELDB).unwrap();
    assert!(smrdb.write_amplification() < leveldb.write_amplification(), "{smrdb}\n{leveldb}");
    assert!(smrdb.file_bytes_max <= 40 << 20, "{smrdb}");
    let deepest = smrdb.level_bytes.iter().rposition(|&bytes| bytes > 0);
    assert_eq!(deepest, Some(1), "{smrdb}");
}
