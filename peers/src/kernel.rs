//! Bytes as the kernel counts them, the same way for every engine.
//!
//! A page counts when it becomes dirty, and is taken back when its file goes away before the page
//! reached storage. So the sum is exact only once nothing is dirty any more: [`settle`] first.

use base::{Error, Result};
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;
use workloads::process::{self, Io};
use workloads::store::Counters;

/// The counters of this process, which runs one engine and nothing else, and the bytes in `dir`.
/// The bytes of the log are no part of these: most logs go before they reach storage.
pub fn counters(dir: &Path) -> Counters {
    let io = Io::now();
    Counters {
        host_write_bytes: io.map(|io| io.net_write_bytes()),
        host_read_bytes: io.map(|io| io.read_bytes),
        space_bytes: Some(space_bytes(dir)),
        ..Counters::default()
    }
}

/// Bytes allocated to the files in `dir`. Files that go away meanwhile count as nothing.
pub fn space_bytes(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    visit(dir, &mut |path| bytes += fs::metadata(path).map_or(0, |file| file.blocks() * 512));
    bytes
}

/// Makes every file in `dir` durable.
pub fn sync_files(dir: &Path) -> Result<()> {
    let mut result = Ok(());
    visit(dir, &mut |path| {
        // A file that the engine has just removed needs no sync.
        let Ok(file) = File::open(path) else { return };
        if let Err(error) = file.sync_all() {
            let error = Error::io("sync failed", error).in_file(path.display().to_string());
            result = Err(error);
        }
    });
    result
}

fn visit(dir: &Path, file: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => visit(&entry.path(), file),
            Ok(kind) if kind.is_file() => file(&entry.path()),
            _ => {}
        }
    }
}

const POLL: Duration = Duration::from_millis(50);
/// Polls without a byte or 100 ms of processor time that make an engine idle: half a second.
const QUIET_POLLS: u32 = 10;

/// Waits until the engine does nothing any more, then makes all files in `dir` durable. `busy` is
/// what the engine itself says, where it says anything.
pub fn settle(dir: &Path, busy: impl Fn() -> bool) -> Result<()> {
    let mut quiet = 0;
    let mut last = activity();
    while quiet < QUIET_POLLS {
        std::thread::sleep(POLL);
        let now = activity();
        quiet = if now == last && !busy() { quiet + 1 } else { 0 };
        last = now;
    }
    sync_files(dir)
}

/// Grows while the process works: bytes, and tenths of a second of processor time, of which
/// polling needs next to nothing.
fn activity() -> (u64, u64) {
    let written = Io::now().map_or(0, |io| io.write_bytes);
    let tenths = process::cpu_seconds().map_or(0, |seconds| (seconds * 10.0) as u64);
    (written, tenths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_are_counted_and_removed_ones_taken_back() {
        // Not in memory-backed /tmp: only a real file system counts.
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let before = counters(dir.path());
        let path = dir.path().join("file");
        fs::write(&path, vec![1; 4 << 20]).unwrap();
        sync_files(dir.path()).unwrap();
        let after = counters(dir.path()).since(&before);
        assert!(after.host_write_bytes.unwrap() >= 4 << 20, "{after:?}");
        assert!(after.space_bytes.unwrap() >= 4 << 20, "{after:?}");
        fs::remove_file(&path).unwrap();
        assert_eq!(space_bytes(dir.path()), 0);
    }
}
