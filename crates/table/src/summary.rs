//! What is known of a run as a whole: counted while it is written, stored with it, compared by
//! verification.

use crate::options::{Compression, Filter, PrefixRule, TableOptions};
use crate::range_delete::RangeDeletes;
use base::coding::{Reader, push_bytes, push_varint};
use base::key::{split_internal_key, trailer_kind, trailer_sequence};
use base::{EntryKind, KeyRange, RunId, SequenceNumber};

/// A run as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// Where its extent begins in the file.
    pub offset: u64,
    /// Bytes of its extent.
    pub bytes: u64,
    /// Covers every point key and every range tombstone; empty for a run without any.
    pub range: KeyRange,
    /// The smallest user key of a point entry; empty without entries.
    pub smallest: Vec<u8>,
    /// The largest user key of a point entry; empty without entries.
    pub largest: Vec<u8>,
    /// Point entries, tombstones included.
    pub entries: u64,
    /// Point tombstones.
    pub deletes: u64,
    /// Merge operands.
    pub merges: u64,
    /// Entries whose values are in the value store.
    pub pointers: u64,
    /// Range tombstones: pairs of a fragment and a sequence number.
    pub range_deletes: u64,
    /// The smallest sequence number, range tombstones included; 0 for an empty run.
    pub sequence_min: SequenceNumber,
    /// The largest sequence number, range tombstones included.
    pub sequence_max: SequenceNumber,
    /// Bytes of internal keys as they were added.
    pub raw_key_bytes: u64,
    /// Bytes of values as they were added.
    pub raw_value_bytes: u64,
    /// Data blocks.
    pub data_blocks: u64,
    /// Bytes of data blocks as stored.
    pub data_bytes: u64,
    /// Bytes of filters as stored.
    pub filter_bytes: u64,
    /// Bytes of index blocks as stored, the top index included.
    pub index_bytes: u64,
    /// How the run is laid out.
    pub options: TableOptions,
}

impl RunSummary {
    pub(crate) fn new(run: RunId, offset: u64, options: TableOptions) -> RunSummary {
        RunSummary {
            run,
            offset,
            bytes: 0,
            range: KeyRange::new([], Some([].into())),
            smallest: Vec::new(),
            largest: Vec::new(),
            entries: 0,
            deletes: 0,
            merges: 0,
            pointers: 0,
            range_deletes: 0,
            sequence_min: 0,
            sequence_max: 0,
            raw_key_bytes: 0,
            raw_value_bytes: 0,
            data_blocks: 0,
            data_bytes: 0,
            filter_bytes: 0,
            index_bytes: 0,
            options,
        }
    }

    /// Counts a point entry; its user keys are counted by [`RunSummary::set_bounds`]. False when it
    /// is not one.
    #[inline]
    pub(crate) fn count(&mut self, trailer: u64, key_bytes: usize, value_bytes: usize) -> bool {
        match trailer_kind(trailer) {
            Some(EntryKind::Put) => {}
            Some(EntryKind::Delete) => self.deletes += 1,
            Some(EntryKind::Merge) => self.merges += 1,
            Some(EntryKind::Pointer) => self.pointers += 1,
            Some(EntryKind::DeleteRange) | None => return false,
        }
        let sequence = trailer_sequence(trailer);
        if self.entries == 0 {
            (self.sequence_min, self.sequence_max) = (sequence, sequence);
        } else {
            self.sequence_min = self.sequence_min.min(sequence);
            self.sequence_max = self.sequence_max.max(sequence);
        }
        self.entries += 1;
        self.raw_key_bytes += key_bytes as u64;
        self.raw_value_bytes += value_bytes as u64;
        true
    }

    /// Sets what follows from the first and last internal key (empty without entries) and from the
    /// range tombstones.
    pub(crate) fn set_bounds(&mut self, first: &[u8], last: &[u8], tombstones: &RangeDeletes) {
        if let (Some((smallest, _)), Some((largest, _))) =
            (split_internal_key(first), split_internal_key(last))
        {
            self.smallest = smallest.to_vec();
            self.largest = largest.to_vec();
        }
        self.range_deletes = tombstones.count();
        if let Some((min, max)) = tombstones.sequence_bounds() {
            let any = self.entries > 0;
            self.sequence_min = if any { self.sequence_min.min(min) } else { min };
            self.sequence_max = self.sequence_max.max(max);
        }
        self.range = self.range_with(tombstones);
    }

    fn range_with(&self, tombstones: &RangeDeletes) -> KeyRange {
        match (self.entries, tombstones.range()) {
            (0, None) => KeyRange::new([], Some([].into())),
            (0, Some(range)) => range,
            (_, None) => KeyRange::closed(&self.smallest, &self.largest),
            (_, Some(range)) => KeyRange::closed(&self.smallest, &self.largest).union(&range),
        }
    }

    /// The summary as it is stored. Place and size are in the footer, the range follows from keys
    /// and tombstones.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_bytes(&mut out, &self.smallest);
        push_bytes(&mut out, &self.largest);
        for count in [
            self.entries,
            self.deletes,
            self.merges,
            self.pointers,
            self.range_deletes,
            self.sequence_min,
            self.sequence_max,
            self.raw_key_bytes,
            self.raw_value_bytes,
            self.data_blocks,
            self.data_bytes,
            self.filter_bytes,
            self.index_bytes,
        ] {
            push_varint(&mut out, count);
        }
        encode_options(&self.options, &mut out);
        out
    }

    /// Reads a stored summary; `None` when it is malformed.
    pub(crate) fn decode(
        bytes: &[u8],
        run: RunId,
        offset: u64,
        extent_bytes: u64,
        tombstones: &RangeDeletes,
    ) -> Option<RunSummary> {
        let mut reader = Reader::new(bytes);
        let (smallest, largest) = (reader.bytes()?.to_vec(), reader.bytes()?.to_vec());
        let mut counts = [0; 13];
        for count in &mut counts {
            *count = reader.varint()?;
        }
        let options = decode_options(&mut reader)?;
        let [entries, deletes, merges, pointers, range_deletes, sequence_min, sequence_max, ..] =
            counts;
        let [
            ..,
            raw_key_bytes,
            raw_value_bytes,
            data_blocks,
            data_bytes,
            filter_bytes,
            index_bytes,
        ] = counts;
        let mut summary = RunSummary {
            bytes: extent_bytes,
            smallest,
            largest,
            entries,
            deletes,
            merges,
            pointers,
            range_deletes,
            sequence_min,
            sequence_max,
            raw_key_bytes,
            raw_value_bytes,
            data_blocks,
            data_bytes,
            filter_bytes,
            index_bytes,
            ..RunSummary::new(run, offset, options)
        };
        summary.range = summary.range_with(tombstones);
        let sound = reader.is_empty()
            && summary.smallest <= summary.largest
            && range_deletes == tombstones.count();
        sound.then_some(summary)
    }
}

fn encode_options(options: &TableOptions, out: &mut Vec<u8>) {
    push_varint(out, u64::from(options.block_bytes));
    push_varint(out, u64::from(options.restart_interval));
    push_varint(out, u64::from(options.index_block_bytes));
    out.push(u8::from(options.hash_index));
    out.extend_from_slice(&match options.compression {
        Compression::None => [0, 0],
        Compression::Lz4 => [1, 0],
        Compression::Zstd(level) => [2, level as u8],
    });
    out.extend_from_slice(&match options.filter {
        Filter::None => [0, 0],
        Filter::Bloom { bits_per_key } => [1, bits_per_key],
        Filter::Ribbon { bits_per_key } => [2, bits_per_key],
    });
    out.extend_from_slice(&match options.prefix {
        PrefixRule::None => [0, 0, 0],
        PrefixRule::Fixed(length) => [1, length, 0],
        PrefixRule::Delimiter { byte, count } => [2, byte, count],
    });
}

fn decode_options(reader: &mut Reader<'_>) -> Option<TableOptions> {
    let block_bytes = reader.varint_u32()?;
    let restart_interval = u16::try_from(reader.varint()?).ok()?;
    let index_block_bytes = reader.varint_u32()?;
    let hash_index = match reader.byte()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let compression = match (reader.byte()?, reader.byte()?) {
        (0, 0) => Compression::None,
        (1, 0) => Compression::Lz4,
        (2, level) => Compression::Zstd(level as i8),
        _ => return None,
    };
    let filter = match (reader.byte()?, reader.byte()?) {
        (0, 0) => Filter::None,
        (1, bits_per_key) => Filter::Bloom { bits_per_key },
        (2, bits_per_key) => Filter::Ribbon { bits_per_key },
        _ => return None,
    };
    let prefix = match (reader.byte()?, reader.byte()?, reader.byte()?) {
        (0, 0, 0) => PrefixRule::None,
        (1, length, 0) => PrefixRule::Fixed(length),
        (2, byte, count) => PrefixRule::Delimiter { byte, count },
        _ => return None,
    };
    Some(TableOptions {
        block_bytes,
        restart_interval,
        hash_index,
        index_block_bytes,
        compression,
        filter,
        prefix,
    })
}
