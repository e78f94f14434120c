//! What lookups find in memory.

use super::walking::Noted;
use super::*;
use crate::Probe;
use crate::format::{FOOTER_BYTES, Footer};
use crate::piece::BlockKind;
use base::EntryKind;
use base::key::SEQUENCE_MAX;

/// Two levels of index, about forty data blocks in each index block.
fn written(filter: Filter) -> (MemoryFile, RunSummary) {
    let key = |n: u64| base::key::internal_key(&n.to_be_bytes(), n, EntryKind::Put);
    let entries: Entries = (0..20_000).map(|n| (key(n), vec![1; 100])).collect();
    write_run(
        &TableOptions { filter, index_block_bytes: 1024, ..Default::default() },
        &entries,
        &[],
    )
}

/// Such a run with Bloom filters, open on a cache of that size.
fn opened(cache_bytes: u64) -> (MemoryFile, Arc<BlockCache>, Arc<Run>) {
    let (file, summary) = written(Filter::Bloom { bits_per_key: 10 });
    let cache = BlockCache::new(cache_bytes);
    let run = open(&file, &summary, &cache).unwrap();
    (file, cache, run)
}

fn get(run: &Run, n: u64) -> bool {
    let key = n.to_be_bytes();
    run.get(&key, hash(&key), SEQUENCE_MAX, Cause::Get).unwrap().is_some()
}

/// How often the cache was asked for blocks of the index and of filters.
fn asked(cache: &BlockCache) -> u64 {
    let of = |kind| cache.counters(kind).hits + cache.counters(kind).misses;
    of(BlockKind::Index) + of(BlockKind::Filter)
}

#[test]
fn the_first_lookup_reads_index_and_filters_and_others_read_data_alone() {
    for filter in [Filter::Bloom { bits_per_key: 10 }, Filter::Ribbon { bits_per_key: 7 }] {
        let (file, summary) = written(filter);
        let reads = Arc::<Mutex<_>>::default();
        let noted = Noted { file, reads: reads.clone(), announced: Arc::default() };
        let cache = BlockCache::new(64 << 20);
        let extent = Extent::of(&summary, PLACE);
        let run = Run::open(Arc::new(noted), extent, cache.clone(), Cause::OpenRun).unwrap();
        let before = reads.lock().len();
        assert!(get(&run, 3));
        assert_eq!(reads.lock().len() - before, 2, "the fences and a data block");
        let found = (0..20_000).step_by(50).filter(|&n| get(&run, n)).count();
        assert_eq!(found, 400);
        assert!(!get(&run, 20_000) && !get(&run, u64::MAX));
        let data = cache.counters(BlockKind::Data);
        assert_eq!(reads.lock().len() - before - 1, data.misses as usize);
        assert_eq!(asked(&cache), 0);
    }
}

#[test]
fn many_lookups_find_the_same_places() {
    let (_, cache, run) = opened(64 << 20);
    let keys: Vec<[u8; 8]> = (0..21_000u64).step_by(70).map(u64::to_be_bytes).collect();
    let probe = |key| Probe { key, hash: hash(key), snapshot: SEQUENCE_MAX };
    let probes: Vec<Probe<'_>> = keys.iter().map(|key| probe(&key[..])).collect();
    let found = run.get_many(&probes, Cause::Get).unwrap();
    assert_eq!(found.iter().filter(|found| found.is_some()).count(), 286);
    assert_eq!(asked(&cache), 0);
}

#[test]
fn fences_are_given_back_with_the_run() {
    let (file, cache, run) = opened(1 << 20);
    let (empty, memory_bytes) = (cache.used_bytes(), run.memory_bytes());
    assert!(!get(&run, 20_000));
    let pinned = cache.used_bytes() - empty;
    assert!((25_000..60_000).contains(&pinned), "{pinned}");
    assert_eq!(run.memory_bytes(), memory_bytes, "not counted twice");
    let through = run.through(Arc::new(file));
    drop(run);
    assert_eq!(cache.used_bytes() - empty, pinned);
    drop(through);
    assert_eq!(cache.used_bytes(), empty);
}

#[test]
fn a_run_that_may_not_pin_asks_the_cache_until_it_may() {
    let (_, cache, run) = opened(100 << 10);
    assert!(get(&run, 3));
    assert_eq!(asked(&cache), 2);
    cache.set_capacity(1 << 20);
    assert!(get(&run, 10_000));
    assert_eq!(asked(&cache), 2);
}

#[test]
fn a_damaged_filter_fails_only_the_keys_that_it_is_asked_for() {
    let (file, summary) = written(Filter::Bloom { bits_per_key: 10 });
    let mut bytes = file.bytes();
    let end = bytes.len();
    let footer = Footer::decode(&bytes[end - FOOTER_BYTES as usize..], end as u64, PLACE).unwrap();
    let first_filter = footer.data_end;
    bytes[first_filter as usize + 5] ^= 1;
    let damaged = MemoryFile::with(bytes);
    let run = open(&damaged, &summary, &BlockCache::new(64 << 20)).unwrap();
    let (first, last) = (0u64.to_be_bytes(), 19_999u64.to_be_bytes());
    let error = run.get(&first, hash(&first), SEQUENCE_MAX, Cause::Get).unwrap_err();
    assert_eq!(error.offset(), Some(first_filter));
    assert!(run.get(&last, hash(&last), SEQUENCE_MAX, Cause::Get).unwrap().is_some());
}

#[test]
fn where_fences_cannot_tell_keys_apart_a_lookup_still_reads_one_data_block() {
    let key = |n: u64| [&b"alike in more than eight bytes"[..], &n.to_be_bytes()].concat();
    let entry = |key: &[u8]| (base::key::internal_key(key, 1, EntryKind::Put), vec![1; 100]);
    let mut entries: Entries = (0..1000).map(|n| entry(&key(n))).collect();
    entries.push(entry(b"b"));
    let (file, summary) = write_run(&TableOptions::default(), &entries, &[]);
    let cache = BlockCache::new(64 << 20);
    let run = open(&file, &summary, &cache).unwrap();
    for n in 0..1000 {
        let key = key(n);
        assert!(run.get(&key, hash(&key), SEQUENCE_MAX, Cause::Get).unwrap().is_some());
    }
    let data = cache.counters(BlockKind::Data);
    assert_eq!(data.hits + data.misses, 1000);
}
