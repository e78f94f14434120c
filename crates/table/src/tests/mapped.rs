//! Runs used in place, in files that the operating system maps.

use super::damage::{acceptable, read_everything, small};
use super::*;
use crate::IterOptions;
use base::ErrorKind;
use media::FileStore;
use media::os::{OsOptions, OsStore};
use std::path::Path;

fn store(directory: &Path) -> OsStore {
    let options = OsOptions { map_bytes_max: u64::MAX, ..OsOptions::default() };
    OsStore::open(directory, Arc::default(), options).unwrap()
}

fn path(directory: &Path) -> std::path::PathBuf {
    directory.join(FileName::table(PLACE.file).to_string())
}

fn open_mapped(store: &OsStore, summary: &RunSummary) -> Result<Arc<Run>> {
    let file = store.open(FileName::table(PLACE.file), false)?;
    Run::open(file, Extent::of(summary, PLACE), BlockCache::new(1 << 20), Cause::OpenRun)
}

#[test]
#[cfg_attr(miri, ignore)] // Maps files.
fn runs_in_place_read_like_others_and_leave_the_cache_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let entries: Entries = (0..400u64)
        .map(|n| {
            let key = format!("{}{:04}", ["a", "ab", "b"][n as usize % 3], n);
            let key = base::key::internal_key(key.as_bytes(), n, base::EntryKind::Put);
            (key, vec![n as u8; n as usize])
        })
        .collect();
    let mut sorted = entries;
    sorted.sort_by(|a, b| base::key::compare_internal(&a.0, &b.0));
    for options in all_options().iter().filter(|o| o.compression == Compression::None) {
        let (file, summary) = write_run(options, &sorted, &[]);
        std::fs::write(path(directory.path()), file.bytes()).unwrap();
        let cache = BlockCache::new(1 << 20);
        let file = store.open(FileName::table(PLACE.file), false).unwrap();
        let extent = Extent::of(&summary, PLACE);
        let run = Run::open(file, extent, cache.clone(), Cause::OpenRun).unwrap();
        for _ in 0..2 {
            for (key, value) in &sorted {
                let (user, trailer) = base::key::split_internal_key(key).unwrap();
                let found = run.get(user, hash(user), trailer >> 8, Cause::Get).unwrap().unwrap();
                assert_eq!(found.value[..], value[..]);
            }
            assert_eq!(run.get(b"ab", hash(b"ab"), 999, Cause::Get).unwrap(), None);
            assert_eq!(collect(&mut run.iter(IterOptions::cached(Cause::Scan))).unwrap(), sorted);
        }
        assert_eq!(cache.used_bytes(), 0, "{options:?}");
        std::fs::remove_file(path(directory.path())).unwrap();
    }
}

#[test]
#[cfg_attr(miri, ignore)] // Maps files.
fn blocks_are_fetched_once_however_short_filters_are() {
    let directory = tempfile::tempdir().unwrap();
    let ledger: Arc<base::Ledger> = Arc::default();
    let mapping = OsOptions { map_bytes_max: u64::MAX, ..OsOptions::default() };
    let store = OsStore::open(directory.path(), ledger.clone(), mapping).unwrap();
    let options = TableOptions { index_block_bytes: 1024, ..TableOptions::default() };
    let key = |n: u64| format!("key{n:04}").into_bytes();
    let entries: Entries = (0..1500)
        .map(|n| (base::key::internal_key(&key(n), n, base::EntryKind::Put), vec![7; 1000]))
        .collect();
    let (file, summary) = write_run(&options, &entries, &[]);
    std::fs::write(path(directory.path()), file.bytes()).unwrap();
    let run = open_mapped(&store, &summary).unwrap();
    let mut fetched = Vec::new();
    for _ in 0..3 {
        // Blocks that lie together take turns.
        for n in (0..1500).map(|n| n * 701 % 1500) {
            assert!(run.get(&key(n), hash(&key(n)), 9999, Cause::Get).unwrap().is_some());
        }
        fetched.push(ledger.snapshot().cause(Cause::Get).read_ops);
    }
    assert!(
        fetched[0] > 300 && fetched[1] == fetched[0] && fetched[2] == fetched[0],
        "{fetched:?}"
    );
}

#[test]
#[cfg_attr(miri, ignore)] // Maps files.
fn damage_of_any_byte_in_place_is_found_when_it_is_first_used() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let (file, summary, entries) = small(Compression::None, Filter::Bloom { bits_per_key: 10 });
    let bytes = file.bytes();
    let mut found = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let path = path(directory.path());
        std::fs::write(&path, damaged).unwrap();
        if let Some(run) = acceptable(open_mapped(&store, &summary)) {
            read_everything(&run, &entries, true);
            let walked = collect(&mut run.iter(IterOptions::cached(Cause::Scan)));
            found += usize::from(walked.is_err());
        }
        std::fs::remove_file(path).unwrap();
    }
    assert!(found > 500, "{found} of {}", bytes.len());
}

#[test]
#[cfg_attr(miri, ignore)] // Maps files.
fn a_table_that_was_cut_is_an_error_where_it_was_not_used_yet() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let options = TableOptions::default();
    let entries: Entries = (0..1000u64)
        .map(|n| {
            let key = format!("key{n:04}");
            (base::key::internal_key(key.as_bytes(), n, base::EntryKind::Put), vec![7; 200])
        })
        .collect();
    let (file, summary) = write_run(&options, &entries, &[]);
    std::fs::write(path(directory.path()), file.bytes()).unwrap();
    let run = open_mapped(&store, &summary).unwrap();
    let cut = std::fs::File::options().write(true).open(path(directory.path())).unwrap();
    cut.set_len(100_000).unwrap();
    let mut iter = run.iter(IterOptions::cached(Cause::Scan));
    let error = collect(&mut iter).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.offset().is_some_and(|at| at < 100_000), "{error}");
}

#[test]
#[cfg_attr(miri, ignore)] // Maps files.
fn a_value_that_is_kept_does_not_keep_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let (file, summary, entries) = small(Compression::None, Filter::None);
    std::fs::write(path(directory.path()), file.bytes()).unwrap();
    let run = open_mapped(&store, &summary).unwrap();
    let user = base::key::user_key(&entries[0].0);
    let found = run.get(user, hash(user), base::key::SEQUENCE_MAX, Cause::Get).unwrap().unwrap();
    let mut iter = run.iter(IterOptions::cached(Cause::Scan));
    iter.seek_to_first().unwrap();
    assert!(!found.value.is_shared() && !iter.value_bytes().is_shared());
}
