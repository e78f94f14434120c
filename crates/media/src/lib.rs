//! File stores: where the engine's bytes go. See [`store`] for the contract, [`capability`] for
//! what a store may do beyond it, and [`block`] for the contract of the devices that a store may
//! place its files on.
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
pub mod capability;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod faulty;
pub mod mem;
mod names;
pub mod os;
pub mod pair;
mod share;
pub mod store;

pub use block::{BlockDevice, Geometry, Moved};
pub use capability::{Capacity, ColdOwner, ColdStore, DeviceMap, Notes, Part, Sharing, Space};
pub use names::{FileKind, FileName, check_note_name};
pub use pair::PairStore;
pub use share::share;
pub use store::{
    AppendFile, FileHint, FileStore, FileSummary, MappedBytes, Mapping, ReadFile, StoreLock,
    SyncFile, lacks,
};

pub(crate) use store::past_end;
