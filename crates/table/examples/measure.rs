//! Measures the hot paths of a run in memory: nanoseconds for each add, next, prev, get.
//!
//! `cargo run --release -p shingle-table --example measure [part] [entries]`, where part is one of
//! add, next, prev, get, merge, filter, or all.

#![allow(clippy::print_stdout)]

use base::checksum::hash64;
use base::key::{SEQUENCE_MAX, internal_key};
use base::random::Random;
use base::{Cause, DatabaseId, EntryKind, Error, FileId, Result, RunId};
use media::{AppendFile, FileName, ReadFile, SyncFile};
use parking_lot::{Mutex, MutexGuard};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use table::{
    BlockCache, Compression, EntryIter, Extent, Filter, IterOptions, MergingIter, Run, RunSummary,
    TableOptions, TablePlace, TableWriter,
};

const PLACE: TablePlace = TablePlace { database: DatabaseId(1), file: FileId(1) };
const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 100;

#[derive(Clone, Default)]
struct MemoryFile(Arc<Mutex<Vec<u8>>>);

impl MemoryFile {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock()
    }
}

impl AppendFile for MemoryFile {
    fn append(&mut self, bytes: &[u8], _: Cause) -> Result<()> {
        self.bytes().extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self, _: Cause) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> u64 {
        self.bytes().len() as u64
    }

    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        None
    }
}

impl ReadFile for MemoryFile {
    fn read_at(&self, offset: u64, into: &mut [u8], _: Cause) -> Result<()> {
        let bytes = self.bytes();
        let found = bytes.get(offset as usize..).and_then(|rest| rest.get(..into.len()));
        into.copy_from_slice(found.ok_or_else(|| Error::invalid("past the end"))?);
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn prefetch(&self, _: u64, _: u64) {}

    fn name(&self) -> FileName {
        FileName::table(PLACE.file)
    }
}

fn key(n: u64) -> [u8; KEY_BYTES] {
    let mut key = *b"user000000000000";
    let mut rest = n;
    for digit in key.iter_mut().rev().take(12) {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// The best of seven timings of `work`, in nanoseconds for each of `count`.
fn measure(name: &str, count: u64, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut timings = Vec::new();
    for _ in 0..7 {
        let start = Instant::now();
        work()?;
        timings.push(start.elapsed().as_nanos() as f64 / count as f64);
    }
    timings.sort_by(f64::total_cmp);
    println!("{name:<44} {:8.1} ns", timings[0]);
    Ok(timings[0])
}

struct Fixture {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Fixture {
    /// Even numbers, so that odd ones are absent.
    fn new(count: u64) -> Fixture {
        let mut random = Random::new(1);
        let entries = (0..count).map(|n| {
            let mut value = vec![0; VALUE_BYTES];
            random.fill(&mut value);
            (internal_key(&key(2 * n), n + 1, EntryKind::Put), value)
        });
        Fixture { entries: entries.collect() }
    }

    fn write(
        &self,
        options: &TableOptions,
        every: usize,
        from: usize,
    ) -> Result<(MemoryFile, RunSummary)> {
        let file = MemoryFile::default();
        file.bytes().reserve(self.entries.len() * 150);
        let mut writer = TableWriter::create(Box::new(file.clone()), PLACE, Cause::Flush)?;
        writer.begin_run(RunId(1), options)?;
        for (key, value) in self.entries.iter().skip(from).step_by(every) {
            writer.add(key, value)?;
        }
        let summary = writer.finish_run()?.into_summary();
        writer.finish()?;
        Ok((file, summary))
    }

    fn open(&self, options: &TableOptions, cache: &Arc<BlockCache>) -> Result<Arc<Run>> {
        self.open_part(options, cache, 1, 0)
    }

    fn open_part(
        &self,
        options: &TableOptions,
        cache: &Arc<BlockCache>,
        every: usize,
        from: usize,
    ) -> Result<Arc<Run>> {
        let (file, summary) = self.write(options, every, from)?;
        Run::open(Arc::new(file), Extent::of(&summary, PLACE), cache.clone(), Cause::OpenRun)
    }

    fn count(&self) -> u64 {
        self.entries.len() as u64
    }
}

fn add(fixture: &Fixture) -> Result<()> {
    let plain = TableOptions::default();
    for (name, options) in [
        ("add", plain),
        ("add, no filter", TableOptions { filter: Filter::None, ..plain }),
        ("add, hash index", TableOptions { hash_index: true, ..plain }),
        ("add, ribbon 7", TableOptions { filter: Filter::Ribbon { bits_per_key: 7 }, ..plain }),
        ("add, lz4", TableOptions { compression: Compression::Lz4, ..plain }),
    ] {
        let ns = measure(name, fixture.count(), || fixture.write(&options, 1, 0).map(|_| ()))?;
        println!("{:44} {:8.0} MB/s", "", (KEY_BYTES + VALUE_BYTES) as f64 * 1e3 / ns);
    }
    Ok(())
}

fn walk(fixture: &Fixture, cache: &Arc<BlockCache>, backwards: bool) -> Result<()> {
    let run = fixture.open(&TableOptions::default(), cache)?;
    let name = if backwards { "prev" } else { "next" };
    for (how, options) in [
        ("cached", IterOptions::cached(Cause::Scan)),
        ("streaming 256 KiB", IterOptions::streaming(Cause::Compaction(1), 256 << 10)),
    ] {
        measure(&format!("{name}, {how}"), fixture.count(), || {
            let mut iter = run.iter(options.clone());
            let mut bytes = 0;
            if backwards {
                iter.seek_to_last()?
            } else {
                iter.seek_to_first()?
            };
            while iter.valid() {
                bytes += iter.key().len() + iter.value().len();
                if backwards {
                    iter.prev()?
                } else {
                    iter.next()?
                };
            }
            black_box(bytes);
            Ok(())
        })?;
    }
    Ok(())
}

fn get(fixture: &Fixture, cache: &Arc<BlockCache>) -> Result<()> {
    let plain = TableOptions::default();
    let lookups = 200_000;
    let span = (fixture.count() / 10).max(1);
    for (name, options) in [
        ("get", plain),
        ("get, hash index", TableOptions { hash_index: true, ..plain }),
        ("get, no filter", TableOptions { filter: Filter::None, ..plain }),
        ("get, ribbon 7", TableOptions { filter: Filter::Ribbon { bits_per_key: 7 }, ..plain }),
    ] {
        let run = fixture.open(&options, cache)?;
        for (what, odd) in [("there", 0), ("absent", 1)] {
            let mut random = Random::new(5);
            measure(&format!("{name}, {what}, of {span} keys"), lookups, || {
                for _ in 0..lookups {
                    let key = key(2 * random.below(span) + odd);
                    black_box(run.get(&key, hash64(&key), SEQUENCE_MAX, Cause::Get)?);
                }
                Ok(())
            })?;
        }
    }
    let run = fixture.open(&plain, cache)?;
    let mut iter = run.iter(IterOptions::cached(Cause::Scan));
    let mut random = Random::new(5);
    measure(&format!("seek, of {span} keys"), lookups, || {
        for _ in 0..lookups {
            let (target, _) = &fixture.entries[random.below(span) as usize];
            iter.seek(target)?;
            black_box(iter.value());
        }
        Ok(())
    })?;
    Ok(())
}

fn merge(fixture: &Fixture, cache: &Arc<BlockCache>) -> Result<()> {
    for ways in [1, 2, 4, 10, 64] {
        let runs: Result<Vec<_>> = (0..ways)
            .map(|from| fixture.open_part(&TableOptions::default(), cache, ways, from))
            .collect();
        let runs = runs?;
        measure(&format!("next of a merge of {ways}"), fixture.count(), || {
            let options = IterOptions::streaming(Cause::Compaction(1), 256 << 10);
            let iters = runs.iter().map(|run| run.iter(options.clone()));
            let mut merge = MergingIter::new(iters.collect());
            merge.seek_to_first()?;
            let mut bytes = 0;
            while merge.valid() {
                bytes += merge.key().len() + merge.value().len();
                merge.next()?;
            }
            black_box(bytes);
            Ok(())
        })?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let part = arguments.next().unwrap_or_else(|| "all".into());
    let count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(500_000);
    let wants = |name: &str| part == "all" || part == name;
    let fixture = Fixture::new(count);
    let cache = BlockCache::new(1 << 30);
    if wants("add") {
        add(&fixture)?;
    }
    if wants("next") {
        walk(&fixture, &cache, false)?;
    }
    if wants("prev") {
        walk(&fixture, &cache, true)?;
    }
    if wants("get") {
        get(&fixture, &cache)?;
    }
    if wants("merge") {
        merge(&fixture, &cache)?;
    }
    Ok(())
}
