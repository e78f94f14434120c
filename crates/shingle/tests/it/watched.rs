//! A memory store that reports each read before it happens, and caches no more than a device does.

use base::{Cause, Ledger, Result};
use media::mem::MemStore;
use media::{
    AppendFile, FileHint, FileName, FileStore, FileSummary, Part, ReadFile, Space, StoreLock,
};
use std::path::Path;
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
}

struct WatchedFile {
    inner: Arc<dyn ReadFile>,
    hook: Hook,
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
        Ok(Arc::new(WatchedFile { inner, hook: self.hook.clone() }))
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
    fn space(&self) -> Option<Space> {
        self.inner.space()
    }
    fn set_reserve(&self, bytes: u64) -> Result<bool> {
        self.inner.set_reserve(bytes)
    }
    fn note(&self, name: &str, bytes: &[u8], append: bool) -> Result<()> {
        self.inner.note(name, bytes, append)
    }
    fn read_note(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.inner.read_note(name)
    }
    fn describe(&self) -> String {
        self.inner.describe()
    }
    fn share(&self, name: FileName, target: &Path, part: Part) -> Result<()> {
        self.inner.share(name, target, part)
    }
}
