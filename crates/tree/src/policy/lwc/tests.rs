//! Picks, as text, and what the scheme writes, by simulation.

use super::LWC;
use crate::policy::{Limits, leveled};
use crate::scenario::run_file;
use crate::simulate::{Report, Workload};

#[test]
fn picks_segments_divisions_and_cold_starts() {
    run_file("src/policy/lwc/testdata/lwc.txt");
}

#[test]
fn merges_write_a_fifth_of_what_leveldb_merges_write() {
    let report = Workload::SHINGLED.run(&LWC).unwrap();
    let leveldb = Workload::SHINGLED.run(&leveled::LEVELDB).unwrap();
    // The paper counts what compactions write for a byte of the user; flushes come on top.
    let merged = |bytes: &[u64]| bytes.iter().sum::<u64>() as f64;
    let ratio = merged(&leveldb.written_bytes) / merged(&report.written_bytes);
    assert!(ratio >= 5.0, "{ratio:.2}: {report}\n{leveldb}");
}

#[test]
fn a_byte_is_written_about_once_for_each_level_and_once_in_divisions() {
    let report = Workload::SHINGLED.run(&LWC).unwrap();
    let levels = report.written_bytes.iter().filter(|&&bytes| bytes > 0).count() as f64;
    let merged: u64 = report.written_bytes.iter().sum();
    // A table of the last level that grew from a division holds division_parts - 1 parts of new
    // data when it is divided again: 12 bytes are written for 11.
    let bound = levels + 12.0 / 11.0;
    assert!(merged as f64 / report.user_bytes as f64 <= bound, "{report}");
}

#[test]
fn no_table_outgrows_its_band() {
    let report = Workload::SHINGLED.run(&LWC).unwrap();
    assert!(report.file_bytes_max <= 40 << 20, "{report}");
    assert!(report.stack_max <= 129, "{report}");
}

/// Fig. 17(b): a third at most in the paper's ten databases, from 10 GB to 100 GB.
#[test]
fn divisions_are_a_third_of_what_compactions_write_at_most() {
    for writes in [1_000_000, 2_000_000, 4_000_000] {
        let report =
            Workload { writes, keys_count: writes, ..Workload::SHINGLED }.run(&LWC).unwrap();
        let share = report.divided_bytes as f64 / report.written_bytes.iter().sum::<u64>() as f64;
        assert!(share > 0.05 && share < 0.34, "{share:.3}: {report}");
    }
}

/// Fig. 19: the division number trades space against writing.
#[test]
fn more_parts_write_less_and_take_more_space() {
    let [few, some, many] = [2, 6, 12].map(|division_parts| {
        let limits = (LWC.limits)(Workload::SHINGLED.memtable_bytes);
        let limits = Limits { division_parts, ..limits };
        Workload::SHINGLED.run_under(&LWC, limits).unwrap()
    });
    let written = |report: &Report| report.write_amplification();
    assert!(
        written(&few) > written(&some) && written(&some) > written(&many),
        "{few}\n{some}\n{many}"
    );
    assert!(few.space_amplification < many.space_amplification, "{few}\n{many}");
}
