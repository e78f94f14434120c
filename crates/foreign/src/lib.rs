//! Databases of other stores, read and never changed.
//!
//! Invariants:
//! - Nothing is written, not even a lock file: a database that another program has open is refused.
//! - Damage is an error that names the file and the byte. What cannot be read is never left out.
//! - Memory is bounded by a block of each table that is being read, and by the logs.

mod block;
mod coding;
mod current;
mod entry;
mod file;
pub mod leveldb;
mod lock;
mod logs;
mod merge;
mod ranges;
mod records;
pub mod rocksdb;
mod snappy;
mod store;

pub use store::{Store, store_at};
