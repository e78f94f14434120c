//! Statistics of an open database.

use super::db::Db;
use crate::stats::{FileInfo, Stats};

impl Db {
    /// Statistics: I/O by cause, levels, stalls, caches, latencies.
    pub fn stats(&self) -> Stats {
        self.engine().stats()
    }

    /// The live table files.
    pub fn files(&self) -> Vec<FileInfo> {
        self.engine().files()
    }

    /// The newest lines of the event log, oldest first.
    pub fn events(&self) -> Vec<String> {
        self.engine().events.recent()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Db, Options};
    use media::mem::MemStore;
    use std::sync::Arc;

    fn flushed() -> Db {
        let db = Options::new().open_store(Arc::new(MemStore::new(Arc::default()))).unwrap();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        db
    }

    #[test]
    fn the_report_counts_live_snapshots() {
        let db = flushed();
        assert!(!db.stats().to_string().contains("Snapshots"));
        let _snapshot = db.snapshot();
        let report = db.stats().to_string();
        assert!(
            report.contains("\nSnapshots: 1, which keep the data that they read\n"),
            "{report}"
        );
    }

    #[test]
    fn columns_of_the_report_end_under_their_names() {
        let report = flushed().stats().to_string();
        let [heads, rule, row] = report.lines().take(3).collect::<Vec<_>>()[..] else {
            panic!("{report}")
        };
        assert_eq!((heads.len(), row.len()), (rule.len(), rule.len()), "{report}");
        let ends = |line: &str| -> Vec<usize> {
            let is_space = |at: usize| line.as_bytes().get(at).is_none_or(|byte| *byte == b' ');
            (0..line.len()).filter(|&at| !is_space(at) && is_space(at + 1)).collect()
        };
        // The size is a number and a unit.
        assert_eq!(ends(heads)[3..], ends(row)[4..], "{report}");
    }
}
