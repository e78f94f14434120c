//! What walks and gets ask the store for.

use super::*;
use crate::IterOptions;
use base::{EntryKind, KeyRange};

const PAGE: u64 = 4096;

/// Beginnings and lengths.
pub(super) type Places = Vec<(u64, u64)>;

/// A file that notes its reads, and those that are announced.
pub(super) struct Noted {
    pub(super) file: MemoryFile,
    pub(super) reads: Arc<Mutex<Places>>,
    pub(super) announced: Arc<Mutex<Places>>,
}

impl ReadFile for Noted {
    fn read_at(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<()> {
        self.reads.lock().push((offset, into.len() as u64));
        self.file.read_at(offset, into, cause)
    }

    fn len(&self) -> Result<u64> {
        ReadFile::len(&self.file)
    }

    fn prefetch(&self, offset: u64, bytes: u64) {
        assert!(!self.reads.lock().contains(&(offset, bytes)), "announced when it was read");
        self.announced.lock().push((offset, bytes));
    }

    fn name(&self) -> FileName {
        self.file.name()
    }
}

/// As many as fit in one block of index, which opening reads.
fn entries() -> Entries {
    let key = |n: u64| base::key::internal_key(format!("{n:08}").as_bytes(), 1, EntryKind::Put);
    (0..1000).map(|n| (key(n), vec![n as u8; 300])).collect()
}

/// A walk forward, or backward, over everything: entries, and reads without those of opening.
fn walk(options: IterOptions, backward: bool) -> (Entries, Places) {
    let (entries, reads, _) = walk_noted(options, backward);
    (entries, reads)
}

/// The same, and what was announced.
fn walk_noted(options: IterOptions, backward: bool) -> (Entries, Places, Places) {
    walk_laid_out(&TableOptions::default(), options, backward)
}

/// The same over a run of that layout.
fn walk_laid_out(
    layout: &TableOptions,
    options: IterOptions,
    backward: bool,
) -> (Entries, Places, Places) {
    let (file, summary) = write_run(layout, &entries(), &[]);
    let (reads, announced) = (Arc::<Mutex<_>>::default(), Arc::<Mutex<_>>::default());
    let file = Arc::new(Noted { file, reads: reads.clone(), announced: announced.clone() });
    let extent = Extent::of(&summary, PLACE);
    let run = Run::open(file, extent, BlockCache::new(0), Cause::OpenRun).unwrap();
    reads.lock().clear();
    let mut iter = run.iter(options);
    let mut found = Entries::new();
    if backward { iter.seek_to_last() } else { iter.seek_to_first() }.unwrap();
    while iter.valid() {
        found.push((iter.key().to_vec(), iter.value().to_vec()));
        if backward { iter.prev() } else { iter.next() }.unwrap();
    }
    let (reads, announced) = (reads.lock().clone(), announced.lock().clone());
    (found, reads, announced)
}

fn pages(reads: &[(u64, u64)]) -> u64 {
    reads.iter().map(|(offset, bytes)| (offset + bytes).div_ceil(PAGE) - offset / PAGE).sum()
}

/// Blocks end anywhere; windows ended with them, so that each began with a page already read.
#[test]
fn a_walk_reads_no_page_twice() {
    let ahead = IterOptions::streaming(Cause::Scan, 16 << 10);
    let growing = IterOptions { walk_bytes_max: 64 << 10, ..IterOptions::cached(Cause::Scan) };
    for options in [ahead, growing] {
        let (found, reads) = walk(options, false);
        assert!(found == entries());
        let last = reads.iter().map(|(offset, bytes)| (offset + bytes).div_ceil(PAGE)).max();
        assert_eq!(pages(&reads), last.unwrap(), "{reads:?}");
    }
}

/// On stores without mappings a scan read block after block, whatever its length.
#[test]
fn a_walk_through_the_cache_reads_more_and_more() {
    let blocks = walk(IterOptions::cached(Cause::Scan), false).1;
    let options = IterOptions { walk_bytes_max: 64 << 10, ..IterOptions::cached(Cause::Scan) };
    for backward in [false, true] {
        let (mut found, reads) = walk(options.clone(), backward);
        if backward {
            found.reverse();
        }
        assert!(found == entries());
        assert!(reads.len() < blocks.len() / 4, "{} and {}", reads.len(), blocks.len());
        assert!(reads[0].1 < 2 * PAGE, "a walk begins with one block");
        assert!(reads.iter().all(|(_, bytes)| *bytes < (64 << 10) + PAGE));
        // Backward, a block that began before the window had what lies behind it read again.
        let [read, all] =
            [&reads, &blocks].map(|reads| reads.iter().map(|read| read.1).sum::<u64>());
        assert!(read < all + all / 8, "{read} bytes read for {all}: {reads:?}");
    }
}

/// A scan began anew with one block in each run that it came to: four reads for a table of 64 KiB,
/// each of which a disk has to wait for.
#[test]
fn a_walk_that_comes_from_another_run_goes_on_as_fast() {
    let alone = IterOptions { walk_bytes_max: 64 << 10, ..IterOptions::cached(Cause::Scan) };
    let goes_on = IterOptions { walk_bytes: 64 << 10, ..alone.clone() };
    for backward in [false, true] {
        let (alone, first) = walk(alone.clone(), backward);
        let (found, reads) = walk(goes_on.clone(), backward);
        assert!(found == alone);
        assert!(reads.len() < first.len(), "{reads:?} and {first:?}");
        assert!(reads.iter().all(|(_, bytes)| *bytes < (64 << 10) + PAGE));
    }
}

/// A disk turned on between the reads of a scan, and each waited for its next turn.
#[test]
fn a_long_walk_has_its_next_read_begun_before_it_comes_there() {
    let options = IterOptions { walk_bytes_max: 16 << 10, ..IterOptions::cached(Cause::Scan) };
    let (found, reads, announced) = walk_noted(options.clone(), false);
    assert!(found == entries());
    let (steady, begun) = (reads.len() - announced.len(), announced.len());
    assert!(begun > 10, "{announced:?}");
    assert_eq!(reads[steady..], announced[..], "all after the walk got going, and exactly those");
    assert!(reads[..steady].iter().all(|(_, bytes)| *bytes <= (16 << 10) + PAGE));
    assert_eq!(walk_noted(options, true).2, [], "a walk backward announces nothing");
    assert_eq!(walk_noted(IterOptions::cached(Cause::Scan), false).2, []);
}

/// Each index block was read by itself: on a disk, a way to the end of the run and back for every
/// hundred blocks of a merge or a scan.
#[test]
fn a_long_walk_reads_its_index_with_few_reads() {
    let layout = TableOptions { block_bytes: 1024, index_block_bytes: 256, ..Default::default() };
    let one_by_one = walk_laid_out(&layout, IterOptions::cached(Cause::Scan), false).1;
    let data_end = one_by_one[0].0;
    assert!(data_end > 100 << 10, "the index comes first");
    let of_index = |reads: &[(u64, u64)]| reads.iter().filter(|read| read.0 >= data_end).count();
    assert!(of_index(&one_by_one) > 20);
    let growing = IterOptions { walk_bytes_max: 64 << 10, ..IterOptions::cached(Cause::Scan) };
    let streaming = IterOptions::streaming(Cause::Scan, 64 << 10);
    let whole = IterOptions { range: Some(KeyRange::all()), ..streaming.clone() };
    for (options, most) in [(growing, 5), (streaming, 1), (whole, 1)] {
        let (found, reads, _) = walk_laid_out(&layout, options, false);
        assert!(found == entries());
        assert!(of_index(&reads) <= most, "{reads:?}");
    }
    // An iterator that needs a part reads a part of it.
    let part = KeyRange { start: (*b"00000500").into(), end: Some((*b"00000550").into()) };
    let options =
        IterOptions { range: Some(part), ..IterOptions::streaming(Cause::Scan, 64 << 10) };
    let (file, summary) = write_run(&layout, &entries(), &[]);
    let reads = Arc::<Mutex<Places>>::default();
    let file = Arc::new(Noted { file, reads: reads.clone(), announced: Arc::default() });
    let run = Run::open(file, Extent::of(&summary, PLACE), BlockCache::new(0), Cause::OpenRun);
    let mut iter = run.unwrap().iter(options);
    reads.lock().clear();
    iter.seek(&base::key::internal_key(b"00000500", 9, EntryKind::SEARCH)).unwrap();
    assert!(iter.valid());
    let read: u64 = reads.lock().iter().filter(|r| r.0 >= data_end).map(|r| r.1).sum();
    assert!(read < summary.index_bytes / 4, "{read} of {} bytes", summary.index_bytes);
}

/// The filter of a small run came with its end, and was read once more: on a disk, twice the seeks
/// of each get that finds nothing in a run that was not open.
#[test]
fn the_filter_of_a_small_run_is_read_with_its_end() {
    let (file, summary) = write_run(&TableOptions::default(), &entries(), &[]);
    let (reads, announced) = (Arc::<Mutex<_>>::default(), Arc::<Mutex<_>>::default());
    let file = Arc::new(Noted { file, reads: reads.clone(), announced: announced.clone() });
    let extent = Extent::of(&summary, PLACE);
    let run = Run::open(file, extent, BlockCache::new(1 << 20), Cause::OpenRun).unwrap();
    let absent = b"00000500, and more";
    assert!(run.get(absent, hash64(absent), 9, Cause::Get).unwrap().is_none());
    assert_eq!(reads.lock().len(), 1);
    let present = b"00000500";
    assert!(run.get(present, hash64(present), 9, Cause::Get).unwrap().is_some());
    assert_eq!(reads.lock().len(), 2, "its data block");
}
