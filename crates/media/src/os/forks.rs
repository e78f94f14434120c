//! Handlers that run when this process forks.

#![allow(unsafe_code)] // A call of the system that `rustix` does not have.

use rustix::io::Errno;

type Handler = extern "C" fn();

/// From now on, each fork of this process calls `before`, and then `in_parent` and `in_child`. The
/// thread that forks calls them. A fork that goes past the C library calls none.
pub(super) fn watch(before: Handler, in_parent: Handler, in_child: Handler) -> Result<(), Errno> {
    // SAFETY: the functions live as long as the program, and the call takes nothing else.
    match unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) } {
        0 => Ok(()),
        number => Err(Errno::from_raw_os_error(number)),
    }
}
