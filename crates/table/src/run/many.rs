//! Looks up many keys of a run at once: filters first, each block once.

use super::fences::Place;
use super::{Entry, Run, Sought};
use crate::block::Block;
use crate::bytes::Bytes;
use crate::cache::Cached;
use crate::filter::FilterBlock;
use crate::format::Handle;
use crate::piece::BlockKind;
use base::key::trailer;
use base::{Cause, EntryKind, Result, SequenceNumber};
use std::sync::Arc;

/// Probes whose filters are prefetched at once: about as many lines as a processor fetches.
const PROBES_AT_ONCE: usize = 16;

/// What is looked up: the arguments of [`Run::get`].
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    /// The user key.
    pub key: &'a [u8],
    /// `base::checksum::hash64` of it.
    pub hash: u64,
    /// The newest sequence number that counts.
    pub snapshot: SequenceNumber,
}

/// Where a probe has its entry, if it has one.
struct Located {
    /// The probe's number.
    probe: usize,
    data: Handle,
    /// Or in a block behind it.
    or_behind: bool,
}

/// A block that several probes need one after another.
type Last<T> = Option<(Handle, Arc<T>)>;

/// What the probe before needed.
#[derive(Default)]
struct LastBlocks {
    filter: Last<FilterBlock>,
    index: Last<Block>,
}

impl Run {
    /// [`Run::get`] of each probe, which are in key order. A block is read once whatever the cache;
    /// when several data blocks must be read, the store is told of all before the first.
    pub fn get_many(&self, probes: &[Probe<'_>], cause: Cause) -> Result<Vec<Option<Entry>>> {
        if self.mapped.is_some() {
            // Nothing is read that could be shared.
            let get = |p: &Probe<'_>| self.get(p.key, p.hash, p.snapshot, cause);
            return probes.iter().map(get).collect();
        }
        let mut found = vec![None; probes.len()];
        let places = self.places(probes, cause)?;
        let mut blocks: Vec<(Handle, Option<Arc<Block>>)> = Vec::new();
        for &Located { data: handle, .. } in &places {
            if blocks.last().is_none_or(|(last, _)| *last != handle) {
                let cached = self.cache.get(self.owner, handle.offset, BlockKind::Data);
                let Some(Cached::Block(block)) = cached else {
                    blocks.push((handle, None));
                    continue;
                };
                blocks.push((handle, Some(block)));
            }
        }
        if blocks.iter().filter(|(_, block)| block.is_none()).count() > 1 {
            for (handle, _) in blocks.iter().filter(|(_, block)| block.is_none()) {
                let bytes = handle.end(BlockKind::Data) - handle.offset;
                self.file.prefetch(handle.offset, bytes);
            }
        }
        let mut places = places.into_iter().peekable();
        for (handle, block) in blocks {
            let block = match block {
                Some(block) => block,
                None => self.read_data(handle, cause)?,
            };
            while let Some(place) = places.next_if(|place| place.data == handle) {
                let probe = &probes[place.probe];
                let entry = self.search_data(&block, handle, probe)?;
                found[place.probe] = match entry {
                    None if place.or_behind => {
                        self.get(probe.key, probe.hash, probe.snapshot, cause)?
                    }
                    entry => entry,
                };
            }
        }
        Ok(found)
    }

    /// The data blocks of the probes that the filters let through, in key order.
    fn places(&self, probes: &[Probe<'_>], cause: Cause) -> Result<Vec<Located>> {
        let mut last = LastBlocks::default();
        let mut places = Vec::new();
        for (number, probe) in probes.iter().enumerate() {
            if number.is_multiple_of(PROBES_AT_ONCE) {
                let next = probes.iter().skip(number).take(PROBES_AT_ONCE);
                next.for_each(|probe| self.prefetch(probe.key, probe.hash));
            }
            let (data, or_behind) = match self.place(probe.key, probe.hash, cause) {
                Place::Absent => (None, false),
                Place::Block(data) => (Some(data), false),
                Place::From(data) => (Some(data), true),
                Place::Unknown => (self.data_of_next(probe, &mut last, cause)?, false),
            };
            places.extend(data.map(|data| Located { probe: number, data, or_behind }));
        }
        Ok(places)
    }

    /// The data block of a probe, by the index and a filter.
    fn data_of_next(
        &self,
        probe: &Probe<'_>,
        last: &mut LastBlocks,
        cause: Cause,
    ) -> Result<Option<Handle>> {
        let search = trailer(probe.snapshot, EntryKind::SEARCH);
        let Some(partition) = self.partition(probe.key, search)? else { return Ok(None) };
        if let Some(handle) = partition.filter {
            let filter = match &last.filter {
                Some((last, filter)) if *last == handle => filter.clone(),
                _ => self.filter(handle, cause)?,
            };
            let may_contain = filter.may_contain(probe.hash);
            last.filter = Some((handle, filter));
            if !may_contain {
                return Ok(None);
            }
        }
        let Some(handle) = partition.index else { return Ok(Some(partition.data)) };
        let index = match &last.index {
            Some((last, index)) if *last == handle => index.clone(),
            _ => self.cached_block(BlockKind::Index, handle, true, cause)?,
        };
        let data = self.indexed(&index, handle, probe.key, search)?;
        last.index = Some((handle, index));
        Ok(data)
    }

    fn read_data(&self, handle: Handle, cause: Cause) -> Result<Arc<Block>> {
        let block =
            self.parse_block(BlockKind::Data, handle, self.read(BlockKind::Data, handle, cause)?)?;
        self.cache.insert(self.owner, handle.offset, Cached::Block(block.clone()));
        Ok(block)
    }

    fn search_data(
        &self,
        block: &Arc<Block>,
        handle: Handle,
        probe: &Probe<'_>,
    ) -> Result<Option<Entry>> {
        let search = trailer(probe.snapshot, EntryKind::SEARCH);
        let sought = Sought { user_key: probe.key, search, hash: probe.hash };
        self.entry(block, handle, &sought, |value| Bytes::shared(block.clone(), value))
    }
}
