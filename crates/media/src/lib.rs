//! File stores: where the engine's bytes go. See [`store`] for the contract, and [`block`] for the
//! contract of the devices that a store may place its files on.
//!
//! - [`os`]: files of the operating system.
//! - [`mem`]: memory that can lose power, for crash tests.
//! - [`pair`]: a store and the store of its cold files, as one.
//! - [`faulty`]: any store, with planned failures.

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
compile_error!(
    "shingle has no files on this system yet: crates/media/src/os/system.rs lists what a port of \
     crates/media/src/os has to do"
);

pub mod block;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod faulty;
pub mod mem;
mod mutex;
mod names;
pub mod os;
pub mod pair;
pub mod store;

pub use block::{BlockDevice, Geometry, Moved};
pub use names::check_note_name;
pub use pair::PairStore;
pub use store::{
    AppendFile, ColdStore, FileHint, FileKind, FileName, FileStore, FileSummary, MappedBytes,
    Mapping, Part, ReadFile, Space, StoreLock, SyncFile,
};

pub(crate) use mutex::hold;
pub(crate) use store::past_end;
