//! Shingle: an embedded, ordered key-value store for write-heavy data on SSDs, hard disks and
//! shingled disks.
//!
//! [`Options`] opens a [`Db`]. A [`Db`] and its [`Keyspace`]s read and write. [`Snapshot`]s,
//! [`Iter`]s and [`WriteBatch`]es are owned and `Send`. [`Db::stats`] gives every byte that was
//! read or written, by its cause. [`Error::kind`] says what the caller can do about an error.
//!
//! ```
//! # fn main() -> shingle::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! let db = shingle::Options::new().open(dir.path())?;
//! db.put("apple", "red")?;
//! assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
//! db.close()?;
//! # Ok(())
//! # }
//! ```

#![warn(clippy::missing_errors_doc)]

mod admission;
mod api;
mod engine;
mod histogram;
mod json;
mod keyspace;
#[cfg(feature = "testing")]
#[expect(clippy::missing_errors_doc, reason = "for measurements of memtables alone")]
pub mod memtable;
#[cfg(not(feature = "testing"))]
mod memtable;
mod merge_operator;
pub mod options;
mod presets;
mod progress;
mod read;
mod reduce;
mod resources;
#[cfg(feature = "testing")]
pub mod runtime;
#[cfg(not(feature = "testing"))]
mod runtime;
mod salvage;
mod settings;
mod snapshot_list;
mod stats;
mod unvouched;
mod value_rules;
mod value_stats;
mod work;

pub use admission::{Stall, StallReason, Wait};
pub use api::{
    Cursor, Db, Follower, Iter, Keyspace, Pins, ReadOptions, Snapshot, WriteBatch, WriteOptions,
    check_closed, check_store,
};
pub use base::env::Runtime;
pub use base::ledger::Traffic;
pub use base::{
    Cause, Error, ErrorKind, Key, KeyRange, Ledger, LedgerSnapshot, Result, SequenceNumber,
};
pub use histogram::Latency;
pub use keyspace::KeyspaceOptions;
pub use media::FileStore;
pub use media::os::OsStore;
pub use merge_operator::{MergeOperator, Unmerged};
pub use options::{Durability, Expert, Options, Preset};
pub use progress::Progress;
pub use resources::Resources;
pub use salvage::{SalvageReport, salvage, salvage_store, salvage_with};
pub use stats::{CacheCounters, CheckReport, FileInfo, LevelStats, ParkedWork, Stats};
pub use table::{Bytes, Compression, PrefixRule};
pub use tree::{Group, Tier};
pub use value_stats::{Collected, ValueGroup, ValueStats, ValueTimes};
