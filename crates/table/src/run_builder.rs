//! Writes one run: data blocks as they fill, everything else when it ends.
//!
//! An index entry is written when the entry after its block is known, so that its key can be short:
//! a user key `u` with the last trailer of all, where the block's last key <= `u` < the next key.
//! Where both have the same user key, the index entry has the block's last key itself. So every
//! version of a key that is at or after a search key is in the block that the index names, or
//! nowhere.

use crate::block_builder::BlockBuilder;
use crate::filter::{self, key_hash, prefix_hash};
use crate::format::{Footer, Handle};
use crate::frame::Sealer;
use crate::options::{Filter, TableOptions};
use crate::piece::BlockKind;
use crate::range_delete::{RangeDeletes, RangeTombstone};
use crate::run::RunEnd;
use crate::sink::Sink;
use crate::summary::RunSummary;
use base::expiry::EXPIRY_BYTES;
use base::key::{
    KEY_BYTES_MAX, SEQUENCE_MAX, TRAILER_BYTES, VALUE_BYTES_MAX, common_prefix, display_key,
    split_internal_key, user_key,
};
use base::{Error, Key, Result, RunId, SequenceNumber};
use tree::{KeySketch, KnownKeys};

/// A finished index block and the filter of its keys, raw.
struct Partition {
    last_key: Vec<u8>,
    index: Vec<u8>,
    filter: Vec<u8>,
}

/// A run being written.
pub(crate) struct RunBuilder {
    options: TableOptions,
    sealer: Sealer,
    data: BlockBuilder,
    index: BlockBuilder,
    partitions: Vec<Partition>,
    partition_bytes: usize,
    /// A data block whose index entry waits for the next key.
    pending: Option<Handle>,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    last_hash: u64,
    /// Hashes of the current partition.
    hashes: Vec<u64>,
    /// All keys, and how many they are.
    keys: KeySketch,
    keys_count: u64,
    /// The last key is not in the filter of the current partition.
    partition_is_new: bool,
    index_key: Vec<u8>,
    tombstones: RangeDeletes,
    /// What was added one by one.
    loose_tombstones: Vec<(Key, Key, SequenceNumber)>,
    summary: RunSummary,
}

impl RunBuilder {
    pub fn new(run: RunId, offset: u64, options: &TableOptions) -> Result<RunBuilder> {
        options.validate()?;
        Ok(RunBuilder {
            options: *options,
            sealer: Sealer::new(options.compression)?,
            data: BlockBuilder::new(options.restart_interval, options.hash_index),
            index: BlockBuilder::new(1, false),
            partitions: Vec::new(),
            partition_bytes: 0,
            pending: None,
            first_key: Vec::new(),
            last_key: Vec::new(),
            last_hash: 0,
            hashes: Vec::new(),
            keys: KeySketch::default(),
            keys_count: 0,
            partition_is_new: true,
            index_key: Vec::new(),
            tombstones: RangeDeletes::new(),
            loose_tombstones: Vec::new(),
            summary: RunSummary::new(run, offset, *options),
        })
    }

    pub fn estimated_bytes(&self, sink: &Sink) -> u64 {
        let filter_bits = match self.options.filter {
            Filter::None => 0,
            Filter::Bloom { bits_per_key } | Filter::Ribbon { bits_per_key } => bits_per_key,
        };
        let filter_bytes = self.hashes.len() * usize::from(filter_bits) / 8;
        let pending = self.data.estimated_bytes() + self.index.estimated_bytes() + filter_bytes;
        sink.offset() - self.summary.run.offset + (pending + self.partition_bytes) as u64 + 256
    }

    /// Bytes kept in memory until the run ends, about.
    pub fn memory_bytes(&self) -> u64 {
        let hashes_bytes = self.hashes.len() * size_of::<u64>();
        (self.partition_bytes + hashes_bytes + self.tombstones.memory_bytes()) as u64
    }

    #[inline]
    pub fn add(&mut self, sink: &mut Sink, internal_key: &[u8], value: &[u8]) -> Result<()> {
        let Some((key, trailer)) = split_internal_key(internal_key) else {
            return Err(Error::invalid("an internal key without its trailer"));
        };
        if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX + EXPIRY_BYTES {
            return Err(Error::invalid("a key or value longer than may be"));
        }
        let Some(shared) = self.shared_with_last(key, trailer) else {
            return Err(Error::invalid(format!(
                "entries out of order: {} after {}",
                display_key(internal_key),
                display_key(&self.last_key)
            )));
        };
        if !self.summary.count(trailer, internal_key.len(), value) {
            return Err(Error::invalid("an entry of a kind that is no point entry"));
        }
        if self.pending.is_some() {
            self.write_index_entry(Some(key));
        }
        let same_key = shared == key.len() && self.last_key.len() == internal_key.len();
        self.add_to_filter(key, same_key);
        self.data.add(shared, internal_key, value, self.last_hash);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&internal_key[shared..]);
        if self.summary.run.entries == 1 {
            self.first_key.extend_from_slice(internal_key);
        }
        if self.data.estimated_bytes() >= self.options.block_bytes as usize {
            self.write_data_block(sink)?;
        }
        Ok(())
    }

    /// How many bytes of user key the entry has in common with the last one; `None` when it is not
    /// after it.
    #[inline]
    fn shared_with_last(&self, key: &[u8], trailer: u64) -> Option<usize> {
        let Some((last, last_trailer)) = split_internal_key(&self.last_key) else {
            return Some(0);
        };
        let shared = common_prefix(last, key);
        let ordered = match (last.get(shared), key.get(shared)) {
            (Some(a), Some(b)) => a < b,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => trailer < last_trailer,
        };
        ordered.then_some(shared)
    }

    #[inline]
    fn add_to_filter(&mut self, key: &[u8], same_key: bool) {
        if same_key && !self.partition_is_new {
            return;
        }
        if !same_key || self.summary.run.entries == 1 {
            self.last_hash = key_hash(key);
            self.keys.add(self.last_hash);
            self.keys_count += 1;
        }
        if self.options.filter == Filter::None {
            return;
        }
        self.hashes.push(self.last_hash);
        if let Some(prefix) = self.options.prefix.prefix(key) {
            let last = split_internal_key(&self.last_key).map(|(last, _)| last);
            let last_prefix = last.and_then(|last| self.options.prefix.prefix(last));
            if self.partition_is_new || last_prefix != Some(prefix) {
                self.hashes.push(prefix_hash(prefix));
            }
        }
        self.partition_is_new = false;
    }

    pub fn add_range_delete(
        &mut self,
        start: &[u8],
        end: &[u8],
        sequence: SequenceNumber,
    ) -> Result<()> {
        if start >= end || sequence > SEQUENCE_MAX || start.len() > KEY_BYTES_MAX {
            return Err(Error::invalid("a range tombstone that covers nothing"));
        }
        self.loose_tombstones.push((start.into(), end.into(), sequence));
        Ok(())
    }

    pub fn set_range_deletes(&mut self, tombstones: RangeDeletes) {
        self.tombstones = tombstones;
    }

    /// All tombstones of the run, in order.
    fn take_tombstones(&mut self) -> RangeDeletes {
        let set = std::mem::take(&mut self.tombstones);
        let loose = std::mem::take(&mut self.loose_tombstones);
        if loose.is_empty() {
            return set;
        }
        let loose = loose.iter().map(|(start, end, sequence)| RangeTombstone {
            start,
            end,
            sequence: *sequence,
        });
        RangeDeletes::of(loose.chain(set.tombstones()))
    }

    fn write_data_block(&mut self, sink: &mut Sink) -> Result<()> {
        let handle = sink.write_block(&mut self.sealer, BlockKind::Data, self.data.finish())?;
        self.data.clear();
        self.summary.data_blocks += 1;
        self.pending = Some(handle);
        Ok(())
    }

    /// Writes the index entry of the pending block; `next` is the user key after it.
    fn write_index_entry(&mut self, next: Option<&[u8]>) {
        let Some(handle) = self.pending.take() else { return };
        self.index_key.clear();
        push_separator(&mut self.index_key, &self.last_key, next);
        let mut value = Vec::with_capacity(16);
        handle.push(&mut value);
        self.index.add(0, &self.index_key, &value, 0);
        if self.index.estimated_bytes() >= self.options.index_block_bytes as usize {
            self.cut_partition();
        }
    }

    fn cut_partition(&mut self) {
        let mut filter = Vec::new();
        if !self.hashes.is_empty() {
            filter::build(self.options.filter, &self.hashes, &mut filter);
        }
        self.hashes.clear();
        self.partition_is_new = true;
        let partition = Partition {
            last_key: self.index_key.clone(),
            index: self.index.finish().to_vec(),
            filter,
        };
        self.index.clear();
        self.partition_bytes += partition.index.len() + partition.filter.len();
        self.partitions.push(partition);
    }

    /// Writes everything after the data.
    pub fn finish(mut self: Box<Self>, sink: &mut Sink) -> Result<RunEnd> {
        if !self.data.is_empty() {
            self.write_data_block(sink)?;
        }
        self.write_index_entry(None);
        if !self.index.is_empty() || self.partitions.is_empty() {
            self.cut_partition();
        }
        let mut footer = Footer {
            run: self.summary.run.id,
            start: self.summary.run.offset,
            data_end: sink.offset(),
            ..Footer::default()
        };
        let (top, filter) = self.write_index(sink, &mut footer)?;
        let tombstones = self.take_tombstones();
        self.summary.set_bounds(&self.first_key, &self.last_key, &tombstones);
        self.summary.run.keys = KnownKeys::of(std::mem::take(&mut self.keys), self.keys_count);
        let mut pin = |sink: &mut Sink, bytes: &[u8]| {
            sink.write_block(&mut self.sealer, BlockKind::Top, bytes)
        };
        if !tombstones.is_empty() {
            footer.tombstones = Some(pin(sink, &tombstones.encode())?);
        }
        footer.top = pin(sink, &top)?;
        self.summary.data_bytes = footer.data_end - footer.start;
        self.summary.filter_bytes = footer.filters_end - footer.data_end;
        let index_blocks = footer.pinned_start() - footer.filters_end;
        self.summary.index_bytes =
            index_blocks + footer.top.end(BlockKind::Top) - footer.top.offset;
        footer.summary = pin(sink, &self.summary.encode())?;
        footer.entries = self.summary.run.entries;
        footer.range_deletes = self.summary.run.range_deletes;
        footer.bytes = sink.offset() + crate::format::FOOTER_BYTES - footer.start;
        self.summary.run.bytes = footer.bytes;
        sink.write(&footer.encode(sink.place()))?;
        RunEnd::written(footer, top, filter, tombstones, self.summary)
    }

    /// Writes filters and index blocks; gives the top index, and the filter if there is only one.
    fn write_index(&mut self, sink: &mut Sink, footer: &mut Footer) -> Result<(Vec<u8>, Vec<u8>)> {
        let mut filters = Vec::with_capacity(self.partitions.len());
        for partition in &self.partitions {
            let filter = &partition.filter;
            filters.push(match filter.is_empty() {
                true => None,
                false => Some(sink.write_block(&mut self.sealer, BlockKind::Filter, filter)?),
            });
        }
        footer.filters_end = sink.offset();
        if let [only] = &mut self.partitions[..] {
            footer.index_levels = 1;
            footer.filter = filters[0];
            return Ok((std::mem::take(&mut only.index), std::mem::take(&mut only.filter)));
        }
        footer.index_levels = 2;
        for (partition, filter) in self.partitions.iter().zip(filters) {
            let index = &partition.index;
            let handle = sink.write_block(&mut self.sealer, BlockKind::Index, index)?;
            let mut value = Vec::with_capacity(32);
            handle.push(&mut value);
            if let Some(filter) = filter {
                filter.push(&mut value);
            }
            self.index.add(0, &partition.last_key, &value, 0);
        }
        Ok((self.index.finish().to_vec(), Vec::new()))
    }
}

/// Appends a short key that is at or after `last` (internal) and before every version of `next`.
fn push_separator(out: &mut Vec<u8>, last: &[u8], next: Option<&[u8]>) {
    let last_user = user_key(last);
    let Some(next) = next else {
        out.extend_from_slice(last);
        return;
    };
    if last_user == next {
        out.extend_from_slice(last);
        return;
    }
    // `last_user` < `next`. The first bytes of `next` up to where they differ are after `last_user`
    // and, when `next` goes on, before `next`.
    let short = common_prefix(last_user, next) + 1;
    let separator =
        if short < next.len() && short < last_user.len() { &next[..short] } else { last_user };
    out.extend_from_slice(separator);
    out.extend_from_slice(&[0; TRAILER_BYTES]);
}
