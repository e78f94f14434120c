//! File stores: where the engine's bytes go. See [`store`] for the contract, and [`block`] for the
//! contract of the devices that a store may place its files on.
//!
//! - [`os`]: files of the operating system.
//! - [`mem`]: memory that can lose power, for crash tests.
//! - [`pair`]: a store and the store of its cold files, as one.
//! - [`faulty`]: any store, with planned failures.

pub mod block;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod faulty;
pub mod mem;
pub mod os;
pub mod pair;
pub mod store;

pub use block::{BlockDevice, Geometry, Moved};
pub use pair::PairStore;
pub use store::{
    AppendFile, ColdStore, FileHint, FileKind, FileName, FileStore, FileSummary, MappedBytes,
    Mapping, Part, ReadFile, Space, StoreLock, SyncFile,
};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`. Every holder leaves the state whole, so a panic elsewhere does not spoil it.
fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error of a read that asks for more than the file has.
fn past_end(name: FileName, offset: u64, wanted: usize, bytes: u64) -> base::Error {
    let message = format!("read of {wanted} bytes past the end: the file has {bytes} bytes");
    base::Error::corruption(name.to_string(), offset, message)
}

/// Refuses a note's name that is no plain file name, or that is the store's own: `InvalidArgument`.
pub fn check_note_name(name: &str) -> base::Result<()> {
    let plain = !name.is_empty()
        && name.len() <= 200
        && !name.starts_with('.')
        && !name.ends_with(".tmp")
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if !plain || os::is_reserved(name) || FileName::parse(name).is_some() {
        let message = format!("{name:?} cannot name a note: use a plain file name of your own");
        return Err(base::Error::invalid(message));
    }
    Ok(())
}
