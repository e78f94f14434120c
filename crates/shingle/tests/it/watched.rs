//! A memory store that reports each read before it happens, and caches no more than a device does.

use base::{Cause, Ledger, Result};
use media::mem::MemStore;
use media::{
    AppendFile, Capacity, FileHint, FileName, FileStore, FileSummary, Notes, ReadFile, StoreLock,
};
use std::sync::Arc;

/// A read, or a prefetch.
pub struct Request {
    pub name: FileName,
    pub offset: u64,
    pub bytes: u64,
    /// The cause of a read; `None`: a prefetch.
    pub cause: Option<Cause>,
}

/// Called before each read.
pub type Hook = Arc<dyn Fn(&Request) + Send + Sync>;

/// The store.
pub struct Watched {
    pub inner: MemStore,
    pub hook: Hook,
    /// It says that all bytes are in memory.
    pub in_memory: bool,
}

struct WatchedFile {
    inner: Arc<dyn ReadFile>,
    hook: Hook,
    in_memory: bool,
}

impl WatchedFile {
    fn tell(&self, offset: u64, bytes: u64, cause: Option<Cause>) {
        (self.hook)(&Request { name: self.inner.name(), offset, bytes, cause });
    }
}

impl ReadFile for WatchedFile {
    fn read_at(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<()> {
        self.tell(offset, into.len() as u64, Some(cause));
        self.inner.read_at(offset, into, cause)
    }
    fn read_from_memory(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<bool> {
        if self.in_memory {
            self.read_at(offset, into, cause)?;
        }
        Ok(self.in_memory)
    }
    fn len(&self) -> Result<u64> {
        self.inner.len()
    }
    fn prefetch(&self, offset: u64, bytes: u64) {
        self.tell(offset, bytes, None);
        self.inner.prefetch(offset, bytes);
    }
    fn name(&self) -> FileName {
        self.inner.name()
    }
}

impl FileStore for Watched {
    fn ledger(&self) -> &Arc<Ledger> {
        self.inner.ledger()
    }
    fn create(&self, name: FileName, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.inner.create(name, hint)
    }
    fn extend(&self, name: FileName, at: u64, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.inner.extend(name, at, hint)
    }
    fn open(&self, name: FileName, background: bool) -> Result<Arc<dyn ReadFile>> {
        let inner = self.inner.open(name, background)?;
        Ok(Arc::new(WatchedFile { inner, hook: self.hook.clone(), in_memory: self.in_memory }))
    }
    fn remove(&self, name: FileName) -> Result<()> {
        self.inner.remove(name)
    }
    fn list(&self) -> Result<Vec<FileSummary>> {
        self.inner.list()
    }
    fn sync_names(&self) -> Result<()> {
        self.inner.sync_names()
    }
    fn root(&self) -> Result<Option<Vec<u8>>> {
        self.inner.root()
    }
    fn set_root(&self, root: &[u8]) -> Result<()> {
        self.inner.set_root(root)
    }
    fn lock(&self) -> Result<StoreLock> {
        self.inner.lock()
    }
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn notes(&self) -> Option<&dyn Notes> {
        self.inner.notes()
    }

    fn capacity(&self) -> Option<&dyn Capacity> {
        self.inner.capacity()
    }
}
