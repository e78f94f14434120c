//! Damaged and malicious files: right data or an error that names the place, never a panic.

use super::*;
use crate::IterOptions;
use crate::format::{FOOTER_BYTES, HEADER_BYTES};
use crate::piece::{self, BlockKind};
use base::key::{internal_key, user_key};
use base::random::Random;
use base::{EntryKind, ErrorKind, KeyRange};

/// A small file with every kind of block: two levels of index, filters, tombstones.
pub(super) fn small(compression: Compression, filter: Filter) -> (MemoryFile, RunSummary, Entries) {
    let options = TableOptions {
        block_bytes: 120,
        restart_interval: 3,
        hash_index: true,
        index_block_bytes: 40,
        compression,
        filter,
        prefix: PrefixRule::Fixed(3),
    };
    let entries: Entries = (0..24u64)
        .map(|n| {
            let key = internal_key(format!("key{:03}", n / 2).as_bytes(), 99 - n, EntryKind::Put);
            (key, vec![b'x'; 30])
        })
        .collect();
    let tombstones = [(b"a".to_vec(), b"key004".to_vec(), 9), (b"b".to_vec(), b"z".to_vec(), 3)];
    let (file, summary) = write_run(&options, &entries, &tombstones);
    (file, summary, entries)
}

pub(super) fn acceptable<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
            assert!(error.file().is_some() && error.offset().is_some(), "{error}");
            None
        }
    }
}

/// Without a cache a run has no fences, and lookups use every block.
fn caches() -> [Arc<BlockCache>; 2] {
    [0, 1 << 20].map(BlockCache::new)
}

/// Walks every read path. With `model`, whatever is read without error must be right.
pub(super) fn read_everything(run: &Arc<Run>, entries: &Entries, exact: bool) {
    for (key, value) in entries {
        let user = user_key(key);
        let sequence = base::key::split_internal_key(key).unwrap().1 >> 8;
        let found = acceptable(run.get(user, hash(user), sequence, Cause::Get));
        if let (true, Some(found)) = (exact, found) {
            let found = found.expect("a key of the model");
            assert_eq!((found.sequence, &found.value[..]), (sequence, &value[..]));
        }
    }
    for ahead in [0, 500] {
        let mut options = IterOptions::cached(Cause::Scan);
        options.readahead_bytes = ahead;
        let mut iter = run.iter(options);
        let found = acceptable(collect(&mut iter));
        if let (true, Some(found)) = (exact, &found) {
            assert_eq!(found, entries);
        }
        if found.is_none() {
            assert!(!iter.valid() && iter.seek_to_first().is_err() && iter.next().is_err());
        }
        let mut iter = run.iter(IterOptions::cached(Cause::Scan));
        let mut moved = iter.seek_to_last();
        for (key, value) in entries.iter().rev() {
            if acceptable(moved).is_none() || !iter.valid() {
                break;
            }
            if exact {
                assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]));
            }
            moved = iter.prev();
        }
        let mut iter = run.iter(IterOptions::cached(Cause::Scan));
        acceptable(iter.seek(&entries[entries.len() / 2].0));
    }
    let range = KeyRange::new(*b"key002", Some((*b"key009").into()));
    acceptable(run.approximate_bytes(&range, Cause::Scan));
    acceptable(run.split_points(&range, 3, Cause::Scan));
    let may = acceptable(run.may_contain_prefix(b"key", Cause::Scan));
    assert!(!exact || may != Some(false));
}

#[test]
fn every_flipped_byte_is_found() {
    for (compression, filter) in [
        (Compression::None, Filter::Bloom { bits_per_key: 10 }),
        (Compression::Lz4, Filter::Ribbon { bits_per_key: 7 }),
        (Compression::Zstd(1), Filter::Bloom { bits_per_key: 8 }),
    ] {
        let (file, summary, entries) = small(compression, filter);
        let bytes = file.bytes();
        let whole = open(&file, &summary, &BlockCache::new(0)).unwrap();
        for at in HEADER_BYTES as usize..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let damaged = MemoryFile::with(damaged);
            for cache in caches() {
                let Some(run) = acceptable(open(&damaged, &summary, &cache)) else { continue };
                read_everything(&run, &entries, true);
                assert_eq!(*run.range_deletes(), *whole.range_deletes());
                let verified = acceptable(run.verify(&mut |_| {}));
                assert!(verified.is_none(), "flipping byte {at} was not found");
            }
        }
    }
}

#[test]
fn every_truncation_is_found() {
    let (file, summary, entries) = small(Compression::None, Filter::Bloom { bits_per_key: 10 });
    let bytes = file.bytes();
    for length in 0..bytes.len() {
        let short = MemoryFile::with(bytes[..length].to_vec());
        assert!(acceptable(open(&short, &summary, &BlockCache::new(0))).is_none());
    }
    // The file shrinks while it is open: what is in memory says so.
    for length in (0..bytes.len()).step_by(7) {
        for cache in caches() {
            let shrinking = file.clone();
            let run = open(&shrinking, &summary, &cache).unwrap();
            let file = MemoryFile::with(bytes[..length].to_vec());
            std::mem::swap(&mut *shrinking.0.lock(), &mut *file.0.lock());
            read_everything(&run, &entries, true);
            assert!(acceptable(run.verify(&mut |_| {})).is_none());
            std::mem::swap(&mut *shrinking.0.lock(), &mut *file.0.lock());
        }
    }
}

#[test]
fn blocks_at_a_wrong_place_are_found() {
    let (file, summary, _) = small(Compression::None, Filter::None);
    let mut other = summary.clone();
    other.run.id = RunId(99);
    assert!(acceptable(open(&file, &other, &BlockCache::new(0))).is_none());
    let mut moved = file.bytes();
    moved.insert(HEADER_BYTES as usize, 0);
    let mut shifted = summary;
    shifted.run.offset += 1;
    assert!(acceptable(open(&MemoryFile::with(moved), &shifted, &BlockCache::new(0))).is_none());
}

/// The frames of the file, as kind, begin and end, found by its own checksums.
fn frames(bytes: &[u8], summary: &RunSummary) -> Vec<(BlockKind, usize, usize)> {
    let end = (summary.run.offset + summary.run.bytes - FOOTER_BYTES) as usize;
    let kinds = [BlockKind::Data, BlockKind::Filter, BlockKind::Index, BlockKind::Top];
    let mut frames = Vec::new();
    let mut at = HEADER_BYTES as usize;
    while at < end {
        let next = kinds.into_iter().find_map(|kind| {
            let fits = |to: &usize| {
                crate::frame::open_slice(kind, &bytes[at..*to], PLACE, at as u64).is_ok()
            };
            (at + kind.trailer_bytes()..=end).find(fits).map(|to| (kind, at, to))
        });
        let frame = next.expect("a frame");
        frames.push(frame);
        at = frame.2;
    }
    frames
}

fn fix_checksum(bytes: &mut [u8], (kind, from, to): (BlockKind, usize, usize)) {
    let place = PLACE.at(from as u64, kind.piece());
    let sum_at = to - (kind.trailer_bytes() - 1);
    if kind == BlockKind::Data {
        let sum = place.crc32c(&bytes[from..sum_at]);
        bytes[sum_at..to].copy_from_slice(&sum.to_le_bytes());
    } else {
        let sum = place.hash64(&bytes[from..sum_at]);
        bytes[sum_at..to].copy_from_slice(&sum.to_le_bytes());
    }
}

#[test]
fn malformed_blocks_with_right_checksums_never_panic() {
    let mut random = Random::new(17);
    for (compression, filter) in [
        (Compression::None, Filter::Bloom { bits_per_key: 10 }),
        (Compression::Lz4, Filter::Ribbon { bits_per_key: 7 }),
        (Compression::Zstd(1), Filter::None),
    ] {
        let (file, summary, entries) = small(compression, filter);
        let bytes = file.bytes();
        let frames = frames(&bytes, &summary);
        for _ in 0..6000 {
            let mut damaged = bytes.clone();
            let frame = frames[random.below(frames.len() as u64) as usize];
            let body = frame.2 - frame.1 - (frame.0.trailer_bytes() - 1);
            for _ in 0..1 + random.below(3) {
                let at = frame.1 + random.below(body as u64) as usize;
                damaged[at] = match random.below(3) {
                    0 => damaged[at] ^ (1 << random.below(8)),
                    1 => [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize],
                    _ => random.next_u64() as u8,
                };
            }
            fix_checksum(&mut damaged, frame);
            let damaged = MemoryFile::with(damaged);
            for cache in caches() {
                if let Some(run) = acceptable(open(&damaged, &summary, &cache)) {
                    read_everything(&run, &entries, false);
                    acceptable(run.verify(&mut |_| {}));
                }
            }
        }
    }
}

#[test]
fn malformed_footers_with_right_checksums_never_panic() {
    let (file, summary, entries) = small(Compression::None, Filter::Bloom { bits_per_key: 10 });
    let bytes = file.bytes();
    let from = bytes.len() - FOOTER_BYTES as usize;
    let mut random = Random::new(23);
    for _ in 0..20_000 {
        let mut damaged = bytes.clone();
        let at = from + random.below(FOOTER_BYTES - 16) as usize;
        damaged[at] = random.next_u64() as u8;
        let sum_at = bytes.len() - 16;
        let sum = PLACE.at(from as u64, piece::FOOTER).hash64(&damaged[from..sum_at]);
        damaged[sum_at..sum_at + 8].copy_from_slice(&sum.to_le_bytes());
        let damaged = MemoryFile::with(damaged);
        for cache in caches() {
            if let Some(run) = acceptable(open(&damaged, &summary, &cache)) {
                read_everything(&run, &entries, false);
            }
        }
    }
}
