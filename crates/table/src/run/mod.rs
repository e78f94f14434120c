//! Reads a run: opened with one or two reads, or none, its blocks through the cache.
//!
//! The top index, the range tombstones, the summary and the filter of a small run stay in memory
//! while the run is open. A lookup touches at most one filter block, one index block and one data
//! block; from the first one on, filters and index are in memory as [fences](fences), within a part
//! of the cache's budget.

mod end;
mod extent;
mod fences;
mod iter;
mod many;
mod mapped;
mod ranges;
mod verify;
mod window;

pub use end::RunEnd;
pub use extent::Extent;
pub(crate) use extent::SORTED_RUN;
pub use iter::{IterOptions, RunIter};
pub use many::Probe;
pub use ranges::Boundary;

use crate::block::{Block, Kept, Malformed};
use crate::bytes::Bytes;
use crate::cache::{BlockCache, Cached};
use crate::filter::{FilterBlock, prefix_hash};
use crate::format::{Footer, Handle};
use crate::frame;
use crate::options::Compression;
use crate::piece::BlockKind;
use crate::range_delete::RangeDeletes;
use crate::summary::RunSummary;
use base::key::{split_internal_key, trailer, trailer_kind, trailer_sequence};
use base::{Cause, EntryKind, Error, Result, SequenceNumber};
use fences::{Fences, Place};
use mapped::Mapped;
use media::ReadFile;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

/// What a lookup finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its sequence number.
    pub sequence: SequenceNumber,
    /// What it says about the key.
    pub kind: EntryKind,
    /// Its value.
    pub value: Bytes,
}

/// The run in place, where its file is mapped and its blocks are stored as they are used.
fn mapping(file: &dyn ReadFile, footer: &Footer, summary: &RunSummary) -> Option<Mapped> {
    let is_raw = summary.options.compression == Compression::None;
    let (data, end) = (footer.start..footer.data_end, footer.start + footer.bytes);
    if is_raw { Mapped::new(file, data, end, summary.options.block_bytes) } else { None }
}

/// An open run.
pub struct Run {
    file: Arc<dyn ReadFile>,
    extent: Extent,
    cache: Arc<BlockCache>,
    owner: u64,
    footer: Footer,
    top: Arc<Block>,
    /// The one filter of a small run, where it came with the run's end and is not read in place.
    filter: Option<Arc<FilterBlock>>,
    /// From the first lookup on; inside `None`: there are none, and lookups go through the cache.
    fences: OnceLock<Option<Arc<Fences>>>,
    tombstones: Arc<RangeDeletes>,
    summary: RunSummary,
    mapped: Option<Mapped>,
}

impl Run {
    /// Opens the run at `extent` of `file`. Reads its end, and once more if that was too little.
    pub fn open(
        file: Arc<dyn ReadFile>,
        extent: Extent,
        cache: Arc<BlockCache>,
        cause: Cause,
    ) -> Result<Arc<Run>> {
        let mut mapped = None;
        let keeps_filter = |footer: &Footer, summary: &RunSummary| {
            // Entries that are stamped as they are read cannot be read in place.
            mapped = extent.sequence.map_or_else(|| mapping(&*file, footer, summary), |_| None);
            mapped.is_none()
        };
        let end = RunEnd::read(&*file, extent, keeps_filter, cause)?;
        Ok(Run::assemble(file, extent, cache, end, mapped))
    }

    /// Opens the run at `extent` of `file`, whose end is known. Reads nothing, and never in place.
    pub fn with_end(
        file: Arc<dyn ReadFile>,
        extent: Extent,
        cache: Arc<BlockCache>,
        end: RunEnd,
    ) -> Arc<Run> {
        Run::assemble(file, extent, cache, end, None)
    }

    fn assemble(
        file: Arc<dyn ReadFile>,
        extent: Extent,
        cache: Arc<BlockCache>,
        end: RunEnd,
        mapped: Option<Mapped>,
    ) -> Arc<Run> {
        let RunEnd { footer, top, filter, tombstones, summary } = end;
        let owner = cache.new_owner();
        Arc::new(Run {
            file,
            extent,
            cache,
            owner,
            footer,
            top,
            filter,
            fences: OnceLock::new(),
            tombstones,
            summary,
            mapped,
        })
    }

    /// The same run through another opening of its file: nothing is read for it, and both know the
    /// same cached blocks. Never in place.
    pub fn through(&self, file: Arc<dyn ReadFile>) -> Arc<Run> {
        Arc::new(Run {
            file,
            extent: self.extent,
            cache: self.cache.clone(),
            owner: self.owner,
            footer: self.footer,
            top: self.top.clone(),
            filter: self.filter.clone(),
            fences: self.fences.clone(),
            tombstones: self.tombstones.clone(),
            summary: self.summary.clone(),
            mapped: None,
        })
    }

    /// What is known of the run as a whole.
    pub fn summary(&self) -> &RunSummary {
        &self.summary
    }

    /// Where it lies.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Its range tombstones.
    #[inline]
    pub fn range_deletes(&self) -> &Arc<RangeDeletes> {
        &self.tombstones
    }

    /// Bytes that it takes in memory while it is open. What is in the budget of the cache, blocks
    /// and pinned filters, is not counted.
    pub fn memory_bytes(&self) -> u64 {
        let keys = self.summary.smallest.len() + self.summary.largest.len();
        let slots = self.mapped.as_ref().map_or(0, Mapped::memory_bytes);
        let filter = self.filter.as_ref().map_or(0, |filter| filter.memory_bytes());
        let pinned = self.top.memory_bytes() + self.tombstones.memory_bytes() + filter;
        (size_of::<Run>() + pinned + 2 * keys + slots) as u64
    }

    /// The newest version of `user_key` at or before `snapshot`; point entries alone, range
    /// tombstones are the caller's to look at. `hash` is `base::checksum::hash64(user_key)`. Does
    /// not allocate when the blocks are cached.
    pub fn get(
        &self,
        user_key: &[u8],
        hash: u64,
        snapshot: SequenceNumber,
        cause: Cause,
    ) -> Result<Option<Entry>> {
        let search = trailer(snapshot, EntryKind::SEARCH);
        let sought = Sought { user_key, search, hash };
        match self.place(user_key, hash, cause) {
            Place::Absent => return Ok(None),
            Place::Block(data) => return self.entry_in(data, &sought, cause),
            Place::From(data) => {
                if let Some(entry) = self.entry_in(data, &sought, cause)? {
                    return Ok(Some(entry));
                }
            }
            Place::Unknown => {}
        }
        match self.data_of(&sought, cause)? {
            None => Ok(None),
            Some(data) => self.entry_in(data, &sought, cause),
        }
    }

    /// Prefetches what [`Run::get`] reads first, without waiting for it. For several runs in a row,
    /// so that they are fetched at once.
    #[inline]
    pub fn prefetch(&self, user_key: &[u8], hash: u64) {
        if let Some(Some(fences)) = self.fences.get() {
            fences.prefetch(user_key, hash);
        }
    }

    /// Where `user_key` can be, whose hash is `hash`.
    #[inline]
    fn place(&self, user_key: &[u8], hash: u64, cause: Cause) -> Place {
        if self.filter.as_ref().is_some_and(|filter| !filter.may_contain(hash)) {
            return Place::Absent;
        }
        let fences = match self.fences.get() {
            Some(fences) => fences.as_deref(),
            None => self.load_fences(cause),
        };
        fences.map_or(Place::Unknown, |it| it.place(user_key, hash, self.footer.start))
    }

    #[cold]
    fn load_fences(&self, cause: Cause) -> Option<&Fences> {
        let source = fences::Source {
            file: &*self.file,
            place: self.extent.place(),
            footer: &self.footer,
            top: &self.top,
            summary: &self.summary,
            has_filter: self.filter.is_some(),
        };
        let bytes_max = source.memory_bytes_max().filter(|_| self.mapped.is_none());
        let Some(bytes_max) = bytes_max else {
            return self.fences.get_or_init(|| None).as_deref();
        };
        // Where no more may be pinned now, the next lookup tries again.
        let pinned = self.cache.pin(bytes_max)?;
        // What cannot be read is left to the cache, which reports the block that is damaged.
        let fences = source.read(pinned, cause);
        self.fences.get_or_init(|| fences.map(Arc::new)).as_deref()
    }

    /// The entry that is sought, in the data block `data`.
    #[inline]
    fn entry_in(&self, data: Handle, sought: &Sought<'_>, cause: Cause) -> Result<Option<Entry>> {
        if let Some(raw) = self.in_place(BlockKind::Data, data, cause)? {
            let block = Block::parse(raw).map_err(|m| self.malformed(data, m))?;
            return self.entry(&block, data, sought, |value| Bytes::from(&raw[value]));
        }
        let block = self.cached_block(BlockKind::Data, data, true, cause)?;
        self.entry(&block, data, sought, |value| Bytes::shared(block.clone(), value))
    }

    /// The data block that a search key falls into, by the index; `None` when it is after every
    /// entry, or the filter denies the hash.
    fn data_of(&self, sought: &Sought<'_>, cause: Cause) -> Result<Option<Handle>> {
        let &Sought { user_key, search, hash } = sought;
        let Some(partition) = self.partition(user_key, search)? else { return Ok(None) };
        if let Some(filter) = partition.filter
            && !self.admits(filter, hash, cause)?
        {
            return Ok(None);
        }
        match partition.index {
            None => Ok(Some(partition.data)),
            Some(handle) => self.data_handle(handle, user_key, search, cause),
        }
    }

    /// The data block that a search key falls into, by the index block at `handle`.
    #[inline]
    fn data_handle(
        &self,
        handle: Handle,
        user_key: &[u8],
        search: u64,
        cause: Cause,
    ) -> Result<Option<Handle>> {
        if let Some(raw) = self.in_place(BlockKind::Index, handle, cause)? {
            let index = Block::parse(raw).map_err(|m| self.malformed(handle, m))?;
            return self.indexed(&index, handle, user_key, search);
        }
        let index = self.cached_block(BlockKind::Index, handle, true, cause)?;
        self.indexed(&index, handle, user_key, search)
    }

    fn indexed<B: Deref<Target = [u8]>>(
        &self,
        index: &Block<B>,
        from: Handle,
        user_key: &[u8],
        search: u64,
    ) -> Result<Option<Handle>> {
        let found = index.search(user_key, search).map_err(|m| self.malformed(from, m))?;
        let Some(found) = found else { return Ok(None) };
        let (data, _) = self.handle(&index.bytes()[found.value()], from, BlockKind::Data)?;
        Ok(Some(data))
    }

    /// The entry that is sought, in the data block at `from`; `value` makes its value of a range of
    /// the block.
    fn entry<B: Deref<Target = [u8]>>(
        &self,
        block: &Block<B>,
        from: Handle,
        sought: &Sought<'_>,
        value: impl FnOnce(Range<usize>) -> Bytes,
    ) -> Result<Option<Entry>> {
        let &Sought { user_key, search, hash } = sought;
        let found =
            block.search_point(user_key, search, hash).map_err(|m| self.malformed(from, m))?;
        let Some(found) = found.filter(|found| found.same_key) else { return Ok(None) };
        let Some(kind) = trailer_kind(found.trailer) else {
            return Err(self.malformed(from, Malformed("an entry of an unknown kind")));
        };
        let value = value(found.value());
        Ok(Some(Entry { sequence: trailer_sequence(found.trailer), kind, value }))
    }

    /// The filter at `handle` admits `hash`.
    #[inline]
    fn admits(&self, handle: Handle, hash: u64, cause: Cause) -> Result<bool> {
        if let Some(raw) = self.in_place(BlockKind::Filter, handle, cause)? {
            let filter = FilterBlock::new(raw).ok_or_else(|| self.unknown_filter(handle))?;
            return Ok(filter.may_contain(hash));
        }
        Ok(self.filter(handle, cause)?.may_contain(hash))
    }

    #[cold]
    fn unknown_filter(&self, handle: Handle) -> Error {
        self.malformed(handle, Malformed("a filter of an unknown shape"))
    }

    /// False: no point entry has a key that starts with `prefix`. True without a filter, or when
    /// the run's prefix rule says nothing about `prefix`.
    pub fn may_contain_prefix(&self, prefix: &[u8], cause: Cause) -> Result<bool> {
        let Some(ruled) = self.summary.options.prefix.prefix(prefix) else { return Ok(true) };
        let hash = prefix_hash(ruled);
        let mut cursor = crate::cursor::Cursor::new(self.top.clone());
        let malformed = |m| self.malformed(self.footer.top, m);
        let first = base::key::internal_key(prefix, base::key::SEQUENCE_MAX, EntryKind::SEARCH);
        cursor.seek(&first).map_err(malformed)?;
        while cursor.valid() {
            let filter = match self.footer.index_levels {
                1 => self.footer.filter,
                _ => self.handle(cursor.value(), self.footer.top, BlockKind::Index)?.1,
            };
            let Some(filter) = filter else { return Ok(true) };
            if self.admits(filter, hash, cause)? {
                return Ok(true);
            }
            // Keys with the prefix may go on in the next partition only if this one ends inside.
            let inside =
                split_internal_key(cursor.key()).is_some_and(|(k, _)| k.starts_with(prefix));
            if self.footer.index_levels == 1 || !inside {
                return Ok(false);
            }
            cursor.next().map_err(malformed)?;
        }
        Ok(false)
    }

    /// Where to look for a search key; `None` when it is after every entry.
    fn partition(&self, user_key: &[u8], trailer: u64) -> Result<Option<Partition>> {
        let top = self.footer.top;
        let found = self.top.search(user_key, trailer).map_err(|m| self.malformed(top, m))?;
        let Some(found) = found else { return Ok(None) };
        let value = &self.top.bytes()[found.value()];
        if self.footer.index_levels == 1 {
            let (data, _) = self.handle(value, top, BlockKind::Data)?;
            return Ok(Some(Partition { index: None, data, filter: self.footer.filter }));
        }
        let (index, filter) = self.handle(value, top, BlockKind::Index)?;
        Ok(Some(Partition { index: Some(index), data: Handle::default(), filter }))
    }

    /// Reads the handle of a `kind` block, and of a filter if one follows, out of an index entry of
    /// the block at `from`.
    #[inline]
    fn handle(
        &self,
        value: &[u8],
        from: Handle,
        kind: BlockKind,
    ) -> Result<(Handle, Option<Handle>)> {
        self.footer
            .handles(value, kind)
            .ok_or_else(|| self.malformed(from, Malformed("an index entry points out of its run")))
    }

    /// A block in its place, from the cache, or read and, if `fill`, cached.
    #[inline]
    fn block(
        &self,
        kind: BlockKind,
        handle: Handle,
        fill: bool,
        cause: Cause,
    ) -> Result<Block<Kept>> {
        if let Some(bytes) = self.in_place_to_keep(kind, handle, cause)? {
            let block = Block::parse(Kept::Mapped(bytes));
            return block.map_err(|malformed| self.malformed(handle, malformed));
        }
        self.cached_block(kind, handle, fill, cause).map(Block::from)
    }

    /// A block from the cache, or read and, if `fill`, cached.
    #[inline]
    fn cached_block(
        &self,
        kind: BlockKind,
        handle: Handle,
        fill: bool,
        cause: Cause,
    ) -> Result<Arc<Block>> {
        if let Some(Cached::Block(block)) = self.cache.get(self.owner, handle.offset, kind) {
            return Ok(block);
        }
        let block = self.parse_block(kind, handle, self.read(kind, handle, cause)?)?;
        if fill {
            self.cache.insert(self.owner, handle.offset, Cached::Block(block.clone()));
        }
        Ok(block)
    }

    /// A block that is in the cache.
    fn cached(&self, kind: BlockKind, handle: Handle) -> Option<Arc<Block>> {
        match self.cache.get(self.owner, handle.offset, kind) {
            Some(Cached::Block(block)) => Some(block),
            _ => None,
        }
    }

    /// The data block that begins at `offset` is in the cache.
    fn is_cached(&self, offset: u64) -> bool {
        self.cache.get(self.owner, offset, BlockKind::Data).is_some()
    }

    /// Puts a block into the cache.
    fn keep(&self, handle: Handle, block: &Arc<Block>) {
        self.cache.insert(self.owner, handle.offset, Cached::Block(block.clone()));
    }

    /// A block as readers see it: entries of a sorted file get their sequence number here.
    fn parse_block(&self, kind: BlockKind, handle: Handle, raw: Vec<u8>) -> Result<Arc<Block>> {
        let parsed = Block::new(raw).and_then(|mut block| {
            if let (BlockKind::Data, Some(sequence)) = (kind, self.extent.sequence) {
                block.stamp(sequence)?;
            }
            Ok(Arc::new(block))
        });
        parsed.map_err(|malformed| self.malformed(handle, malformed))
    }

    #[inline]
    fn filter(&self, handle: Handle, cause: Cause) -> Result<Arc<FilterBlock>> {
        if let Some(filter) = &self.filter {
            return Ok(filter.clone());
        }
        let kind = BlockKind::Filter;
        if let Some(Cached::Filter(filter)) = self.cache.get(self.owner, handle.offset, kind) {
            return Ok(filter);
        }
        let filter = FilterBlock::new(self.read(kind, handle, cause)?)
            .map(Arc::new)
            .ok_or_else(|| self.unknown_filter(handle))?;
        self.cache.insert(self.owner, handle.offset, Cached::Filter(filter.clone()));
        Ok(filter)
    }

    /// Reads a block and takes its frame off.
    #[cold]
    fn read(&self, kind: BlockKind, handle: Handle, cause: Cause) -> Result<Vec<u8>> {
        let mut frame = vec![0; handle.bytes as usize + kind.trailer_bytes()];
        self.file.read_at(handle.offset, &mut frame, cause)?;
        frame::open(kind, frame, self.extent.place(), handle.offset)
            .map_err(|what| self.damage(handle.offset, what))
    }

    #[cold]
    fn damage(&self, offset: u64, what: String) -> Error {
        let what = format!("run {}: {what}", self.extent.run);
        Error::corruption(self.file.name().to_string(), offset, what)
    }

    #[cold]
    fn malformed(&self, handle: Handle, Malformed(what): Malformed) -> Error {
        self.damage(handle.offset, what.into())
    }
}

/// A search key, and the hash of its user key.
struct Sought<'a> {
    user_key: &'a [u8],
    search: u64,
    hash: u64,
}

/// The part of the index that a search key falls into.
struct Partition {
    /// Its index block; `None` when the top index points at data.
    index: Option<Handle>,
    /// The data block, when the top index points at data.
    data: Handle,
    filter: Option<Handle>,
}
