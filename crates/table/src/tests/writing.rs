//! What the writer promises and what it refuses.

use super::*;
use crate::format::{Footer, check_header, footers_backwards};
use crate::{IterOptions, RunEnd};
use base::key::internal_key;
use base::{EntryKind, ErrorKind};
use media::SyncFile;

fn put(key: &[u8], sequence: u64) -> Vec<u8> {
    internal_key(key, sequence, EntryKind::Put)
}

fn writer(file: &MemoryFile) -> TableWriter {
    TableWriter::create(Box::new(file.clone()), PLACE, Cause::Flush).unwrap()
}

#[test]
fn wrong_calls_are_refused_and_change_nothing() {
    let file = MemoryFile::default();
    let mut writer = writer(&file);
    assert!(writer.add(&put(b"a", 1), b"").is_err());
    assert!(writer.finish_run().is_err());
    writer.begin_run(RunId(1), &TableOptions::default()).unwrap();
    assert!(writer.begin_run(RunId(2), &TableOptions::default()).is_err());
    writer.add(&put(b"b", 5), b"1").unwrap();
    for bad in [
        put(b"b", 5),
        put(b"b", 6),
        put(b"a", 4),
        put(b"", 4),
        b"short".to_vec(),
        put(&[b'x'; 65_536], 1),
        internal_key(b"c", 1, EntryKind::DeleteRange),
        b"c\x09\0\0\0\0\0\0\0".to_vec(),
    ] {
        assert_eq!(writer.add(&bad, b"").unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    assert!(writer.add_range_delete(b"b", b"b", 1).is_err());
    writer.add(&put(b"b", 4), b"2").unwrap();
    let summary = writer.finish_run().unwrap().into_summary();
    writer.finish().unwrap();
    assert_eq!(
        (summary.run.entries, summary.run.sequence_min, summary.run.sequence_max),
        (2, 4, 5)
    );
    let run = open(&file, &summary, &BlockCache::new(0)).unwrap();
    let entries = collect(&mut run.iter(IterOptions::cached(Cause::Scan))).unwrap();
    assert_eq!(entries, vec![(put(b"b", 5), b"1".to_vec()), (put(b"b", 4), b"2".to_vec())]);
}

#[test]
fn files_hold_several_runs_that_can_be_appended_and_walked_back() {
    let file = MemoryFile::default();
    let mut summaries = Vec::new();
    for part in 0..3u64 {
        let mut writer = match part {
            0 => writer(&file),
            _ => TableWriter::extend(Box::new(file.clone()), PLACE, Cause::Flush).unwrap(),
        };
        for number in 0..2 {
            let id = RunId(part * 2 + number);
            writer.begin_run(id, &TableOptions::default()).unwrap();
            for n in 0..200 * part {
                let key = format!("{id}-{n:05}");
                writer.add(&put(key.as_bytes(), 1), key.as_bytes()).unwrap();
            }
            summaries.push(writer.finish_run().unwrap().into_summary());
        }
        writer.finish().unwrap();
    }
    let cache = BlockCache::new(1 << 20);
    for summary in &summaries {
        let run = open(&file, summary, &cache).unwrap();
        assert_eq!(run.verify(&mut |_| {}).unwrap(), *summary);
    }
    check_header(&file, PLACE, Cause::Check).unwrap();
    let length = file.bytes().len() as u64;
    let (footers, error) = footers_backwards(&file, PLACE, length, Cause::Check);
    assert!(error.is_none());
    let found: Vec<_> = footers.iter().rev().map(|f: &Footer| (f.run, f.start, f.bytes)).collect();
    let expected: Vec<_> =
        summaries.iter().map(|s| (s.run.id, s.run.offset, s.run.bytes)).collect();
    assert_eq!(found, expected);
    let (footers, error) = footers_backwards(&file, PLACE, length - 1, Cause::Check);
    assert!(footers.is_empty() && error.unwrap().kind() == ErrorKind::Corruption);
}

#[test]
fn headers_tell_foreign_from_damaged() {
    let (file, _) = write_run(&TableOptions::default(), &Entries::new(), &[]);
    let other = TablePlace { database: DatabaseId(1), ..PLACE };
    let kind =
        |file: &MemoryFile, place| check_header(file, place, Cause::Check).unwrap_err().kind();
    assert_eq!(kind(&file, other), ErrorKind::Incompatible);
    for at in 0..36 {
        let mut bytes = file.bytes();
        bytes[at] ^= 1;
        assert_eq!(kind(&MemoryFile::with(bytes), PLACE), ErrorKind::Corruption);
    }
}

#[test]
fn the_size_estimate_is_near_the_size() {
    for filter in [Filter::None, Filter::Bloom { bits_per_key: 10 }] {
        let options = TableOptions { filter, ..TableOptions::default() };
        let file = MemoryFile::default();
        let mut writer = writer(&file);
        writer.begin_run(RunId(1), &options).unwrap();
        for n in 0..20_000u64 {
            writer.add(&put(&n.to_be_bytes(), n), &[7; 100]).unwrap();
        }
        let estimate = writer.run_bytes() as f64;
        let bytes = writer.finish_run().unwrap().summary().run.bytes as f64;
        assert!((estimate / bytes - 1.0).abs() < 0.01, "{estimate} {bytes}");
    }
}

#[test]
fn a_lookup_without_fences_uses_three_blocks() {
    let entries: Entries =
        (0..20_000u64).map(|n| (put(&n.to_be_bytes(), n), vec![1; 100])).collect();
    let (file, summary) = write_run(&TableOptions::default(), &entries, &[]);
    let cache = BlockCache::new(64 << 20);
    let run = open(&file, &summary, &cache).unwrap();
    let _all_that_may_be_pinned = cache.pin(16 << 20).unwrap();
    for key in [3u64, 3, 19_999] {
        let key = key.to_be_bytes();
        assert!(run.get(&key, hash(&key), u64::MAX >> 8, Cause::Get).unwrap().is_some());
    }
    for kind in [crate::BlockKind::Data, crate::BlockKind::Index, crate::BlockKind::Filter] {
        let counters = cache.counters(kind);
        assert_eq!((counters.hits, counters.misses), (1, 2), "{kind:?}");
    }
    assert!(run.memory_bytes() < 16 << 10);
}

/// A file with space for a limited number of bytes.
struct FullFile {
    file: MemoryFile,
    room: u64,
}

impl AppendFile for FullFile {
    fn append(&mut self, bytes: &[u8], cause: Cause) -> Result<()> {
        if AppendFile::len(self) + bytes.len() as u64 > self.room {
            return Err(Error::new(ErrorKind::NoSpace, "the medium is full"));
        }
        self.file.append(bytes, cause)
    }

    fn sync(&mut self, _: Cause) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> u64 {
        AppendFile::len(&self.file)
    }

    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        None
    }
}

#[test]
fn after_a_failed_append_every_call_repeats_the_failure() {
    let full = FullFile { file: MemoryFile::default(), room: 1 << 20 };
    let mut writer = TableWriter::create(Box::new(full), PLACE, Cause::Flush).unwrap();
    writer.begin_run(RunId(1), &TableOptions::default()).unwrap();
    let mut failures = 0;
    for n in 0..20_000u64 {
        match writer.add(&put(&n.to_be_bytes(), n), &[7; 100]) {
            Ok(()) => assert_eq!(failures, 0),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NoSpace);
                failures += 1;
            }
        }
    }
    assert!(failures > 0);
    assert_eq!(writer.add_range_delete(b"a", b"b", 1).unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(writer.finish_run().map(drop).unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::NoSpace);
}

/// A run is opened by what its writer had in hand as by what is stored, and takes as much memory.
#[test]
fn the_end_that_a_writer_gives_is_the_one_that_is_read() {
    let key = |n: u64| internal_key(format!("{n:08}").as_bytes(), 7, EntryKind::Put);
    let tombstone = (b"00000005".to_vec(), b"00000009".to_vec(), 9);
    let (mut with_filter, mut two_levels, mut far_filter) = (0, 0, 0);
    // Its index is longer than the first read, which does not come to the filter.
    let far =
        TableOptions { block_bytes: 100, index_block_bytes: 1 << 16, ..TableOptions::default() };
    let layouts = all_options().into_iter().chain([far]);
    for (options, count) in layouts.flat_map(|o| [(o, 0), (o, 20), (o, 900)]) {
        let file = MemoryFile::default();
        let mut writer = TableWriter::create(Box::new(file.clone()), PLACE, Cause::Flush).unwrap();
        writer.begin_run(RunId(3), &options).unwrap();
        for n in 0..count {
            writer.add(&key(n), &[n as u8; 40]).unwrap();
        }
        writer.add_range_delete(&tombstone.0, &tombstone.1, tombstone.2).unwrap();
        let written = writer.finish_run().unwrap();
        writer.finish().unwrap();
        let extent = Extent::of(written.summary(), PLACE);
        let read = RunEnd::read(&file, extent, |_, _| true, Cause::OpenRun).unwrap();
        let parts = |end: &RunEnd| {
            let filter = format!("{:?}", end.filter);
            (
                end.footer,
                end.top.bytes().to_vec(),
                filter,
                end.tombstones.clone(),
                end.summary.clone(),
            )
        };
        assert_eq!(parts(&written), parts(&read), "{options:?}, {count} entries");
        with_filter += usize::from(read.filter.is_some());
        two_levels += usize::from(read.footer.index_levels == 2);
        far_filter += usize::from(read.footer.filter.is_some() && read.filter.is_none());
        let cache = BlockCache::new(0);
        let by_read = open(&file, read.summary(), &cache).unwrap();
        let by_hand = Run::with_end(Arc::new(file), extent, cache, written);
        assert_eq!(by_hand.memory_bytes(), by_read.memory_bytes());
    }
    assert!(with_filter > 0 && two_levels > 0 && far_filter > 0);
}
