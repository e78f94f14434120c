//! A user's write from admission to durability, and the counters of what users read.

use crate::admission::StallReason;
use crate::engine::Engine;
use crate::engine::commit::{Committed, Outcome, Unchanged};
use crate::options::Durability;
use base::{Error, ErrorKind, Result};
use std::sync::Arc;
use table::Bytes;
use table::batch::WriteBatch;

impl Engine {
    /// Counts a read: the user received the value of `key`, if there is one.
    #[inline(always)]
    pub(crate) fn count_read(&self, key: &[u8], value: Option<&[u8]>) {
        if let Some(value) = value {
            self.ledger().user_read((key.len() + value.len()) as u64);
        }
        self.look_if_due();
    }

    /// Wakes a worker where reads have cost enough for policies to look at it.
    #[inline]
    pub(crate) fn look_if_due(&self) {
        if self.read.take_look_due() {
            self.runtime.wake();
        }
    }

    /// [`Engine::count_read`] for many keys.
    pub(crate) fn count_reads<K: AsRef<[u8]>>(&self, keys: &[K], values: &[Option<Bytes>]) {
        let pairs = keys.iter().zip(values);
        let bytes = pairs
            .map(|(key, value)| value.as_ref().map_or(0, |value| key.as_ref().len() + value.len()));
        self.ledger().user_read(bytes.sum::<usize>() as u64);
        self.look_if_due();
    }

    /// Admits, commits and syncs a batch. `None`: as the database was opened.
    #[inline]
    pub(crate) fn write(
        self: &Arc<Self>,
        batch: &mut WriteBatch,
        durability: Option<Durability>,
        waits: bool,
    ) -> Result<Committed> {
        Ok(self.write_if(batch, durability, waits, &[])?.unwrap_or_default())
    }

    /// [`Engine::write`], if `given` holds. `None`: it may not hold, and nothing has changed.
    pub(crate) fn write_if(
        self: &Arc<Self>,
        batch: &mut WriteBatch,
        durability: Option<Durability>,
        waits: bool,
        given: &[Unchanged<'_>],
    ) -> Result<Option<Committed>> {
        self.check_process()?;
        if batch.has_expiring() {
            self.allow_expiry(batch)?;
        }
        let bytes = batch.bytes().len() as u64;
        self.admission.admit(bytes, waits, &*self.runtime, self.check_of_wait())?;
        if let Some(share) = self.memory.share().filter(|share| waits && share.is_full()) {
            share.wait(|| self.check_writable())?;
        }
        let is_synced = durability == Some(Durability::Synced);
        let durability = durability.unwrap_or_else(|| self.live.durability());
        let committed = loop {
            self.check_reserve(batch).inspect_err(|_| self.runtime.turn())?;
            let is_buffered = durability != Durability::Synced;
            let turn = is_buffered.then(|| self.commits.turns.take(&*self.runtime));
            let outcome = self.commits.commit(batch, is_synced, given)?;
            drop(turn);
            match outcome {
                Outcome::Committed(committed) => break committed,
                Outcome::Changed => return Ok(None),
                Outcome::LacksSpace(lack) => self.make_space(&lack, waits)?,
                Outcome::Held => self.wait_for_holds(waits)?,
            }
        };
        if durability == Durability::Synced {
            self.commits.sync_log(committed.position)?;
        }
        self.runtime.turn();
        Ok(Some(committed))
    }

    /// Waits until no writer is held. A caller that must not wait gets `WouldWait`.
    fn wait_for_holds(self: &Arc<Self>, waits: bool) -> Result<()> {
        if !waits {
            let message = "would wait for an ingestion into the keyspace, or for its GC: ingest";
            return Err(Error::new(ErrorKind::WouldWait, message));
        }
        let _inside = self.enter()?;
        let begin_ns = self.runtime.now_ns();
        let waited = self.wait_for(|| self.commits.lock().held.is_empty());
        self.admission.record(StallReason::Ingest, self.runtime.now_ns() - begin_ns);
        waited
    }
}
