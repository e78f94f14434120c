//! Golden databases: what a version of the format wrote stays readable. The same seed also writes
//! the same bytes.

use crate::build::{State, content, database, options};
use crate::image::{Image, everything_in, temporary};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const SEED: u64 = 7;

pub fn golden(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(version)
}

/// A line for each pair: keyspace, key, value.
pub fn dump(state: &State) -> String {
    let mut text = String::new();
    for (name, content) in state {
        for (key, value) in content {
            writeln!(text, "{name} {} {}", key.escape_ascii(), value.escape_ascii()).unwrap();
        }
    }
    text
}

fn copy(from: &Path) -> tempfile::TempDir {
    let directory = temporary();
    for (name, (bytes, _)) in everything_in(from) {
        std::fs::write(directory.path().join(name), bytes).unwrap();
    }
    directory
}

#[test]
pub fn golden_databases_stay_readable() {
    let expected = std::fs::read_to_string(golden("v1.dump")).unwrap();
    for read_only in [true, false] {
        let directory = copy(&golden("v1"));
        let db = options().read_only(read_only).create(false).open(directory.path()).unwrap();
        assert!(dump(&content(&db).unwrap()) == expected, "read_only: {read_only}");
        let report = db.check(&mut |_| {}).unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
        if !read_only {
            db.compact().unwrap();
            assert!(dump(&content(&db).unwrap()) == expected, "compacted");
        }
    }
}

#[test]
fn a_golden_database_has_every_kind_of_file() {
    let image = Image::of_directory(&golden("v1"));
    for kind in [media::FileKind::Table, media::FileKind::Wal, media::FileKind::Manifest] {
        assert!(image.files.keys().any(|name| name.kind == kind), "{kind:?}");
    }
    assert!(image.bytes() < 64 << 10);
}

#[test]
fn the_same_seed_writes_the_same_bytes() {
    for seed in 0..4 {
        let ((first, history), (second, _)) = (database(seed), database(seed));
        assert!(first == second, "seed {seed}");
        assert!(history.states.len() > 400);
    }
    assert!(database(1).0 != database(2).0);
}

/// Run by hand, and only when a new version of the format gets a database of its own.
#[test]
#[ignore = "writes the golden database"]
fn write_golden_database() {
    let (image, history) = database(SEED);
    let directory = image.in_directory();
    std::fs::create_dir_all(golden("v1")).unwrap();
    for (name, (bytes, _)) in everything_in(directory.path()) {
        std::fs::write(golden("v1").join(name), bytes).unwrap();
    }
    std::fs::write(golden("v1.dump"), dump(history.last())).unwrap();
}
