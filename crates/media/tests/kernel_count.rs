//! The ledger against the kernel: bytes that the ledger says were written and read equal what
//! `/proc/self/io` says the process passed to write calls (`wchar`) and got from read calls
//! (`rchar`). The test is alone in its process, so nothing else writes.
//!
//! Two differences are the measurement's own. Reading `/proc/self/io` is itself a read, of as many
//! bytes as the file has, and it counts when it is done: the first look is therefore part of the
//! interval, and is taken off. And `wchar` counts calls of any kind of file: the test prints
//! nothing in between.

use base::{Cause, FileId, Ledger};
use media::os::{OsOptions, OsStore};
use media::{FileHint, FileName, FileStore, Notes};
use std::sync::Arc;

/// What the kernel counted so far, and how many bytes it took to ask.
struct Look {
    read_bytes: u64,
    write_bytes: u64,
    own_bytes: u64,
}

fn look() -> Option<Look> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    let own_bytes = text.len() as u64;
    Some(Look { read_bytes: field("rchar:")?, write_bytes: field("wchar:")?, own_bytes })
}

fn work(store: &OsStore) -> base::Result<()> {
    let _lock = store.lock()?;
    for (id, background) in [(1, false), (2, true)] {
        let name = FileName::table(FileId(id));
        let hint = FileHint { background, ..FileHint::default() };
        let mut file = store.create(name, &hint)?;
        for len in [1, 100, 4096, 70_000, 1_300_000, 33] {
            file.append(&vec![7; len], Cause::Flush)?;
            file.sync(Cause::Flush)?;
        }
        file.append(&[8; 99], Cause::Compaction(1))?;
        drop(file);
        for background in [false, true] {
            let reader = store.open(name, background)?;
            let mut bytes = vec![0; 123_456];
            for offset in [0, 5, 1_000_000] {
                reader.read_at(offset, &mut bytes, Cause::Scan)?;
            }
        }
    }
    store.set_root(b"root")?;
    store.root()?;
    store.write_note("events", b"an event", true)?;
    store.write_note("options", b"all of them", false)?;
    store.read_note("options")?;
    Ok(())
}

#[test]
fn the_ledger_counts_what_the_kernel_counts() {
    for direct_background in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Arc::new(Ledger::default());
        let options = OsOptions { direct_background, ..OsOptions::default() };
        let store = OsStore::open(dir.path(), ledger.clone(), options).unwrap();
        // A kernel without I/O accounting has nothing to compare with.
        let Some(before) = look() else { return };
        let earlier = ledger.snapshot();
        work(&store).unwrap();
        let host = ledger.snapshot().since(&earlier).host();
        let after = look().unwrap();
        assert_eq!(host.write_bytes, after.write_bytes - before.write_bytes);
        assert_eq!(host.read_bytes, after.read_bytes - before.read_bytes - before.own_bytes);
    }
}
