//! A segment whose bytes stay in memory once read.
//!
//! GC reads a group twice: for the order of its records, and to move the newest ones (HashKV 3.3
//! keeps the group in memory between the two). The second pass takes from here what the first one
//! read.

use base::page_memory::PageBuffer;
use base::{Cause, Result};
use media::{FileName, ReadFile};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// A file, and its bytes from the first to the last that was read.
pub(super) struct SegmentBuffer {
    file: Arc<dyn ReadFile>,
    kept: Mutex<Kept>,
}

struct Kept {
    buffer: PageBuffer,
    /// Number of bytes in the buffer that are the file's.
    len: usize,
}

impl SegmentBuffer {
    /// Keeps what is read of the first `bytes` of `file`, as long as it is read in order.
    pub(super) fn new(file: Arc<dyn ReadFile>, bytes: u64) -> SegmentBuffer {
        let buffer = PageBuffer::zeroed(bytes as usize);
        SegmentBuffer { file, kept: Mutex::new(Kept { buffer, len: 0 }) }
    }

    /// Memory that it uses.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.lock().buffer.len() as u64
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock()
    }
}

impl ReadFile for SegmentBuffer {
    fn read_at(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<()> {
        let mut guard = self.lock();
        let Kept { buffer, len } = &mut *guard;
        let begin = (offset.min(*len as u64)) as usize;
        let known = (*len - begin).min(into.len());
        into[..known].copy_from_slice(&buffer[begin..begin + known]);
        let unknown = &mut into[known..];
        if unknown.is_empty() {
            return Ok(());
        }
        self.file.read_at(offset + known as u64, unknown, cause)?;
        if offset + known as u64 == *len as u64
            && let Some(room) = buffer.get_mut(*len..*len + unknown.len())
        {
            room.copy_from_slice(unknown);
            *len += unknown.len();
        }
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn prefetch(&self, offset: u64, bytes: u64) {
        self.file.prefetch(offset, bytes);
    }

    fn name(&self) -> FileName {
        self.file.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::FileId;
    use media::mem::MemStore;
    use media::{FileHint, FileStore};

    #[test]
    fn what_was_read_in_order_is_read_once_and_the_rest_from_the_file() {
        let store = MemStore::new(Arc::default());
        let name = FileName::value(FileId(1));
        let bytes: Vec<u8> = (0..5000u32).map(|at| at as u8 ^ (at >> 8) as u8).collect();
        let mut file = store.create(name, &FileHint::default()).unwrap();
        file.append(&bytes, Cause::ValueWrite).unwrap();
        let kept = SegmentBuffer::new(store.open(name, true).unwrap(), 4000);
        let read = |offset: usize, count: usize| {
            let before = store.ledger().snapshot();
            let mut into = vec![0; count];
            kept.read_at(offset as u64, &mut into, Cause::ValueGc).unwrap();
            assert!(into == bytes[offset..offset + count]);
            store.ledger().snapshot().since(&before).cause(Cause::ValueGc).read_bytes
        };
        assert_eq!(read(0, 1000), 1000);
        assert_eq!(read(300, 1000), 300, "the rest of what is known in part");
        assert_eq!(read(2000, 100), 100, "behind a gap nothing is kept");
        assert_eq!((read(0, 1300), read(1299, 1)), (0, 0));
        assert_eq!((read(1300, 2700), read(0, 4000)), (2700, 0));
        assert_eq!((read(3999, 1000), read(4001, 999)), (999, 999), "no more than was asked for");
    }
}
