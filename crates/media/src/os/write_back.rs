//! Asking the system to begin writing what only the page cache has.

#![allow(unsafe_code)] // A call of the system that `rustix` does not have.

use rustix::fd::BorrowedFd;
use std::ops::Range;

/// Begins to write the pages of `range` to the medium, and does not wait for them. Advice: where
/// the system cannot, a sync does all by itself.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn begin(file: BorrowedFd<'_>, range: Range<u64>) {
    use rustix::fd::AsRawFd;
    let offset = i64::try_from(range.start);
    let bytes = i64::try_from(range.end.saturating_sub(range.start));
    // Zero bytes would mean all that follow.
    if let (Ok(offset), Ok(bytes @ 1..)) = (offset, bytes) {
        let flags = libc::SYNC_FILE_RANGE_WRITE;
        // SAFETY: the descriptor is open as long as it is borrowed, and the call takes no memory.
        unsafe { libc::sync_file_range(file.as_raw_fd(), offset, bytes, flags) };
    }
}

/// Systems without the call.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn begin(_file: BorrowedFd<'_>, _range: Range<u64>) {}
