//! Picks, as text.

use crate::scenario::run_file;

#[test]
fn picks_by_leveldb_rules() {
    run_file("src/policy/leveled/testdata/leveldb.txt");
}

#[test]
fn picks_that_write_little() {
    run_file("src/policy/leveled/testdata/modern.txt");
}

#[test]
fn readers_are_worth_a_merge() {
    run_file("src/policy/leveled/testdata/reads.txt");
}
