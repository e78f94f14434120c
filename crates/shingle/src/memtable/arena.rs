//! Memory that only grows and never moves: the entries of one memtable.
//!
//! An [`Arena`] owns chunks and frees them together when it is dropped. A [`Bump`] hands out the
//! chunk that is being filled; the one writer of the memtable keeps it, so handing out bytes takes
//! no lock and no atomic. An allocation too large to share a chunk gets a chunk of its own.
//!
//! Invariants: a pointer handed out stays valid until the arena is dropped; no byte is handed out
//! twice; every allocation is aligned to [`ALIGN`].

#![allow(unsafe_code)] // Uninitialised memory by the byte, freed as a whole.

use std::alloc::{Layout, alloc, dealloc};
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use base::{Error, Result};
use media::os::Pages;

/// Alignment of every allocation, in bytes.
pub(super) const ALIGN: usize = 8;

/// Bounds of the size of a shared chunk, in bytes.
const CHUNK_BYTES_MIN: usize = 4 << 10;
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// A memtable of the expected size has about this many chunks, so that the unused end of the last
/// one stays small beside it.
const CHUNKS_PER_MEMTABLE: usize = 8;

/// An allocation larger than this part of a chunk gets a chunk of its own, so that the end of a
/// chunk that is left unused is smaller than this part.
const OWN_CHUNK_DIVISOR: usize = 4;

/// A chunk as large as this is the system's, which gets it back with the memtable; Miri knows only
/// the allocator.
const PAGES_BYTES_MIN: usize = if cfg!(miri) { usize::MAX } else { 64 << 10 };

/// Owns the memory.
pub(super) struct Arena {
    chunks: Mutex<Vec<Chunk>>,
    reserved_bytes: AtomicU64,
    chunk_bytes: usize,
}

/// Memory in one piece; small ones are of the global allocator, large ones of the system.
enum Chunk {
    Block(Block),
    Pages(Pages),
}

/// One block from the global allocator.
struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: only its drop uses `start`, and freeing a block on another thread than the one that
// allocated it is allowed.
unsafe impl Send for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc` with this very layout, and a block is dropped once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

impl Chunk {
    /// At least `bytes`, which is not zero.
    fn new(bytes: usize) -> io::Result<Chunk> {
        if bytes >= PAGES_BYTES_MIN {
            return Pages::new(bytes).map(Chunk::Pages);
        }
        let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        let layout = Layout::from_size_align(bytes, ALIGN).map_err(|_| out_of_memory())?;
        // SAFETY: the layout's size is not zero: callers ask for at least one link's bytes.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).ok_or_else(out_of_memory)?;
        Ok(Chunk::Block(Block { start, layout }))
    }

    fn start(&self) -> NonNull<u8> {
        match self {
            Chunk::Block(block) => block.start,
            Chunk::Pages(pages) => pages.start(),
        }
    }
}

impl Arena {
    /// An empty arena for about `capacity_bytes`.
    pub(super) fn new(capacity_bytes: usize) -> Arena {
        let chunk_bytes = (capacity_bytes / CHUNKS_PER_MEMTABLE)
            .clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
            .next_multiple_of(ALIGN);
        Arena { chunks: Mutex::new(Vec::new()), reserved_bytes: AtomicU64::new(0), chunk_bytes }
    }

    /// Bytes taken from the allocator and the system.
    pub(super) fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes.load(Ordering::Relaxed)
    }

    /// Adds a chunk of `bytes`, which is not zero.
    fn add_chunk(&self, bytes: usize) -> Result<NonNull<u8>> {
        debug_assert!(bytes > 0);
        let chunk = Chunk::new(bytes).map_err(|source| {
            Error::io(format!("reserve {bytes} bytes of memory for the memtable"), source)
        })?;
        let start = chunk.start();
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
        self.reserved_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(start)
    }
}

/// The unused rest of an arena's current chunk.
pub(super) struct Bump {
    next: *mut u8,
    rest_bytes: usize,
}

// SAFETY: the rest of the chunk belongs to this `Bump` alone, and `next` is only an address here.
unsafe impl Send for Bump {}

impl Bump {
    /// Nothing to hand out yet.
    pub(super) fn new() -> Bump {
        Bump { next: ptr::null_mut(), rest_bytes: 0 }
    }

    /// Hands out `bytes` (not zero, a multiple of [`ALIGN`]) of uninitialised memory of `arena`,
    /// the same arena at every call. Fails when the allocator has no memory.
    pub(super) fn allocate(&mut self, arena: &Arena, bytes: usize) -> Result<NonNull<u8>> {
        debug_assert!(bytes > 0 && bytes.is_multiple_of(ALIGN));
        if bytes > self.rest_bytes {
            if bytes > arena.chunk_bytes / OWN_CHUNK_DIVISOR {
                return arena.add_chunk(bytes);
            }
            self.next = arena.add_chunk(arena.chunk_bytes)?.as_ptr();
            self.rest_bytes = arena.chunk_bytes;
        }
        let taken = NonNull::new(self.next).expect("a chunk with room is not null");
        // SAFETY: `bytes <= rest_bytes`, so the result stays in the chunk or one past its end.
        self.next = unsafe { self.next.add(bytes) };
        self.rest_bytes -= bytes;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_aligned_and_do_not_overlap() {
        let arena = Arena::new(64 << 10);
        let mut bump = Bump::new();
        let mut taken: Vec<(usize, usize)> = Vec::new();
        for bytes in [8, 16, 2048, 8, 4096, 1992, 8, 8 << 10, 64 << 10, 24, 2000, 2048, 4000] {
            let start = bump.allocate(&arena, bytes).expect("small");
            // SAFETY: the arena handed out `bytes` bytes at `start` to this test alone.
            unsafe { start.as_ptr().write_bytes(0xab, bytes) };
            let start = start.as_ptr().addr();
            assert!(start.is_multiple_of(ALIGN));
            assert!(taken.iter().all(|&(s, n)| start + bytes <= s || s + n <= start));
            taken.push((start, bytes));
        }
        let used: usize = taken.iter().map(|t| t.1).sum();
        assert!(arena.reserved_bytes() >= used as u64);
    }

    #[test]
    fn a_large_allocation_does_not_end_the_current_chunk() {
        let arena = Arena::new(32 << 10);
        let mut bump = Bump::new();
        let first = bump.allocate(&arena, 64).expect("small").as_ptr().addr();
        bump.allocate(&arena, 1 << 20).expect("1 MiB");
        let second = bump.allocate(&arena, 64).expect("small").as_ptr().addr();
        assert_eq!(second, first + 64);
        assert_eq!(arena.reserved_bytes(), (4 << 10) + (1 << 20));
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        let arena = Arena::new(0);
        let error = Bump::new().allocate(&arena, usize::MAX & !7).expect_err("no such memory");
        assert!(error.message().contains("memtable"));
        assert_eq!(arena.reserved_bytes(), 0);
    }
}
