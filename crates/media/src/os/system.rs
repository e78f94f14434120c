//! What the systems do differently. Everything else in [`crate::os`] is POSIX.
//!
//! | | Linux | macOS |
//! |---|---|---|
//! | a sync to the medium | `fdatasync` | `F_FULLFSYNC`: `fsync` does not empty the drive's cache |
//! | past the page cache | `O_DIRECT` | `F_NOCACHE` |
//! | reads that leave no pages behind | `RWF_DONTCACHE` | ordinary reads |
//! | read what is in memory | `RWF_NOWAIT` | nothing: no call tells |
//! | read ahead, forget | `posix_fadvise` | `F_RDADVISE`, nothing |
//! | begin to write back | `sync_file_range` | nothing: the sync writes all |
//! | space for a file in advance | `fallocate` | `F_PREALLOCATE` |
//! | discard a part of a file | punch a hole | refused |
//! | a disk as a device | its sector size | refused: a file is a device, a disk is none |
//! | map tables | populate, then read | off: no call tells a lost page from a signal |
//! | priority of background threads | by thread | nothing: it would be that of the process |
//!
//! Where a system lacks advice, nothing happens. Where it lacks what a promise needs, the call
//! fails. macOS has `F_FULLFSYNC` on its own file systems; on others a sync is an error.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(target_vendor = "apple")]
mod macos;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) use linux::{
    POPULATE, begin_write_back, discard, expect_sequential, forget, memory_bytes, open_direct,
    read_ahead, read_from_memory, read_uncached, sector_bytes, set_direct, sync_data, sync_names,
};
#[cfg(target_vendor = "apple")]
pub(super) use macos::{
    POPULATE, begin_write_back, discard, expect_sequential, forget, memory_bytes, open_direct,
    read_ahead, read_from_memory, read_uncached, sector_bytes, set_direct, sync_data, sync_names,
};

#[cfg(any(target_os = "linux", target_os = "android"))]
pub use linux::lower_thread_priority;
#[cfg(target_vendor = "apple")]
pub use macos::lower_thread_priority;

use rustix::fs::Stat;

/// What tells a file from every other one of this machine. The types differ from system to system.
#[allow(clippy::unnecessary_cast)]
pub(super) fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}
