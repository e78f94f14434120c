//! Memory in whole pages, straight from the system and straight back to it. It is no part of any
//! file.
//!
//! A general allocator keeps what is given back to it, in pieces that lie between what is still in
//! use. glibc does so even with large pieces, once one of their size was given back: a store that
//! ran for minutes within a budget of 64 MiB had 100 MiB resident. Memory that comes in large
//! pieces and goes as a whole is better asked of the system itself. Miri cannot run this module.

#![allow(unsafe_code)] // The system's calls give and take raw memory.

#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::mm::Advice;
use rustix::mm::{MapFlags, ProtFlags};
use std::io;
use std::mem::ManuallyDrop;
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

    /// As [`PageMemory::new`], with the first byte at a multiple of `alignment`. Both sizes are
    /// multiples of a page, and `alignment` is a power of two.
    pub fn aligned(bytes: usize, alignment: usize) -> io::Result<PageMemory> {
        let wide_bytes = bytes.checked_add(alignment).ok_or(io::ErrorKind::OutOfMemory)?;
        let wide = ManuallyDrop::new(PageMemory::new(wide_bytes)?);
        let before = wide.start.as_ptr().align_offset(alignment);
        // SAFETY: the memory lies inside the wide mapping, since `before` is less than `alignment`.
        // The rest of that mapping, whole pages on both sides, is used by nothing.
        unsafe {
            let start = wide.start.add(before);
            let (end, after) = (start.add(bytes), wide_bytes - before - bytes);
            unmap(wide.start, before);
            unmap(end, after);
            Ok(PageMemory { start, bytes })
        }
    }

    /// Gives the pages from `offset` on back to the system, whole pages of `bytes` bytes. They stay
    /// mapped, and are zeros again once they are touched.
    ///
    /// # Safety
    ///
    /// Nothing refers to these bytes.
    pub unsafe fn give_back(&self, offset: usize, bytes: usize) {
        debug_assert!(offset + bytes <= self.bytes);
        // SAFETY: the range is in the mapping, and the caller says that nothing refers to it.
        unsafe { discard(self.start.as_ptr().add(offset), bytes) }
    }

    /// Replaces all pages by huge ones, as far as the system has them: the content is zeros then,
    /// and the memory resident. A system without huge pages has usual ones in their place.
    ///
    /// # Safety
    ///
    /// Nothing refers to the bytes.
    pub unsafe fn renew_as_huge(&self) {
        // SAFETY: the range is the mapping, and the caller says that nothing refers to it.
        unsafe { renew_as_huge(self.start.as_ptr(), self.bytes) }
    }

    /// The first byte; aligned to a page. Valid until `self` is dropped.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for PageMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, of this size, and dropped once.
        unsafe { unmap(self.start, self.bytes) }
    }
}

/// Ends the mapping of `bytes` bytes, whole pages that the caller owns; none is nothing to do.
unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: as the caller says. Nothing can be done about a failure, which would mean that
        // the pages are not the caller's.
        let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), bytes) };
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
unsafe fn discard(start: *mut u8, bytes: usize) {
    // SAFETY: as the caller says. After a failure the memory is as it was.
    let _ = unsafe { rustix::mm::madvise(start.cast(), bytes, Advice::LinuxDontNeed) };
}

#[cfg(any(target_os = "linux", target_os = "android"))]
unsafe fn renew_as_huge(start: *mut u8, bytes: usize) {
    // Pages that are there stay as they are, so they go first. The advice before touching them:
    // afterwards the system would only copy them into a huge one some time later.
    for advice in [Advice::LinuxDontNeed, Advice::LinuxHugepage, Advice::LinuxPopulateWrite] {
        // SAFETY: as the caller says. Where an advice is unknown, the memory is as good as before.
        let _ = unsafe { rustix::mm::madvise(start.cast(), bytes, advice) };
    }
}

/// Other systems decide about their pages themselves.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
unsafe fn discard(_start: *mut u8, _bytes: usize) {}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
unsafe fn renew_as_huge(_start: *mut u8, _bytes: usize) {}

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
    fn aligned_pages_are_given_back_in_part_and_renewed_as_a_whole() {
        const BYTES: usize = 2 << 20;
        let pages = PageMemory::aligned(BYTES, BYTES).expect("a little memory");
        assert!(pages.start().addr().get().is_multiple_of(BYTES));
        // SAFETY: the pages hold this many bytes and belong to this test alone, which has no
        // reference to them while they change.
        unsafe {
            let fill = || pages.start().as_ptr().write_bytes(7, BYTES);
            let byte = |at: usize| pages.start().add(at).read();
            fill();
            pages.give_back(4096, 8192);
            if cfg!(target_os = "linux") {
                assert_eq!([byte(4095), byte(4096), byte(12287), byte(12288)], [7, 0, 0, 7]);
            }
            pages.renew_as_huge();
            if cfg!(target_os = "linux") {
                assert_eq!([byte(0), byte(4096), byte(BYTES - 1)], [0, 0, 0]);
            }
            fill();
            assert_eq!([byte(0), byte(BYTES - 1)], [7, 7]);
        }
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        PageMemory::aligned(usize::MAX - 4095, 4096).expect_err("more than all addresses");
        PageMemory::new(usize::MAX / 2).expect_err("no such address space");
    }
}
