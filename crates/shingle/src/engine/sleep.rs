//! When workers sleep without a deadline, and what wakes them.
//!
//! An idle database in which nothing is left to do uses no CPU: its workers sleep until they are
//! woken. A commit or the end of a reader may give them something to do. Both check this flag, so
//! that they wake workers once and not each time.

use base::SequenceNumber;
use base::env::Runtime;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// Whether workers sleep until they are woken.
#[derive(Default)]
pub(crate) struct Sleep {
    is_asleep: AtomicBool,
    /// Readers that ended so far, and had held what no later reader needs.
    ended_readers: AtomicU64,
}

impl Sleep {
    #[inline]
    pub(crate) fn is_asleep(&self) -> bool {
        self.is_asleep.load(Relaxed)
    }

    /// The number of readers that ended, for [`Sleep::begin`]. Taken before a look for work.
    pub(crate) fn ended_readers(&self) -> u64 {
        self.ended_readers.load(SeqCst)
    }

    /// A look for work found nothing, unless a reader has ended since there were `ended_readers`.
    /// The caller holds the commit lock and knows the newest sequence number: a commit comes before
    /// this call, and the caller has seen it, or after, and it finds the flag set.
    pub(crate) fn begin(&self, ended_readers: u64) {
        self.is_asleep.store(true, SeqCst);
        // A reader first counts its end and then looks at the flag: one of the two sees the other.
        if self.ended_readers() != ended_readers {
            self.is_asleep.store(false, SeqCst);
        }
    }

    /// Workers have something to look at. `true`: they slept, and must be woken.
    pub(crate) fn end(&self) -> bool {
        self.is_asleep.swap(false, SeqCst)
    }

    /// A commit was made; it holds the commit lock.
    #[inline]
    pub(crate) fn end_by_commit(&self, runtime: &dyn Runtime) {
        if self.is_asleep() {
            self.wake(runtime);
        }
    }

    /// The last reader of `sequence` ended. The newest sequence number is `visible`.
    pub(crate) fn end_by_reader(
        &self,
        sequence: SequenceNumber,
        visible: SequenceNumber,
        runtime: &dyn Runtime,
    ) {
        // Without later writes, what it has read is what the next reader reads.
        if sequence < visible {
            self.ended_readers.fetch_add(1, SeqCst);
            self.wake(runtime);
        }
    }

    #[cold]
    fn wake(&self, runtime: &dyn Runtime) {
        if self.end() {
            runtime.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sleep_begins_when_a_reader_ended_during_the_look() {
        let (sleep, runtime) = (Sleep::default(), crate::runtime::Threads::new());
        let before = sleep.ended_readers();
        sleep.end_by_reader(7, 7, &runtime);
        sleep.begin(before);
        assert!(sleep.is_asleep(), "that reader held nothing");
        sleep.end_by_reader(7, 9, &runtime);
        assert!(!sleep.is_asleep());
        sleep.begin(before);
        assert!(!sleep.is_asleep(), "the look was before its end");
        sleep.begin(sleep.ended_readers());
        sleep.end_by_commit(&runtime);
        assert!(!sleep.is_asleep());
    }
}
