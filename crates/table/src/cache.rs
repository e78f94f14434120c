//! The block cache: one for a process, shared by its databases.
//!
//! Blocks are found by owner and offset; an owner is one open run. Weights are bytes. The eviction
//! policy is that of quick_cache (S3-FIFO). Its budget is divided over shards that do not borrow
//! from each other and refuse what is heavier than a shard, so shards are few enough to hold the
//! largest compressible block. Hashing is fixed: equal histories evict equal blocks.
//!
//! A part of the budget can be pinned: open runs keep their filters there, which every read asks,
//! without a search in the cache. What is pinned is not evicted, and blocks have the rest.
//!
//! The budget changes all the time, as memtables and open runs take their part of the memory. Each
//! change of quick_cache's capacity rounds down how many evicted blocks it remembers, and after
//! thousands of changes it remembers none. So its capacity is the largest budget so far, and what
//! blocks may not have of it is kept by entries that hold nothing and are not evicted.

use crate::block::Block;
use crate::filter::FilterBlock;
use crate::frame::RAW_BYTES_MAX;
use crate::piece::BlockKind;
use base::striped::Striped;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How often blocks of a kind were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// The block was there.
    pub hits: u64,
    /// The block had to be read.
    pub misses: u64,
}

#[derive(Default)]
struct Counters {
    hits: Striped,
    misses: Striped,
}

/// What a cache holds.
#[derive(Clone)]
pub(crate) enum Cached {
    Block(Arc<Block>),
    Filter(Arc<FilterBlock>),
    /// Nothing, for as many bytes of the capacity.
    Reserved(u64),
}

type CacheKey = (u64, u64);

#[derive(Clone)]
struct Bytes;

impl Weighter<CacheKey, Cached> for Bytes {
    fn weight(&self, _: &CacheKey, cached: &Cached) -> u64 {
        let bytes = match cached {
            Cached::Block(block) => block.memory_bytes(),
            Cached::Filter(filter) => filter.memory_bytes(),
            Cached::Reserved(bytes) => return *bytes,
        };
        bytes as u64 + ENTRY_BYTES
    }
}

/// What the cache itself spends on an entry, about.
const ENTRY_BYTES: u64 = 96;

/// What is reserved stays.
#[derive(Clone, Default)]
struct KeepsReserved;

impl Lifecycle<CacheKey, Cached> for KeepsReserved {
    type RequestState = ();

    #[inline]
    fn is_pinned(&self, _: &CacheKey, cached: &Cached) -> bool {
        matches!(cached, Cached::Reserved(_))
    }
}

#[derive(Clone, Default)]
struct FixedHash;

#[derive(Default)]
struct FixedHasher(u64);

impl BuildHasher for FixedHash {
    type Hasher = FixedHasher;

    fn build_hasher(&self) -> FixedHasher {
        FixedHasher::default()
    }
}

impl Hasher for FixedHasher {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// At most one part in this many of the budget is pinned.
const PINNED_SHARE: u64 = 4;

type Blocks = Cache<CacheKey, Cached, Bytes, FixedHash, KeepsReserved>;

/// Blocks in memory.
pub struct BlockCache {
    /// Its capacity is the largest budget so far.
    blocks: Blocks,
    capacity_bytes: AtomicU64,
    pinned_bytes: AtomicU64,
    /// Entries that keep bytes from blocks, in all shards alike.
    reserved: Mutex<u64>,
    counters: [Counters; 3],
    owners: AtomicU64,
}

impl BlockCache {
    /// A cache of `capacity_bytes`; 0 keeps nothing.
    pub fn new(capacity_bytes: u64) -> Arc<BlockCache> {
        let shard_bytes_min = 2 * RAW_BYTES_MAX as u64;
        let shards = (capacity_bytes / shard_bytes_min).clamp(1, 64);
        let shards = 1usize << shards.ilog2();
        let options = OptionsBuilder::new()
            .shards(shards)
            .weight_capacity(capacity_bytes)
            .estimated_items_capacity((capacity_bytes / 4096).clamp(32 * 64, 1 << 26) as usize)
            .build()
            .expect("every option is given");
        Arc::new(BlockCache {
            blocks: Cache::with_options(options, Bytes, FixedHash, KeepsReserved),
            capacity_bytes: AtomicU64::new(capacity_bytes),
            pinned_bytes: AtomicU64::new(0),
            reserved: Mutex::new(0),
            counters: Default::default(),
            owners: AtomicU64::new(0),
        })
    }

    /// Changes the budget. The number of shards stays, so that a cache made small and grown large
    /// has more contention than one made large. What is pinned stays too.
    pub fn set_capacity(&self, capacity_bytes: u64) {
        self.capacity_bytes.store(capacity_bytes, Relaxed);
        self.resize_blocks();
    }

    /// Gives blocks what pins leave of the budget.
    fn resize_blocks(&self) {
        let mut reserved = self.reserved.lock();
        let (budget, pinned) = (self.capacity_bytes(), self.pinned_bytes.load(Relaxed));
        if budget > self.blocks.capacity() {
            reserve(&self.blocks, &mut reserved, 0);
            self.blocks.set_capacity(budget);
        }
        let bytes = self.blocks.capacity() - budget.saturating_sub(pinned);
        let entries = bytes.div_ceil(reserved_entry_bytes(&self.blocks));
        reserve(&self.blocks, &mut reserved, entries);
    }

    /// The budget in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes.load(Relaxed)
    }

    /// Bytes held now.
    pub fn used_bytes(&self) -> u64 {
        let reserved_bytes = *self.reserved.lock() * reserved_entry_bytes(&self.blocks);
        (self.blocks.weight() + self.pinned_bytes.load(Relaxed)).saturating_sub(reserved_bytes)
    }

    /// Takes `bytes` of the budget for what stays in memory until the guard is dropped. `None`: too
    /// much is pinned already.
    pub(crate) fn pin(self: &Arc<Self>, bytes: u64) -> Option<Pinned> {
        let bytes_max = self.capacity_bytes() / PINNED_SHARE;
        let pinned = |pinned: u64| Some(pinned + bytes).filter(|&sum| sum <= bytes_max);
        self.pinned_bytes.fetch_update(Relaxed, Relaxed, pinned).ok()?;
        self.resize_blocks();
        Some(Pinned { cache: self.clone(), bytes })
    }

    /// How often blocks of `kind` were asked for since the start.
    pub fn counters(&self, kind: BlockKind) -> CacheCounters {
        self.counters.get(kind as usize).map_or(CacheCounters::default(), |counters| {
            CacheCounters { hits: counters.hits.sum(), misses: counters.misses.sum() }
        })
    }

    /// A number under which blocks are kept; never given twice.
    pub fn new_owner(&self) -> u64 {
        self.owners.fetch_add(1, Relaxed)
    }

    #[inline]
    pub(crate) fn get(&self, owner: u64, offset: u64, kind: BlockKind) -> Option<Cached> {
        let found = self.blocks.get(&(owner, offset));
        if let Some(counters) = self.counters.get(kind as usize) {
            let counter = if found.is_some() { &counters.hits } else { &counters.misses };
            counter.add(1);
        }
        found
    }

    pub(crate) fn insert(&self, owner: u64, offset: u64, cached: Cached) {
        self.blocks.insert((owner, offset), cached);
    }
}

/// The owner of the entries that reserve bytes. It is given to no run.
const RESERVED: u64 = u64::MAX;

/// What is reserved of a shard changes by one part in this many.
const SHARD_PARTS: u64 = 64;

/// Bytes of an entry that reserves.
fn reserved_entry_bytes(blocks: &Blocks) -> u64 {
    (blocks.shard_capacity() / SHARD_PARTS).max(4096)
}

/// The key of an entry that reserves, by which quick_cache puts one after the other in each shard.
fn reserved_key(blocks: &Blocks, number: u64) -> CacheKey {
    let shards = blocks.num_shards() as u64;
    let is_in_shard = |offset: &u64| {
        let hash = FixedHash.hash_one((RESERVED, *offset));
        hash.rotate_right(usize::BITS / 2) % shards == number % shards
    };
    let mut offsets = number << 32..(number + 1) << 32;
    (RESERVED, offsets.find(is_in_shard).unwrap_or(number << 32))
}

/// Reserves with `entries` entries, of which there are `now`.
fn reserve(blocks: &Blocks, now: &mut u64, entries: u64) {
    for number in entries..*now {
        blocks.remove(&reserved_key(blocks, number));
    }
    for number in *now..entries {
        let key = reserved_key(blocks, number);
        blocks.insert(key, Cached::Reserved(reserved_entry_bytes(blocks)));
        // quick_cache keeps what was asked for with the blocks that are asked for often. Else it
        // would take up the few bytes for new blocks, and no block would prove itself.
        blocks.get(&key);
    }
    *now = entries;
}

/// A part of a cache's budget that blocks do not have.
pub(crate) struct Pinned {
    cache: Arc<BlockCache>,
    bytes: u64,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.cache.pinned_bytes.fetch_sub(self.bytes, Relaxed);
        self.cache.resize_blocks();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    fn filter(bytes: usize) -> Cached {
        let mut body = vec![0; bytes / 64 * 64 + 2];
        body[bytes / 64 * 64..].copy_from_slice(&[6, 1]);
        Cached::Filter(Arc::new(FilterBlock::new(body).unwrap()))
    }

    #[test]
    fn the_largest_block_fits_at_every_capacity() {
        for megabytes in [8, 16, 64, 100, 1000, 10_000] {
            let cache = BlockCache::new(megabytes << 20);
            cache.insert(1, 2, filter(RAW_BYTES_MAX));
            assert!(cache.get(1, 2, BlockKind::Filter).is_some(), "{megabytes} MiB");
        }
    }

    #[test]
    fn use_stays_within_capacity_and_is_counted() {
        let cache = BlockCache::new(1 << 20);
        for offset in 0..1000 {
            cache.insert(7, offset, filter(4096));
        }
        assert!(cache.used_bytes() <= 1 << 20 && cache.used_bytes() > 900 << 10);
        let hits = (0..1000).filter(|&o| cache.get(7, o, BlockKind::Filter).is_some()).count();
        let counters = cache.counters(BlockKind::Filter);
        assert_eq!((counters.hits, counters.misses), (hits as u64, 1000 - hits as u64));
        cache.set_capacity(64 << 10);
        assert!(cache.used_bytes() <= 64 << 10);
        cache.set_capacity(2 << 20);
        (0..1000).for_each(|offset| cache.insert(7, offset, filter(4096)));
        assert!(cache.used_bytes() <= 2 << 20);
        let held = (0..1000).filter(|&o| cache.get(7, o, BlockKind::Filter).is_some()).count();
        assert!(held as u64 * (4096 + ENTRY_BYTES) > 1900 << 10, "{held} blocks");
        assert_ne!(cache.new_owner(), cache.new_owner());
    }

    #[test]
    fn a_cache_without_room_keeps_nothing() {
        let cache = BlockCache::new(0);
        cache.insert(1, 1, filter(64));
        assert!(cache.get(1, 1, BlockKind::Data).is_none());
    }

    /// Hits of a skewed load in a cache of four shards with `bytes`, after another load and
    /// `change`. To find what is asked for now the cache needs its memory of what it evicted.
    fn hits(bytes: u64, change: impl Fn(&Arc<BlockCache>)) -> usize {
        let cache = BlockCache::new(bytes);
        let mut random = Random::new(1);
        let mut ask = |owner: u64| {
            // Small numbers are asked for more often.
            let block = (0..4).map(|_| random.below(40_000)).min().unwrap();
            let is_hit = cache.get(owner, block, BlockKind::Filter).is_some();
            if !is_hit {
                cache.insert(owner, block, filter(4096));
            }
            is_hit
        };
        for _ in 0..50_000 {
            ask(7);
        }
        change(&cache);
        (0..300_000).filter(|_| ask(8)).count()
    }

    /// Each of these changes resized quick_cache, which then forgot what it had evicted, and after
    /// some thousand changes it evicted what it should have kept.
    #[test]
    fn a_cache_that_gave_and_got_bytes_often_hits_as_often_as_a_new_one() {
        let new = hits(16 << 20, |_| ());
        let runs = hits(16 << 20, |cache| {
            for _ in 0..10_000 {
                drop(cache.pin(1000).unwrap());
            }
        });
        let budgets = hits(16 << 20, |cache| {
            for _ in 0..10_000 {
                cache.set_capacity(15 << 20);
                cache.set_capacity(16 << 20);
            }
        });
        for used in [runs, budgets] {
            assert!(used as f64 > 0.99 * new as f64, "{used} of {new} hits");
        }
    }

    /// What is reserved has to lie in every shard alike, and must not take up what is for new
    /// blocks.
    #[test]
    fn a_cache_made_smaller_hits_as_often_as_a_smaller_one() {
        let made = |bytes| hits(16 << 20, |cache| cache.set_capacity(bytes));
        let pinned = hits(16 << 20, |cache| std::mem::forget(cache.pin(4 << 20)));
        for (bytes, found) in
            [(12 << 20, made(12 << 20)), (12 << 20, pinned), (8 << 20, made(8 << 20))]
        {
            let small = hits(bytes, |_| ());
            let off = (found as f64 / small as f64 - 1.0).abs();
            assert!(off < 0.02, "{found} hits, {small} in a small cache of {bytes}");
        }
    }

    #[test]
    fn what_is_pinned_is_not_for_blocks_and_has_a_bound() {
        let cache = BlockCache::new(1 << 20);
        let fill = || (0..1000).for_each(|offset| cache.insert(7, offset, filter(4096)));
        let pinned = cache.pin(200 << 10).unwrap();
        assert!(cache.pin(100 << 10).is_none());
        fill();
        assert!(cache.used_bytes() <= 1 << 20 && cache.used_bytes() > 900 << 10);
        let blocks_bytes = || cache.used_bytes() - cache.pinned_bytes.load(Relaxed);
        assert!(blocks_bytes() <= 824 << 10);
        assert_eq!(cache.capacity_bytes(), 1 << 20);
        cache.set_capacity(100 << 10);
        assert_eq!(blocks_bytes(), 0);
        // Beyond the budget that it began with.
        cache.set_capacity(2 << 20);
        fill();
        let held = (0..1000).filter(|&o| cache.get(7, o, BlockKind::Filter).is_some()).count();
        let held_bytes = held as u64 * (4096 + ENTRY_BYTES);
        assert!(held_bytes <= 1848 << 10 && held_bytes > 1700 << 10, "{held} blocks");
        drop(pinned);
        fill();
        assert!(blocks_bytes() > 1900 << 10);
        assert!(cache.pin(100 << 10).is_some());
    }
}
