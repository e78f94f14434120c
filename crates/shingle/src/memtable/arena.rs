//! Memory that only grows and never moves: the entries of one memtable.
//!
//! An [`Arena`] owns chunks and frees them together when it is dropped. A [`Bump`] hands out the
//! chunk that is being filled. Only the writer of the memtable has it, so handing out bytes takes
//! no lock and no atomic. An allocation too large to share a chunk gets a chunk of its own.
//!
//! A [`ChunkPool`] keeps the chunks of one memtable for the next. Mapping and unmapping chunks each
//! time costs more than the system calls. While one thread unmaps, page faults of all others wait,
//! and most of them are the writers', which touch new memory all the time.
//!
//! Invariants:
//! - A pointer that was handed out stays valid until the arena is dropped.
//! - An arena hands out no byte twice.
//! - Every allocation is aligned to [`ALIGN`].
//! - A pool keeps a chunk only if that chunk, with those in arenas, is within its limit.
//! - The sum of kept bytes that pools share is that of what they keep.

#![allow(unsafe_code)] // Uninitialised memory by the byte, freed as a whole.

use parking_lot::{Mutex, MutexGuard};
use std::alloc::{Layout, alloc, dealloc};
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::page_memory::PageMemory;
use base::{Error, Result};

/// Alignment of every allocation, in bytes.
pub(super) const ALIGN: usize = 8;

/// Minimum and maximum size of a shared chunk, in bytes.
const CHUNK_BYTES_MIN: usize = 4 << 10;
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// A memtable of the expected size has about this many chunks, so that the unused end of the last
/// one is small in comparison.
const CHUNKS_PER_MEMTABLE: usize = 8;

/// An allocation larger than this part of a chunk gets a chunk of its own. So the unused end of a
/// chunk is smaller than this part.
const OWN_CHUNK_DIVISOR: usize = 4;

/// A chunk of at least this size comes from the system, and returns there when the pool does not
/// keep it. Miri supports only the allocator.
const PAGES_BYTES_MIN: usize = if cfg!(miri) { usize::MAX } else { 64 << 10 };

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

/// Keeps the chunks of dropped memtables for new ones.
#[derive(Debug)]
pub struct ChunkPool {
    chunk_bytes: usize,
    chunks_max: usize,
    state: Mutex<PoolState>,
    /// Bytes that this pool and those that share the sum keep.
    kept_bytes: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct PoolState {
    free: Vec<Chunk>,
    /// Chunks in arenas.
    taken: usize,
    /// Chunks that are given before the memory is at its end.
    #[cfg(any(test, feature = "testing"))]
    left: Option<usize>,
}

/// Memory in one piece: a small one from the global allocator, a large one from the system.
#[derive(Debug)]
enum Chunk {
    Block(Block),
    Pages(PageMemory),
}

/// One block from the global allocator.
#[derive(Debug)]
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
    /// A chunk of at least `bytes`, which is not zero.
    fn new(bytes: usize) -> io::Result<Chunk> {
        if bytes >= PAGES_BYTES_MIN {
            return PageMemory::new(bytes).map(Chunk::Pages);
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

impl ChunkPool {
    /// For memtables of about `memtable_bytes` each. It keeps a chunk while all memory in
    /// memtables, with the kept chunks, is at most `bytes_max`. What it keeps is in `kept_bytes`,
    /// to which other pools add what they keep.
    pub fn new(
        memtable_bytes: usize,
        bytes_max: u64,
        kept_bytes: Arc<AtomicU64>,
    ) -> Arc<ChunkPool> {
        let chunk_bytes = (memtable_bytes / CHUNKS_PER_MEMTABLE)
            .clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
            .next_multiple_of(ALIGN);
        let chunks_max = usize::try_from(bytes_max).unwrap_or(usize::MAX) / chunk_bytes;
        Arc::new(ChunkPool { chunk_bytes, chunks_max, state: Mutex::default(), kept_bytes })
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock()
    }

    fn take(&self) -> io::Result<Chunk> {
        let mut state = self.state();
        #[cfg(any(test, feature = "testing"))]
        if let Some(left) = &mut state.left {
            *left = left.checked_sub(1).ok_or(io::ErrorKind::OutOfMemory)?;
        }
        let free = state.free.pop();
        state.taken += 1;
        drop(state);
        self.count_out(usize::from(free.is_some()));
        let chunk = free.map_or_else(|| Chunk::new(self.chunk_bytes), Ok);
        chunk.inspect_err(|_| self.state().taken -= 1)
    }

    fn give_back(&self, mut chunks: Vec<Chunk>) {
        let mut state = self.state();
        state.taken -= chunks.len();
        let room = self.chunks_max.saturating_sub(state.taken + state.free.len());
        let kept = chunks.len().min(room);
        state.free.extend(chunks.drain(..kept));
        self.kept_bytes.fetch_add((kept * self.chunk_bytes) as u64, Ordering::Relaxed);
        // Freeing takes time: the excess is freed without the lock.
        drop(state);
    }

    /// Gives this number of further chunks and then none; `None`: no limit.
    #[cfg(any(test, feature = "testing"))]
    pub fn give_only(&self, chunks: Option<usize>) {
        self.state().left = chunks;
    }

    /// Bytes that are kept for memtables to come.
    #[cfg(any(test, feature = "testing"))]
    pub fn kept_bytes(&self) -> u64 {
        (self.state().free.len() * self.chunk_bytes) as u64
    }

    /// Returns to the system what no memtable holds.
    pub fn clear(&self) {
        let free = std::mem::take(&mut self.state().free);
        self.count_out(free.len());
    }

    /// `chunks` of them are no longer kept.
    fn count_out(&self, chunks: usize) {
        self.kept_bytes.fetch_sub((chunks * self.chunk_bytes) as u64, Ordering::Relaxed);
    }
}

impl Drop for ChunkPool {
    fn drop(&mut self) {
        self.clear();
    }
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
        let bytes = self.pool.chunk_bytes;
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
            let chunk_bytes = arena.pool.chunk_bytes;
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
    fn a_pool_keeps_what_fits_beside_the_memtables_and_hands_it_out_again() {
        let kept_bytes = Arc::<AtomicU64>::default();
        let pool = ChunkPool::new(64 << 10, 64 << 10, kept_bytes.clone());
        let free = || {
            let free = pool.state().free.len();
            assert_eq!(kept_bytes.load(Ordering::Relaxed), free as u64 * (8 << 10));
            free
        };
        let fill = |chunks: usize| {
            let (arena, mut bump) = (Arena::new(&pool), Bump::new());
            let starts: Vec<usize> = (0..4 * chunks)
                .map(|_| bump.allocate(&arena, 2 << 10).expect("small").as_ptr().addr())
                .collect();
            (arena, starts)
        };
        let (first, old) = fill(6);
        let (second, _) = fill(4);
        assert_eq!(free(), 0);
        drop(first);
        assert_eq!(free(), 4, "eight chunks, of which four are in use");
        let (third, new) = fill(2);
        assert!(new.iter().all(|start| old.contains(start)));
        assert_eq!(free(), 2);
        drop((second, third));
        assert_eq!(free(), 8);
        pool.clear();
        assert_eq!(free(), 0);
        drop(fill(3));
        assert_eq!(free(), 3);
        drop(pool);
        assert_eq!(kept_bytes.load(Ordering::Relaxed), 0);
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
