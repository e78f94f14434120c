//! Picks, as text.

use crate::scenario::run_file;

#[test]
fn picks() {
    run_file("src/policy/fragmented/testdata/picks.txt");
}
