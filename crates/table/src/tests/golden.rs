//! Golden files: what version 1 of the format wrote stays readable, and is still what is written.

use super::*;
use crate::IterOptions;
use base::EntryKind;
use base::key::internal_key;

const GOLDEN: [(&str, &[u8]); 3] = [
    ("plain", include_bytes!("../../golden/table-v1-plain")),
    ("lz4", include_bytes!("../../golden/table-v1-lz4")),
    ("zstd", include_bytes!("../../golden/table-v1-zstd")),
];

fn options(name: &str) -> TableOptions {
    let base = TableOptions { block_bytes: 512, index_block_bytes: 200, ..TableOptions::default() };
    match name {
        "plain" => TableOptions { hash_index: true, prefix: PrefixRule::Fixed(4), ..base },
        "lz4" => TableOptions {
            compression: Compression::Lz4,
            filter: Filter::Ribbon { bits_per_key: 7 },
            ..base
        },
        _ => TableOptions { compression: Compression::Zstd(1), ..base },
    }
}

fn entries() -> Entries {
    let kinds = [EntryKind::Put, EntryKind::Delete, EntryKind::Merge, EntryKind::Pointer];
    let entry = |n: u64| {
        let key = format!("key{:04}", n / 3);
        let kind = kinds[n as usize % 4];
        (internal_key(key.as_bytes(), 1000 - n, kind), vec![b'a' + (n % 26) as u8; n as usize % 90])
    };
    (0..200).map(entry).collect()
}

fn tombstones() -> Vec<Tombstone> {
    vec![(b"key0001".to_vec(), b"key0050".to_vec(), 77), (b"key0020".to_vec(), b"l".to_vec(), 5)]
}

#[test]
fn golden_files_stay_readable() {
    for (name, bytes) in GOLDEN {
        let (written, summary) = write_run(&options(name), &entries(), &tombstones());
        let file = MemoryFile::with(bytes.to_vec());
        let end = bytes.len() as u64;
        let (footers, error) = crate::format::footers_backwards(&file, PLACE, end, Cause::Check);
        assert!(error.is_none() && footers.len() == 1, "{name}");
        let mut stored = summary;
        stored.run.bytes = footers[0].bytes;
        let run = open(&file, &stored, &BlockCache::new(1 << 20)).unwrap();
        run.verify(&mut |_| {}).unwrap();
        let found = collect(&mut run.iter(IterOptions::cached(Cause::Scan))).unwrap();
        assert_eq!(found, entries(), "{name}");
        assert_eq!(run.range_deletes().covering(b"key0030", 99), Some(77));
        // Compressed bytes may change with their library; raw ones may not.
        assert!(name != "plain" || written.bytes() == bytes, "the format changed: a new version?");
    }
}

/// Run by hand, and only when a new version of the format gets files of its own.
#[test]
#[ignore = "writes the golden files"]
fn write_golden_files() {
    for (name, _) in GOLDEN {
        let (written, _) = write_run(&options(name), &entries(), &tombstones());
        let path = format!("{}/golden/table-v1-{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, written.bytes()).unwrap();
    }
}
