//! Merges everything that was found of one keyspace. A source is opened when the merge reaches its
//! range, and closed after it. A block that cannot be read is skipped and reported.
//!
//! Invariant: a source is open before the merge returns a key of its range, so every range
//! tombstone that can cover the key is known by then.

use super::find::Piece;
use crate::memtable::Memtable;
use crate::read::source::MemtableIter;
use base::key::{EntryKind, SEQUENCE_MAX, internal_key, split_internal_key, trailer_kind};
use base::key::{compare_internal, successor, trailer_sequence, user_key};
use base::{Cause, Error, ErrorKind, Expiry, Key, KeyRange, Result, SequenceNumber};
use media::{FileName, FileStore};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use table::{
    BlockCache, EntryIter, IterOptions, RangeDeletes, RangeTombstone, Rescue, Run, RunIter,
};

/// The resolved state of a key.
#[derive(Default)]
pub(super) struct Resolved {
    pub value: Option<Vec<u8>>,
    /// Merge operands on top of the value, newest first.
    pub operands: Vec<Vec<u8>>,
    /// The pointer to the newest value, where that is in a segment.
    pub pointer: Option<Vec<u8>>,
    /// When the value expires.
    pub expiry: Option<Expiry>,
}

impl Resolved {
    /// Takes an expiring value as it is, expired or not. One that is too short is lost.
    fn take_expiring(&mut self, kind: EntryKind, stored: &[u8]) {
        let Some((expiry, content)) = Expiry::split(stored) else { return };
        self.expiry = Some(expiry);
        match kind {
            EntryKind::ExpiringPointer => self.pointer = Some(content.to_vec()),
            _ => self.value = Some(content.to_vec()),
        }
    }
}

/// Merges pieces of runs and memtables; see the module.
pub(super) struct Merge {
    store: Arc<dyn FileStore>,
    cache: Arc<BlockCache>,
    heap: BinaryHeap<Source>,
    deletes: Deletes,
    losses: Vec<String>,
    runs: u64,
    done_bytes: u64,
}

/// The newest range tombstones of the sources opened so far. They are in sets, each more than twice
/// as large as the next, so a tombstone is merged a logarithmic number of times.
#[derive(Default)]
struct Deletes(Vec<RangeDeletes>);

impl Deletes {
    fn add(&mut self, set: RangeDeletes) {
        if set.is_empty() {
            return;
        }
        self.0.push(set);
        while let [.., larger, last] = &self.0[..]
            && larger.len() <= 2 * last.len()
        {
            let all = larger.tombstones().chain(last.tombstones());
            let merged = RangeDeletes::needed(all, &[]);
            self.0.truncate(self.0.len() - 2);
            self.0.push(merged);
        }
    }

    fn covering(&self, key: &[u8]) -> Option<SequenceNumber> {
        self.0.iter().filter_map(|set| set.covering(key, SEQUENCE_MAX)).max()
    }
}

/// A source at its next key; the smallest key is the greatest source, for the heap.
struct Source {
    key: Vec<u8>,
    state: State,
}

enum State {
    Waiting(Piece),
    Memtable(MemtableIter),
    Piece(Box<OpenPiece>),
    Rescued(Box<RescuedPiece>),
}

struct OpenPiece {
    piece: Piece,
    name: FileName,
    run: Arc<Run>,
    iter: RunIter,
    range: KeyRange,
    /// The ends of the data blocks that are not read yet, including the one being read.
    ends: VecDeque<Key>,
}

/// The readable part of a run without footer or index.
struct RescuedPiece {
    name: FileName,
    rescue: Rescue,
    range: KeyRange,
    /// The number of its lost parts that were reported.
    lost: usize,
}

impl Merge {
    pub(super) fn new(
        store: Arc<dyn FileStore>,
        pieces: &[Piece],
        memtables: &[Arc<Memtable>],
    ) -> Merge {
        let mut merge = Merge {
            store,
            cache: BlockCache::new(1 << 20),
            heap: BinaryHeap::new(),
            deletes: Deletes::default(),
            losses: Vec::new(),
            runs: 0,
            done_bytes: 0,
        };
        for piece in pieces {
            let key = internal_key(&piece.range.start, SEQUENCE_MAX, EntryKind::SEARCH);
            merge.heap.push(Source { key, state: State::Waiting(piece.clone()) });
        }
        for memtable in memtables {
            let deletes = memtable.range_deletes(&[]);
            merge.deletes.add(RangeDeletes::needed(
                deletes.iter().map(|delete| RangeTombstone {
                    start: &delete.start,
                    end: &delete.end,
                    sequence: delete.sequence,
                }),
                &[],
            ));
            let mut iter = MemtableIter::new(memtable);
            if iter.seek_to_first().is_ok() && iter.valid() {
                merge.heap.push(Source { key: iter.key().to_vec(), state: State::Memtable(iter) });
            }
        }
        merge
    }

    /// The next key that has a value or operands.
    pub(super) fn next(&mut self) -> Result<Option<(Vec<u8>, Resolved)>> {
        loop {
            let Some(first) = self.entry()? else { return Ok(None) };
            let key = user_key(&first.0).to_vec();
            let mut versions = vec![first];
            while self.heap.peek().is_some_and(|source| user_key(&source.key) <= &key[..]) {
                let Some(version) = self.entry_of(&key)? else { break };
                versions.push(version);
            }
            let resolved = self.resolve(&key, versions);
            if resolved.value.is_some()
                || resolved.pointer.is_some()
                || !resolved.operands.is_empty()
            {
                return Ok(Some((key, resolved)));
            }
        }
    }

    /// The next entry of any key.
    fn entry(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        while let Some(source) = self.heap.pop() {
            if let Some(entry) = self.advance(source)? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// The next entry, if it is of `key`.
    fn entry_of(&mut self, key: &[u8]) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        while self.heap.peek().is_some_and(|source| user_key(&source.key) <= key) {
            let Some(source) = self.heap.pop() else { break };
            if let Some(entry) = self.advance(source)? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Takes the entry that a source is at, and advances the source. A waiting source is opened and
    /// gives no entry yet.
    fn advance(&mut self, source: Source) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        match source.state {
            State::Waiting(piece) => {
                self.open(&piece)?;
                Ok(None)
            }
            State::Memtable(mut iter) => {
                let value = iter.value().to_vec();
                iter.next()?;
                if iter.valid() {
                    let key = iter.key().to_vec();
                    self.heap.push(Source { key, state: State::Memtable(iter) });
                }
                Ok(Some((source.key, value)))
            }
            State::Piece(mut piece) => {
                let value = piece.iter.value().to_vec();
                let moved = piece.iter.next();
                let read = user_key(&source.key);
                // The remaining ends are those of the block after this entry and of later ones.
                while piece.ends.front().is_some_and(|end| **end <= *read) {
                    piece.ends.pop_front();
                }
                self.settle(piece, read.to_vec(), moved)?;
                Ok(Some((source.key, value)))
            }
            State::Rescued(piece) => {
                let value = piece.rescue.value().to_vec();
                self.advance_rescued(piece, None)?;
                Ok(Some((source.key, value)))
            }
        }
    }

    fn open(&mut self, piece: &Piece) -> Result<()> {
        self.done_bytes += piece.extent.bytes;
        let name = FileName::table(piece.file);
        let file = match self.store.open(name, true) {
            Ok(file) => file,
            Err(error) => return self.lose(&format!("run {} in {name}", piece.extent.run), error),
        };
        let run = match Run::open(file, piece.extent, self.cache.clone(), Cause::Recovery) {
            Ok(run) => run,
            Err(error) => {
                let what = format!(
                    "ranges that run {} in {name} deleted, if any; its entries are looked for",
                    piece.extent.run
                );
                self.lose(&what, error)?;
                return self.rescue(piece, None);
            }
        };
        self.runs += 1;
        self.deletes.add(run.range_deletes().clip(&piece.range));
        // Without them, the first damaged block ends the run.
        let ends = run.boundaries(&piece.range, Cause::Recovery).unwrap_or_default();
        let ends = ends.into_iter().map(|boundary| boundary.key).collect();
        let mut iter = run.iter(IterOptions::cached(Cause::Recovery));
        let start = &piece.range.start;
        let moved = iter.seek(&internal_key(start, SEQUENCE_MAX, EntryKind::SEARCH));
        let range = piece.range.clone();
        let open = Box::new(OpenPiece { piece: piece.clone(), name, run, iter, range, ends });
        self.settle(open, start.to_vec(), moved)
    }

    /// Puts back a source that was moved from `at`, after the blocks that cannot be read.
    fn settle(&mut self, mut piece: Box<OpenPiece>, at: Vec<u8>, moved: Result<()>) -> Result<()> {
        let (mut at, mut moved) = (at, moved);
        while let Err(error) = moved {
            let from = base::key::display_key(&at);
            self.lose(&format!("entries of {} from key {from} on", piece.name), error)?;
            let Some(end) = piece.ends.pop_front() else {
                // There is no index to continue with.
                return self.rescue(&piece.piece, Some(&at));
            };
            at = end.to_vec();
            piece.iter = piece.run.iter(IterOptions::cached(Cause::Recovery));
            let behind = internal_key(&successor(&at), SEQUENCE_MAX, EntryKind::SEARCH);
            moved = piece.iter.seek(&behind);
        }
        if piece.iter.valid() && piece.range.is_before_end(user_key(piece.iter.key())) {
            let key = piece.iter.key().to_vec();
            self.heap.push(Source { key, state: State::Piece(piece) });
        }
        Ok(())
    }

    /// Continues with the blocks of `piece` that are found without its index, after key `after`.
    fn rescue(&mut self, piece: &Piece, after: Option<&[u8]>) -> Result<()> {
        let name = FileName::table(piece.file);
        let file = self.store.open(name, true)?;
        let rescue = Rescue::new(file, piece.extent, Cause::Recovery)?;
        let range = piece.range.clone();
        let rescued = Box::new(RescuedPiece { name, rescue, range, lost: 0 });
        self.advance_rescued(rescued, after)
    }

    /// Puts back a rescued source at its next entry after key `after`.
    fn advance_rescued(
        &mut self,
        mut piece: Box<RescuedPiece>,
        after: Option<&[u8]>,
    ) -> Result<()> {
        let is_wanted = |piece: &RescuedPiece| {
            let key = user_key(piece.rescue.key());
            piece.range.contains(key) && after.is_none_or(|after| key > after)
        };
        let mut found = piece.rescue.advance()?;
        while found && !is_wanted(&piece) {
            found = piece.rescue.advance()?;
        }
        for lost in &piece.rescue.lost()[piece.lost..] {
            let (from, to) = (lost.start, lost.end);
            self.losses.push(format!("bytes {from} to {to} of {}: no entries there", piece.name));
        }
        piece.lost = piece.rescue.lost().len();
        if found {
            let key = piece.rescue.key().to_vec();
            self.heap.push(Source { key, state: State::Rescued(piece) });
        }
        Ok(())
    }

    /// Notes damage, and what the medium cannot read; every other error ends the salvage.
    fn lose(&mut self, what: &str, error: Error) -> Result<()> {
        match error.kind() {
            ErrorKind::Io if error.lacks_descriptors() => Err(error),
            ErrorKind::Corruption
            | ErrorKind::NotFound
            | ErrorKind::Incompatible
            | ErrorKind::Io => {
                self.losses.push(format!("{what}: {error}"));
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Resolves the versions of a key, newest first.
    fn resolve(&self, key: &[u8], mut versions: Vec<(Vec<u8>, Vec<u8>)>) -> Resolved {
        // A run and a log may both have the same entry.
        versions.sort_by(|a, b| compare_internal(&a.0, &b.0));
        versions.dedup_by(|a, b| a.0 == b.0);
        let deleted = self.deletes.covering(key).unwrap_or(0);
        let mut resolved = Resolved::default();
        for (internal, value) in versions {
            let trailer = split_internal_key(&internal).map_or(0, |(_, trailer)| trailer);
            if trailer_sequence(trailer) < deleted {
                break;
            }
            match trailer_kind(trailer) {
                Some(EntryKind::Merge) => resolved.operands.push(value),
                Some(EntryKind::Put) => {
                    resolved.value = Some(value);
                    break;
                }
                Some(EntryKind::Pointer) => {
                    resolved.pointer = Some(value);
                    break;
                }
                Some(kind @ (EntryKind::ExpiringPut | EntryKind::ExpiringPointer)) => {
                    resolved.take_expiring(kind, &value);
                    break;
                }
                _ => break,
            }
        }
        resolved
    }

    pub(super) fn runs(&self) -> u64 {
        self.runs
    }

    /// Bytes of the runs that were opened.
    pub(super) fn done_bytes(&self) -> u64 {
        self.done_bytes
    }

    pub(super) fn into_losses(self) -> Vec<String> {
        self.losses
    }
}

impl Ord for Source {
    fn cmp(&self, other: &Source) -> Ordering {
        compare_internal(&other.key, &self.key)
    }
}

impl PartialOrd for Source {
    fn partial_cmp(&self, other: &Source) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Source) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Source {}
