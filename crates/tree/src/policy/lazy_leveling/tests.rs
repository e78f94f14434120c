//! Picks, as text, and what the scheme costs, by simulation.

use super::LAZY_LEVELING;
use crate::policy::{leveled, tiered};
use crate::scenario::run_file;
use crate::simulate::Workload;

#[test]
fn picks() {
    run_file("src/policy/lazy_leveling/testdata/picks.txt");
}

/// Dostoevsky's reason for lazy leveling: fewer merges than leveling, without tiering's space.
#[test]
fn overwrites_cost_fewer_bytes_than_leveled_and_less_space_than_tiered() {
    let overwrites = Workload { writes: 3_000_000, keys_count: 300_000, ..Workload::SHINGLED };
    let report = overwrites.run(&LAZY_LEVELING).unwrap();
    let leveled = overwrites.run(&leveled::MODERN).unwrap();
    let tiered = overwrites.run(&tiered::TIERED).unwrap();
    let (written, at_most) = (report.write_amplification(), 0.98 * leveled.write_amplification());
    assert!(written <= at_most, "{report}\n{leveled}");
    // The level above the last has less than `stack_max` times a `fan_out`-th of its bytes.
    let limits = (LAZY_LEVELING.limits)(overwrites.memtable_bytes);
    let bound = 1.0 + limits.stack_max as f64 / limits.fan_out;
    assert!(report.space_amplification <= bound, "{report}");
    assert!(tiered.space_amplification > 2.0 * report.space_amplification, "{report}\n{tiered}");
}
