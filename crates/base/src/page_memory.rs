//! Memory in whole pages, straight from the system and straight back to it. It is no part of any
//! file.
//!
//! A general allocator keeps what is given back to it, in pieces that lie between what is still in
//! use. glibc does so even with large pieces, once one of their size was given back: a store that
//! ran for minutes within a budget of 64 MiB had 100 MiB resident. Memory that comes in large
//! pieces and goes as a whole is better asked of the system itself. Miri cannot run this module.

#![allow(unsafe_code)] // The system's calls give and take raw memory.

use rustix::mm::{MapFlags, ProtFlags};
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};

/// Zeroed pages of memory that belong to their owner alone. Dropping it gives them back to the
/// system.
#[derive(Debug)]
pub struct PageMemory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the pages belong to one owner, and may be given back from any thread.
unsafe impl Send for PageMemory {}
// SAFETY: behind a shared reference there is an address to read, and nothing that changes.
unsafe impl Sync for PageMemory {}

impl PageMemory {
    /// Maps `bytes` bytes, not zero, rounded up to whole pages by the system. They count as
    /// resident once they are touched. Fails when the system has no memory or address space left.
    pub fn new(bytes: usize) -> io::Result<PageMemory> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without an address asked for, the system gives pages that nothing else uses.
        let start = unsafe {
            rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, access, MapFlags::PRIVATE)?
        };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(PageMemory { start, bytes })
    }

    /// The first byte; aligned to a page. Valid until `self` is dropped.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for PageMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, of this size, and dropped once. Nothing can be
        // done about a failure, which would mean that it is not.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A buffer that is made and dropped as a whole: pages of the system, but where it is small.
#[derive(Debug, Default)]
pub struct PageBuffer(Memory);

#[derive(Debug)]
enum Memory {
    /// A few bytes, of the general allocator.
    Heap(Vec<u8>),
    System(PageMemory),
}

/// Fewer bytes do not come from the system by themselves.
const SYSTEM_BYTES_MIN: usize = 128 << 10;

impl PageBuffer {
    /// A buffer of `bytes` zeros. A small one lies anywhere, a large one begins at a page.
    pub fn zeroed(bytes: usize) -> PageBuffer {
        // What the system has no pages for, the allocator tells in its own way.
        let pages = (bytes >= SYSTEM_BYTES_MIN && !cfg!(miri)).then(|| PageMemory::new(bytes).ok());
        PageBuffer(pages.flatten().map_or_else(|| Memory::Heap(vec![0; bytes]), Memory::System))
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::Heap(Vec::new())
    }
}

impl Deref for PageBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Memory::Heap(bytes) => bytes,
            // SAFETY: the mapping holds this many bytes, all of them zeroed or written since, and
            // nothing writes while `self` is borrowed.
            Memory::System(pages) => unsafe {
                std::slice::from_raw_parts(pages.start.as_ptr(), pages.bytes)
            },
        }
    }
}

impl DerefMut for PageBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Memory::Heap(bytes) => bytes,
            // SAFETY: as above, and `self` is borrowed by the writer alone.
            Memory::System(pages) => unsafe {
                std::slice::from_raw_parts_mut(pages.start.as_ptr(), pages.bytes)
            },
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_any_size_are_zeroed_and_keep_what_is_written() {
        for bytes in [0, 1, SYSTEM_BYTES_MIN - 1, SYSTEM_BYTES_MIN, SYSTEM_BYTES_MIN + 1] {
            let mut buffer = PageBuffer::zeroed(bytes);
            assert!(buffer.len() == bytes && buffer.iter().all(|byte| *byte == 0));
            buffer.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
            assert!(buffer.iter().enumerate().all(|(at, byte)| *byte == at as u8));
        }
    }

    #[test]
    fn pages_are_zeroed_writable_and_begin_at_a_page() {
        let pages = PageMemory::new(100_000).expect("a little memory");
        assert!(pages.start().addr().get().is_multiple_of(4096));
        // SAFETY: the pages hold this many bytes and belong to this test alone.
        unsafe {
            let last = pages.start().add(99_999);
            assert_eq!(last.read(), 0);
            last.write(7);
            assert_eq!(last.read(), 7);
        }
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        PageMemory::new(usize::MAX / 2).expect_err("no such address space");
    }
}
