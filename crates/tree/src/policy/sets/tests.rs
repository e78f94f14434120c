//! Picks, as text, and what the scheme writes, by simulation.

use super::SETS;
use crate::policy::{Descriptor, leveled};
use crate::scenario::run_file;
use crate::simulate::Workload;

#[test]
fn picks_victims_by_dead_tables() {
    run_file("src/policy/sets/testdata/sets.txt");
}

#[test]
fn sets_write_what_leveled_compaction_writes_in_sets_of_the_papers_size() {
    let sets = Workload::SHINGLED.run(&SETS).unwrap();
    // LevelDB's rules with the sizes of the sets.
    let leveldb = Descriptor { limits: SETS.limits, ..leveled::LEVELDB };
    let leveldb = Workload::SHINGLED.run(&leveldb).unwrap();
    let ratio = sets.write_amplification() / leveldb.write_amplification();
    assert!((0.93..1.07).contains(&ratio), "{ratio:.3}: {sets}\n{leveldb}");
    // 6.87 in the paper.
    let tables = sets.sets.1 as f64 / sets.sets.0 as f64;
    assert!((5.0..9.0).contains(&tables), "{tables:.2}: {sets}");
}
