//! Properties: single numbers and texts by the names that people know from RocksDB and LevelDB.

use super::db::Db;
use crate::stats::{Stats, amplification_line};

impl Db {
    /// The property called `name`, with the prefix `rocksdb.`, `leveldb.` or `shingle.`.
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = shingle::Options::new().open(dir.path())?;
    /// assert_eq!(db.property("rocksdb.num-snapshots").as_deref(), Some("0"));
    /// println!("{}", db.property("leveldb.stats").unwrap_or_default());
    /// # Ok(())
    /// # }
    /// ```
    pub fn property(&self, name: &str) -> Option<String> {
        let (prefix, name) = name.split_once('.')?;
        if !matches!(prefix, "rocksdb" | "leveldb" | "shingle") {
            return None;
        }
        let stats = self.stats();
        if let Some(level) = name.strip_prefix("num-files-at-level") {
            let level: usize = level.parse().ok()?;
            return stats.levels.get(level).map(|level| level.shape.files.to_string());
        }
        match name {
            "stats" | "cfstats" | "dbstats" => Some(self.report(&stats)),
            "levelstats" => Some(level_table(&stats)),
            "sstables" => Some(self.file_table()),
            _ => number(self, &stats, name).map(|number| number.to_string()),
        }
    }

    /// The report, and what happened since it was asked for the last time.
    fn report(&self, stats: &Stats) -> String {
        let mut reported = self.engine().reported.lock();
        let interval = stats.ledger.since(&reported);
        *reported = stats.ledger.clone();
        let mut text = stats.to_string();
        // Writing to a String cannot fail.
        let _ = amplification_line(&mut text, "Interval", &interval);
        text
    }

    fn file_table(&self) -> String {
        let mut text = String::new();
        for file in self.files() {
            let largest = file.largest.map_or("+inf".into(), |key| base::key::display_key(&key));
            text.push_str(&format!(
                "L{} {}:{} live {} ['{}' .. '{largest}')\n",
                file.level,
                file.name,
                file.bytes,
                file.live_bytes,
                base::key::display_key(&file.smallest),
            ));
        }
        text
    }
}

fn level_table(stats: &Stats) -> String {
    let mut text = String::from("Level Files Size(MB)\n--------------------\n");
    for shape in stats.levels.iter().map(|level| &level.shape) {
        let mb = shape.bytes as f64 / f64::from(1 << 20);
        text.push_str(&format!("{:>3} {:>8} {mb:>8.0}\n", shape.level, shape.files));
    }
    text
}

fn number(db: &Db, stats: &Stats, name: &str) -> Option<u64> {
    let engine = db.engine();
    let sealed = || engine.commits.lock().sealed.len() as u64;
    Some(match name {
        "estimate-num-keys" => {
            let trees = engine.versions.lock();
            let versions = trees.keyspaces.values().map(|tree| tree.version.runs());
            let in_runs: u64 =
                versions.flatten().map(|run| run.entries.saturating_sub(2 * run.deletes)).sum();
            drop(trees);
            let state = engine.commits.lock();
            let active = state.actives().map(|active| active.writer.memtable().entries());
            let sealed = state.sealed.iter().map(|sealed| sealed.memtable.entries());
            in_runs + active.chain(sealed).sum::<u64>()
        }
        "estimate-live-data-size" | "live-sst-files-size" => stats.live_bytes,
        "total-sst-files-size" => db.files().iter().map(|file| file.bytes).sum(),
        "cur-size-all-mem-tables" | "size-all-mem-tables" => stats.memtable_bytes,
        "num-immutable-mem-table" => sealed(),
        "mem-table-flush-pending" => u64::from(sealed() > 0),
        "compaction-pending" => u64::from(stats.pending_bytes > 0),
        "num-running-compactions" => {
            engine.versions.lock().keyspaces.values().map(|tree| tree.busy.count() as u64).sum()
        }
        "estimate-pending-compaction-bytes" => stats.pending_bytes,
        "num-snapshots" => stats.snapshots,
        "oldest-snapshot-sequence" => engine.snapshots.oldest().map_or(0, |(sequence, _)| sequence),
        "background-errors" => u64::from(stats.background_error.is_some()),
        "block-cache-capacity" => engine.cache.capacity_bytes(),
        "block-cache-usage" => stats.cache_bytes,
        "is-write-stopped" => u64::from(db.would_wait(1).is_some()),
        _ => return None,
    })
}
