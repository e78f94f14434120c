//! Damage of databases of RocksDB: each is an error that names the file, or changes nothing.

#![allow(clippy::unwrap_used)]

mod rocks;

use base::{ErrorKind, Result};
use rocks::{Found, copied, files, found_in};
use std::path::Path;

/// Databases that have every kind of block and record.
const NAMES: [&str; 12] = [
    "v5-crc32c",
    "v7-xxh3",
    "v3-xxhash64",
    "index-partitioned-v5",
    "index-first-key-v7",
    "zstd-trained",
    "lz4-dictionary",
    "values-apart-and-hash",
    "ranges-cut",
    "ingested",
    "families-at-once",
    "tracked-logs",
];

/// One byte of this many is changed.
const STEP: usize = 7;

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
}

fn is_manifest(path: &Path) -> bool {
    path.file_name().unwrap().to_string_lossy().starts_with("MANIFEST")
}

/// Where the records of a log or a manifest begin that a reader gives, and where the last one ends.
fn boundaries(path: &Path, bytes: &[u8]) -> Vec<usize> {
    let number = path.file_stem().unwrap().to_str().unwrap().parse::<u32>().ok();
    let (mut all, mut at) = (Vec::new(), 0);
    while at + 7 <= bytes.len() {
        let (length, kind) = (u16::from_le_bytes([bytes[at + 4], bytes[at + 5]]), bytes[at + 6]);
        let is_recycled = (5..=8).contains(&kind);
        let log =
            bytes.get(at + 7..at + 11).map(|four| u32::from_le_bytes(four.try_into().unwrap()));
        if !(1..=9).contains(&kind) || is_recycled && log != number {
            break;
        }
        if matches!(kind, 1 | 2 | 5 | 6 | 9) {
            all.push(at);
        }
        at += 7 + usize::from(length) + if is_recycled { 4 } else { 0 };
        let left = 32768 - at % 32768;
        at += if left < 7 { left } else { 0 };
    }
    all.push(at.min(bytes.len()));
    all
}

/// What a database has whose file `path` has `bytes`.
fn with(folder: &Path, path: &Path, bytes: &[u8]) -> Result<Found> {
    std::fs::write(path, bytes).unwrap();
    found_in(folder)
}

fn is_error_of_a_file(found: &Result<Found>) -> bool {
    found.as_ref().is_err_and(|error| {
        let is_kind = matches!(
            error.kind(),
            ErrorKind::Corruption | ErrorKind::Unsupported | ErrorKind::Io | ErrorKind::NotFound
        );
        is_kind && (error.file().is_some() || error.kind() == ErrorKind::NotFound)
    })
}

#[test]
fn every_changed_byte_is_found_or_changes_nothing() {
    for name in NAMES {
        let (_folder, folder) = copied(name);
        let whole = found_in(&folder).unwrap();
        let mut errors = 0;
        for path in files(&folder).into_iter().filter(|path| !path.ends_with("IDENTITY")) {
            let bytes = std::fs::read(&path).unwrap();
            // A reader cannot tell a changed length of the last record from a writer that died.
            let mut without_last = None;
            if is_manifest(&path) || has_extension(&path, "log") && !bytes.is_empty() {
                let begins = boundaries(&path, &bytes);
                let last = begins[begins.len() - 2];
                without_last = with(&folder, &path, &bytes[..last]).ok();
            }
            // Other bytes of each file, so that all kinds of bytes have their turn.
            for at in (path.as_os_str().len() % STEP..bytes.len()).step_by(STEP) {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << (at % 8);
                let found = with(&folder, &path, &changed);
                let shown = path.display();
                match &found {
                    Ok(found) if *found == whole || Some(found) == without_last.as_ref() => {}
                    _ if is_error_of_a_file(&found) => errors += 1,
                    _ => panic!("{name}: byte {at} of {shown}: {found:?}"),
                }
            }
            std::fs::write(&path, bytes).unwrap();
        }
        assert!(errors > 300, "{name}: {errors}");
    }
}

/// Without checksums a changed byte may give anything but a panic.
#[test]
fn changed_bytes_without_checksums_do_no_harm() {
    for name in ["v5-none", "v7-none"] {
        let (_folder, folder) = copied(name);
        for path in files(&folder).into_iter().filter(|path| has_extension(path, "sst")) {
            let bytes = std::fs::read(&path).unwrap();
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= [0x01, 0x80, 0xff][at % 3];
                // Keys may come in another order then, which is found.
                let _ = with(&folder, &path, &changed);
            }
            std::fs::write(&path, bytes).unwrap();
        }
    }
}

#[test]
fn a_table_that_ends_early_is_an_error() {
    for name in ["v5-crc32c", "v7-none", "ranges-cut-new"] {
        let (_folder, folder) = copied(name);
        for path in files(&folder).into_iter().filter(|path| has_extension(path, "sst")) {
            let bytes = std::fs::read(&path).unwrap();
            for keep in (0..bytes.len()).step_by(STEP) {
                let error = with(&folder, &path, &bytes[..keep]).unwrap_err();
                let of_table = error.file().is_some_and(|file| file.ends_with(".sst"));
                assert!(
                    error.kind() == ErrorKind::Corruption && of_table,
                    "{name}: {keep}: {error}"
                );
            }
            std::fs::write(&path, bytes).unwrap();
        }
    }
}

/// A record that is not whole at the end counts as not written; what is before it counts.
#[test]
fn a_log_or_manifest_that_ends_early_has_its_whole_records() {
    for name in ["v5-crc32c", "only-log-new", "compressed-log", "recycled-log", "transactions"] {
        let (_folder, folder) = copied(name);
        for path in files(&folder) {
            if !is_manifest(&path) && !has_extension(&path, "log") {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let mut begins = boundaries(&path, &bytes);
            begins.dedup();
            for ends in begins.windows(2) {
                let at_record = with(&folder, &path, &bytes[..ends[0]]);
                for keep in [ends[0] + 1, ends[0] + 8, (ends[0] + ends[1]) / 2, ends[1] - 1] {
                    let found =
                        with(&folder, &path, &bytes[..keep.clamp(ends[0] + 1, ends[1] - 1)]);
                    let is_equal = match (&found, &at_record) {
                        (Ok(found), Ok(at_record)) => found == at_record,
                        (Err(found), Err(at_record)) => found.kind() == at_record.kind(),
                        _ => false,
                    };
                    assert!(is_equal, "{name}: {} {keep}: {found:?} {at_record:?}", path.display());
                }
            }
            std::fs::write(&path, bytes).unwrap();
        }
    }
}

/// After a crash RocksDB may go on with a new log: then the first one ends in a record that is not
/// whole, and the next one has the very next writes.
#[test]
fn a_log_that_ends_early_before_another_one_must_lose_nothing() {
    let (_folder, folder) = copied("only-log-new");
    let whole = found_in(&folder).unwrap();
    let path = files(&folder).into_iter().find(|path| has_extension(path, "log")).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    // All is in one block, so that records may begin another file.
    assert!(bytes.len() < 32768);
    let begins = boundaries(&path, &bytes);
    let next = path.with_file_name("000099.log");
    for ends in begins[1..begins.len() - 1].windows(2) {
        std::fs::write(&path, &bytes[..ends[0] + 5]).unwrap();
        std::fs::write(&next, &bytes[ends[0]..]).unwrap();
        assert_eq!(found_in(&folder).unwrap(), whole);
        std::fs::write(&next, &bytes[ends[1]..]).unwrap();
        let error = found_in(&folder).unwrap_err();
        let is_of_first = error.file().is_some_and(|file| file == path.to_str().unwrap());
        assert!(error.kind() == ErrorKind::Corruption && is_of_first, "{error}");
        assert_eq!(error.offset(), Some(ends[0] as u64));
    }
    // A family that is ahead of such a log has writes that others may have lost.
    let (_folder, folder) = copied("families");
    let needed: Vec<_> =
        files(&folder).into_iter().filter(|path| has_extension(path, "log")).collect();
    for path in &needed[1..] {
        std::fs::remove_file(path).unwrap();
    }
    let bytes = std::fs::read(&needed[0]).unwrap();
    let error = with(&folder, &needed[0], &bytes[..bytes.len() - 1]).unwrap_err();
    assert!(error.to_string().contains("has later writes"), "{error}");
}
