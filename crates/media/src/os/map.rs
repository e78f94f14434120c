//! Files mapped into memory: bytes are read where the system keeps them, without call or copy.
//!
//! What a mapping costs in safety, and what is done about it (ADR 0020). Because of this cost the
//! engine maps only where the program asks for it (ADR 0185):
//! - A page that the device does not give any more, or that lies behind the end of a truncated
//!   file, is not an error but a signal that ends the process. [`Mapping::fetch`] asks the system
//!   for pages in a way that gives an error instead; readers fetch what they use first. What
//!   remains is a page that was fetched, dropped by the system under pressure, and then lost.
//! - The compiler believes that the bytes do not change. A file is mapped only after its writer is
//!   done with it, is never written again, is private to its owner, and its directory is locked. A
//!   program that writes into it all the same breaks this, as it breaks the database.
//!
//! The memory is the system's page cache: it counts in the resident size of the process while it is
//! mapped, and the system takes it back when it needs it. Address space is bounded by
//! [`Budget`]. Miri cannot run this module; the sanitizers can.

#![allow(unsafe_code)] // The system's calls give and take raw memory.

use super::calls;
use super::descriptors::Descriptor;
use super::system;
use crate::past_end;
use crate::store::Mapping;
use base::{Cause, Ledger, Result};
use rustix::fd::AsFd;
use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Pages are multiples of this, wherever we run.
const PAGE_BYTES: usize = 4096;

/// Bytes of pages that are fetched at a time, aligned: a call for each block costs more than the
/// pages around it, and a fault would read as much ahead.
const WINDOW_BYTES: usize = 64 << 10;

/// A process may have about 65,000 mappings, and it is not only ours.
const FILES_MAX: u64 = 8192;

/// Bytes that are sensibly mapped on this machine: half of its memory, so that what is mapped stays
/// there. 0 where addresses have 32 bits.
pub fn mappable_bytes() -> u64 {
    if cfg!(target_pointer_width = "64") { system::memory_bytes() / 2 } else { 0 }
}

/// What may be mapped at a time, in all files of a store.
#[derive(Debug)]
pub(super) struct Budget {
    bytes_max: u64,
    bytes: AtomicU64,
    files: AtomicU64,
}

impl Budget {
    pub(super) fn new(bytes_max: u64) -> Budget {
        Budget { bytes_max, bytes: AtomicU64::new(0), files: AtomicU64::new(0) }
    }

    fn take(&self, bytes: u64) -> bool {
        let files = self.files.fetch_add(1, Relaxed);
        let used = self.bytes.fetch_add(bytes, Relaxed);
        let fits = files < FILES_MAX && used.saturating_add(bytes) <= self.bytes_max;
        if !fits {
            self.give(bytes);
        }
        fits
    }

    fn give(&self, bytes: u64) {
        self.files.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(bytes, Relaxed);
    }
}

/// A whole file as memory, for as long as it lives.
pub(super) struct FileMapping {
    start: NonNull<c_void>,
    bytes: usize,
    /// The mapping outlives the file's descriptor.
    descriptor: Arc<Descriptor>,
    ledger: Arc<Ledger>,
    budget: Arc<Budget>,
    /// The system knows how to populate pages.
    populates: AtomicBool,
    /// A bit for each window that was populated.
    populated: Vec<AtomicU64>,
}

// SAFETY: the memory is only ever read, and unmapped once, by the only owner; both may happen on
// any thread.
unsafe impl Send for FileMapping {}
// SAFETY: as above: shared references only read.
unsafe impl Sync for FileMapping {}

impl FileMapping {
    /// Maps the first `bytes` bytes of a file; `None` where that does not fit the budget, or the
    /// system refuses.
    pub(super) fn new(
        descriptor: &Arc<Descriptor>,
        ledger: &Arc<Ledger>,
        bytes: u64,
        budget: &Arc<Budget>,
    ) -> Option<FileMapping> {
        let length = usize::try_from(bytes).ok().filter(|&length| length > 0)?;
        let file = descriptor.get().ok()?;
        if !budget.take(bytes) {
            return None;
        }
        let (read, shared) = (ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: the system chooses the place, so that no memory in use is replaced.
        let mapped = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), length, read, shared, file.as_fd(), 0)
        };
        match mapped.ok().and_then(NonNull::new) {
            None => {
                budget.give(bytes);
                None
            }
            Some(start) => Some(FileMapping {
                start,
                bytes: length,
                descriptor: descriptor.clone(),
                ledger: ledger.clone(),
                budget: budget.clone(),
                populates: AtomicBool::new(true),
                populated: (0..length.div_ceil(64 * WINDOW_BYTES)).map(|_| 0.into()).collect(),
            }),
        }
    }
}

impl FileMapping {
    /// Has the system put the `bytes` from `from` on into memory, and those of the same windows.
    /// `false`: some cannot be had.
    fn populate(&self, from: usize, bytes: usize) -> bool {
        let windows = from / WINDOW_BYTES..(from + bytes).div_ceil(WINDOW_BYTES);
        windows.into_iter().all(|window| {
            let (word, bit) = (&self.populated[window / 64], 1 << (window % 64));
            if word.load(Relaxed) & bit != 0 {
                return true;
            }
            let start = window * WINDOW_BYTES;
            let whole = self.populate_pages(start..self.bytes.min(start + WINDOW_BYTES));
            if whole {
                word.fetch_or(bit, Relaxed);
                return true;
            }
            // What is not asked for must not make it fail.
            let lead = from % PAGE_BYTES;
            self.populate_pages(start.max(from - lead)..(start + WINDOW_BYTES).min(from + bytes))
        })
    }

    /// `pages` begin at a page and lie inside the mapping.
    fn populate_pages(&self, pages: Range<usize>) -> bool {
        let Some(advice) = system::POPULATE else { return false };
        // SAFETY: the pages are inside the mapping, and reading them ahead changes nothing that is
        // visible.
        let populated = unsafe {
            let start = self.start.as_ptr().cast::<u8>().add(pages.start).cast();
            rustix::mm::madvise(start, pages.len(), advice)
        };
        populated.is_ok()
    }
}

impl Mapping for FileMapping {
    #[inline]
    fn bytes(&self) -> &[u8] {
        // SAFETY: `start` is the start of `bytes` mapped, readable bytes until `self` is dropped;
        // the file is not written any more (see the module).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast::<u8>(), self.bytes) }
    }

    fn fetch(&self, range: Range<u64>, cause: Cause) -> Result<()> {
        let whole = range.start <= range.end && range.end <= self.bytes as u64;
        let name = self.descriptor.name();
        let (from, bytes) =
            (range.start as usize, (range.end.saturating_sub(range.start)) as usize);
        if !whole {
            return Err(past_end(name, range.start, bytes, self.bytes as u64));
        }
        if self.populates.load(Relaxed) && self.populate(from, bytes) {
            self.ledger.read(cause, bytes as u64);
            return Ok(());
        }
        // An old system, or an error: an ordinary read says which.
        let mut sink = vec![0; bytes];
        let given = |count| self.ledger.read(cause, count as u64);
        let uncached = AtomicBool::new(false);
        let file = self.descriptor.get()?;
        let filled = calls::read_at(file.as_fd(), &mut sink, range.start, &uncached, given)
            .map_err(|errno| calls::error("read", name.to_string(), errno).at(range.start))?;
        if filled < bytes {
            let length = rustix::fs::fstat(&file).map(|stat| stat.st_size as u64);
            let length = length.unwrap_or(range.start + filled as u64);
            return Err(past_end(name, range.start, bytes, length));
        }
        self.populates.store(false, Relaxed);
        Ok(())
    }
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        // SAFETY: these are the bounds of a mapping that this is the only owner of; no reference
        // into it outlives `self`. An error would leave it mapped, which cannot be repaired.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.bytes) };
        self.budget.give(self.bytes as u64);
    }
}
