//! What the demonstration found, as data: for the terminal, for JSON, for the page.

use crate::commands::ledger::Row;
use serde::Serialize;

/// Where data came from.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Origin {
    /// A name for people, also the first part of the keys.
    pub name: String,
    /// Records.
    pub records: u64,
    /// Bytes of values.
    pub bytes: u64,
}

/// One comparison of everything with its source.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verification {
    /// Values that were compared byte by byte.
    pub values: u64,
    /// Bytes of keys and values that were compared: what a perfect store would hold.
    pub bytes: u64,
    /// Deleted keys that were looked for, and not found.
    pub absent: u64,
    /// Sources that changed on this machine meanwhile; compared by checksum instead.
    pub source_changed: u64,
    /// What was wrong; at most a few are named.
    pub wrong: u64,
    /// The first wrong ones, in words.
    pub wrong_examples: Vec<String>,
    /// Time.
    pub ns: u64,
}

/// One kill.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Crash {
    /// Time from the first acknowledgement to the kill.
    pub killed_after_ns: u64,
    /// Batches acknowledged by this writer.
    pub acknowledged: u64,
    /// Those of them that were acknowledged as synced.
    pub synced: u64,
    /// Batches of all writers so far that were found.
    pub found_total: u64,
    /// Acknowledged batches that were not found.
    pub lost: u64,
    /// Batches found beyond the last acknowledgement: written, not yet answered.
    pub unanswered_kept: u64,
    /// Bytes of keys and values that this writer's found batches wrote.
    pub user_write_bytes: u64,
    /// Bytes of keys and values in the writers' keyspace now.
    pub live_bytes: u64,
    /// Time to open the database after the kill.
    pub open_ns: u64,
    /// What was wrong with the prefix, in words.
    pub wrong: Option<String>,
}

/// Latencies of one kind of read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Latency {
    /// The kind of read.
    pub what: String,
    /// How many.
    pub ops: u64,
    /// How many found something.
    pub found: u64,
    /// Time of all.
    pub ns: u64,
    /// Half were faster.
    pub p50_ns: u64,
    /// 99 of 100 were faster.
    pub p99_ns: u64,
    /// 999 of 1000 were faster.
    pub p999_ns: u64,
    /// The slowest.
    pub max_ns: u64,
}

/// One level of the tree.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LevelRow {
    /// The level.
    pub level: u64,
    /// Table files.
    pub files: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Space at one moment.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct SpaceSample {
    /// Time since the start.
    pub ms: u64,
    /// Bytes that the user wrote until then, deleted and replaced ones included.
    pub user_write_bytes: u64,
    /// Bytes on the medium.
    pub space_bytes: u64,
}

/// Everything.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Account {
    /// Nothing was wrong.
    pub ok: bool,
    /// The seed of every random choice.
    pub seed: u64,
    /// Time of the whole demonstration.
    pub ns: u64,
    /// Where data came from.
    pub origins: Vec<Origin>,
    /// Records imported, index included.
    pub import_records: u64,
    /// Bytes of keys and values imported.
    pub import_bytes: u64,
    /// Time of the import.
    pub import_ns: u64,
    /// After the import.
    pub verified_import: Verification,
    /// Values updated.
    pub updated: u64,
    /// Keys deleted one by one.
    pub deleted: u64,
    /// The directory that one range deletion removed.
    pub range_deleted: String,
    /// Keys that it removed.
    pub range_deleted_keys: u64,
    /// The kills.
    pub crashes: Vec<Crash>,
    /// After updates, deletions and kills.
    pub verified_end: Verification,
    /// The reads.
    pub latencies: Vec<Latency>,
    /// Bytes that `check` read.
    pub check_bytes: u64,
    /// Time of the check.
    pub check_ns: u64,
    /// What it found.
    pub check_problems: Vec<String>,
    /// Bytes by cause, all openings of this process together.
    pub ledger: Vec<Row>,
    /// The tree at the end.
    pub levels: Vec<LevelRow>,
    /// Space over time.
    pub space: Vec<SpaceSample>,
    /// Bytes on the medium at the end.
    pub space_bytes: u64,
}

impl Account {
    /// Bytes of keys and values that a perfect store would hold at the end.
    pub fn live_bytes(&self) -> u64 {
        self.verified_end.bytes + self.crashes.last().map_or(0, |crash| crash.live_bytes)
    }

    /// No value was wrong, nothing acknowledged was lost, no damage was found.
    pub fn is_ok(&self) -> bool {
        let crashes = self.crashes.iter().all(|c| c.lost == 0 && c.wrong.is_none());
        let values = self.verified_import.wrong + self.verified_end.wrong;
        crashes && values == 0 && self.check_problems.is_empty()
    }
}
