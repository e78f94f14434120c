//! The levels of a database as a table that fits a terminal of 80 columns. RocksDB's wide table is
//! the property `rocksdb.stats`.

use crate::commands::ledger::plain_table;
use crate::units;
use shingle::{LevelShape, LevelStats};

/// One line a level that has data or was compacted into, and their sum.
pub fn table(levels: &[LevelStats]) -> String {
    let mut table = plain_table(&[
        "level", "files", "size", "score", "read", "written", "W-amp", "moved", "jobs", "time",
    ]);
    let (shown, sum) = LevelStats::worth_showing(levels);
    for level in shown {
        table.add_row(row(format!("L{}", level.shape.level), level));
    }
    let mut last = row("all".into(), &sum);
    last[3].clear();
    table.add_row(last);
    table.to_string()
}

/// The same without what was done since the opening.
pub fn shape(levels: &[LevelStats]) -> String {
    let mut table = plain_table(&["level", "files", "runs", "size", "score"]);
    let (shown, sum) = LevelStats::worth_showing(levels);
    let row = |name: String, score: String, shape: &LevelShape| {
        let counts = [shape.files, shape.runs].map(units::count);
        [vec![name], counts.to_vec(), vec![units::bytes(shape.bytes), score]].concat()
    };
    for shape in shown.iter().map(|level| &level.shape) {
        table.add_row(row(format!("L{}", shape.level), format!("{:.2}", shape.score), shape));
    }
    table.add_row(row("all".into(), String::new(), &sum.shape));
    table.to_string()
}

fn row(name: String, level: &LevelStats) -> [String; 10] {
    let amplification = level.write_amplification();
    [
        name,
        units::count(level.shape.files),
        units::bytes(level.shape.bytes),
        format!("{:.2}", level.shape.score),
        units::bytes(level.read_bytes_upper + level.read_bytes_lower),
        units::bytes(level.write_bytes),
        amplification.map_or("-".into(), |factor| format!("{factor:.2}")),
        units::bytes(level.moved_bytes),
        units::count(level.count),
        units::time((level.seconds * 1e9) as u64),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_large_figures_fits_eighty_columns() {
        let mut large = LevelStats::default();
        let bytes = 888_000_000_000;
        let shape = &mut large.shape;
        (shape.level, shape.runs, shape.score) = (6, 1, 10.25);
        (shape.files, shape.bytes) = (99_999, bytes);
        (large.count, large.seconds) = (999_999, 88_888.0);
        (large.read_bytes_upper, large.write_bytes, large.moved_bytes) = (bytes, bytes, bytes);
        let table = table(&[large]);
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{widest:?}\n{table}");
    }
}
