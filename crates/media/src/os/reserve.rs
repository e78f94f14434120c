//! Space kept free: a file of its own with blocks and no content. Other programs may fill the
//! medium: the blocks stay with this file, and removing it makes them free.

use super::calls;
use super::directory::Directory;
use crate::names::RESERVE_NAME;
use base::{ErrorKind, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

/// Gives the file `bytes`, and removes it for 0. `false` where the file system cannot give a file
/// blocks in advance.
pub(super) fn set(directory: &Directory, bytes: u64) -> Result<bool> {
    if bytes == 0 {
        return remove(directory).map(|()| true);
    }
    let file = directory.open_file(RESERVE_NAME, OFlags::WRONLY | OFlags::CREATE)?;
    let error = |doing: &str, errno| calls::error(doing, RESERVE_NAME, errno);
    let stat = rustix::fs::fstat(&file).map_err(|errno| error("look at", errno))?;
    let before = stat.st_size as u64;
    if before >= bytes {
        return cut(&file, bytes).map(|()| true);
    }
    let grown =
        calls::patiently(|| rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes));
    match grown {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => remove(directory).map(|()| false),
        Err(errno) => {
            // Part of the blocks may be there.
            cut(&file, before)?;
            if before > 0 {
                // Less than was wanted, and kept free all the same.
                return Ok(true);
            }
            remove(directory)?;
            Err(error("reserve space in", errno))
        }
    }
}

fn cut(file: &OwnedFd, bytes: u64) -> Result<()> {
    calls::patiently(|| rustix::fs::ftruncate(file, bytes))
        .map_err(|errno| calls::error("cut", RESERVE_NAME, errno))
}

fn remove(directory: &Directory) -> Result<()> {
    match directory.unlink(RESERVE_NAME) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
