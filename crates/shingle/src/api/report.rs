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
