//! Memory that only grows and never moves: the entries of one memtable.
//!
//! An [`Arena`] owns chunks and frees them together when it is dropped. A [`Bump`] hands out the
//! chunk that is being filled. Only the writer of the memtable has it, so handing out bytes takes
//! no lock and no atomic. An allocation too large to share a chunk gets a chunk of its own.
//!
//! Invariants:
//! - A pointer that was handed out stays valid until the arena is dropped.
//! - An arena hands out no byte twice.
//! - Every allocation is aligned to [`ALIGN`].

#![allow(unsafe_code)] // Uninitialised memory by the byte, freed as a whole.

use super::chunks::{ALIGN, Chunk, ChunkPool};
use base::{Error, Result};
use parking_lot::Mutex;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An allocation larger than this part of a chunk gets a chunk of its own. So the unused end of a
/// chunk is smaller than this part.
const OWN_CHUNK_DIVISOR: usize = 4;

/// Owns the memory of one memtable.
pub(super) struct Arena {
    pool: Arc<ChunkPool>,
    chunks: Mutex<Chunks>,
    reserved_bytes: AtomicU64,
}

#[derive(Default)]
struct Chunks {
    /// Chunks of the pool.
    shared: Vec<Chunk>,
    /// Chunks for one large allocation each.
    own: Vec<Chunk>,
}

impl Arena {
    /// An empty arena.
    pub(super) fn new(pool: &Arc<ChunkPool>) -> Arena {
        let (pool, chunks) = (pool.clone(), Mutex::default());
        Arena { pool, chunks, reserved_bytes: AtomicU64::new(0) }
    }

    /// Bytes taken from the pool, the allocator and the system.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes.load(Ordering::Relaxed)
    }

    /// Adds a chunk of the pool.
    fn add_shared(&self) -> Result<NonNull<u8>> {
        let bytes = self.pool.chunk_bytes();
        let chunk = self.pool.take().map_err(|source| lacks_memory(bytes, source))?;
        Ok(self.add(bytes, chunk, |chunks| &mut chunks.shared))
    }

    /// Adds a chunk of `bytes`, which is not zero, for one allocation.
    fn add_own(&self, bytes: usize) -> Result<NonNull<u8>> {
        debug_assert!(bytes > 0);
        let chunk = Chunk::new(bytes).map_err(|source| lacks_memory(bytes, source))?;
        Ok(self.add(bytes, chunk, |chunks| &mut chunks.own))
    }

    fn add(
        &self,
        bytes: usize,
        chunk: Chunk,
        list: impl Fn(&mut Chunks) -> &mut Vec<Chunk>,
    ) -> NonNull<u8> {
        let start = chunk.start();
        list(&mut self.chunks.lock()).push(chunk);
        self.reserved_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        start
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let chunks = self.chunks.get_mut();
        self.pool.give_back(std::mem::take(&mut chunks.shared));
    }
}

fn lacks_memory(bytes: usize, source: io::Error) -> Error {
    Error::io(format!("reserve {bytes} bytes of memory for the memtable"), source)
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
            let chunk_bytes = arena.pool.chunk_bytes();
            if bytes > chunk_bytes / OWN_CHUNK_DIVISOR {
                return arena.add_own(bytes);
            }
            self.next = arena.add_shared()?.as_ptr();
            self.rest_bytes = chunk_bytes;
        }
        let taken = NonNull::new(self.next).expect("a chunk with free bytes is not null");
        // SAFETY: `bytes <= rest_bytes`, so the result stays in the chunk or one past its end.
        self.next = unsafe { self.next.add(bytes) };
        self.rest_bytes -= bytes;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena(capacity_bytes: usize) -> Arena {
        Arena::new(&ChunkPool::new(capacity_bytes, 0, Arc::default()))
    }

    #[test]
    fn allocations_are_aligned_and_do_not_overlap() {
        let arena = arena(64 << 10);
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
        let arena = arena(32 << 10);
        let mut bump = Bump::new();
        let first = bump.allocate(&arena, 64).expect("small").as_ptr().addr();
        bump.allocate(&arena, 1 << 20).expect("1 MiB");
        let second = bump.allocate(&arena, 64).expect("small").as_ptr().addr();
        assert_eq!(second, first + 64);
        assert_eq!(arena.reserved_bytes(), (4 << 10) + (1 << 20));
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        let arena = arena(0);
        let error = Bump::new().allocate(&arena, usize::MAX & !7).expect_err("no such memory");
        assert!(error.message().contains("memtable"));
        assert_eq!(arena.reserved_bytes(), 0);
    }
}
