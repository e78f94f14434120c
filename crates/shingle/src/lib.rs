//! Shingle: an embedded, ordered key-value store for write-heavy data on SSDs, hard disks and
//! shingled disks.
//!
//! [`Options`] opens a [`Db`]. A [`Db`] and its [`Keyspace`]s read and write. [`Snapshot`]s,
//! [`Iter`]s and [`WriteBatch`]es are owned and `Send`. The ledger counts every byte that the store
//! reads or writes by its cause; see [`Db::stats`].
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

mod admission;
mod api;
mod engine;
mod histogram;
mod json;
mod keyspace;
pub mod memtable;
mod merge_operator;
pub mod options;
mod presets;
mod read;
mod reduce;
mod resources;
pub mod runtime;
mod salvage;
mod settings;
mod snapshot_list;
mod stats;
mod unvouched;
mod value_rules;
mod value_stats;
mod work;

pub use admission::{StallReason, Wait};
pub use api::{
    Cursor, Db, Iter, Keyspace, Pins, ReadOptions, Snapshot, WriteBatch, WriteOptions,
    check_closed, check_store,
};
pub use base::{Cause, Error, ErrorKind, Ledger, LedgerSnapshot, Result};
pub use histogram::Latency;
pub use keyspace::KeyspaceOptions;
pub use merge_operator::{MergeOperator, Unmerged};
pub use options::{Durability, Expert, Options, Preset};
pub use resources::Resources;
pub use salvage::{SalvageReport, salvage, salvage_store, salvage_with};
pub use stats::{CheckReport, FileInfo, LevelStats, ParkedWork, Progress, Stats};
pub use table::{Bytes, Compression, PrefixRule};
pub use value_stats::{Collected, ValueGroup, ValueStats, ValueTimes};
