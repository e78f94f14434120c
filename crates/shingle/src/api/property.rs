//! Properties: single numbers and texts by the names that people know from RocksDB and LevelDB.

use super::db::{Db, Keyspace};
use crate::engine::Engine;
use crate::stats::{Stats, amplification_line};
use base::{KeyspaceId, Result};

impl Keyspace {
    /// An estimate of the number of keys, from counts that the engine keeps: it reads no data, so
    /// it takes the same time for a keyspace of any size.
    ///
    /// It is exact where no key was written twice, deleted or expired. A value that was replaced
    /// counts until a compaction drops it. A deletion in memory counts as a key, and after its
    /// flush it takes away the key that it deleted. A deleted range takes nothing away until a
    /// compaction drops its keys.
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = shingle::Options::new().open(dir.path())?;
    /// db.put("apple", "red")?;
    /// db.put("pear", "green")?;
    /// assert_eq!(db.default_keyspace().approximate_len()?, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Closed`](crate::ErrorKind::Closed) where the keyspace was dropped or the database was
    /// closed.
    pub fn approximate_len(&self) -> Result<u64> {
        let _inside = self.engine().enter()?;
        self.state.check_open()?;
        Ok(approximate_entries(self.engine(), |id| id == self.id()))
    }
}

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
        "estimate-num-keys" => approximate_entries(engine, |_| true),
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

/// The entries of some keyspaces: those of their runs, where each deletion takes away itself and
/// the entry that it deleted, and those of their memtables.
fn approximate_entries(engine: &Engine, is_counted: impl Fn(KeyspaceId) -> bool) -> u64 {
    let trees = engine.versions.lock();
    let counted = trees.keyspaces.values().filter(|tree| is_counted(tree.keyspace.id));
    let in_runs: u64 = counted
        .map(|tree| {
            let (mut entries, mut deletes) = (0u64, 0u64);
            for run in tree.version.runs() {
                entries += run.entries;
                deletes += run.deletes;
            }
            entries.saturating_sub(2 * deletes)
        })
        .sum();
    drop(trees);
    let state = engine.commits.lock();
    let actives = state.actives().filter(|active| is_counted(active.keyspace.id));
    let active = actives.map(|active| active.writer.memtable().entries());
    let sealed = state.sealed.iter().filter(|sealed| is_counted(sealed.keyspace.id));
    in_runs + active.chain(sealed.map(|sealed| sealed.memtable.entries())).sum::<u64>()
}
