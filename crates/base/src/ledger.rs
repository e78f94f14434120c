//! The ledger: every byte with its cause, always on.
//!
//! A file store writes here at the one place where it issues a request, so that the sum over causes
//! equals what the store below received, to the byte; and beside it, by the same cause, what the
//! medium moved where the store knows. The engine adds what users wrote and read.
//! Counters only grow; an interval is the difference of two [`LedgerSnapshot`]s.

use crate::cause::Cause;
use crate::striped::Striped;
use std::array;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Debug, Default)]
struct Cell {
    write_bytes: AtomicU64,
    write_ops: AtomicU64,
    read_bytes: AtomicU64,
    read_ops: AtomicU64,
    sync_ops: AtomicU64,
    media_write_bytes: AtomicU64,
    media_read_bytes: AtomicU64,
}

/// Counters of one cause, or sums over several. Bytes are host bytes, what the store was asked to
/// move, where the name does not say media.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Bytes written, padding included.
    pub write_bytes: u64,
    /// Write requests.
    pub write_ops: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Read requests.
    pub read_ops: u64,
    /// Requests to make earlier writes durable.
    pub sync_ops: u64,
    /// Bytes that the device wrote to its medium; 0 where it does not say.
    pub media_write_bytes: u64,
    /// Bytes that the device read from its medium; 0 where it does not say.
    pub media_read_bytes: u64,
}

impl Traffic {
    fn zip(self, other: Traffic, f: impl Fn(u64, u64) -> u64) -> Traffic {
        Traffic {
            write_bytes: f(self.write_bytes, other.write_bytes),
            write_ops: f(self.write_ops, other.write_ops),
            read_bytes: f(self.read_bytes, other.read_bytes),
            read_ops: f(self.read_ops, other.read_ops),
            sync_ops: f(self.sync_ops, other.sync_ops),
            media_write_bytes: f(self.media_write_bytes, other.media_write_bytes),
            media_read_bytes: f(self.media_read_bytes, other.media_read_bytes),
        }
    }
}

/// The counters of one database, shared by its file store and its engine.
#[derive(Debug)]
pub struct Ledger {
    host: [Cell; Cause::COUNT],
    user_write_bytes: AtomicU64,
    user_read_bytes: Striped,
}

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger {
            host: array::from_fn(|_| Cell::default()),
            user_write_bytes: AtomicU64::default(),
            user_read_bytes: Striped::default(),
        }
    }
}

impl Ledger {
    /// A write request of `bytes` was issued.
    #[inline]
    pub fn wrote(&self, cause: Cause, bytes: u64) {
        let cell = &self.host[cause.index()];
        cell.write_bytes.fetch_add(bytes, Relaxed);
        cell.write_ops.fetch_add(1, Relaxed);
    }

    /// A read request of `bytes` was issued.
    pub fn read(&self, cause: Cause, bytes: u64) {
        let cell = &self.host[cause.index()];
        cell.read_bytes.fetch_add(bytes, Relaxed);
        cell.read_ops.fetch_add(1, Relaxed);
    }

    /// A sync request was issued.
    pub fn synced(&self, cause: Cause) {
        self.host[cause.index()].sync_ops.fetch_add(1, Relaxed);
    }

    /// The user wrote `bytes` of keys and values.
    pub fn user_wrote(&self, bytes: u64) {
        self.user_write_bytes.fetch_add(bytes, Relaxed);
    }

    /// The user received `bytes` of keys and values.
    #[inline]
    pub fn user_read(&self, bytes: u64) {
        self.user_read_bytes.add(bytes);
    }

    /// The device under the store wrote `bytes` to its medium.
    pub fn media_wrote(&self, cause: Cause, bytes: u64) {
        self.host[cause.index()].media_write_bytes.fetch_add(bytes, Relaxed);
    }

    /// The device under the store read `bytes` from its medium.
    pub fn media_read(&self, cause: Cause, bytes: u64) {
        self.host[cause.index()].media_read_bytes.fetch_add(bytes, Relaxed);
    }

    /// The counters as they stand.
    pub fn snapshot(&self) -> LedgerSnapshot {
        let mut host = [Traffic::default(); Cause::COUNT];
        for (traffic, cell) in host.iter_mut().zip(&self.host) {
            *traffic = Traffic {
                write_bytes: cell.write_bytes.load(Relaxed),
                write_ops: cell.write_ops.load(Relaxed),
                read_bytes: cell.read_bytes.load(Relaxed),
                read_ops: cell.read_ops.load(Relaxed),
                sync_ops: cell.sync_ops.load(Relaxed),
                media_write_bytes: cell.media_write_bytes.load(Relaxed),
                media_read_bytes: cell.media_read_bytes.load(Relaxed),
            };
        }
        LedgerSnapshot {
            host,
            user_write_bytes: self.user_write_bytes.load(Relaxed),
            user_read_bytes: self.user_read_bytes.sum(),
        }
    }
}

/// The ledger at one moment, or the difference of two moments.
///
/// ```
/// # extern crate base as shingle;
/// # let (ledger, before) = (shingle::Ledger::default(), shingle::Ledger::default().snapshot());
/// # ledger.wrote(shingle::Cause::Flush, 300);
/// # ledger.user_wrote(100);
/// # let now = ledger.snapshot();
/// // `now` and `before` are `db.stats().ledger` at two moments.
/// let interval = now.since(&before);
/// for (cause, traffic) in interval.causes() {
///     println!("{}: {} bytes written", cause.name(), traffic.write_bytes);
/// }
/// assert_eq!(interval.write_amplification(), Some(3.0));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct LedgerSnapshot {
    host: [Traffic; Cause::COUNT],
    /// Bytes of keys and values that the user wrote.
    pub user_write_bytes: u64,
    /// Bytes of keys and values that the user received.
    pub user_read_bytes: u64,
}

/// Causes by their names; those without traffic are left out.
impl fmt::Debug for LedgerSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("LedgerSnapshot");
        fields.field("user_write_bytes", &self.user_write_bytes);
        fields.field("user_read_bytes", &self.user_read_bytes);
        for (cause, traffic) in self.causes() {
            fields.field(&cause.name(), &traffic);
        }
        fields.finish()
    }
}

impl LedgerSnapshot {
    /// The traffic of one cause.
    pub fn cause(&self, cause: Cause) -> Traffic {
        self.host[cause.index()]
    }

    /// The traffic of all causes.
    pub fn host(&self) -> Traffic {
        self.host.iter().fold(Traffic::default(), |sum, t| sum.zip(*t, |a, b| a + b))
    }

    /// What happened since `earlier`.
    pub fn since(&self, earlier: &LedgerSnapshot) -> LedgerSnapshot {
        let mut host = self.host;
        for (now, then) in host.iter_mut().zip(&earlier.host) {
            *now = now.zip(*then, u64::saturating_sub);
        }
        LedgerSnapshot {
            host,
            user_write_bytes: self.user_write_bytes.saturating_sub(earlier.user_write_bytes),
            user_read_bytes: self.user_read_bytes.saturating_sub(earlier.user_read_bytes),
        }
    }

    /// Write amplification of the store (the papers' WA, or WA1 where a device amplifies again):
    /// host bytes written per user byte written. `None` before the user wrote anything.
    pub fn write_amplification(&self) -> Option<f64> {
        ratio(self.host().write_bytes, self.user_write_bytes)
    }

    /// [`LedgerSnapshot::write_amplification`] without the log, as papers count that let the page
    /// cache absorb it.
    pub fn write_amplification_without_wal(&self) -> Option<f64> {
        let wal = self.cause(Cause::Wal).write_bytes;
        ratio(self.host().write_bytes - wal, self.user_write_bytes)
    }

    /// The traffic of merges: moves of the tree with a rewrite.
    pub fn merges(&self) -> Traffic {
        self.traffic(Cause::is_compaction)
    }

    /// The traffic of everything but what users read, and opening.
    pub fn without_user_reads(&self) -> Traffic {
        use Cause::{Get, OpenRun, Recovery, Scan};
        self.traffic(|cause| !matches!(cause, Get | Scan | OpenRun | Recovery))
    }

    /// The traffic of these causes together.
    pub fn traffic(&self, is_wanted: impl Fn(Cause) -> bool) -> Traffic {
        let wanted = Cause::all().filter(|cause| is_wanted(*cause));
        wanted.fold(Traffic::default(), |sum, cause| sum.zip(self.cause(cause), |a, b| a + b))
    }

    /// Every cause that moved anything.
    pub fn causes(&self) -> impl Iterator<Item = (Cause, Traffic)> {
        let each = Cause::all().map(|cause| (cause, self.cause(cause)));
        each.filter(|(_, traffic)| *traffic != Traffic::default())
    }

    /// Auxiliary write amplification (AWA, WA2): device writes per host byte written. `None` where
    /// the device does not say.
    pub fn auxiliary_write_amplification(&self) -> Option<f64> {
        let host = self.host();
        ratio(host.media_write_bytes, host.write_bytes).filter(|_| self.knows_medium())
    }

    /// Multiplicative write amplification (MWA): device writes per user byte written.
    pub fn multiplicative_write_amplification(&self) -> Option<f64> {
        ratio(self.host().media_write_bytes, self.user_write_bytes).filter(|_| self.knows_medium())
    }

    /// Read amplification of merges (RA in LWC-tree): bytes that they read per user byte written.
    pub fn merge_read_amplification(&self) -> Option<f64> {
        ratio(self.merges().read_bytes, self.user_write_bytes)
    }

    /// Auxiliary read amplification (ARA): bytes that the medium read for writes and merges, per
    /// byte that merges read.
    pub fn auxiliary_read_amplification(&self) -> Option<f64> {
        let media = self.without_user_reads().media_read_bytes;
        ratio(media, self.merges().read_bytes).filter(|_| self.knows_medium())
    }

    /// Multiplicative read amplification (MRA): the same per user byte written.
    pub fn multiplicative_read_amplification(&self) -> Option<f64> {
        let media = self.without_user_reads().media_read_bytes;
        ratio(media, self.user_write_bytes).filter(|_| self.knows_medium())
    }

    /// The device said what its medium moved.
    pub fn knows_medium(&self) -> bool {
        let host = self.host();
        host.media_write_bytes > 0 || host.media_read_bytes > 0
    }

    /// Read amplification: host bytes read for gets, scans and the opening of runs, per user byte
    /// received. `None` before the user received anything.
    pub fn read_amplification(&self) -> Option<f64> {
        let causes = [Cause::Get, Cause::Scan, Cause::OpenRun];
        ratio(causes.map(|cause| self.cause(cause).read_bytes).iter().sum(), self.user_read_bytes)
    }
}

fn ratio(a: u64, b: u64) -> Option<f64> {
    (b > 0).then(|| a as f64 / b as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_prints_the_names_of_causes() {
        let ledger = Ledger::default();
        ledger.wrote(Cause::Flush, 7);
        let text = format!("{:?}", ledger.snapshot());
        assert!(text.contains("flush: Traffic { write_bytes: 7"), "{text}");
        assert!(!text.contains('['), "{text}");
    }

    #[test]
    fn sums_over_causes_and_intervals_agree() {
        let ledger = Ledger::default();
        ledger.user_wrote(100);
        ledger.wrote(Cause::Wal, 110);
        let middle = ledger.snapshot();
        ledger.wrote(Cause::Flush, 90);
        ledger.wrote(Cause::Compaction(3), 400);
        ledger.read(Cause::Compaction(3), 380);
        ledger.synced(Cause::Wal);
        ledger.media_wrote(Cause::Flush, 360);
        ledger.media_wrote(Cause::Wal, 110);
        ledger.media_read(Cause::Compaction(3), 380);
        let end = ledger.snapshot();
        assert_eq!(end.host().write_bytes, 600);
        assert_eq!(end.since(&middle).host().write_bytes, 490);
        assert_eq!(end.cause(Cause::Compaction(3)).read_bytes, 380);
        assert_eq!(end.write_amplification(), Some(6.0));
        assert_eq!(end.write_amplification_without_wal(), Some(4.9));
        assert_eq!(end.host().sync_ops, 1);
        assert_eq!(end.cause(Cause::Flush).media_write_bytes, 360);
        assert_eq!(end.since(&middle).host().media_write_bytes, 470);
        assert_eq!(end.host().media_read_bytes, 380);
        assert_eq!(end.auxiliary_write_amplification(), Some(470.0 / 600.0));
        assert_eq!(end.multiplicative_write_amplification(), Some(4.7));
        assert_eq!(end.merge_read_amplification(), Some(3.8));
        assert_eq!(end.auxiliary_read_amplification(), Some(1.0));
        assert_eq!(end.multiplicative_read_amplification(), Some(3.8));
        assert_eq!(middle.auxiliary_write_amplification(), None);
    }

    #[test]
    fn reads_of_many_threads_are_summed_and_compared_with_what_they_cost() {
        /// More than a counter has stripes.
        const THREADS: usize = 32;
        let ledger = Ledger::default();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| (0..100).for_each(|_| ledger.user_read(3)));
            }
        });
        let bytes = 300 * THREADS as u64;
        ledger.read(Cause::Get, 2 * bytes);
        ledger.read(Cause::Scan, bytes);
        ledger.read(Cause::Flush, 77);
        let snapshot = ledger.snapshot();
        assert_eq!(snapshot.user_read_bytes, bytes);
        assert_eq!(snapshot.read_amplification(), Some(3.0));
    }

    #[test]
    fn no_ratio_without_user_bytes() {
        assert_eq!(Ledger::default().snapshot().write_amplification(), None);
    }
}
