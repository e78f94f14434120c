//! Looks up many keys of a run at once: filters first, each block once.

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

/// A block that several probes need one after another.
type Last<T> = Option<(Handle, Arc<T>)>;

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
        for &(_, handle) in &places {
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
            while let Some((index, _)) = places.next_if(|(_, place)| *place == handle) {
                found[index] = self.search_data(&block, handle, &probes[index])?;
            }
        }
        Ok(found)
    }

    /// The data blocks of the probes that the filters let through, in key order.
    fn places(&self, probes: &[Probe<'_>], cause: Cause) -> Result<Vec<(usize, Handle)>> {
        let (mut last_filter, mut last_index): (Last<FilterBlock>, Last<Block>) = (None, None);
        let mut places = Vec::new();
        for (at, probe) in probes.iter().enumerate() {
            let search = trailer(probe.snapshot, EntryKind::SEARCH);
            let Some(partition) = self.partition(probe.key, search)? else { continue };
            if let Some(handle) = partition.filter {
                let filter = match &last_filter {
                    Some((last, filter)) if *last == handle => filter.clone(),
                    _ => self.filter(handle, cause)?,
                };
                let may_contain = filter.may_contain(probe.hash);
                last_filter = Some((handle, filter));
                if !may_contain {
                    continue;
                }
            }
            let Some(handle) = partition.index else {
                places.push((at, partition.data));
                continue;
            };
            let index = match &last_index {
                Some((last, index)) if *last == handle => index.clone(),
                _ => self.cached_block(BlockKind::Index, handle, true, cause)?,
            };
            let found = index.search(probe.key, search).map_err(|m| self.malformed(handle, m))?;
            if let Some(found) = found {
                let value = &index.bytes()[found.value()];
                places.push((at, self.handle(value, handle, BlockKind::Data)?.0));
            }
            last_index = Some((handle, index));
        }
        Ok(places)
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
