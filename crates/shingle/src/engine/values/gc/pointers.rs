//! The end of GC: pointers change on the condition that nothing newer came, and everything that GC
//! relied on becomes durable.

use super::GcJob;
use crate::engine::commit::{Outcome, Unchanged};
use crate::engine::core::Core;
use crate::read::get::{Combined, Found, restate};
use crate::read::moment::Moment;
use crate::read::multi_get::{Seen, are_unchanged, find_many};
use base::{Expiry, KeyspaceId, Result};
use std::sync::Arc;
use table::batch::WriteBatch;
use values::ValuePointer;

/// Maximum number of pointers that change under one hold of the commit lock...
const COMMIT_POINTERS: usize = 64;
/// ... and bytes after which no more do: what operands apply to is combined in memory.
const COMMIT_BYTES: u64 = 1 << 20;

/// Number of times that GC tries to change pointers before it holds the writers of the keyspace.
const TRIES_BESIDE_WRITERS: u32 = 8;

/// A value with a new position.
pub(super) struct Moved {
    pub(super) key: Vec<u8>,
    pub(super) from: ValuePointer,
    pub(super) to: Replacement,
    /// Where `from` was found when the record was looked up, if that was in a run.
    pub(super) seen: Option<Seen>,
}

/// What the tree holds for the key of a moved record, right before its pointer changes.
enum Now {
    /// The pointer that it held when the record was looked up.
    Unchanged,
    Found(Option<Found>),
}

pub(super) enum Replacement {
    /// The record, copied.
    Record(ValuePointer),
    /// Operands apply to the record: their combined value replaces it.
    Combined,
    /// The entry that points to the record has expired: a deletion replaces it.
    Expired,
}

impl Replacement {
    /// The copy, which is garbage if the tree does not take it.
    pub(super) fn record(&self) -> Option<ValuePointer> {
        match self {
            Replacement::Record(pointer) => Some(*pointer),
            Replacement::Combined | Replacement::Expired => None,
        }
    }
}

/// What becomes of some entries, in one commit.
#[derive(Default)]
struct Changes<'a> {
    batch: WriteBatch,
    keys: Vec<&'a [u8]>,
    /// Copies that the tree does not take.
    lost: Vec<ValuePointer>,
}

impl GcJob {
    /// Changes some pointers. `false`: all are changed.
    pub(super) fn commit_some(&mut self, core: &Arc<Core>) -> Result<bool> {
        if self.committed == self.moved.len() {
            return Ok(false);
        }
        let (mut tries, mut hold) = (0, None);
        // Again until nothing came between the look at the tree and the lock. Writers may come each
        // time, so they are held in the end; flushes and compactions have no more to do then.
        while !self.try_commit(core)? {
            tries += 1;
            if tries == TRIES_BESIDE_WRITERS {
                hold = Some(core.hold(vec![self.keyspace.id]));
            }
        }
        drop(hold);
        Ok(true)
    }

    /// The records whose pointers may change next, few where the values are large.
    fn next_chunk(&self) -> &[Moved] {
        let open = &self.moved[self.committed..];
        let mut bytes = 0;
        let ends = open.iter().take(COMMIT_POINTERS).position(|one| {
            bytes += u64::from(one.from.record_bytes);
            bytes >= COMMIT_BYTES
        });
        &open[..ends.map_or(COMMIT_POINTERS, |last| last + 1).min(open.len())]
    }

    fn try_commit(&mut self, core: &Arc<Core>) -> Result<bool> {
        let moment = core.moment(&self.keyspace);
        let mut changes = Changes::default();
        let mut count = 0;
        let chunk = self.next_chunk();
        let now = find_now(&moment, chunk)?;
        for (alike, now) in chunk.chunk_by(|a, b| a.key == b.key).zip(&now) {
            for moved in alike {
                self.add_change(core, &moment, moved, now, &mut changes)?;
            }
            count += alike.len();
            if changes.batch.bytes().len() as u64 >= COMMIT_BYTES {
                break;
            }
        }
        core.runtime.interleave("collect: before pointers change");
        // A filter drops and replaces values without a newer entry that would tell of it. So no
        // compaction may come between the look at the tree and the commit.
        let trees = self.keyspace.filter.as_ref().map(|_| core.versions.lock());
        if trees.is_some() && !Arc::ptr_eq(&self.keyspace.view().tree, &moment.view().tree) {
            return Ok(false);
        }
        let Changes { mut batch, keys, lost } = changes;
        let freed_bytes = self.collection.read_bytes;
        let seen = Unchanged { keyspace: self.keyspace.id, moment: &moment, keys, ranges: &[] };
        let sequence = match core.commits.commit_unless_newer(&seen, &mut batch, freed_bytes)? {
            Outcome::Committed(done) => done.last_sequence,
            Outcome::LacksSpace(lack) => {
                self.lacks_capacity = true;
                return Err(lack.error(&core.snapshots));
            }
            Outcome::Changed | Outcome::Held => return Ok(false),
        };
        self.last_sequence = self.last_sequence.max(sequence);
        for pointer in lost {
            *self.lost.entry(pointer.file).or_default() += u64::from(pointer.record_bytes);
        }
        self.committed += count;
        Ok(true)
    }

    /// Adds what becomes of the entry that points to `moved`, while the tree has `now` for its key.
    fn add_change<'a>(
        &self,
        core: &Core,
        moment: &Moment,
        moved: &'a Moved,
        now: &Now,
        Changes { batch, keys, lost }: &mut Changes<'a>,
    ) -> Result<()> {
        let id = self.keyspace.id;
        match (&moved.to, now) {
            (Replacement::Record(to), Now::Unchanged) => {
                batch.put_pointer(id, &moved.key, &to.encode())?;
            }
            (Replacement::Record(to), Now::Found(Some(Found::Pointer(held))))
                if ValuePointer::decode(held)? == moved.from =>
            {
                batch.put_pointer(id, &moved.key, &to.encode())?;
            }
            // The record may have been copied before the entry expired.
            (to, Now::Found(Some(Found::Expiring(held)))) if held.names(&moved.from)? => {
                match (to.record(), held.is_over(&core.read.clock)) {
                    (Some(to), false) => {
                        let pointer = to.encode();
                        batch.put_expiring_pointer(id, &moved.key, &pointer, held.expiry)?;
                    }
                    (record, _) => {
                        batch.delete(id, &moved.key)?;
                        lost.extend(record);
                    }
                }
            }
            // Independent of what was found when the record was read: operands may apply to it by
            // now.
            (to, Now::Found(Some(Found::Operand))) => {
                let operator = self.keyspace.operator.as_ref();
                let (combined, expiry) = restate(moment, &moved.key, operator)?;
                let expiry = expiry.unwrap_or(Expiry::NEVER);
                push_combined(batch, id, &moved.key, &combined, expiry)?;
                lost.extend(to.record());
            }
            (to, _) => {
                lost.extend(to.record());
                return Ok(());
            }
        }
        keys.push(&moved.key);
        Ok(())
    }

    /// Everything that GC relied on is durable: the pointers that it changed, and the newer
    /// versions because of which it left records behind. A crash must not bring back entries that
    /// need the old segments after an edit has given those up. `false`: a flush is in progress.
    pub(super) fn is_durable(&mut self, core: &Arc<Core>) -> Result<bool> {
        self.last_sequence = self.last_sequence.max(core.snapshots.visible());
        core.runtime.interleave("collect: before all up to here is durable");
        if !self.keyspace.options.without_wal {
            let position = core.commits.lock().position();
            core.commits.sync_log(position)?;
            return Ok(true);
        }
        let flushed = core.versions.lock().tree(self.keyspace.id)?.version.flushed_sequence;
        let needed = *self.flush_through.get_or_insert(self.last_sequence);
        let view = self.keyspace.view();
        let mut memtables = view.memtables();
        if flushed >= needed || memtables.all(|m| m.sequence_min().is_none_or(|s| s > needed)) {
            return Ok(true);
        }
        core.commits.request_flush(self.keyspace.id, needed)?;
        Ok(false)
    }
}

/// What the tree holds for each key of `moved`, which are in key order.
fn find_now(moment: &Moment, moved: &[Moved]) -> Result<Vec<Now>> {
    let firsts: Vec<&Moved> =
        moved.chunk_by(|a, b| a.key == b.key).filter_map(|alike| alike.first()).collect();
    let seen: Vec<(&[u8], Seen)> =
        firsts.iter().filter_map(|one| Some((&one.key[..], one.seen?))).collect();
    let mut unchanged = are_unchanged(moment, &seen)?.into_iter();
    let is_open = |one: &&Moved| one.seen.is_none() || !unchanged.next().unwrap_or(false);
    let open: Vec<bool> = firsts.iter().map(is_open).collect();
    let keys = firsts.iter().zip(&open).filter(|(_, is_open)| **is_open);
    let keys: Vec<&[u8]> = keys.map(|(one, _)| &one.key[..]).collect();
    let mut found = find_many(moment, &keys)?.into_iter();
    let now = open.into_iter().map(|is_open| match is_open {
        true => Now::Found(found.next().and_then(|(found, _)| found)),
        false => Now::Unchanged,
    });
    Ok(now.collect())
}

/// Writes unmerged operands again, on top of what they apply to.
fn push_combined(
    batch: &mut WriteBatch,
    id: KeyspaceId,
    key: &[u8],
    combined: &Combined,
    expiry: Expiry,
) -> Result<()> {
    let (value, operands) = match combined {
        Combined::Merged(value) => (value, &[][..]),
        Combined::Unmerged(unmerged) => (&unmerged.base, &unmerged.operands[..]),
    };
    match value {
        Some(value) => batch.put_expiring(id, key, value, expiry)?,
        None => batch.delete(id, key)?,
    }
    operands.iter().try_for_each(|operand| batch.merge(id, key, operand))
}
