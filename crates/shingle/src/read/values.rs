//! Separated values: from a pointer to its bytes.

use super::missing;
use base::{Cause, DatabaseId, FileId, Result};
use media::{FileName, FileStore, ReadFile};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use table::Bytes;
use values::{SegmentPlace, ValuePointer, segment};

/// Opens value segments, once each, until they are removed.
pub(crate) struct ValueFiles {
    store: Arc<dyn FileStore>,
    database: DatabaseId,
    open: Mutex<HashMap<FileId, Arc<dyn ReadFile>>>,
}

impl ValueFiles {
    pub(crate) fn new(store: Arc<dyn FileStore>, database: DatabaseId) -> ValueFiles {
        ValueFiles { store, database, open: Mutex::default() }
    }

    /// The place that the records of a segment are checked against.
    pub(crate) fn place(&self, file: FileId) -> SegmentPlace {
        SegmentPlace { database: self.database, file }
    }

    /// The segment, opened for users' reads.
    pub(crate) fn file(&self, id: FileId) -> Result<Arc<dyn ReadFile>> {
        let mut open = self.open.lock();
        if let Some(file) = open.get(&id) {
            return Ok(file.clone());
        }
        let file = self.store.open(FileName::value(id), false)?;
        open.insert(id, file.clone());
        Ok(file)
    }

    /// The value of `key` that `pointer`, as the tree holds it, names.
    pub(crate) fn read(&self, pointer: &[u8], key: &[u8], cause: Cause) -> Result<Bytes> {
        let pointer = ValuePointer::decode(pointer)?;
        let place = self.place(pointer.file);
        let opened = self.file(pointer.file);
        let file = opened.map_err(|error| missing(error, FileName::value(pointer.file)))?;
        segment::read(&*file, place, &pointer, key, cause).map(Bytes::from)
    }

    /// [`ValueFiles::read`] of a scan, unless the medium would be waited for; `None` then.
    pub(crate) fn read_from_memory(&self, pointer: &[u8], key: &[u8]) -> Result<Option<Bytes>> {
        let pointer = ValuePointer::decode(pointer)?;
        let place = self.place(pointer.file);
        // An error is left to the read that follows.
        let Ok(file) = self.file(pointer.file) else { return Ok(None) };
        let read = segment::read_from_memory(&*file, place, &pointer, key, Cause::Scan)?;
        Ok(read.map(Bytes::from))
    }

    /// Tells the store that the value will be read soon. Errors are left to the read.
    pub(crate) fn prefetch(&self, pointer: &[u8]) {
        if let Ok(pointer) = ValuePointer::decode(pointer)
            && let Ok(file) = self.file(pointer.file)
        {
            file.prefetch(pointer.offset, pointer.record_bytes.into());
        }
    }

    /// A segment is about to be removed.
    pub(crate) fn forget(&self, id: FileId) {
        self.open.lock().remove(&id);
    }
}
