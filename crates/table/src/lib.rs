//! Every byte on disk: table files and the runs in them, logs, batches, manifests.
//!
//! [`mod@log`] frames the write-ahead log and the manifest, [`manifest`] encodes edits, [`batch`]
//! is what a commit writes, and [`log_record`] what the write-ahead log holds. A table file is a
//! header and one or more runs, one after another; see `docs/format/table.md`. [`TableWriter`]
//! writes runs, [`Run`] reads one, [`BlockCache`] keeps blocks of all of them, [`EntryIter`] is how
//! sorted entries are walked, whatever holds them.
//! [`sorted`] writes table files for bulk ingestion.

pub mod batch;
mod block;
pub mod bytes;
pub mod cache;
mod filter;
pub mod format;
mod frame;
pub mod iter;
pub mod log;
pub mod log_record;
pub mod manifest;
pub mod merging;
pub mod options;
pub mod piece;
pub mod place;
pub mod range_delete;
pub mod rescue;
mod run;
pub mod sorted;
pub mod summary;
pub mod writer;

mod block_builder;
mod cursor;
mod run_builder;
mod sink;

#[cfg(test)]
mod tests;

pub use bytes::Bytes;
pub use cache::{BlockCache, CacheCounters};
pub use iter::EntryIter;
pub use merging::MergingIter;
pub use options::{Compression, Filter, PrefixRule, TableOptions};
pub use piece::BlockKind;
pub use place::TablePlace;
pub use range_delete::{Fragment, RangeDeletes, RangeTombstone};
pub use rescue::Rescue;
pub use run::{Boundary, Entry, Extent, IterOptions, Probe, Run, RunEnd, RunIter};
pub use sink::EndedTable;
pub use summary::RunSummary;
pub use writer::TableWriter;
