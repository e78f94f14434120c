//! macOS and its relatives. Compiled, and not run by the tests.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::num::NonZeroU64;

/// No call asks for pages of a mapping and gives an error for lost ones, so nothing is mapped:
/// [`memory_bytes`] is 0.
pub(in crate::os) const POPULATE: Option<rustix::mm::Advice> = None;

/// The content of a file is on the medium. `fsync` is not enough here: the drive's cache may keep
/// it. Where the file system has no such call, this fails, because the promise cannot be kept.
pub(in crate::os) fn sync_data(file: impl AsFd) -> Result<(), Errno> {
    rustix::fs::fcntl_fullfsync(file)
}

/// The names in a directory, or a file with all that the system knows of it, are on the medium.
pub(in crate::os) fn sync_names(directory: impl AsFd) -> Result<(), Errno> {
    rustix::fs::fcntl_fullfsync(directory)
}

/// The system has no such advice: a sync does all by itself.
pub(in crate::os) fn begin_write_back(_file: BorrowedFd<'_>) {}

/// From now on `file` is transferred past the page cache, or through it.
pub(in crate::os) fn set_direct(file: impl AsFd, yes: bool) -> Result<(), Errno> {
    rustix::fs::fcntl_nocache(file, yes)
}

/// Opens a file for transfers past the page cache; `open` takes the flags besides its own.
pub(in crate::os) fn open_direct(
    open: impl FnOnce(OFlags) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    let file = open(OFlags::empty())?;
    set_direct(&file, true)?;
    Ok(file)
}

/// The system has no such reads.
pub(in crate::os) fn read_uncached(
    _file: BorrowedFd<'_>,
    _into: &mut [u8],
    _offset: u64,
) -> Result<usize, Errno> {
    Err(Errno::NOSYS)
}

/// Reads what the page cache has: the system does not say what that is.
pub(in crate::os) fn read_from_memory(
    _file: BorrowedFd<'_>,
    _into: &mut [u8],
    _offset: u64,
) -> Result<usize, Errno> {
    Err(Errno::NOTSUP)
}

/// Advice that `bytes` from `offset` on are read soon.
pub(in crate::os) fn read_ahead(file: impl AsFd, offset: u64, bytes: NonZeroU64) {
    let _ = rustix::fs::fcntl_rdadvise(file, offset, bytes.get());
}

/// The system reads ahead by itself.
pub(in crate::os) fn expect_sequential(_file: impl AsFd) {}

/// The system has no such advice.
pub(in crate::os) fn forget(_file: impl AsFd, _offset: u64, _bytes: Option<NonZeroU64>) {}

/// Holes begin and end at blocks of the file system, which no call gives for a part of one.
pub(in crate::os) fn discard(_file: impl AsFd, _offset: u64, _bytes: u64) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Disks are not devices here: their size and sectors need calls that `rustix` does not have.
pub(in crate::os) fn sector_bytes(_disk: impl AsFd) -> Result<u32, Errno> {
    Err(Errno::OPNOTSUPP)
}

/// 0: nothing is mapped.
pub(in crate::os) fn memory_bytes() -> u64 {
    0
}

/// Does nothing: the call that Linux has for threads would lower the whole process.
pub fn lower_thread_priority(_nice: i32) {}
