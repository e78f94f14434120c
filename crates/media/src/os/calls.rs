//! System calls with their everyday troubles handled: short transfers are continued, interrupted
//! calls are repeated a bounded number of times, and errors name the file.

use super::system;
use base::{Error, ErrorKind};
use rustix::fd::BorrowedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Files of ours are private to their owner.
pub(super) const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Flags of every open: not inherited by other programs, symbolic links not followed.
pub(super) const SAFE: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW);

/// Interrupted or refused calls in a row that are still tried again.
const ATTEMPTS_MAX: u32 = 1000;

/// Counts calls that made no progress.
#[derive(Default)]
struct Patience(u32);

impl Patience {
    /// Whether a call that failed with `errno` shall be tried again.
    fn again(&mut self, errno: Errno) -> bool {
        self.0 += 1;
        matches!(errno, Errno::INTR | Errno::AGAIN) && self.0 < ATTEMPTS_MAX
    }
}

/// Repeats `call` while it is interrupted.
pub(super) fn patiently<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut patience = Patience::default();
    loop {
        match call() {
            Err(errno) if patience.again(errno) => {}
            result => return result,
        }
    }
}

/// Repeats `call` while a signal interrupts it; "try again" is an answer here.
pub(super) fn patiently_blocked<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut patience = Patience::default();
    loop {
        match call() {
            Err(Errno::INTR) if patience.again(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Writes all of `bytes` at `offset`; `accepted` hears what each call took.
pub(super) fn write_at(
    file: BorrowedFd<'_>,
    mut bytes: &[u8],
    mut offset: u64,
    mut accepted: impl FnMut(usize),
) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let taken = patiently(|| rustix::io::pwrite(file, bytes, offset))?;
        if taken == 0 {
            return Err(Errno::IO);
        }
        accepted(taken);
        bytes = &bytes[taken..];
        offset += taken as u64;
    }
    Ok(())
}

/// Fills `into` from `offset` as far as the file goes; `given` hears what each call gave. Returns
/// the bytes filled. `uncached` asks to leave no pages behind, and turns itself off where the file
/// system cannot do so.
pub(super) fn read_at(
    file: BorrowedFd<'_>,
    into: &mut [u8],
    offset: u64,
    uncached: &AtomicBool,
    mut given: impl FnMut(usize),
) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < into.len() {
        let position = offset + filled as u64;
        let rest = &mut into[filled..];
        let result = if uncached.load(Relaxed) {
            patiently(|| system::read_uncached(file, rest, position))
        } else {
            patiently(|| rustix::io::pread(file, &mut *rest, position))
        };
        match result {
            Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) if uncached.load(Relaxed) => {
                uncached.store(false, Relaxed);
            }
            Err(errno) => return Err(errno),
            Ok(0) => break,
            Ok(count) => {
                given(count);
                filled += count;
            }
        }
    }
    Ok(filled)
}

/// The error of a failed call: `doing` says what was tried, `file` on what.
pub(super) fn error(doing: &str, file: impl Into<String>, errno: Errno) -> Error {
    if errno == Errno::EXIST {
        return Error::new(ErrorKind::AlreadyExists, format!("cannot {doing}: it exists"))
            .in_file(file);
    }
    if matches!(errno, Errno::MFILE | Errno::NFILE) {
        let message = format!(
            "cannot {doing}: the process has no descriptor left; raise its limit of open files \
             (`ulimit -n`)"
        );
        return Error::io(message, errno.into()).in_file(file);
    }
    Error::io(format!("cannot {doing}"), errno.into()).in_file(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;

    #[test]
    fn a_full_device_is_no_space() {
        let full = rustix::fs::open("/dev/full", OFlags::WRONLY, Mode::empty()).unwrap();
        let errno = write_at(full.as_fd(), b"x", 0, |_| panic!("nothing was taken")).unwrap_err();
        assert_eq!(error("append", "f", errno).kind(), ErrorKind::NoSpace);
    }

    #[test]
    fn interruptions_are_repeated_but_not_for_ever() {
        let mut calls = 0;
        let result = patiently(|| {
            calls += 1;
            if calls < 50 { Err(Errno::INTR) } else { Ok(calls) }
        });
        assert_eq!(result, Ok(50));
        assert_eq!(patiently::<()>(|| Err(Errno::INTR)), Err(Errno::INTR));
        assert_eq!(patiently::<()>(|| Err(Errno::IO)), Err(Errno::IO));
    }
}
