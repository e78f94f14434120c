//! A block of sorted entries as it is in memory, and the search for one entry in it.
//!
//! A block is its entries, the restart array, optionally a hash index, and a count:
//!
//! ```text
//! entry    varints: shared, unshared, value bytes; then unshared key bytes, trailer (8), value
//! restarts u32 for each restart: where an entry begins that stores its user key whole
//! buckets  one byte each: the restart after which a key of this hash may stand; then u16 count
//! count    u32: restarts; the top bit says that there are buckets
//! ```
//!
//! `shared` counts bytes of the previous *user* key; trailers are always stored whole. A block that
//! passed [`Block::new`] can be searched without panics whatever its entries hold: every length is
//! checked where it is used.

use base::SequenceNumber;
use base::coding::varint;
use base::key::{TRAILER_BYTES, common_prefix, compare_user};
use base::prefetch::{LINE_BYTES, prefetch};
use media::MappedBytes;
use std::cmp::Ordering;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Bucket value: keys of several restarts share it.
pub(crate) const BUCKET_SHARED: u8 = 254;
/// Bucket value: no key has it.
pub(crate) const BUCKET_EMPTY: u8 = 255;
/// A block with more restarts than this has no hash index.
pub(crate) const HASH_RESTARTS_MAX: usize = 253;

const COUNT_BYTES: usize = 4;
/// The entries of one restart that are fetched before they are walked.
const WARM_BYTES_MAX: usize = 4 << 10;
const BUCKETS_FLAG: u32 = 1 << 31;

/// What is wrong with a block whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// Where the bytes of a block are that a cursor stands in.
#[derive(Debug)]
pub(crate) enum Kept {
    /// Nowhere: it has none.
    Nothing,
    /// In a block of its own, shared with the cache.
    Shared(Arc<Block>),
    /// In a mapped file.
    Mapped(MappedBytes),
}

impl Deref for Kept {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Kept::Nothing => &[],
            Kept::Shared(block) => &block.bytes,
            Kept::Mapped(bytes) => bytes,
        }
    }
}

/// A block of entries.
#[derive(Debug)]
pub struct Block<B = Vec<u8>> {
    bytes: B,
    entries_end: usize,
    restarts: usize,
    buckets: Range<usize>,
}

/// The first entry at or after a search key.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Its user key is the one that was sought.
    pub same_key: bool,
    /// Its trailer.
    pub trailer: u64,
    /// Where it begins.
    pub at: usize,
    /// Its lengths. What its user key shares with the key before, it shares with the sought key.
    pub head: EntryHead,
}

impl Found {
    /// Its value, in the bytes of the block.
    #[inline]
    pub fn value(&self) -> Range<usize> {
        self.head.value_start..self.head.end
    }
}

/// The lengths at the start of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryHead {
    /// Bytes of user key shared with the previous entry.
    pub shared: usize,
    /// Where the rest of the user key begins; the trailer follows it.
    pub key_start: usize,
    /// Where the trailer begins.
    pub trailer_start: usize,
    /// Where the value begins; the trailer ends here.
    pub value_start: usize,
    /// Where the value and the entry end.
    pub end: usize,
}

impl Block {
    /// Takes the bytes of a block, and checks its restart array.
    pub fn new(bytes: Vec<u8>) -> Result<Block, Malformed> {
        let block = Block::parse(bytes)?;
        block.check_restarts()?;
        Ok(block)
    }

    /// Bytes that it takes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + size_of::<Block>()
    }

    /// Gives every entry the sequence number `sequence`. The kinds of the entries stay.
    pub(crate) fn stamp(&mut self, sequence: SequenceNumber) -> Result<(), Malformed> {
        let mut at = 0;
        while at < self.entries_end {
            let head = self.head(at)?;
            let kind = self.trailer(&head) & 0xff;
            let stamped = (sequence << 8 | kind).to_le_bytes();
            self.bytes[head.trailer_start..head.value_start].copy_from_slice(&stamped);
            at = head.end;
        }
        Ok(())
    }
}

impl Block<Kept> {
    /// A block without entries.
    pub fn nothing() -> Block<Kept> {
        Block { bytes: Kept::Nothing, entries_end: 0, restarts: 0, buckets: 0..0 }
    }

    /// Where its bytes are.
    pub(crate) fn kept(&self) -> &Kept {
        &self.bytes
    }
}

impl From<Arc<Block>> for Block<Kept> {
    #[inline]
    fn from(block: Arc<Block>) -> Block<Kept> {
        let &Block { entries_end, restarts, ref buckets, .. } = &*block;
        let buckets = buckets.clone();
        Block { bytes: Kept::Shared(block), entries_end, restarts, buckets }
    }
}

impl<B: Deref<Target = [u8]>> Block<B> {
    /// Takes the bytes of a block whose restarts were checked before, or need not be: searches in
    /// any bytes end, with an error where these make no sense.
    #[inline]
    pub fn parse(bytes: B) -> Result<Block<B>, Malformed> {
        let too_short = Malformed("a block too short for its arrays");
        let (rest, count) = bytes.split_last_chunk::<COUNT_BYTES>().ok_or(too_short)?;
        let count = u32::from_le_bytes(*count);
        let restarts = (count & !BUCKETS_FLAG) as usize;
        let mut arrays_end = rest.len();
        let mut buckets = 0..0;
        if count & BUCKETS_FLAG != 0 {
            let (rest, length) = rest.split_last_chunk::<2>().ok_or(too_short)?;
            let length = usize::from(u16::from_le_bytes(*length));
            let start = rest.len().checked_sub(length).ok_or(too_short)?;
            buckets = start..rest.len();
            arrays_end = start;
        }
        let array_bytes = restarts.checked_mul(4).ok_or(too_short)?;
        let entries_end = arrays_end.checked_sub(array_bytes).ok_or(too_short)?;
        Ok(Block { bytes, entries_end, restarts, buckets })
    }

    /// Restarts ascend from the first entry and lie inside.
    pub fn check_restarts(&self) -> Result<(), Malformed> {
        if (self.restarts == 0) != (self.entries_end == 0) {
            return Err(Malformed("a block with entries but no restarts, or the reverse"));
        }
        let mut previous = None;
        for index in 0..self.restarts {
            let at = self.restart(index);
            let ascending = previous.map_or(at == 0, |previous| at > previous);
            if !ascending || at >= self.entries_end {
                return Err(Malformed("restarts out of order or out of the block"));
            }
            previous = Some(at);
        }
        Ok(())
    }

    /// The same block, with its bytes found once: those of a mapped file take a call to reach.
    #[inline]
    pub(crate) fn borrowed(&self) -> Block<&[u8]> {
        let &Block { ref bytes, entries_end, restarts, ref buckets } = self;
        Block { bytes, entries_end, restarts, buckets: buckets.clone() }
    }

    /// All bytes of the block; the ranges of values are ranges of these.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many restarts it has; at least one if it has entries.
    pub(crate) fn restarts(&self) -> usize {
        self.restarts
    }

    /// Where the entries end.
    pub(crate) fn entries_end(&self) -> usize {
        self.entries_end
    }

    /// Where restart `index` begins.
    #[inline]
    pub(crate) fn restart(&self, index: usize) -> usize {
        let at = self.entries_end + 4 * index;
        let word = self.bytes[at..].first_chunk::<4>().copied().unwrap_or_default();
        u32::from_le_bytes(word) as usize
    }

    /// The lengths of the entry at `at`, all inside the entries.
    #[inline]
    pub(crate) fn head(&self, at: usize) -> Result<EntryHead, Malformed> {
        head(self.entries(), at)
    }

    /// The bytes of the entries.
    #[inline]
    pub(crate) fn entries(&self) -> &[u8] {
        &self.bytes[..self.entries_end]
    }

    /// The trailer of an entry.
    #[inline]
    pub(crate) fn trailer(&self, head: &EntryHead) -> u64 {
        let bytes = self.bytes[head.trailer_start..].first_chunk::<TRAILER_BYTES>();
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// The part of an entry's user key that it stores.
    #[inline]
    pub(crate) fn unshared(&self, head: &EntryHead) -> &[u8] {
        &self.bytes[head.key_start..head.trailer_start]
    }

    /// The last restart whose key is before the search key, or the first restart.
    #[inline]
    pub(crate) fn restart_before(&self, user_key: &[u8], trailer: u64) -> Result<usize, Malformed> {
        let (mut low, mut high) = (0, self.restarts);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let head = self.head(self.restart(middle))?;
            if head.shared != 0 {
                return Err(Malformed("a restart that does not store its key whole"));
            }
            let order = compare_user(self.unshared(&head), user_key)
                .then_with(|| trailer.cmp(&self.trailer(&head)));
            if order.is_lt() {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// The first entry at or after the search key. Neither allocates nor rebuilds keys.
    #[inline]
    pub(crate) fn search(&self, user_key: &[u8], trailer: u64) -> Result<Option<Found>, Malformed> {
        if self.restarts == 0 {
            return Ok(None);
        }
        let restart = self.restart_before(user_key, trailer)?;
        self.scan(restart, user_key, trailer)
    }

    /// The newest entry of `user_key` at or after the search key, by the hash index where there is
    /// one. Gives `None` or an entry of another key when there is none.
    #[inline]
    pub(crate) fn search_point(
        &self,
        user_key: &[u8],
        trailer: u64,
        hash: u64,
    ) -> Result<Option<Found>, Malformed> {
        if self.buckets.is_empty() {
            return self.search(user_key, trailer);
        }
        let bucket = bucket_of(hash, self.buckets.len());
        match self.bytes[self.buckets.start + bucket] {
            BUCKET_EMPTY => Ok(None),
            BUCKET_SHARED => self.search(user_key, trailer),
            restart if usize::from(restart) < self.restarts => {
                self.scan(usize::from(restart), user_key, trailer)
            }
            _ => Err(Malformed("a hash bucket names a restart that is not there")),
        }
    }

    /// Walks from restart `restart` to the first entry at or after the search key.
    ///
    /// All entries passed are before the search key, so it is enough to know how many bytes of the
    /// sought user key the last one matched: an entry that shares more with its predecessor is on
    /// the same side of the search key, and one that shares less or as much is compared from there.
    fn scan(
        &self,
        restart: usize,
        user_key: &[u8],
        trailer: u64,
    ) -> Result<Option<Found>, Malformed> {
        let mut at = self.restart(restart);
        self.warm(at, restart + 1);
        let mut matched = 0;
        while at < self.entries_end {
            let head = self.head(at)?;
            if head.shared <= matched {
                let (order, common) = compare(self.unshared(&head), &user_key[head.shared..]);
                let found = self.trailer(&head);
                if order.then_with(|| trailer.cmp(&found)).is_ge() {
                    let same_key = order.is_eq();
                    return Ok(Some(Found { same_key, trailer: found, at, head }));
                }
                matched = head.shared + common;
            }
            at = head.end;
        }
        Ok(None)
    }

    /// Prefetches the entries from `at` to restart `until` into the processor's caches.
    ///
    /// Where an entry begins is known only when the one before it has arrived, so that a walk waits
    /// for memory once per entry; these loads depend on nothing and run in parallel. Entries so
    /// large that most lines of the cache are inside their values are not worth it.
    #[inline]
    fn warm(&self, at: usize, until: usize) {
        let end = if until < self.restarts { self.restart(until) } else { self.entries_end };
        let Some(ahead) = self.bytes.get(at..end) else { return };
        if ahead.len() <= WARM_BYTES_MAX {
            ahead.iter().step_by(LINE_BYTES).for_each(prefetch);
        }
    }
}

/// The order of two strings and how many bytes they have in common at their start.
#[inline]
fn compare(a: &[u8], b: &[u8]) -> (Ordering, usize) {
    // The part of a key that is stored nearly always differs in its first byte.
    if let (Some(x), Some(y)) = (a.first(), b.first())
        && x != y
    {
        return (x.cmp(y), 0);
    }
    let common = common_prefix(a, b);
    // Where one ends, `None` is less than any byte.
    (a.get(common).cmp(&b.get(common)), common)
}

/// The lengths of the entry at `at` of `entries`, all inside.
#[inline]
pub(crate) fn head(entries: &[u8], at: usize) -> Result<EntryHead, Malformed> {
    let (shared, unshared, value_bytes, key_start) = lengths(entries, at)?;
    let trailer_start = key_start.saturating_add(unshared);
    let value_start = trailer_start.saturating_add(TRAILER_BYTES);
    let end = value_start.saturating_add(value_bytes);
    if end > entries.len() {
        return Err(Malformed("an entry reaches over the end of its block"));
    }
    Ok(EntryHead { shared, key_start, trailer_start, value_start, end })
}

/// The lengths of the entry at `at`: shared, unshared, value bytes, and where its key begins.
#[inline]
fn lengths(bytes: &[u8], at: usize) -> Result<(usize, usize, usize, usize), Malformed> {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(word) = rest.first_chunk::<4>() {
        let word = u32::from_le_bytes(*word) as usize;
        if word & 0x80_8080 == 0 {
            return Ok((word & 0x7f, (word >> 8) & 0x7f, (word >> 16) & 0x7f, at + 3));
        }
    }
    long_lengths(rest, at).ok_or(Malformed("an entry with broken lengths"))
}

fn long_lengths(rest: &[u8], at: usize) -> Option<(usize, usize, usize, usize)> {
    let (shared, a) = varint(rest)?;
    let (unshared, b) = varint(&rest[a..])?;
    let (value, c) = varint(&rest[a + b..])?;
    let length = |n: u64| u32::try_from(n).ok().map(|n| n as usize);
    Some((length(shared)?, length(unshared)?, length(value)?, at + a + b + c))
}

/// The bucket of `hash` among `count`.
#[inline]
pub(crate) fn bucket_of(hash: u64, count: usize) -> usize {
    (((hash & 0xffff_ffff) * count as u64) >> 32) as usize
}
