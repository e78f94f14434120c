//! Picks, as text, and what the scheme writes, by simulation.

use super::SMRDB;
use crate::policy::{FlushCut, Limits, leveled};
use crate::scenario::run_file;
use crate::simulate::{Entry, Report, Store, Workload};

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

/// The newer runs overlap the large one alone: they were merged with each other, into as many, over
/// and over.
#[test]
fn runs_that_do_not_overlap_are_not_merged_over_and_over() {
    let limits = Limits { stack_max: 1, fan_out: 3.0, ..(SMRDB.limits)(100) };
    let mut store = Store::new((SMRDB.make)(), limits, 1);
    let last = store.version.levels.len() as u8 - 1;
    let cut = FlushCut { level: last, table_bytes_max: u64::MAX };
    for (sequence, keys) in (1..).zip([0..1000, 100..110, 300..310, 500..510]) {
        let entry = |key| Entry { key, sequence, is_delete: false };
        store.flush_onto(&keys.map(entry).collect::<Vec<_>>(), cut).unwrap();
    }
    store.limits.table_bytes_max = 8;
    let steps = (0..20).take_while(|_| store.step().unwrap()).count();
    assert!((1..20).contains(&steps), "{steps}");
}
