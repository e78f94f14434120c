//! Linux.

#![allow(unsafe_code)] // A call of the system that `rustix` does not have.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Advice, FallocateFlags, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use std::io::IoSliceMut;
use std::num::NonZeroU64;

/// `RWF_DONTCACHE`: read through the page cache without leaving the pages there (Linux 6.14).
const UNCACHED: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// Asks for pages of a mapping, with an error where some cannot be had.
pub(in crate::os) const POPULATE: Option<rustix::mm::Advice> =
    Some(rustix::mm::Advice::LinuxPopulateRead);

/// The content of a file, and the length that reading it needs, are on the medium.
pub(in crate::os) fn sync_data(file: impl AsFd) -> Result<(), Errno> {
    rustix::fs::fdatasync(file)
}

/// The names in a directory, or a file with all that the system knows of it, are on the medium.
pub(in crate::os) fn sync_names(directory: impl AsFd) -> Result<(), Errno> {
    rustix::fs::fsync(directory)
}

/// Begins to write the dirty pages of `file` to the medium, and does not wait for them. Advice:
/// where the system cannot, a sync does all by itself.
pub(in crate::os) fn begin_write_back(file: BorrowedFd<'_>) {
    // From the first byte; no bytes mean all that follow.
    let (offset, bytes) = (0, 0);
    // SAFETY: the descriptor is open as long as it is borrowed, and the call takes no memory.
    unsafe { libc::sync_file_range(file.as_raw_fd(), offset, bytes, libc::SYNC_FILE_RANGE_WRITE) };
}

/// From now on `file` is written past the page cache, or through it.
pub(in crate::os) fn set_direct(file: impl AsFd, yes: bool) -> Result<(), Errno> {
    rustix::fs::fcntl_setfl(file, if yes { OFlags::DIRECT } else { OFlags::empty() })
}

/// Opens a file for transfers past the page cache; `open` takes the flags besides its own.
pub(in crate::os) fn open_direct(
    open: impl FnOnce(OFlags) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    open(OFlags::DIRECT)
}

/// Reads without leaving pages in the cache that were not there. An error of [`Errno::NOSYS`],
/// [`Errno::OPNOTSUPP`] or [`Errno::INVAL`] says that the system cannot.
pub(in crate::os) fn read_uncached(
    file: BorrowedFd<'_>,
    into: &mut [u8],
    offset: u64,
) -> Result<usize, Errno> {
    rustix::io::preadv2(file, &mut [IoSliceMut::new(into)], offset, UNCACHED)
}

/// Reads what the page cache has. An error, or fewer bytes, where the device would be waited for.
pub(in crate::os) fn read_from_memory(
    file: BorrowedFd<'_>,
    into: &mut [u8],
    offset: u64,
) -> Result<usize, Errno> {
    rustix::io::preadv2(file, &mut [IoSliceMut::new(into)], offset, ReadWriteFlags::NOWAIT)
}

/// Advice that `bytes` from `offset` on are read soon.
pub(in crate::os) fn read_ahead(file: impl AsFd, offset: u64, bytes: NonZeroU64) {
    let _ = rustix::fs::fadvise(file, offset, Some(bytes), Advice::WillNeed);
}

/// Advice that `file` is read from its beginning to its end.
pub(in crate::os) fn expect_sequential(file: impl AsFd) {
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Sequential);
}

/// Advice that the page cache need not keep `bytes` from `offset` on; none: all that follow.
pub(in crate::os) fn forget(file: impl AsFd, offset: u64, bytes: Option<NonZeroU64>) {
    let _ = rustix::fs::fadvise(file, offset, bytes, Advice::DontNeed);
}

/// Gives the space of a part of a file back; the part reads as zeros.
pub(in crate::os) fn discard(file: impl AsFd, offset: u64, bytes: u64) -> Result<(), Errno> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(file, flags, offset, bytes)
}

/// The physical sector of a disk.
pub(in crate::os) fn sector_bytes(disk: impl AsFd) -> Result<u32, Errno> {
    rustix::fs::ioctl_blkpbszget(disk)
}

/// Memory of this machine.
pub(in crate::os) fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit))
}

/// Lowers the scheduling priority of the calling thread by `nice` steps (1 to 19). Going up needs
/// no privilege; where it fails all the same, the thread goes on as it was.
pub fn lower_thread_priority(nice: i32) {
    // "The calling process" is the calling thread.
    let _ = rustix::process::setpriority_process(None, nice);
}
