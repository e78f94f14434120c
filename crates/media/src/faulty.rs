//! Any store, with failures that a test has planned.
//!
//! A [`FaultPlan`] belongs to one [`FaultyStore`]; there is nothing global. It counts every
//! operation by kind, so that a sweep first runs without faults, asks [`FaultPlan::count`], and
//! then fails the first, the second, ... operation, once or for good: failing every operation in
//! turn finds more than failing at random.

use crate::{
    AppendFile, Capacity, ColdStore, DeviceMap, FileHint, FileKind, FileName, FileStore,
    FileSummary, Notes, Part, ReadFile, Sharing, StoreLock, SyncFile, lacks,
};
use base::{Cause, Error, ErrorKind, Ledger, Result};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// What a store is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// [`FileStore::create`].
    Create,
    /// [`FileStore::extend`].
    Extend,
    /// [`AppendFile::append`].
    Append,
    /// [`AppendFile::begin_sync`].
    BeginSync,
    /// [`AppendFile::sync`] and [`SyncFile::sync`].
    Sync,
    /// [`FileStore::open`].
    Open,
    /// [`ReadFile::read_at`].
    Read,
    /// [`ReadFile::len`].
    Length,
    /// [`FileStore::remove`].
    Remove,
    /// [`FileStore::list`].
    List,
    /// [`FileStore::sync_names`].
    SyncNames,
    /// [`FileStore::root`].
    Root,
    /// [`FileStore::set_root`].
    SetRoot,
    /// [`Notes::write_note`].
    Note,
    /// [`Notes::read_note`].
    ReadNote,
    /// [`Sharing::share`].
    Share,
}

/// Which operations a fault is about; what is `None` matches everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only this operation.
    pub operation: Option<Operation>,
    /// Only files of this kind; operations that concern no file do not match then.
    pub kind: Option<FileKind>,
}

impl Filter {
    fn matches(self, operation: Operation, kind: Option<FileKind>) -> bool {
        self.operation.is_none_or(|wanted| wanted == operation)
            && (self.kind.is_none() || self.kind == kind)
    }
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// `Io`, and nothing was done.
    Io,
    /// `NoSpace`, and nothing was done.
    NoSpace,
    /// The process has no descriptor left, and nothing was done.
    NoDescriptor,
    /// `Io`, and an append did half of its work; other operations did nothing.
    IoHalfDone,
    /// `Io`, although the work was done: the outcome that the caller cannot know.
    IoDone,
    /// A read succeeds with one bit of its first byte flipped. Other operations do not fail.
    FlippedBit,
    /// A read finds the file cut short. Other operations do not fail.
    ShortRead,
}

/// A failure to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which operations count.
    pub filter: Filter,
    /// How many of them succeed first.
    pub after: u64,
    /// Whether all later ones fail too.
    pub is_sticky: bool,
    /// How.
    pub effect: Effect,
}

/// Hears of a failed sync; a memory store forgets the file's pending bytes then.
pub type SyncHook = Box<dyn Fn(FileName) + Send + Sync>;

/// What another thread does while an operation is in progress.
pub type Act = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct PlanState {
    counts: BTreeMap<(Operation, Option<FileKind>), u64>,
    faults: Vec<(Fault, u64)>,
    /// With how many operations come first.
    acts: Vec<(Filter, u64, Act)>,
    unreadable: BTreeSet<FileName>,
    failures: u64,
}

/// The failures to come of one store, and the count of what it was asked.
#[derive(Default)]
pub struct FaultPlan(Mutex<PlanState>);

impl FaultPlan {
    /// A plan with one fault.
    pub fn with(fault: Fault) -> Arc<FaultPlan> {
        let plan = FaultPlan::default();
        plan.add(fault);
        Arc::new(plan)
    }

    /// Adds a fault; it counts operations from now on.
    pub fn add(&self, fault: Fault) {
        self.0.lock().faults.push((fault, 0));
    }

    /// No read of this file succeeds any more: a bad place on the medium.
    pub fn make_unreadable(&self, name: FileName) {
        self.0.lock().unreadable.insert(name);
    }

    /// Has `act` done once, in an operation that `filter` matches, after `after` others that it
    /// matches. Faults that the act adds may strike the operation itself.
    pub fn act(&self, filter: Filter, after: u64, act: Act) {
        self.0.lock().acts.push((filter, after, act));
    }

    /// Drops all faults and acts; the counts stay.
    pub fn clear(&self) {
        let mut state = self.0.lock();
        state.faults.clear();
        state.acts.clear();
        state.unreadable.clear();
    }

    /// A read may give other bytes than the medium has, without an error.
    pub fn flips_bits(&self) -> bool {
        let state = self.0.lock();
        state.faults.iter().any(|(fault, _)| fault.effect == Effect::FlippedBit)
    }

    /// Operations so far that `filter` matches.
    pub fn count(&self, filter: Filter) -> u64 {
        let state = self.0.lock();
        let matching = state.counts.iter().filter(|((op, kind), _)| filter.matches(*op, *kind));
        matching.map(|(_, count)| count).sum()
    }

    /// Operations that a fault struck so far.
    pub fn failures(&self) -> u64 {
        self.0.lock().failures
    }

    /// Counts an operation; the effect that strikes it.
    fn strike(&self, operation: Operation, name: Option<FileName>) -> Option<Effect> {
        let kind = name.map(|name| name.kind);
        let due = self.0.lock().due_act(operation, kind);
        if let Some(act) = due {
            act();
        }
        let mut state = self.0.lock();
        *state.counts.entry((operation, kind)).or_default() += 1;
        let mut struck = None;
        for (fault, seen) in &mut state.faults {
            if fault.filter.matches(operation, kind) {
                let is_due = *seen == fault.after || fault.is_sticky && *seen > fault.after;
                *seen += 1;
                struck = struck.or(is_due.then_some(fault.effect));
            }
        }
        if operation == Operation::Read && name.is_some_and(|name| state.unreadable.contains(&name))
        {
            struck = Some(Effect::Io);
        }
        let is_of_reads = matches!(struck, Some(Effect::FlippedBit | Effect::ShortRead));
        if is_of_reads && operation != Operation::Read {
            return None;
        }
        state.failures += u64::from(struck.is_some());
        struck
    }
}

impl PlanState {
    fn due_act(&mut self, operation: Operation, kind: Option<FileKind>) -> Option<Act> {
        let mut due = None;
        for (at, (filter, left, _)) in self.acts.iter_mut().enumerate() {
            if filter.matches(operation, kind) {
                match left.checked_sub(1) {
                    Some(fewer) => *left = fewer,
                    None => due = due.or(Some(at)),
                }
            }
        }
        due.map(|at| self.acts.remove(at).2)
    }
}

/// The plan and hook that a store shares with its open files.
#[derive(Clone)]
struct Faults {
    plan: Arc<FaultPlan>,
    failed_sync: Option<Arc<SyncHook>>,
}

impl Faults {
    /// Does `work`, or what the plan says instead.
    fn run<T>(
        &self,
        operation: Operation,
        name: Option<FileName>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let effect = self.plan.strike(operation, name);
        match effect {
            None => work(),
            Some(effect) => {
                if effect == Effect::IoDone {
                    work()?;
                }
                Err(planned(effect, operation, name))
            }
        }
    }

    fn sync(&self, name: FileName, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let result = self.run(Operation::Sync, Some(name), work);
        if let (Err(_), Some(hook)) = (&result, &self.failed_sync) {
            hook(name);
        }
        result
    }
}

fn planned(effect: Effect, operation: Operation, name: Option<FileName>) -> Error {
    let doing = format!("a planned failure of {operation:?}");
    let error = match effect {
        Effect::NoSpace => Error::new(ErrorKind::NoSpace, doing),
        Effect::NoDescriptor => Error::io(doing, rustix::io::Errno::MFILE.into()),
        _ => Error::new(ErrorKind::Io, doing),
    };
    match name {
        Some(name) => error.in_file(name.to_string()),
        None => error,
    }
}

/// A store whose operations fail as planned.
pub struct FaultyStore {
    inner: Arc<dyn FileStore>,
    faults: Faults,
}

impl FaultyStore {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn FileStore>, plan: Arc<FaultPlan>) -> FaultyStore {
        FaultyStore { inner, faults: Faults { plan, failed_sync: None } }
    }

    /// Calls `hook` with the file of every failed sync. With
    /// [`MemStore::drop_pending`](crate::mem::MemStore::drop_pending), a failed sync then loses
    /// data at a crash although later syncs succeed, as real ones do.
    pub fn on_failed_sync(mut self, hook: SyncHook) -> FaultyStore {
        self.faults.failed_sync = Some(Arc::new(hook));
        self
    }

    fn run<T>(
        &self,
        operation: Operation,
        name: Option<FileName>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.faults.run(operation, name, work)
    }

    fn inner_notes(&self) -> Result<&dyn Notes> {
        self.inner.notes().ok_or_else(|| lacks(self, "notes"))
    }

    fn wrap(&self, name: FileName, inner: Box<dyn AppendFile>) -> Box<dyn AppendFile> {
        Box::new(FaultyAppend { inner, name, faults: self.faults.clone() })
    }
}

impl FileStore for FaultyStore {
    fn ledger(&self) -> &Arc<Ledger> {
        self.inner.ledger()
    }

    fn create(&self, name: FileName, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        let work = || self.inner.create(name, hint);
        Ok(self.wrap(name, self.run(Operation::Create, Some(name), work)?))
    }

    fn extend(&self, name: FileName, at: u64, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        let work = || self.inner.extend(name, at, hint);
        Ok(self.wrap(name, self.run(Operation::Extend, Some(name), work)?))
    }

    fn open(&self, name: FileName, background: bool) -> Result<Arc<dyn ReadFile>> {
        let work = || self.inner.open(name, background);
        let inner = self.run(Operation::Open, Some(name), work)?;
        Ok(Arc::new(FaultyRead { inner, faults: self.faults.clone() }))
    }

    fn recalls_writes(&self) -> bool {
        self.inner.recalls_writes()
    }

    fn files_synced_together(&self) -> usize {
        self.inner.files_synced_together()
    }

    fn remove(&self, name: FileName) -> Result<()> {
        self.run(Operation::Remove, Some(name), || self.inner.remove(name))
    }

    fn list(&self) -> Result<Vec<FileSummary>> {
        self.run(Operation::List, None, || self.inner.list())
    }

    fn sync_names(&self) -> Result<()> {
        self.run(Operation::SyncNames, None, || self.inner.sync_names())
    }

    fn root(&self) -> Result<Option<Vec<u8>>> {
        self.run(Operation::Root, None, || self.inner.root())
    }

    fn set_root(&self, root: &[u8]) -> Result<()> {
        self.run(Operation::SetRoot, None, || self.inner.set_root(root))
    }

    fn lock(&self) -> Result<StoreLock> {
        self.inner.lock()
    }

    fn lock_shared(&self) -> Result<StoreLock> {
        self.inner.lock_shared()
    }

    fn describe(&self) -> String {
        format!("{}, with planned failures", self.inner.describe())
    }

    fn cold_store(&self) -> Option<&dyn ColdStore> {
        self.inner.cold_store()
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

impl Notes for FaultyStore {
    fn write_note(&self, name: &str, bytes: &[u8], append: bool) -> Result<()> {
        self.run(Operation::Note, None, || self.inner_notes()?.write_note(name, bytes, append))
    }

    fn read_note(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.run(Operation::ReadNote, None, || self.inner_notes()?.read_note(name))
    }
}

impl Sharing for FaultyStore {
    fn directory(&self) -> &Path {
        self.inner.sharing().map_or(Path::new(""), Sharing::directory)
    }

    fn share(&self, name: FileName, target: &Path, part: Part) -> Result<()> {
        self.run(Operation::Share, Some(name), || {
            let sharing = self.inner.sharing();
            sharing.ok_or_else(|| lacks(self, "directory to share"))?.share(name, target, part)
        })
    }

    fn adopt(&self, path: &Path, name: FileName) -> Result<bool> {
        self.run(Operation::Share, Some(name), || {
            let sharing = self.inner.sharing();
            sharing.ok_or_else(|| lacks(self, "directory to share"))?.adopt(path, name)
        })
    }
}

struct FaultyAppend {
    inner: Box<dyn AppendFile>,
    name: FileName,
    faults: Faults,
}

impl AppendFile for FaultyAppend {
    fn append(&mut self, bytes: &[u8], cause: Cause) -> Result<()> {
        let Some(effect) = self.faults.plan.strike(Operation::Append, Some(self.name)) else {
            return self.inner.append(bytes, cause);
        };
        match effect {
            Effect::IoHalfDone => self.inner.append(&bytes[..bytes.len() / 2], cause)?,
            Effect::IoDone => self.inner.append(bytes, cause)?,
            _ => {}
        }
        Err(planned(effect, Operation::Append, Some(self.name)))
    }

    fn begin_sync(&mut self) -> Result<()> {
        let inner = &mut self.inner;
        self.faults.run(Operation::BeginSync, Some(self.name), || inner.begin_sync())
    }

    fn sync(&mut self, cause: Cause) -> Result<()> {
        self.faults.sync(self.name, || self.inner.sync(cause))
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        let inner = self.inner.syncer()?;
        Some(Box::new(FaultySyncer { inner, name: self.name, faults: self.faults.clone() }))
    }
}

struct FaultySyncer {
    inner: Box<dyn SyncFile>,
    name: FileName,
    faults: Faults,
}

impl SyncFile for FaultySyncer {
    fn sync(&self, cause: Cause) -> Result<()> {
        self.faults.sync(self.name, || self.inner.sync(cause))
    }
}

struct FaultyRead {
    inner: Arc<dyn ReadFile>,
    faults: Faults,
}

impl ReadFile for FaultyRead {
    fn read_at(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<()> {
        let name = self.inner.name();
        match self.faults.plan.strike(Operation::Read, Some(name)) {
            None => self.inner.read_at(offset, into, cause),
            Some(Effect::FlippedBit) => {
                self.inner.read_at(offset, into, cause)?;
                if let Some(byte) = into.first_mut() {
                    *byte ^= 0x10;
                }
                Ok(())
            }
            Some(Effect::ShortRead) => Err(crate::past_end(name, offset, into.len(), offset)),
            Some(effect) => Err(planned(effect, Operation::Read, Some(name))),
        }
    }

    fn len(&self) -> Result<u64> {
        self.faults.run(Operation::Length, Some(self.inner.name()), || self.inner.len())
    }

    fn prefetch(&self, offset: u64, bytes: u64) {
        self.inner.prefetch(offset, bytes);
    }

    fn boundary(&self, offset: u64) -> u64 {
        self.inner.boundary(offset)
    }

    fn name(&self) -> FileName {
        self.inner.name()
    }
}

#[cfg(test)]
mod tests;
