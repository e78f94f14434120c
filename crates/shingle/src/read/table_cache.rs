//! The table cache: runs that readers hold open.
//!
//! Invariants:
//! - While any reader holds a run or its file, every other reader gets the same one: a run is read
//!   and decoded once, on its first read, and a file is opened once.
//! - The cache itself keeps nothing open: what no reader holds is closed.
//! - The memory that open runs need outside the block cache is counted, to the byte.

use base::{Cause, DatabaseId, FileId, KeyRange, Result, RunId};
use media::{FileName, FileStore, ReadFile};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use table::format::check_header;
use table::{BlockCache, Extent, Run, RunEnd, TablePlace};

/// Opens runs, each once, for as long as a reader holds them.
pub(crate) struct TableCache {
    store: Arc<dyn FileStore>,
    blocks: Arc<BlockCache>,
    database: DatabaseId,
    /// Memory that open runs, and run ends kept for later openings, hold outside the cache.
    open_bytes: AtomicU64,
    /// A newly written run stays open only while these bytes are below this number.
    written_bytes_max: u64,
    files: Mutex<Held<FileId, OpenFile>>,
    handles: Mutex<Held<RunId, RunHandle>>,
}

struct OpenFile {
    name: FileName,
    file: OnceLock<Arc<dyn ReadFile>>,
    /// It is the file that its name says: this process wrote it or read its header.
    is_itself: AtomicBool,
}

impl TableCache {
    pub(crate) fn new(
        store: Arc<dyn FileStore>,
        blocks: Arc<BlockCache>,
        database: DatabaseId,
        written_bytes_max: u64,
    ) -> TableCache {
        TableCache {
            store,
            blocks,
            database,
            open_bytes: AtomicU64::new(0),
            written_bytes_max,
            files: Mutex::default(),
            handles: Mutex::default(),
        }
    }

    /// The run, opened on its first read.
    pub(crate) fn handle(self: &Arc<Self>, run: &tree::Run) -> Arc<RunHandle> {
        let mut handles = self.handles.lock();
        if let Some(handle) = handles.get(run.id) {
            return handle;
        }
        let extent = Extent::of_run(run, self.database);
        let handle = self.new_handle(run.file.id, extent, None);
        handles.insert(run.id, &handle);
        handle
    }

    /// A run that was just written. While the handle lives, the first reader finds the run's end
    /// there. It need not read the end back, where that would need a device read or decoding of
    /// range tombstones.
    pub(crate) fn written(self: &Arc<Self>, file: FileId, end: RunEnd) -> Arc<RunHandle> {
        let place = TablePlace { database: self.database, file };
        let extent = Extent::of(end.summary(), place);
        let is_costly = !self.store.recalls_writes() || end.summary().run.range_deletes > 0;
        let keeps = is_costly && self.open_bytes() < self.written_bytes_max;
        let handle = self.new_handle(file, extent, keeps.then(|| Box::new(end)));
        handle.file.is_itself.store(true, Relaxed);
        self.handles.lock().insert(extent.run, &handle);
        handle
    }

    fn new_handle(
        self: &Arc<Self>,
        file: FileId,
        extent: Extent,
        end: Option<Box<RunEnd>>,
    ) -> Arc<RunHandle> {
        self.open_bytes.fetch_add(end_bytes(&end), Relaxed);
        Arc::new(RunHandle {
            cache: self.clone(),
            extent,
            file: self.file(file),
            end: Mutex::new(end),
            open: OnceLock::new(),
        })
    }

    fn file(&self, id: FileId) -> Arc<OpenFile> {
        let mut files = self.files.lock();
        if let Some(file) = files.get(id) {
            return file;
        }
        let file = Arc::new(OpenFile {
            name: FileName::table(id),
            file: OnceLock::new(),
            is_itself: AtomicBool::new(false),
        });
        files.insert(id, &file);
        file
    }

    /// Checks that a table's file is not another file under its name, which an append would cut or
    /// write over.
    pub(crate) fn check_itself(&self, id: FileId, cause: Cause) -> Result<()> {
        let known = self.file(id);
        if !known.is_itself.load(Relaxed) {
            let file = self.store.open(known.name, true)?;
            check_header(&*file, TablePlace { database: self.database, file: id }, cause)?;
            known.is_itself.store(true, Relaxed);
        }
        Ok(())
    }

    /// Memory that open runs hold outside the cache, in bytes.
    pub(crate) fn open_bytes(&self) -> u64 {
        self.open_bytes.load(Relaxed)
    }

    /// [`TableCache::open_bytes`] counted anew.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn recount_open_bytes(&self) -> u64 {
        let handles: Vec<_> =
            self.handles.lock().items.values().filter_map(Weak::upgrade).collect();
        handles.iter().map(|handle| handle.memory_bytes()).sum()
    }
}

/// Items that others hold, by number. Items that are no longer held are removed once they may be
/// half of all, so that the cost for each new item is low.
struct Held<K, V> {
    items: HashMap<K, Weak<V>>,
    forget_at: usize,
}

impl<K, V> Default for Held<K, V> {
    fn default() -> Held<K, V> {
        Held { items: HashMap::new(), forget_at: 64 }
    }
}

impl<K: Eq + Hash, V> Held<K, V> {
    fn get(&self, number: K) -> Option<Arc<V>> {
        self.items.get(&number)?.upgrade()
    }

    fn insert(&mut self, number: K, item: &Arc<V>) {
        if self.items.len() >= self.forget_at {
            self.items.retain(|_, item| item.strong_count() > 0);
            self.forget_at = 64.max(2 * self.items.len());
        }
        self.items.insert(number, Arc::downgrade(item));
    }
}

/// An index gives sizes in whole blocks. With this many blocks, 10 % of the run is known to within
/// a factor of about two.
const TELLING_BLOCKS_MIN: u64 = 16;

/// A run that can be opened.
pub(crate) struct RunHandle {
    cache: Arc<TableCache>,
    extent: Extent,
    file: Arc<OpenFile>,
    /// Kept from the writing of the run, for the first opening.
    end: Mutex<Option<Box<RunEnd>>>,
    open: OnceLock<Arc<Run>>,
}

fn end_bytes(end: &Option<Box<RunEnd>>) -> u64 {
    end.as_ref().map_or(0, |end| end.memory_bytes())
}

impl RunHandle {
    /// Memory that it holds outside the cache, in bytes.
    fn memory_bytes(&self) -> u64 {
        self.open.get().map_or(0, |run| run.memory_bytes()) + end_bytes(&self.end.lock())
    }

    /// The open run.
    #[inline]
    pub(crate) fn run(&self) -> Result<&Arc<Run>> {
        match self.open.get() {
            Some(run) => Ok(run),
            None => self.open_now(),
        }
    }

    /// The run, where it is open.
    #[inline]
    pub(crate) fn opened(&self) -> Option<&Arc<Run>> {
        self.open.get()
    }

    #[cold]
    fn open_now(&self) -> Result<&Arc<Run>> {
        let file = self.read_file()?.clone();
        let run = self.open_once(file, Cause::OpenRun)?;
        Ok(self.open.get_or_init(|| {
            self.cache.open_bytes.fetch_add(run.memory_bytes(), Relaxed);
            run
        }))
    }

    /// Opens the run by its end, if that was kept, which is possible once; otherwise by reading it.
    fn open_once(&self, file: Arc<dyn ReadFile>, cause: Cause) -> Result<Arc<Run>> {
        let end = self.end.lock().take();
        self.cache.open_bytes.fetch_sub(end_bytes(&end), Relaxed);
        let blocks = self.cache.blocks.clone();
        match end {
            Some(end) => Ok(Run::with_end(file, self.extent, blocks, *end)),
            None => Run::open(file, self.extent, blocks, cause),
        }
    }

    pub(crate) fn read_file(&self) -> Result<&Arc<dyn ReadFile>> {
        if let Some(file) = self.file.file.get() {
            return Ok(file);
        }
        let file = self.cache.store.open(self.file.name, false)?;
        Ok(self.file.file.get_or_init(|| file))
    }

    /// Its file, and its offset in the file.
    pub(crate) fn place(&self) -> (FileId, u64) {
        (self.file.name.id, self.extent.offset)
    }

    /// Opens the run again, with reads that bypass the page cache where the store can, and reads
    /// everything again.
    pub(crate) fn open_for_background(&self, cause: Cause) -> Result<Arc<Run>> {
        let file = self.cache.store.open(self.file.name, true)?;
        Run::open(file, self.extent, self.cache.blocks.clone(), cause)
    }

    /// The same for a rewrite, which does not read the end of an open run again. The run stays open
    /// where the rewrite needs only a part of it: the next rewrite needs another part.
    pub(crate) fn open_for_rewrite(&self, in_part: bool, cause: Cause) -> Result<Arc<Run>> {
        if in_part {
            self.run()?;
        }
        let file = self.cache.store.open(self.file.name, true)?;
        match self.open.get() {
            Some(open) => Ok(open.through(file)),
            None => self.open_once(file, cause),
        }
    }

    /// Bytes of the run inside `range`, by its index; `None` where it has too few blocks for an
    /// estimate.
    pub(crate) fn bytes_within(&self, range: &KeyRange) -> Result<Option<u64>> {
        let run = self.run()?;
        if run.summary().data_blocks < TELLING_BLOCKS_MIN {
            return Ok(None);
        }
        run.approximate_bytes(range, Cause::OpenRun).map(Some)
    }
}

impl fmt::Debug for RunHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run at {:?}", self.extent)
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        self.cache.open_bytes.fetch_sub(self.memory_bytes(), Relaxed);
    }
}
