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
//!
//! # Stability
//!
//! This crate follows semantic versioning. Its parts, the crates `shingle-base`, `shingle-media`,
//! `shingle-tree`, `shingle-table` and `shingle-values`, do not: what a program needs of them is
//! exported here, and is covered under the name that it has here. Not covered are:
//!
//! - the knobs of [`Expert`];
//! - the methods of [`FileStore`], [`OsStore`], [`Runtime`] and [`Ledger`], for programs that bring
//!   their own files, clock or threads;
//! - what the feature `testing` adds;
//! - texts: messages of errors, [`Stats`] as a table, lines of [`Db::events`].
//!
//! Structs that a program reads, such as [`Stats`], gain fields. A struct of options is written
//! with `..Default::default()`, and gains fields too.
//!
//! # Features
//!
//! - `tracing`: [`Event`]s are also events of the crate `tracing`, in the target `shingle`, and
//!   background jobs and long calls are spans. The engine calls the subscriber while it holds
//!   locks, so a subscriber must not call the database.
//! - `testing` opens doors for the tests of the engine. Programs do not need it.

#![warn(clippy::missing_errors_doc)]

mod admission;
mod api;
mod backup;
mod budget;
mod change_stats;
mod cleanup;
mod compaction_filter;
mod engine;
pub mod event;
mod histogram;
mod ingest;
mod json;
mod key_locks;
mod keyspace;
mod live;
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
mod sorted_file;
mod span;
mod stats;
mod transaction;
mod transaction_counters;
mod unvouched;
mod value_rules;
mod value_stats;
mod work;

pub use admission::{Stall, StallCondition, StallReason, Wait};
pub use api::{
    Change, Changes, ChangesOptions, Cursor, Db, Follower, Iter, Keyspace, Operation, Pins,
    ReadOptions, Since, Snapshot, WriteBatch, WriteOptions, check_closed, check_store,
};
pub use backup::{Backup, Backups, Keep, Pruned};
#[doc(inline)]
pub use base::env::Runtime;
#[doc(inline)]
pub use base::ledger::Traffic;
#[doc(inline)]
pub use base::{
    Cause, Error, ErrorKind, Expiry, Key, KeyRange, Ledger, LedgerSnapshot, Result, SequenceNumber,
};
pub use change_stats::ChangeStats;
pub use cleanup::CleanupStats;
pub use compaction_filter::{CompactionFilter, FilterDecision, FilterEntry};
pub use event::{Event, EventListener};
pub use histogram::Latency;
pub use ingest::{IngestCounters, IngestOptions, Ingested};
pub use keyspace::KeyspaceOptions;
#[doc(inline)]
pub use media::FileStore;
#[doc(inline)]
pub use media::os::OsStore;
pub use merge_operator::{MergeOperator, Unmerged};
pub use options::{Durability, Expert, Options, Preset};
pub use progress::Progress;
pub use resources::{ResourceLimits, Resources};
pub use salvage::{SalvageReport, salvage, salvage_store, salvage_with};
pub use sorted_file::{SortedFileOptions, SortedFileSummary, SortedFileWriter};
pub use stats::{
    BackedOffWork, CacheCounters, CheckReport, FileInfo, KeyspaceStats, LevelShape, LevelStats,
    Stats,
};
#[doc(inline)]
pub use table::{Bytes, Compression, PrefixRule};
pub use transaction::{Isolation, Transaction, TransactionIter, TransactionOptions};
pub use transaction_counters::TransactionCounters;
#[doc(inline)]
pub use tree::{Group, Tier};
pub use value_stats::{Collected, ValueGroup, ValueStats, ValueTimes};

/// The example of the readme compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
