//! The maximum space of a store on storage, from one mark to the next.

use crate::kernel;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A merge of 1 GB takes seconds, and its inputs and output are there together at its end.
const EVERY: Duration = Duration::from_millis(50);

/// Looks at a directory from time to time, until it is dropped.
pub struct SpacePeak {
    dir: PathBuf,
    most: Arc<AtomicU64>,
    watcher: Option<(Sender<()>, JoinHandle<()>)>,
}

impl SpacePeak {
    /// Watches `dir`, which need not exist yet.
    pub fn watch(dir: &Path) -> SpacePeak {
        let (dir, most) = (dir.to_path_buf(), Arc::new(AtomicU64::new(0)));
        let (stop, stopped) = channel();
        let (watched, seen) = (dir.clone(), most.clone());
        let watcher = std::thread::spawn(move || {
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                seen.fetch_max(kernel::space_bytes(&watched), Ordering::Relaxed);
            }
        });
        SpacePeak { dir, most, watcher: Some((stop, watcher)) }
    }

    /// The maximum number of bytes since the last call.
    pub fn take(&self) -> u64 {
        let now = kernel::space_bytes(&self.dir);
        self.most.swap(0, Ordering::Relaxed).max(now)
    }
}

impl Drop for SpacePeak {
    fn drop(&mut self) {
        if let Some((stop, watcher)) = self.watcher.take() {
            drop(stop);
            // It ends without a word to say: a panic in it was printed.
            let _ = watcher.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_came_and_went_is_seen_once() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let peak = SpacePeak::watch(dir.path());
        let path = dir.path().join("file");
        std::fs::write(&path, vec![1; 4 << 20]).unwrap();
        while peak.most.load(Ordering::Relaxed) < 4 << 20 {
            std::thread::sleep(EVERY);
        }
        std::fs::remove_file(&path).unwrap();
        assert!(peak.take() >= 4 << 20);
        std::thread::sleep(2 * EVERY);
        assert_eq!(peak.take(), 0);
    }
}
