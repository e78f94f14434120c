//! What is known of a run as a whole: counted while it is written, stored with it, compared by
//! verification.

use crate::options::{Compression, Filter, PrefixRule, TableOptions};
use crate::range_delete::RangeDeletes;
use base::coding::{Reader, push_bytes, push_varint};
use base::key::{split_internal_key, trailer_kind, trailer_sequence};
use base::{EntryKind, Expiry, ExpirySpan, KeyRange, RunId, SequenceNumber};
use tree::{KnownKeys, RunMetadata};

/// A run as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// What the manifest records of it, but for its file.
    pub run: RunMetadata<()>,
    /// The smallest user key of a point entry; empty without entries.
    pub smallest: Vec<u8>,
    /// The largest user key of a point entry; empty without entries.
    pub largest: Vec<u8>,
    /// Merge operands.
    pub merges: u64,
    /// Entries whose values are in the value store.
    pub pointers: u64,
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
    pub(crate) fn new(id: RunId, offset: u64, options: TableOptions) -> RunSummary {
        let run = RunMetadata {
            id,
            file: (),
            offset,
            bytes: 0,
            range: KeyRange::new([], Some([].into())),
            entries: 0,
            deletes: 0,
            range_deletes: 0,
            sequence_min: 0,
            sequence_max: 0,
            expiry: None,
            keys: KnownKeys::default(),
        };
        RunSummary {
            run,
            smallest: Vec::new(),
            largest: Vec::new(),
            merges: 0,
            pointers: 0,
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
    pub(crate) fn count(&mut self, trailer: u64, key_bytes: usize, value: &[u8]) -> bool {
        match trailer_kind(trailer) {
            Some(EntryKind::Put) => {}
            Some(EntryKind::Delete) => self.run.deletes += 1,
            Some(EntryKind::Merge) => self.merges += 1,
            Some(EntryKind::Pointer) => self.pointers += 1,
            Some(kind @ (EntryKind::ExpiringPut | EntryKind::ExpiringPointer)) => {
                let Some((expiry, _)) = Expiry::split(value) else { return false };
                self.count_expiry(expiry);
                self.pointers += u64::from(kind == EntryKind::ExpiringPointer);
            }
            Some(EntryKind::DeleteRange) | None => return false,
        }
        let sequence = trailer_sequence(trailer);
        if self.run.entries == 0 {
            (self.run.sequence_min, self.run.sequence_max) = (sequence, sequence);
        } else {
            self.run.sequence_min = self.run.sequence_min.min(sequence);
            self.run.sequence_max = self.run.sequence_max.max(sequence);
        }
        self.run.entries += 1;
        self.raw_key_bytes += key_bytes as u64;
        self.raw_value_bytes += value.len() as u64;
        true
    }

    fn count_expiry(&mut self, expiry: Expiry) {
        match &mut self.run.expiry {
            Some(span) => span.add(expiry),
            none => *none = Some(ExpirySpan::of(expiry)),
        }
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
        self.run.range_deletes = tombstones.count();
        if let Some((min, max)) = tombstones.sequence_bounds() {
            let any = self.run.entries > 0;
            self.run.sequence_min = if any { self.run.sequence_min.min(min) } else { min };
            self.run.sequence_max = self.run.sequence_max.max(max);
        }
        self.run.range = self.range_with(tombstones);
    }

    /// The summary of the same run where every entry has the sequence number `sequence`.
    pub(crate) fn stamped(self, sequence: SequenceNumber) -> RunSummary {
        let is_empty = self.run.entries == 0 && self.run.range_deletes == 0;
        let sequence = if is_empty { 0 } else { sequence };
        let run = RunMetadata { sequence_min: sequence, sequence_max: sequence, ..self.run };
        RunSummary { run, ..self }
    }

    fn range_with(&self, tombstones: &RangeDeletes) -> KeyRange {
        match (self.run.entries, tombstones.range()) {
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
            self.run.entries,
            self.run.deletes,
            self.merges,
            self.pointers,
            self.run.range_deletes,
            self.run.sequence_min,
            self.run.sequence_max,
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
        if let Some(ExpirySpan { entries, first, last }) = self.run.expiry {
            for number in [entries, first.as_millis(), last.as_millis()] {
                push_varint(&mut out, number);
            }
        }
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
        let expiry = decode_expiry(&mut reader)?;
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
            smallest,
            largest,
            merges,
            pointers,
            raw_key_bytes,
            raw_value_bytes,
            data_blocks,
            data_bytes,
            filter_bytes,
            index_bytes,
            ..RunSummary::new(run, offset, options)
        };
        summary.run = RunMetadata {
            bytes: extent_bytes,
            entries,
            deletes,
            range_deletes,
            sequence_min,
            sequence_max,
            expiry,
            ..summary.run
        };
        summary.run.range = summary.range_with(tombstones);
        let sound = reader.is_empty()
            && summary.smallest <= summary.largest
            && range_deletes == tombstones.count();
        sound.then_some(summary)
    }
}

/// The span behind the options; a run without expiring entries ends with them.
fn decode_expiry(reader: &mut Reader<'_>) -> Option<Option<ExpirySpan>> {
    if reader.is_empty() {
        return Some(None);
    }
    let entries = reader.varint()?;
    let (first, last) = (reader.varint()?, reader.varint()?);
    let span =
        ExpirySpan { entries, first: Expiry::from_millis(first), last: Expiry::from_millis(last) };
    (entries > 0 && first <= last).then_some(Some(span))
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
