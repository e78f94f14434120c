//! A store that may be changed only under its lock: a change after the lock was given back would
//! reach the next opener's database. One of these wraps the store of each opening, so that it knows
//! whose change it is.

use base::{Cause, Ledger, Result};
use media::{
    AppendFile, Capacity, ColdOwner, ColdStore, DeviceMap, FileHint, FileName, FileStore,
    FileSummary, Notes, Part, ReadFile, Sharing, Space, StoreLock, SyncFile,
};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Called before each change, with its description.
pub type Hook = Arc<dyn Fn(&str) + Send + Sync>;

/// What files and the lock of one opening share.
pub struct Watch {
    is_given_back: AtomicBool,
    violations: Mutex<Vec<String>>,
    hook: Hook,
}

impl Watch {
    /// The lock was taken and given back.
    pub fn is_given_back(&self) -> bool {
        self.is_given_back.load(SeqCst)
    }

    /// Changes that came after that.
    pub fn violations(&self) -> Vec<String> {
        self.violations.lock().clone()
    }

    fn change(&self, what: &str) {
        (self.hook)(what);
        if self.is_given_back() {
            let text = format!("{what} after the lock was given back");
            self.violations.lock().push(text.clone());
            assert!(std::thread::panicking(), "{text}");
        }
    }
}

impl Drop for Watch {
    /// A panic in a background step was caught.
    fn drop(&mut self) {
        let violations = self.violations();
        assert!(violations.is_empty() || std::thread::panicking(), "{violations:?}");
    }
}

/// The store of one opening.
pub struct Guarded {
    inner: Arc<dyn FileStore>,
    pub watch: Arc<Watch>,
}

impl Guarded {
    pub fn new(inner: Arc<dyn FileStore>) -> Guarded {
        Guarded::calling(inner, Arc::new(|_| {}))
    }

    pub fn calling(inner: Arc<dyn FileStore>, hook: Hook) -> Guarded {
        let (is_given_back, violations) = (AtomicBool::new(false), Mutex::default());
        Guarded { inner, watch: Arc::new(Watch { is_given_back, violations, hook }) }
    }

    fn wrap(&self, inner: Box<dyn AppendFile>, hint: &FileHint) -> Box<dyn AppendFile> {
        let is_buffered = hint.background;
        Box::new(GuardedFile { inner: Some(inner), watch: self.watch.clone(), is_buffered })
    }
}

struct GuardedFile {
    inner: Option<Box<dyn AppendFile>>,
    watch: Arc<Watch>,
    /// Dropping it may write.
    is_buffered: bool,
}

impl GuardedFile {
    fn inner(&mut self) -> &mut dyn AppendFile {
        &mut **self.inner.as_mut().unwrap()
    }
}

impl AppendFile for GuardedFile {
    fn append(&mut self, bytes: &[u8], cause: Cause) -> Result<()> {
        self.watch.change("append");
        self.inner().append(bytes, cause)
    }
    fn begin_sync(&mut self) -> Result<()> {
        self.watch.change("begin_sync");
        self.inner().begin_sync()
    }
    fn sync(&mut self, cause: Cause) -> Result<()> {
        self.watch.change("sync");
        self.inner().sync(cause)
    }
    fn len(&self) -> u64 {
        self.inner.as_ref().unwrap().len()
    }
    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        let inner = self.inner.as_ref()?.syncer()?;
        Some(Box::new(GuardedSyncer { inner, watch: self.watch.clone() }))
    }
}

impl Drop for GuardedFile {
    fn drop(&mut self) {
        if self.is_buffered {
            self.watch.change("end of a file");
        }
    }
}

struct GuardedSyncer {
    inner: Box<dyn SyncFile>,
    watch: Arc<Watch>,
}

impl SyncFile for GuardedSyncer {
    fn sync(&self, cause: Cause) -> Result<()> {
        self.watch.change("sync");
        self.inner.sync(cause)
    }
}

struct GuardedLock {
    inner: Option<StoreLock>,
    watch: Arc<Watch>,
}

impl Drop for GuardedLock {
    fn drop(&mut self) {
        self.watch.is_given_back.store(true, SeqCst);
        self.inner.take();
    }
}

impl FileStore for Guarded {
    fn ledger(&self) -> &Arc<Ledger> {
        self.inner.ledger()
    }
    fn create(&self, name: FileName, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.watch.change("create");
        Ok(self.wrap(self.inner.create(name, hint)?, hint))
    }
    fn extend(&self, name: FileName, at: u64, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.watch.change("extend");
        Ok(self.wrap(self.inner.extend(name, at, hint)?, hint))
    }
    fn open(&self, name: FileName, background: bool) -> Result<Arc<dyn ReadFile>> {
        self.inner.open(name, background)
    }
    fn recalls_writes(&self) -> bool {
        self.inner.recalls_writes()
    }
    fn remove(&self, name: FileName) -> Result<()> {
        self.watch.change("remove");
        self.inner.remove(name)
    }
    fn list(&self) -> Result<Vec<FileSummary>> {
        self.inner.list()
    }
    fn sync_names(&self) -> Result<()> {
        self.watch.change("sync_names");
        self.inner.sync_names()
    }
    fn root(&self) -> Result<Option<Vec<u8>>> {
        self.inner.root()
    }
    fn set_root(&self, root: &[u8]) -> Result<()> {
        self.watch.change("set_root");
        self.inner.set_root(root)
    }
    fn lock(&self) -> Result<StoreLock> {
        let inner = Some(self.inner.lock()?);
        Ok(Box::new(GuardedLock { inner, watch: self.watch.clone() }))
    }
    fn lock_shared(&self) -> Result<StoreLock> {
        let inner = Some(self.inner.lock_shared()?);
        Ok(Box::new(GuardedLock { inner, watch: self.watch.clone() }))
    }
    fn describe(&self) -> String {
        self.inner.describe()
    }
    fn cold_store(&self) -> Option<&dyn ColdStore> {
        self.inner.cold_store().map(|_| self as &dyn ColdStore)
    }

    fn notes(&self) -> Option<&dyn Notes> {
        self.inner.notes().map(|_| self as &dyn Notes)
    }

    fn capacity(&self) -> Option<&dyn Capacity> {
        self.inner.capacity()
    }

    fn device_map(&self) -> Option<&dyn DeviceMap> {
        self.inner.device_map()
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        self.inner.sharing().map(|_| self as &dyn Sharing)
    }
}

impl Notes for Guarded {
    fn write_note(&self, name: &str, bytes: &[u8], append: bool) -> Result<()> {
        self.watch.change("note");
        self.inner.notes().unwrap().write_note(name, bytes, append)
    }

    fn read_note(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.inner.notes().unwrap().read_note(name)
    }
}

impl Sharing for Guarded {
    fn directory(&self) -> &Path {
        self.inner.sharing().unwrap().directory()
    }
    fn share(&self, name: FileName, target: &Path, part: Part) -> Result<()> {
        self.watch.change("share");
        self.inner.sharing().unwrap().share(name, target, part)
    }
    fn adopt(&self, path: &Path, name: FileName) -> Result<bool> {
        self.watch.change("adopt");
        self.inner.sharing().unwrap().adopt(path, name)
    }
}

impl Guarded {
    fn cold(&self) -> &dyn ColdStore {
        self.inner.cold_store().unwrap()
    }
}

impl ColdStore for Guarded {
    fn is_cold(&self, name: FileName) -> bool {
        self.cold().is_cold(name)
    }
    fn cold_space(&self) -> Option<Space> {
        self.cold().cold_space()
    }
    fn check_owner(&self, owner: ColdOwner) -> Result<bool> {
        self.cold().check_owner(owner)
    }
    fn own(&self, owner: ColdOwner) -> Result<()> {
        self.watch.change("own");
        self.cold().own(owner)
    }
}
