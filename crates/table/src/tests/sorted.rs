//! Sorted files: every entry gets the sequence number of the ingestion, whichever way it is read.

use super::*;
use crate::sorted::{self, SortedWriter};
use crate::{IterOptions, Probe, Rescue};
use base::key::{internal_key, user_key};
use base::{EntryKind, ErrorKind};

const IDENTITY: DatabaseId = DatabaseId(0x5017_ed00);

const GOLDEN: &[u8] = include_bytes!("../../golden/sorted-v1");

fn contents() -> Vec<(Vec<u8>, EntryKind, Vec<u8>)> {
    let entry = |n: u32| {
        let kind = if n % 7 == 3 { EntryKind::Delete } else { EntryKind::Put };
        let value = if kind == EntryKind::Put { vec![b'v'; n as usize % 50] } else { Vec::new() };
        (format!("key{n:04}").into_bytes(), kind, value)
    };
    (0..150).map(entry).collect()
}

fn write(options: &TableOptions) -> MemoryFile {
    let file = MemoryFile::default();
    let mut writer =
        SortedWriter::create(Box::new(file.clone()), IDENTITY, options, Cause::Ingest).unwrap();
    for (key, kind, value) in contents() {
        writer.add(&key, kind, &value).unwrap();
    }
    writer.add_range_delete(b"key0050", b"key0060").unwrap();
    let (bytes, summary) = writer.finish().unwrap();
    assert_eq!(bytes, file.bytes().len() as u64);
    assert_eq!((summary.run.entries, summary.run.sequence_max), (150, 0));
    file
}

fn expected(sequence: u64) -> Entries {
    let entry = |(key, kind, value): (Vec<u8>, _, _)| (internal_key(&key, sequence, kind), value);
    contents().into_iter().map(entry).collect()
}

fn open_at(file: &MemoryFile, sequence: u64) -> Result<Arc<Run>> {
    let extent = Extent::of_sorted(IDENTITY, file.bytes().len() as u64, sequence);
    Run::open(Arc::new(file.clone()), extent, BlockCache::new(1 << 20), Cause::OpenRun)
}

#[test]
fn every_way_to_read_sees_the_sequence_number_of_the_ingestion() {
    for options in all_options() {
        let file = write(&options);
        assert_eq!(sorted::identity(&file, Cause::Check).unwrap(), IDENTITY);
        let run = open_at(&file, 900).unwrap();
        let summary = run.verify(&mut |_| {}).unwrap();
        assert_eq!((summary.run.sequence_min, summary.run.sequence_max), (900, 900));
        let expected = expected(900);
        for walk in [IterOptions::cached(Cause::Scan), IterOptions::streaming(Cause::Flush, 4096)] {
            assert_eq!(collect(&mut run.iter(walk)).unwrap(), expected);
        }
        assert_eq!(run.range_deletes().covering(b"key0055", 900), Some(900));
        assert_eq!(run.range_deletes().covering(b"key0055", 899), None);
        let mut rescue = Rescue::new(Arc::new(file.clone()), run.extent(), Cause::Check).unwrap();
        let mut rescued = Entries::new();
        while rescue.advance().unwrap() {
            rescued.push((rescue.key().to_vec(), rescue.value().to_vec()));
        }
        assert_eq!(rescued, expected);
        for (internal, value) in &expected {
            let key = user_key(internal);
            let found = run.get(key, hash(key), 900, Cause::Get).unwrap().unwrap();
            assert_eq!((found.sequence, &found.value[..]), (900, &value[..]));
            assert_eq!(run.get(key, hash(key), 899, Cause::Get).unwrap(), None);
            let probe = Probe { key, hash: hash(key), snapshot: 901 };
            assert_eq!(run.get_many(&[probe], Cause::Get).unwrap()[0], Some(found));
        }
        let mut iter = run.iter(IterOptions::cached(Cause::Scan));
        iter.seek(&internal_key(b"key0077", 899, EntryKind::SEARCH)).unwrap();
        assert_eq!(user_key(iter.key()), b"key0078");
        iter.seek(&internal_key(b"key0077", 900, EntryKind::SEARCH)).unwrap();
        assert_eq!(user_key(iter.key()), b"key0077");
    }
}

#[test]
fn keys_out_of_order_are_refused_by_name_and_change_nothing() {
    let file = MemoryFile::default();
    let options = TableOptions::default();
    let mut writer =
        SortedWriter::create(Box::new(file.clone()), IDENTITY, &options, Cause::Ingest).unwrap();
    writer.add(b"", EntryKind::Put, b"the empty key").unwrap();
    writer.add(b"m", EntryKind::Put, b"1").unwrap();
    for key in [&b"m"[..], b"l", b""] {
        let error = writer.add(key, EntryKind::Put, b"2").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let text = error.to_string();
        assert!(text.contains(&base::key::display_key(key)) && text.contains('m'), "{text}");
    }
    writer.add(b"n", EntryKind::Delete, b"").unwrap();
    let (_, summary) = writer.finish().unwrap();
    assert_eq!((summary.run.entries, summary.run.deletes), (3, 1));
    open_at(&file, 1).unwrap().verify(&mut |_| {}).unwrap();
}

#[test]
fn damage_anywhere_is_found() {
    let whole = write(&TableOptions { block_bytes: 200, ..TableOptions::default() }).bytes();
    for at in (0..whole.len()).step_by(37) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        let file = MemoryFile::with(bytes);
        let read = sorted::identity(&file, Cause::Check)
            .and_then(|_| open_at(&file, 5))
            .and_then(|run| run.verify(&mut |_| {}));
        assert!(read.is_err(), "a flipped bit in byte {at} was not found");
    }
    for length in [0, 35, 100, whole.len() - 1] {
        let file = MemoryFile::with(whole[..length].to_vec());
        assert!(sorted::identity(&file, Cause::Check).is_err());
    }
}

#[test]
fn a_table_of_a_database_is_no_sorted_file() {
    let (file, _) = write_run(&TableOptions::default(), &expected(3), &[]);
    let error = sorted::identity(&file, Cause::Check).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible);
}

#[test]
fn the_golden_sorted_file_stays_readable() {
    let file = MemoryFile::with(GOLDEN.to_vec());
    assert_eq!(sorted::identity(&file, Cause::Check).unwrap(), IDENTITY);
    let run = open_at(&file, 12).unwrap();
    run.verify(&mut |_| {}).unwrap();
    let mut iter = run.iter(IterOptions::cached(Cause::Scan));
    assert_eq!(collect(&mut iter).unwrap(), expected(12));
    let written = write(&TableOptions { block_bytes: 512, ..TableOptions::default() }).bytes();
    assert!(written == GOLDEN, "the format changed: a new version?");
}

/// Run by hand, and only when a new version of the format gets a file of its own.
#[test]
#[ignore = "writes the golden file"]
fn write_golden_sorted_file() {
    let written = write(&TableOptions { block_bytes: 512, ..TableOptions::default() });
    let path = format!("{}/golden/sorted-v1", env!("CARGO_MANIFEST_DIR"));
    std::fs::write(path, written.bytes()).unwrap();
}
