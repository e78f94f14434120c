//! Picks, as text, and what the scheme writes, by simulation.

use super::SMRDB;
use crate::policy::leveled;
use crate::scenario::run_file;
use crate::simulate::{Report, Workload};

#[test]
fn picks_what_overlaps_most() {
    run_file("src/policy/smrdb/testdata/smrdb.txt");
}

#[test]
fn fewer_bytes_than_leveldb_in_fewer_and_larger_merges() {
    let smrdb = Workload::SHINGLED.run(&SMRDB).unwrap();
    let leveldb = Workload::SHINGLED.run(&leveled::LEVELDB).unwrap();
    assert!(smrdb.write_amplification() < leveldb.write_amplification(), "{smrdb}\n{leveldb}");
    assert!(smrdb.file_bytes_max <= 40 << 20, "{smrdb}");
    // A merge is many bands; the papers have 900 MB against LevelDB's dozen tables.
    let merged = |report: &Report| report.written_bytes.iter().sum::<u64>() / report.moves;
    assert!(4 * smrdb.moves < leveldb.moves, "{smrdb}\n{leveldb}");
    assert!(merged(&smrdb) > 2 * merged(&leveldb), "{smrdb}\n{leveldb}");
    let deepest = smrdb.level_bytes.iter().rposition(|&bytes| bytes > 0);
    assert_eq!(deepest, Some(1), "{smrdb}");
}
