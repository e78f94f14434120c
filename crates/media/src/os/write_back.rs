//! Asking the system to begin writing what only the page cache has.

#![allow(unsafe_code)] // A call of the system that `rustix` does not have.

use rustix::fd::{AsRawFd, BorrowedFd};

/// Begins to write the dirty pages of `file` to the medium, and does not wait for them. Advice:
/// where the system cannot, a sync does all by itself.
pub(super) fn begin(file: BorrowedFd<'_>) {
    // From the first byte; no bytes mean all that follow.
    let (offset, bytes) = (0, 0);
    // SAFETY: the descriptor is open as long as it is borrowed, and the call takes no memory.
    unsafe { libc::sync_file_range(file.as_raw_fd(), offset, bytes, libc::SYNC_FILE_RANGE_WRITE) };
}
