//! What walks and gets ask the store for.

use super::*;
use crate::IterOptions;
use base::EntryKind;

const PAGE: u64 = 4096;

/// A file that notes its reads.
struct Noted {
    file: MemoryFile,
    reads: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl ReadFile for Noted {
    fn read_at(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<()> {
        self.reads.lock().unwrap().push((offset, into.len() as u64));
        self.file.read_at(offset, into, cause)
    }

    fn len(&self) -> Result<u64> {
        ReadFile::len(&self.file)
    }

    fn prefetch(&self, _: u64, _: u64) {}

    fn name(&self) -> FileName {
        self.file.name()
    }
}

/// As many as one block of index has room for, which opening reads.
fn entries() -> Entries {
    let key = |n: u64| base::key::internal_key(format!("{n:08}").as_bytes(), 1, EntryKind::Put);
    (0..1000).map(|n| (key(n), vec![n as u8; 300])).collect()
}

/// A walk forward, or backward, over everything: entries, and reads without those of opening.
fn walk(options: IterOptions, backward: bool) -> (Entries, Vec<(u64, u64)>) {
    let (file, summary) = write_run(&TableOptions::default(), &entries(), &[]);
    let reads = Arc::<Mutex<_>>::default();
    let file = Arc::new(Noted { file, reads: reads.clone() });
    let extent = Extent::of(&summary, PLACE);
    let run = Run::open(file, extent, BlockCache::new(0), Cause::OpenRun).unwrap();
    reads.lock().unwrap().clear();
    let mut iter = run.iter(options);
    let mut found = Entries::new();
    if backward { iter.seek_to_last() } else { iter.seek_to_first() }.unwrap();
    while iter.valid() {
        found.push((iter.key().to_vec(), iter.value().to_vec()));
        if backward { iter.prev() } else { iter.next() }.unwrap();
    }
    let reads = reads.lock().unwrap().clone();
    (found, reads)
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
    }
}

/// The filter of a small run came with its end, and was read once more: on a disk, twice the seeks
/// of each get that finds nothing in a run that was not open.
#[test]
fn the_filter_of_a_small_run_is_read_with_its_end() {
    let (file, summary) = write_run(&TableOptions::default(), &entries(), &[]);
    let reads = Arc::<Mutex<_>>::default();
    let file = Arc::new(Noted { file, reads: reads.clone() });
    let extent = Extent::of(&summary, PLACE);
    let run = Run::open(file, extent, BlockCache::new(1 << 20), Cause::OpenRun).unwrap();
    let absent = b"00000500, and more";
    assert!(run.get(absent, hash64(absent), 9, Cause::Get).unwrap().is_none());
    assert_eq!(reads.lock().unwrap().len(), 1);
    let present = b"00000500";
    assert!(run.get(present, hash64(present), 9, Cause::Get).unwrap().is_some());
    assert_eq!(reads.lock().unwrap().len(), 2, "its data block");
}
