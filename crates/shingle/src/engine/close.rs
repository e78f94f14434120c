//! Closing, and the barriers that users can ask for: flush and wait until idle.

use crate::admission::StallReason;
use crate::engine::Engine;
use crate::engine::scheduler;
use crate::event::Event;
use crate::memtable::Memtable;
use crate::span::span;
use base::{Error, ErrorKind, Result};
use std::cell::OnceCell;
use std::sync::Arc;

/// A waiting thread checks again at least this often.
const LOOK_NS: u64 = 200_000_000;

impl Engine {
    /// Waits until `is_done`. Without background threads, does their work meanwhile. The caller is
    /// inside the gate, and leaves when closing begins.
    pub(crate) fn wait_for(self: &Arc<Self>, is_done: impl Fn() -> bool) -> Result<()> {
        let before = self.scheduler.last_try();
        loop {
            let seen = self.progress.count();
            if is_done() {
                return Ok(());
            }
            self.check_poisoned()?;
            self.check_open()?;
            if self.settings.start_threads {
                let deadline_ns = self.runtime.now_ns() + LOOK_NS;
                self.runtime.wake();
                self.runtime.wait(&self.progress, seen, Some(deadline_ns));
            } else if !scheduler::step_and_tell(self) {
                if is_done() {
                    return Ok(());
                }
                return Err(self.scheduler.last_error().unwrap_or_else(|| self.closed()));
            }
            if let Some(error) = self.scheduler.error_of_wait(before) {
                return Err(error);
            }
        }
    }

    /// Flushes everything written before the call. A concurrent close does the same.
    pub(crate) fn flush(self: &Arc<Self>) -> Result<()> {
        let inside = self.enter()?;
        let flushed = self.flush_all();
        drop(inside);
        match flushed {
            Err(error) if error.kind() == ErrorKind::Closed && self.is_closing() => self.close(),
            flushed => flushed,
        }
    }

    /// Has everything written before the call flushed in the background.
    pub(crate) fn begin_flush(self: &Arc<Self>) -> Result<()> {
        let _inside = self.enter()?;
        self.commits.seal_all()?;
        self.runtime.wake();
        Ok(())
    }

    pub(crate) fn flush_all(self: &Arc<Self>) -> Result<()> {
        let waiting = self.commits.seal_all()?;
        self.wait_flushed(&waiting)
    }

    /// Waits until `waiting` are in runs.
    pub(crate) fn wait_flushed(self: &Arc<Self>, waiting: &[Arc<Memtable>]) -> Result<()> {
        self.wait_for(|| {
            let state = self.commits.lock();
            let waits = |m: &Arc<Memtable>| waiting.iter().any(|w| Arc::ptr_eq(w, m));
            !state.sealed.iter().any(|sealed| waits(&sealed.memtable))
        })
    }

    /// Flushes what recovery replayed, before the database is ready.
    pub(crate) fn flush_replayed(self: &Arc<Self>) -> Result<()> {
        self.commits.lock().flush_through = self.snapshots.visible();
        while !self.commits.lock().sealed.is_empty() {
            self.check_poisoned()?;
            if !scheduler::step_flush(self)? {
                return Err(self.closed());
            }
        }
        Ok(())
    }

    /// Waits until no background work is due.
    pub(crate) fn wait_idle(self: &Arc<Self>) -> Result<()> {
        let _inside = self.enter()?;
        self.versions.lock().forgive_lacks();
        self.wait_for(|| scheduler::is_idle(self))?;
        self.versions.backed_off_error(None).map_or(Ok(()), Err)
    }

    /// Ends all work. Every acknowledged write is durable afterwards.
    pub(crate) fn close(self: &Arc<Self>) -> Result<()> {
        self.check_process()?;
        // A concurrent closer waits here for the same answer.
        let mut result = self.closed_result.lock();
        if let Some(closed) = &*result {
            return closed.clone();
        }
        self.gate.shut();
        self.admission.release();
        self.scheduler.release();
        self.locks.close();
        self.sealed.signal();
        self.progress.signal();
        self.note_changes();
        if !self.read_only {
            self.runtime.stop();
        }
        self.gate.wait_empty(&*self.runtime);
        let closed = if self.read_only { Ok(()) } else { span!("close").within(|| self.settle()) };
        self.finish_writing();
        #[cfg(any(test, feature = "testing"))]
        if closed.is_ok() && !self.read_only {
            self.assert_consistent();
        }
        self.events.deliver();
        drop(self.lock.lock().take());
        self.progress.signal();
        *result = Some(closed.clone());
        closed
    }

    /// Ends all writes. A thread that holds a lock of the engine may still be writing; a thread
    /// that takes a lock later finds the database closed.
    fn finish_writing(self: &Arc<Self>) {
        scheduler::abandon_all(self);
        self.pass_locks();
        let now_ns = self.runtime.now_ns();
        self.events.end_stall(true, || self.admission.stalls());
        self.noted.note(self.ledger(), &self.admission, &self.events, now_ns);
        self.events.end();
    }

    fn pass_locks(&self) {
        drop(self.versions.lock());
        self.commits.pass_sync();
        drop(self.commits.lock());
    }

    fn settle(self: &Arc<Self>) -> Result<()> {
        self.check_poisoned()?;
        scheduler::abandon_moves(self);
        let position = self.commits.lock().position();
        self.commits.sync_log(position)?;
        let waiting = self.commits.seal_all()?;
        // Everything will be in runs: no log is needed any more.
        self.commits.lock().log = None;
        if !waiting.is_empty() {
            self.with_reserve(|| self.flush_replayed())?;
        }
        // All writes are durable. Merges that fail wait for the next opening, and so do segments
        // that cannot be removed. The exception is an edit of unknown outcome: then no file may be
        // removed.
        let tidied =
            scheduler::finish_small_moves(self).and_then(|()| self.remove_empty_segments());
        if let Err(error) = tidied {
            self.events.add(Event::ClosingCompactionFailed { error });
            self.check_poisoned()?;
        }
        while crate::engine::clean::step(self) {}
        self.check_poisoned()?;
        self.versions.vouch_for_manifest()
    }

    /// For one write: checks that it may go on waiting, given why it is stopped, if it is. A
    /// stopped write gets the error of the background work that it needs, because that work may
    /// fail for long.
    pub(crate) fn check_of_wait(&self) -> impl Fn(Option<StallReason>) -> Result<()> {
        let before = OnceCell::new();
        move |stop| {
            self.check_writable()?;
            let Some(reason) = stop else { return Ok(()) };
            let before = before.get_or_init(|| self.scheduler.last_try());
            if let Some(error) = self.scheduler.error_of_wait(*before) {
                return Err(error);
            }
            // A flush ends the other stops, whatever compactions do.
            let needs_compaction = reason == StallReason::Level0;
            let error = needs_compaction.then(|| scheduler::error_of_full_level0(self)).flatten();
            error.map_or(Ok(()), Err)
        }
    }

    /// The error that stopped background work, if there is one.
    pub(crate) fn background_error(&self) -> Option<Error> {
        let of_all = self.poisoned_by().cloned().or_else(|| self.scheduler.last_error());
        of_all.or_else(|| self.versions.backed_off_error(None))
    }
}
