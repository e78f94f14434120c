//! Picks, as text, and what the scheme writes, by simulation.

use super::SETS;
use crate::policy::{Limits, leveled};
use crate::scenario::run_file;
use crate::simulate::{Keys, Workload};

#[test]
fn picks_victims_by_dead_tables() {
    run_file("src/policy/sets/testdata/sets.txt");
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

/// LevelDB's rules with the table size of the sets.
fn leveldb_with_large_tables(memtable_bytes: u64) -> Limits {
    Limits { ..(SETS.limits)(memtable_bytes) }
}

#[test]
fn sets_write_what_leveled_compaction_writes_in_sets_of_the_papers_size() {
    let sets = PAPER.run(&SETS).unwrap();
    let leveldb =
        crate::policy::Descriptor { limits: leveldb_with_large_tables, ..leveled::LEVELDB };
    let leveldb = PAPER.run(&leveldb).unwrap();
    let ratio = sets.write_amplification() / leveldb.write_amplification();
    assert!((0.93..1.07).contains(&ratio), "{ratio:.3}: {sets}\n{leveldb}");
    // 6.87 in the paper.
    let tables = sets.sets.1 as f64 / sets.sets.0 as f64;
    assert!((5.0..9.0).contains(&tables), "{tables:.2}: {sets}");
}
