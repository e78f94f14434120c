//! What every other crate of Shingle stands on: keys, identifiers, causes, the ledger, checksums,
//! encoding, errors, memory in pages, and the traits through which clock, randomness and threads
//! come in.
//!
//! Nothing here does I/O, reads a clock or starts a thread.

pub mod cause;
pub mod checksum;
pub mod coding;
pub mod env;
pub mod error;
pub mod expiry;
pub mod id;
pub mod key;
pub mod ledger;
pub mod page_memory;
pub mod parameter;
pub mod prefetch;
pub mod random;
pub mod scenario;
pub mod size;
pub mod striped;

pub use cause::Cause;
pub use error::{Error, ErrorKind, Result};
pub use expiry::{Expiry, ExpirySpan};
pub use id::{DatabaseId, FileId, KeyspaceId, RunId};
pub use key::{EntryKind, Key, KeyRange, SequenceNumber};
pub use ledger::{Ledger, LedgerSnapshot};
