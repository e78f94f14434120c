//! Selective separation: a flush or a move writes each value to a run or to a segment, by its size.
//!
//! So values follow the current layout and threshold. Large values that another layout left in the
//! runs go to segments with the next merge. Values in segments return to the runs where the layout
//! keeps everything inline. Values whose only copy may be in a cache are written again.

use super::writers::ValueWriters;
use crate::engine::output::OutputWriter;
use crate::read::clock;
use crate::read::values::ValueFiles;
use crate::reduce::Sink;
use crate::unvouched::Unvouched;
use crate::value_rules::ValueRules;
use base::key::{EntryKind, push_internal_key, split_internal_key, trailer_kind, trailer_sequence};
use base::{Cause, Error, ErrorKind, Expiry, FileId, Result, SequenceNumber};
use std::collections::BTreeMap;
use std::sync::Arc;
use tree::Tier;
use values::ValuePointer;
use values::record::record_bytes;

/// Writes the kept entries of one part, each to a run or a segment.
pub(crate) struct Separator {
    pub output: OutputWriter,
    pub writers: ValueWriters,
    /// The tier for a value that was in a run or a memtable.
    tier: Tier,
    /// The layout keeps no value in segments.
    inlines: bool,
    threshold_bytes: u64,
    files: Arc<ValueFiles>,
    cause: Cause,
    unvouched: Unvouched,
    /// Bytes of records whose values returned to runs, by segment.
    pub inlined: BTreeMap<FileId, u64>,
    key: Vec<u8>,
    stored: Vec<u8>,
}

impl Separator {
    pub(crate) fn new(
        output: OutputWriter,
        writers: ValueWriters,
        tier: Tier,
        rules: &ValueRules,
        files: Arc<ValueFiles>,
        cause: Cause,
    ) -> Separator {
        let separates = rules.layout.separates();
        Separator {
            output,
            writers,
            tier,
            inlines: !separates,
            threshold_bytes: if separates { rules.threshold_bytes } else { u64::MAX },
            files,
            cause,
            unvouched: Unvouched::default(),
            inlined: BTreeMap::new(),
            key: Vec::new(),
            stored: Vec::new(),
        }
    }

    /// Values in `unvouched` are written again.
    pub(crate) fn writing_anew(self, unvouched: Unvouched) -> Separator {
        Separator { unvouched, ..self }
    }

    /// Writes the entry's value to a segment, and a pointer to the run. Where segments have no
    /// space for it, the value stays in the run.
    fn move_out(&mut self, entry: Entry<'_>, value: &[u8]) -> Result<()> {
        let Entry { user_key, sequence, .. } = entry;
        let bytes = record_bytes(sequence, user_key, Some(value));
        if !self.writers.take_space(self.tier, bytes as u64) {
            return self.put(entry, value);
        }
        let pointer = self.writers.add(self.tier, sequence, user_key, Some(value))?.encode();
        self.write(entry, (EntryKind::Pointer, EntryKind::ExpiringPointer), &pointer)
    }

    /// Brings the value back into the run. Where its segment is gone, a newer version is in a run
    /// above and no reader can see this one: the pointer stays as it is.
    fn move_in(&mut self, entry: Entry<'_>, pointer: &[u8]) -> Result<()> {
        let record = ValuePointer::decode(pointer)?;
        if self.writers.segments().get(record.file).is_none() {
            let kinds = (EntryKind::Pointer, EntryKind::ExpiringPointer);
            return self.write(entry, kinds, pointer);
        }
        let value = self.files.read(pointer, entry.user_key, self.cause)?;
        if !self.unvouched.holds(&record) {
            *self.inlined.entry(record.file).or_default() += u64::from(record.record_bytes);
        }
        self.put(entry, &value)
    }

    /// A pointer to bytes that may be only in a cache: the value goes where it would go if the log
    /// had it.
    fn move_on(&mut self, entry: Entry<'_>, pointer: &[u8]) -> Result<()> {
        let value = self.files.read(pointer, entry.user_key, self.cause)?;
        if value.len() as u64 >= self.threshold_bytes {
            return self.move_out(entry, &value);
        }
        self.put(entry, &value)
    }

    /// Writes the entry with its value to the run.
    fn put(&mut self, entry: Entry<'_>, value: &[u8]) -> Result<()> {
        self.write(entry, (EntryKind::Put, EntryKind::ExpiringPut), value)
    }

    /// Writes the entry to the run, as the first kind, or the second if it expires.
    fn write(
        &mut self,
        Entry { user_key, sequence, expiry }: Entry<'_>,
        (lasting, expiring): (EntryKind, EntryKind),
        content: &[u8],
    ) -> Result<()> {
        self.key.clear();
        let Some(expiry) = expiry else {
            push_internal_key(&mut self.key, user_key, sequence, lasting);
            return self.output.entry(&self.key, content);
        };
        push_internal_key(&mut self.key, user_key, sequence, expiring);
        self.stored.clear();
        expiry.push_with(content, &mut self.stored);
        self.output.entry(&self.key, &self.stored)
    }

    fn is_unvouched(&self, pointer: &[u8]) -> Result<bool> {
        Ok(!self.unvouched.is_empty() && self.unvouched.holds(&ValuePointer::decode(pointer)?))
    }

    /// Ends the last run and the segments. Everything written is durable afterwards.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.writers.finish()?;
        self.output.finish()?;
        self.output.written.segments = self.writers.written().to_vec();
        self.output.written.space = Some(self.writers.space().clone());
        self.output.written.bury(&self.inlined);
        Ok(())
    }
}

impl Sink for Separator {
    fn entry(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        let large = value.len() as u64 >= self.threshold_bytes;
        if !large && !self.inlines && self.unvouched.is_empty() {
            return self.output.entry(internal_key, value);
        }
        let (user_key, trailer) = split(internal_key)?;
        let Some(kind) = trailer_kind(trailer) else {
            return self.output.entry(internal_key, value);
        };
        let (expiry, content) = match kind.is_expiring() {
            true => clock::split(value).map(|(expiry, content)| (Some(expiry), content))?,
            false => (None, value),
        };
        let entry = Entry { user_key, sequence: trailer_sequence(trailer), expiry };
        let is_large = content.len() as u64 >= self.threshold_bytes;
        match kind {
            kind if kind.is_value() && is_large => self.move_out(entry, content),
            kind if kind.is_pointer() && self.inlines => self.move_in(entry, content),
            kind if kind.is_pointer() && self.is_unvouched(content)? => {
                self.move_on(entry, content)
            }
            _ => self.output.entry(internal_key, value),
        }
    }
}

/// An entry without its value or pointer.
#[derive(Clone, Copy)]
struct Entry<'a> {
    user_key: &'a [u8],
    sequence: SequenceNumber,
    expiry: Option<Expiry>,
}

fn split(internal_key: &[u8]) -> Result<(&[u8], u64)> {
    split_internal_key(internal_key).ok_or_else(|| {
        Error::new(ErrorKind::Corruption, "found an internal key without its trailer")
    })
}
