//! Real files with a quota, whose failed syncs lose what they did not write.
//!
//! After a failed sync the kernel takes the pages for clean: reads see them until the kernel evicts
//! them, and no later sync writes them. The store reports the bytes concerned. The parent destroys
//! them after the death of the process, at once or after a later process.

use base::{Cause, Error, ErrorKind, Ledger, Result};
use media::os::OsStore;
use media::{
    AppendFile, Capacity, FileHint, FileName, FileStore, FileSummary, Notes, ReadFile, Sharing,
    Space, StoreLock, SyncFile,
};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;

/// Receives what the parent must know.
pub type Tell = Arc<dyn Fn(String) + Send + Sync>;

#[derive(Default)]
struct State {
    /// Bytes appended to a file, and bytes of it that a sync has made durable.
    files: HashMap<FileName, (u64, u64)>,
    used_bytes: u64,
    /// Part of the used bytes.
    reserve_bytes: u64,
    bytes_max: Option<u64>,
}

struct Shared {
    state: Mutex<State>,
    tell: Tell,
}

impl Shared {
    fn hold(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn take(&self, name: FileName, bytes: u64) -> Result<()> {
        let mut state = self.hold();
        if state.bytes_max.is_some_and(|max| state.used_bytes + bytes > max) {
            let error = Error::new(ErrorKind::NoSpace, "the quota is used up");
            return Err(error.in_file(name.to_string()));
        }
        state.used_bytes += bytes;
        state.files.entry(name).or_default().0 += bytes;
        Ok(())
    }

    fn appended(&self, name: FileName) -> u64 {
        self.hold().files.get(&name).map_or(0, |file| file.0)
    }

    fn synced(&self, name: FileName, bytes: u64) {
        if let Some(file) = self.hold().files.get_mut(&name) {
            file.1 = file.1.max(bytes);
        }
    }
}

/// The store. A clone is a second handle.
#[derive(Clone)]
pub struct Quota {
    inner: Arc<OsStore>,
    shared: Arc<Shared>,
}

impl Quota {
    pub fn new(inner: OsStore, tell: Tell) -> Result<Quota> {
        let mut state = State::default();
        for file in inner.list()? {
            state.files.insert(file.name, (file.bytes, file.bytes));
            state.used_bytes += file.bytes;
        }
        let shared = Arc::new(Shared { state: Mutex::new(state), tell });
        Ok(Quota { inner: Arc::new(inner), shared })
    }

    /// Allows at most `bytes` beyond what is used now; `None`: no quota.
    pub fn allow(&self, bytes: Option<u64>) {
        let mut state = self.shared.hold();
        state.bytes_max = bytes.map(|bytes| state.used_bytes + bytes);
    }

    /// A sync of `name` failed.
    pub fn lose_unsynced(&self, name: FileName) {
        let range = self.shared.hold().files.get(&name).copied();
        if let Some((appended, synced)) = range.filter(|(appended, synced)| appended > synced) {
            (self.shared.tell)(format!("lost {name} {synced} {appended}"));
        }
    }

    fn wrap(&self, name: FileName, inner: Box<dyn AppendFile>) -> Box<dyn AppendFile> {
        Box::new(QuotaFile { inner, name, shared: self.shared.clone() })
    }
}

impl FileStore for Quota {
    fn ledger(&self) -> &Arc<Ledger> {
        self.inner.ledger()
    }
    fn create(&self, name: FileName, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.shared.take(name, 0)?;
        Ok(self.wrap(name, self.inner.create(name, hint)?))
    }
    fn extend(&self, name: FileName, at: u64, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        let inner = self.inner.extend(name, at, hint)?;
        let mut state = self.shared.hold();
        let (appended, synced) = state.files.get(&name).copied().unwrap_or_default();
        state.used_bytes -= appended.saturating_sub(at);
        state.files.insert(name, (at, synced.min(at)));
        drop(state);
        (self.shared.tell)(format!("cut {name} {at}"));
        Ok(self.wrap(name, inner))
    }
    fn open(&self, name: FileName, background: bool) -> Result<Arc<dyn ReadFile>> {
        self.inner.open(name, background)
    }
    fn recalls_writes(&self) -> bool {
        self.inner.recalls_writes()
    }
    fn remove(&self, name: FileName) -> Result<()> {
        self.inner.remove(name)?;
        let mut state = self.shared.hold();
        let bytes = state.files.remove(&name).map_or(0, |file| file.0);
        state.used_bytes -= bytes;
        Ok(())
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
        Some(self)
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        self.inner.sharing()
    }
}

impl Capacity for Quota {
    fn space(&self) -> Option<Space> {
        let state = self.shared.hold();
        let Some(total_bytes) = state.bytes_max else { return self.inner.capacity()?.space() };
        Some(Space { total_bytes, free_bytes: total_bytes.saturating_sub(state.used_bytes) })
    }

    fn set_reserve(&self, bytes: u64) -> Result<bool> {
        let mut state = self.shared.hold();
        let used_bytes = state.used_bytes - state.reserve_bytes + bytes;
        if bytes > state.reserve_bytes && state.bytes_max.is_some_and(|max| used_bytes > max) {
            return Err(Error::new(ErrorKind::NoSpace, "the quota has not as much"));
        }
        (state.used_bytes, state.reserve_bytes) = (used_bytes, bytes);
        Ok(true)
    }
}

struct QuotaFile {
    inner: Box<dyn AppendFile>,
    name: FileName,
    shared: Arc<Shared>,
}

impl AppendFile for QuotaFile {
    fn append(&mut self, bytes: &[u8], cause: Cause) -> Result<()> {
        self.shared.take(self.name, bytes.len() as u64)?;
        self.inner.append(bytes, cause)
    }
    fn begin_sync(&mut self) -> Result<()> {
        self.inner.begin_sync()
    }
    fn sync(&mut self, cause: Cause) -> Result<()> {
        let appended = self.shared.appended(self.name);
        self.inner.sync(cause)?;
        self.shared.synced(self.name, appended);
        Ok(())
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        let inner = self.inner.syncer()?;
        Some(Box::new(QuotaSyncer { inner, name: self.name, shared: self.shared.clone() }))
    }
}

struct QuotaSyncer {
    inner: Box<dyn SyncFile>,
    name: FileName,
    shared: Arc<Shared>,
}

impl SyncFile for QuotaSyncer {
    fn sync(&self, cause: Cause) -> Result<()> {
        let appended = self.shared.appended(self.name);
        self.inner.sync(cause)?;
        self.shared.synced(self.name, appended);
        Ok(())
    }
}
