//! The one door to bytes: a [`FileStore`] keeps named, append-only files. What a store may do
//! beyond that is in [`crate::capability`].
//!
//! Invariants that every store keeps, and the conformance suite checks:
//! - Bytes once appended never change; reads see every byte appended through this store.
//! - Nothing is durable before its own sync: file bytes and length after [`AppendFile::sync`], the
//!   existence of a name after [`FileStore::sync_names`]. Only [`FileStore::set_root`] is atomic
//!   and durable by itself.
//! - A file that was shared, and may be shared still, takes no more bytes from any opener.
//! - Every request is written to the [`Ledger`] with its cause where it is issued, once.

use crate::capability::{Capacity, ColdStore, DeviceMap, Notes, Sharing};
use crate::names::FileName;
use base::{Cause, Error, ErrorKind, Ledger, Result};
use std::any::Any;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// What the engine knows about a file before it writes it. Placement may use it; none is a promise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileHint {
    /// No more bytes than this are expected.
    pub bytes_max: Option<u64>,
    /// Files of one group will die together (a SEALDB set, a segment group).
    pub group: Option<u64>,
    /// Expected order of death: files of equal lifetime die at about the same time.
    pub lifetime: Option<u8>,
    /// No caller waits for these bytes: bypass the page cache where the store can.
    pub background: bool,
    /// Its bytes stay as they are, as far as one knows: it goes to the cold store, if there is one.
    pub is_cold: bool,
    /// Its readers take zeros behind the last byte for its end. The store may then tell the system
    /// a length ahead of the appends, so that a sync does not have to write a new length. Through
    /// this store the file has its exact length as long as the writer lives and after it was
    /// dropped; zeros remain when the process dies or power is lost.
    pub zeros_at_end: bool,
}

impl FileHint {
    /// Nothing is known.
    pub const NONE: FileHint = FileHint {
        bytes_max: None,
        group: None,
        lifetime: None,
        background: false,
        is_cold: false,
        zeros_at_end: false,
    };
}

/// A file being written. Dropping it leaves what was appended, synced or not.
pub trait AppendFile: Send {
    /// Appends all of `bytes`. After an error the length is unknown: abandon the file.
    fn append(&mut self, bytes: &[u8], cause: Cause) -> Result<()>;

    /// Lets the system begin to write what was appended, and does not wait for it. A caller that
    /// syncs many files begins with all of them, so that each sync finds most of its work done.
    /// Nothing is durable before [`AppendFile::sync`]; a store may do nothing. After an error the
    /// length is unknown: abandon the file.
    fn begin_sync(&mut self) -> Result<()> {
        Ok(())
    }

    /// Makes every appended byte, and the length, durable. After an error nothing may be assumed.
    fn sync(&mut self, cause: Cause) -> Result<()>;

    /// Bytes appended so far, those of an extended file included.
    fn len(&self) -> u64;

    /// Nothing was appended yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A second handle that can only sync, so that a group commit can sync while others append.
    /// `None` where the store cannot.
    fn syncer(&self) -> Option<Box<dyn SyncFile>>;
}

/// Makes appended bytes durable while another thread goes on appending.
pub trait SyncFile: Send + Sync {
    /// Makes every byte durable whose append returned before this call.
    fn sync(&self, cause: Cause) -> Result<()>;
}

/// A whole file as memory, for as long as it lives.
pub trait Mapping: Send + Sync {
    /// The bytes of the file. Fetch what was not used before.
    fn bytes(&self) -> &[u8];

    /// Brings `range` of the file into memory; what cannot be read is an error here, and may end
    /// the process later. Counted as a read.
    fn fetch(&self, range: Range<u64>, cause: Cause) -> Result<()>;
}

/// A part of a mapped file, which it keeps mapped.
#[derive(Clone)]
pub struct MappedBytes {
    mapping: Arc<dyn Mapping>,
    range: Range<usize>,
}

impl MappedBytes {
    /// The bytes of `range`, if the file has them.
    pub fn new(mapping: Arc<dyn Mapping>, range: Range<usize>) -> Option<MappedBytes> {
        mapping.bytes().get(range.clone())?;
        Some(MappedBytes { mapping, range })
    }
}

impl Deref for MappedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.mapping.bytes()[self.range.start..self.range.end]
    }
}

impl fmt::Debug for MappedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes {:?} of a mapped file", self.range)
    }
}

/// What page caches read at least, and most media.
const PAGE_BYTES: u64 = 4096;

/// A file being read. Reads of an appended file see what was appended before the read began.
#[expect(clippy::len_without_is_empty, reason = "the length is a question that can fail")]
pub trait ReadFile: Send + Sync {
    /// Fills `into` from byte `offset`. Reading past the end is a `Corruption` error that names the
    /// file, the offset, and how many bytes there are.
    fn read_at(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<()>;

    /// [`ReadFile::read_at`], unless the medium would be waited for. `false`: the bytes are not in
    /// memory, or the store cannot tell; `into` has no defined content then.
    fn read_from_memory(&self, _offset: u64, _into: &mut [u8], _cause: Cause) -> Result<bool> {
        Ok(false)
    }

    /// Bytes in the file now.
    fn len(&self) -> Result<u64>;

    /// Tells the store that `bytes` from `offset` will be read soon. May do nothing.
    fn prefetch(&self, offset: u64, bytes: u64);

    /// Where the unit of the medium ends that `offset` falls into or begins: what is read up to
    /// there leaves nothing of it to be read again.
    fn boundary(&self, offset: u64) -> u64 {
        offset.next_multiple_of(PAGE_BYTES)
    }

    /// The whole file as memory, where the store can and its options allow it. The file must not
    /// grow any more.
    fn map(&self) -> Option<Arc<dyn Mapping>> {
        None
    }

    /// The name, for errors.
    fn name(&self) -> FileName;
}

/// A file as a listing shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSummary {
    /// The name.
    pub name: FileName,
    /// Bytes in the file.
    pub bytes: u64,
}

/// Keeps other openers out for as long as it lives.
pub type StoreLock = Box<dyn Any + Send + Sync>;

/// Named, append-only files on some medium.
///
/// A store implements what has no default here: files, their names, the root and the lock. All else
/// is a capability, which a store has or has not: see [`crate::capability`]. A store that wraps
/// another one forwards each capability as a whole, or puts its own in its place.
pub trait FileStore: Send + Sync {
    /// Where this store writes what it issues.
    fn ledger(&self) -> &Arc<Ledger>;

    /// A name for people: a path, or what stands in its place.
    fn describe(&self) -> String;

    /// A new, empty file. `AlreadyExists` if there is one of that name.
    fn create(&self, name: FileName, hint: &FileHint) -> Result<Box<dyn AppendFile>>;

    /// Goes on appending to an existing file at byte `at`; bytes from `at` on, left by a crash, go.
    /// `Shared`, and no change, if another directory shares the file: begin a new one.
    fn extend(&self, name: FileName, at: u64, hint: &FileHint) -> Result<Box<dyn AppendFile>>;

    /// Opens a file for reading. `background`: bypass the page cache where the store can.
    fn open(&self, name: FileName, background: bool) -> Result<Arc<dyn ReadFile>>;

    /// Removes a file. Open handles stay readable. `NotFound` if there is none.
    fn remove(&self, name: FileName) -> Result<()>;

    /// Every file of ours. Names that are not ours are not listed and never touched.
    fn list(&self) -> Result<Vec<FileSummary>>;

    /// Makes creations and removals so far durable.
    fn sync_names(&self) -> Result<()>;

    /// The root: a few bytes that say where everything begins. `None` where there is no database.
    fn root(&self) -> Result<Option<Vec<u8>>>;

    /// Replaces the root, atomically and durably, names created so far included.
    fn set_root(&self, root: &[u8]) -> Result<()>;

    /// Keeps every other opener out, of this process and of others, until the lock is dropped.
    /// `Locked`, with the name of the holder as far as it is known, if it is held.
    fn lock(&self) -> Result<StoreLock>;

    /// Keeps writers out until the lock is dropped, and lets other readers in; writes nothing. As
    /// long as one lives, [`FileStore::lock`] is `Locked`, and the other way round. A store that
    /// cannot tell readers from writers lets one of either in.
    fn lock_shared(&self) -> Result<StoreLock> {
        self.lock()
    }

    /// Recent writes are read back from memory as far as memory allows, for example from the
    /// system's page cache.
    fn recalls_writes(&self) -> bool {
        false
    }

    /// How many files a job may have complete, but not durable yet, to sync them one right after
    /// another. Where a sync makes more than one file durable, as the commit of a journal does, the
    /// later ones find theirs done. The files stay open meanwhile.
    fn files_synced_together(&self) -> usize {
        1
    }

    /// Keeps small texts beside the files.
    fn notes(&self) -> Option<&dyn Notes> {
        None
    }

    /// Knows its space, and may keep some of it free.
    fn capacity(&self) -> Option<&dyn Capacity> {
        None
    }

    /// Knows where files lie on a device.
    fn device_map(&self) -> Option<&dyn DeviceMap> {
        None
    }

    /// Its files are in a directory, and other directories can share them.
    fn sharing(&self) -> Option<&dyn Sharing> {
        None
    }

    /// Has a second store for cold files.
    fn cold_store(&self) -> Option<&dyn ColdStore> {
        None
    }
}

/// The error of a call that needs a capability, `what`, that `store` has not.
pub fn lacks(store: &dyn FileStore, what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{} has no {what}", store.describe()))
}

/// The error of a read that asks for more than the file has.
pub(crate) fn past_end(name: FileName, offset: u64, wanted: usize, bytes: u64) -> Error {
    let message = format!("read of {wanted} bytes past the end: the file has {bytes} bytes");
    Error::corruption(name.to_string(), offset, message)
}
