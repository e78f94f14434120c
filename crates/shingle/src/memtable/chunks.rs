//! The chunks that memtables are made of, and the pool that keeps those of one memtable for the
//! next.
//!
//! Mapping and unmapping chunks each time costs more than the system calls. While one thread
//! unmaps, page faults of all others wait, and most of them are the writers', which touch new
//! memory all the time.
//!
//! A pool that may keep several huge pages makes its chunks as the parts of *blocks* of that size.
//! A new block has pages of the usual size, so that a memtable of few entries holds few of them.
//! When all parts of a block have been in memtables and are back, the background gives the block a
//! huge page. A search in a memtable goes to random places, and on huge pages the processor seldom
//! walks through the page table for them.
//!
//! Invariants:
//! - A pool keeps a chunk only if that chunk, with those in arenas, is within its limit.
//! - The sum of kept bytes that pools share is that of what they keep. Parts that were never in a
//!   memtable hold no memory, and are not in it.
//! - A block gets its huge page while no memtable has a part of it.

#![allow(unsafe_code)] // Memory of the allocator and of the system, as a whole and in parts.

use base::page_memory::PageMemory;
use parking_lot::{Mutex, MutexGuard};
use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Alignment of every allocation, in bytes.
pub(super) const ALIGN: usize = 8;

/// Minimum and maximum size of a chunk of a pool, in bytes.
const CHUNK_BYTES_MIN: usize = 4 << 10;
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// A memtable of the expected size has about this many chunks, so that the unused end of the last
/// one is small in comparison.
const CHUNKS_PER_MEMTABLE: usize = 8;

/// A chunk of at least this size comes from the system, and returns there when the pool does not
/// keep it. Miri supports only the allocator.
const PAGES_BYTES_MIN: usize = if cfg!(miri) { usize::MAX } else { 64 << 10 };

/// The size of a block, and of a huge page where usual ones have 4 KiB.
const BLOCK_BYTES: usize = 2 << 20;

/// A pool has blocks if it may keep this many.
const BLOCKS_MIN: u64 = 4;

/// Keeps the chunks of dropped memtables for new ones.
#[derive(Debug)]
pub struct ChunkPool {
    chunk_bytes: usize,
    chunks_max: usize,
    /// Chunks are parts of blocks.
    has_blocks: bool,
    state: Mutex<PoolState>,
    /// Bytes that this pool and those that share the sum keep.
    kept_bytes: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct PoolState {
    free: Vec<Chunk>,
    /// Parts of blocks that were never in an arena.
    unused: Vec<Chunk>,
    /// Chunks in arenas, and in blocks that are about to get a huge page.
    taken: usize,
    /// Chunks that are given before the memory is at its end.
    #[cfg(any(test, feature = "testing"))]
    left: Option<usize>,
}

/// Memory in one piece.
#[derive(Debug)]
pub(super) enum Chunk {
    /// A small one, from the global allocator.
    Heap(Heap),
    /// A large one, from the system.
    Pages(PageMemory),
    Part(Part),
}

/// Memory from the global allocator.
#[derive(Debug)]
pub(super) struct Heap {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: only its drop uses `start`, and freeing memory on another thread than the one that
// allocated it is allowed.
unsafe impl Send for Heap {}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc` with this very layout, and is dropped once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// A part of a block, which lives as long as one of its parts.
#[derive(Debug)]
pub(super) struct Part {
    block: Arc<Block>,
    offset: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Block {
    pages: PageMemory,
    /// It was given a huge page, as far as the system has one.
    is_huge: AtomicBool,
}

impl Part {
    fn start(&self) -> NonNull<u8> {
        // SAFETY: the part lies in the block.
        unsafe { self.block.pages.start().add(self.offset) }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // With its last part the whole block goes.
        if Arc::strong_count(&self.block) > 1 {
            // SAFETY: a part that is dropped is in no arena, so nothing refers to its bytes.
            unsafe { self.block.pages.give_back(self.offset, self.bytes) }
        }
    }
}

impl Chunk {
    /// A chunk of its own of at least `bytes`, which is not zero.
    pub(super) fn new(bytes: usize) -> io::Result<Chunk> {
        if bytes >= PAGES_BYTES_MIN {
            return PageMemory::new(bytes).map(Chunk::Pages);
        }
        let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        let layout = Layout::from_size_align(bytes, ALIGN).map_err(|_| out_of_memory())?;
        // SAFETY: the layout's size is not zero: callers ask for at least one link's bytes.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).ok_or_else(out_of_memory)?;
        Ok(Chunk::Heap(Heap { start, layout }))
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        match self {
            Chunk::Heap(heap) => heap.start,
            Chunk::Pages(pages) => pages.start(),
            Chunk::Part(part) => part.start(),
        }
    }

    /// The block of which this is a part.
    fn block(&self) -> Option<&Arc<Block>> {
        match self {
            Chunk::Part(part) => Some(&part.block),
            _ => None,
        }
    }

    fn is_huge(&self) -> bool {
        self.block().is_some_and(|block| block.is_huge.load(Relaxed))
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
        let has_blocks =
            chunk_bytes >= PAGES_BYTES_MIN && bytes_max >= BLOCKS_MIN * BLOCK_BYTES as u64;
        let chunk_bytes = match has_blocks {
            true => BLOCK_BYTES / BLOCK_BYTES.div_ceil(chunk_bytes).next_power_of_two(),
            false => chunk_bytes,
        };
        let chunks_max = usize::try_from(bytes_max).unwrap_or(usize::MAX) / chunk_bytes;
        let state = Mutex::default();
        Arc::new(ChunkPool { chunk_bytes, chunks_max, has_blocks, state, kept_bytes })
    }

    /// The size of a chunk.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock()
    }

    pub(super) fn take(&self) -> io::Result<Chunk> {
        let mut state = self.state();
        #[cfg(any(test, feature = "testing"))]
        if let Some(left) = &mut state.left {
            *left = left.checked_sub(1).ok_or(io::ErrorKind::OutOfMemory)?;
        }
        let free = state.free.pop();
        let unused = if free.is_none() { state.unused.pop() } else { None };
        state.taken += 1;
        drop(state);
        self.count_out(usize::from(free.is_some()));
        let chunk = free.or(unused).map_or_else(|| self.new_chunk(), Ok);
        chunk.inspect_err(|_| self.state().taken -= 1)
    }

    fn new_chunk(&self) -> io::Result<Chunk> {
        if !self.has_blocks {
            return Chunk::new(self.chunk_bytes);
        }
        let pages = PageMemory::aligned(BLOCK_BYTES, BLOCK_BYTES)?;
        let block = Arc::new(Block { pages, is_huge: AtomicBool::new(false) });
        let bytes = self.chunk_bytes;
        let part = |offset| Chunk::Part(Part { block: block.clone(), offset, bytes });
        let others = (bytes..BLOCK_BYTES).step_by(bytes).rev().map(part);
        self.state().unused.extend(others);
        Ok(part(0))
    }

    pub(super) fn give_back(&self, chunks: Vec<Chunk>) {
        let count = chunks.len();
        let mut state = self.state();
        state.taken -= count;
        let free_max = self.chunks_max.saturating_sub(state.taken);
        state.free.extend(chunks);
        let excess_count = state.free.len().saturating_sub(free_max);
        if excess_count > 0 {
            // What lies on huge pages stays.
            state.free.sort_by_key(Chunk::is_huge);
        }
        let excess: Vec<Chunk> = state.free.drain(..excess_count).collect();
        self.kept_bytes.fetch_add((count * self.chunk_bytes) as u64, Relaxed);
        self.count_out(excess_count);
        drop(state);
        // Freeing takes time, so it is done without the lock.
        drop(excess);
    }

    /// Gives huge pages to the blocks whose parts have been in memtables and are all back. It is
    /// for the background: each block that has none yet takes some hundred microseconds or more.
    pub fn use_huge_pages(&self) {
        while let Some(parts) = self.take_whole_block() {
            if let Some(block) = parts.first().and_then(Chunk::block) {
                // SAFETY: all parts of the block are here and none is in an arena, so nothing
                // refers to its bytes.
                unsafe { block.pages.renew_as_huge() }
                block.is_huge.store(true, Relaxed);
            }
            self.give_back(parts);
        }
    }

    /// All parts of a block that has no huge page.
    fn take_whole_block(&self) -> Option<Vec<Chunk>> {
        let mut state = self.state();
        let mut counts = BTreeMap::new();
        for block in state.free.iter().filter(|chunk| !chunk.is_huge()).filter_map(Chunk::block) {
            *counts.entry(Arc::as_ptr(block)).or_insert(0) += 1;
        }
        let count = BLOCK_BYTES / self.chunk_bytes;
        let whole = counts.into_iter().find(|(_, found)| *found == count)?.0;
        let is_part = |chunk: &mut Chunk| {
            chunk.block().is_some_and(|block| std::ptr::eq(Arc::as_ptr(block), whole))
        };
        let parts: Vec<Chunk> = state.free.extract_if(.., is_part).collect();
        state.taken += parts.len();
        drop(state);
        self.count_out(parts.len());
        Some(parts)
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

    /// Bytes of these that have huge pages, as far as the system has them.
    #[cfg(any(test, feature = "testing"))]
    pub fn huge_bytes(&self) -> u64 {
        let huge = self.state().free.iter().filter(|chunk| chunk.is_huge()).count();
        (huge * self.chunk_bytes) as u64
    }

    /// Returns to the system what no memtable holds.
    pub fn clear(&self) {
        let mut state = self.state();
        let unused = std::mem::take(&mut state.unused);
        let free = std::mem::take(&mut state.free);
        drop(state);
        self.count_out(free.len());
        drop((unused, free));
    }

    /// `chunks` of them are no longer kept.
    fn count_out(&self, chunks: usize) {
        self.kept_bytes.fetch_sub((chunks * self.chunk_bytes) as u64, Relaxed);
    }
}

impl Drop for ChunkPool {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::arena::{Arena, Bump};
    use super::*;

    #[test]
    fn a_pool_keeps_what_fits_beside_the_memtables_and_hands_it_out_again() {
        let kept_bytes = Arc::<AtomicU64>::default();
        let pool = ChunkPool::new(64 << 10, 64 << 10, kept_bytes.clone());
        let free = || {
            let free = pool.state().free.len();
            assert_eq!(kept_bytes.load(Relaxed), free as u64 * (8 << 10));
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
        assert_eq!(kept_bytes.load(Relaxed), 0);
    }

    /// Blocks of 16 chunks.
    #[cfg(not(miri))]
    fn pool_of_blocks() -> Arc<ChunkPool> {
        ChunkPool::new(1 << 20, 8 << 20, Arc::default())
    }

    #[cfg(not(miri))]
    fn write(chunk: &Chunk, bytes: usize, byte: u8) {
        // SAFETY: the chunk has this many bytes, and only the test uses them.
        unsafe { chunk.start().as_ptr().write_bytes(byte, bytes) }
    }

    #[cfg(not(miri))]
    fn bytes_of(chunk: &Chunk, bytes: usize) -> Vec<u8> {
        // SAFETY: as above, and pages of the system are zeroed.
        unsafe { std::slice::from_raw_parts(chunk.start().as_ptr(), bytes).to_vec() }
    }

    #[cfg(not(miri))]
    #[test]
    fn a_block_gets_a_huge_page_when_all_of_it_was_used_and_is_back() {
        let pool = pool_of_blocks();
        let bytes = pool.chunk_bytes();
        assert_eq!(BLOCK_BYTES / bytes, 16);
        let mut chunks: Vec<Chunk> = (0..17).map(|_| pool.take().expect("2 MiB")).collect();
        chunks.iter().for_each(|chunk| write(chunk, bytes, 7));
        let other = chunks.pop().expect("of a second block");
        let last = chunks.pop().expect("of the first block");
        pool.give_back(chunks);
        pool.use_huge_pages();
        assert!(!last.is_huge(), "a part of it is in use");
        assert_eq!(bytes_of(&last, bytes), vec![7; bytes]);
        pool.give_back(vec![last]);
        pool.use_huge_pages();
        let chunks: Vec<Chunk> = (0..16).map(|_| pool.take().expect("kept")).collect();
        for chunk in &chunks {
            assert!(chunk.is_huge());
            write(chunk, bytes, 9);
            assert_eq!(bytes_of(chunk, bytes), vec![9; bytes]);
        }
        // Most parts of the second block were never used.
        pool.give_back(vec![other]);
        pool.use_huge_pages();
        assert!(!pool.take().expect("kept").is_huge());
    }

    #[cfg(not(miri))]
    #[test]
    fn parts_that_were_never_used_are_not_kept_memory_and_huge_pages_stay() {
        let pool = pool_of_blocks();
        let chunk = pool.take().expect("2 MiB");
        assert_eq!((pool.kept_bytes(), pool.state().unused.len()), (0, 15));
        pool.give_back(vec![chunk]);
        assert_eq!(pool.kept_bytes(), pool.chunk_bytes() as u64);
        // Four blocks are within the limit.
        let mut chunks: Vec<Chunk> =
            (0..16).map(|_| pool.take().expect("kept or unused")).collect();
        pool.give_back(chunks);
        pool.use_huge_pages();
        chunks = (0..80).map(|_| pool.take().expect("8 MiB more")).collect();
        assert_eq!(chunks.iter().filter(|chunk| chunk.is_huge()).count(), 16);
        pool.give_back(chunks);
        assert_eq!(pool.kept_bytes(), 8 << 20);
        assert_eq!(pool.state().free.iter().filter(|chunk| chunk.is_huge()).count(), 16);
        pool.clear();
        assert_eq!((pool.kept_bytes(), pool.state().unused.len()), (0, 0));
    }

    #[cfg(not(miri))]
    #[test]
    fn a_part_that_goes_leaves_the_others_as_they_are() {
        let pool = pool_of_blocks();
        let bytes = pool.chunk_bytes();
        let chunks: Vec<Chunk> = (0..3).map(|_| pool.take().expect("2 MiB")).collect();
        chunks.iter().for_each(|chunk| write(chunk, bytes, 7));
        let mut chunks = chunks.into_iter();
        let (first, second, third) = (chunks.next(), chunks.next(), chunks.next());
        drop(second);
        for chunk in [first, third].into_iter().flatten() {
            assert_eq!(bytes_of(&chunk, bytes), vec![7; bytes]);
        }
    }
}
