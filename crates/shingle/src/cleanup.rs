//! What compactions removed or changed on their own: expired values, and the decisions of filters.

use crate::json;
use crate::reduce::Counts;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What flushes and compactions did with the values of a keyspace that expire, or that its filter
/// decides about, since the database was opened.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = shingle::Options::new().open(dir.path())?;
/// for cleanup in db.stats().cleanup {
///     println!("{}: {} expired values removed", cleanup.keyspace, cleanup.expired);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CleanupStats {
    /// The keyspace.
    pub keyspace: String,
    /// Expired values removed. Garbage collection deletes the keys of expired values whose segments
    /// it reads, and does not count them.
    pub expired: u64,
    /// Values that the filter was asked about and kept.
    pub filter_kept: u64,
    /// Values that the filter dropped.
    pub filter_dropped: u64,
    /// Values that the filter replaced.
    pub filter_replaced: u64,
    /// The process does not know the keyspace's filter: compactions go on without it.
    pub lacks_filter: bool,
}

impl CleanupStats {
    /// As one JSON object.
    pub(crate) fn to_json(&self) -> String {
        json::object([
            ("keyspace", json::string(&self.keyspace)),
            ("expired", self.expired.to_string()),
            ("filter_kept", self.filter_kept.to_string()),
            ("filter_dropped", self.filter_dropped.to_string()),
            ("filter_replaced", self.filter_replaced.to_string()),
            ("lacks_filter", self.lacks_filter.to_string()),
        ])
    }
}

impl fmt::Display for CleanupStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CleanupStats {
            keyspace, expired, filter_kept, filter_dropped, filter_replaced, ..
        } = self;
        write!(f, "Keyspace `{keyspace}`: {expired} expired values removed")?;
        if filter_kept + filter_dropped + filter_replaced > 0 {
            write!(
                f,
                "; filter: {filter_kept} kept, {filter_dropped} dropped, {filter_replaced} replaced"
            )?;
        }
        let end = if self.lacks_filter { "; its compaction filter is not known" } else { "" };
        f.write_str(end)
    }
}

/// The counters of one keyspace.
#[derive(Debug, Default)]
pub(crate) struct Cleanup {
    expired: AtomicU64,
    kept: AtomicU64,
    dropped: AtomicU64,
    replaced: AtomicU64,
}

impl Cleanup {
    /// Adds the work of a job whose output is in the tree.
    pub(crate) fn add(&self, counts: &Counts) {
        let pairs = [
            (&self.expired, counts.expired),
            (&self.kept, counts.kept),
            (&self.dropped, counts.dropped),
            (&self.replaced, counts.replaced),
        ];
        for (sum, more) in pairs.into_iter().filter(|(_, more)| *more > 0) {
            sum.fetch_add(more, Relaxed);
        }
    }

    /// Adds what the parts of a job did.
    pub(crate) fn add_all(&self, job: &Cleanup) {
        self.add(&Counts {
            expired: job.expired.load(Relaxed),
            kept: job.kept.load(Relaxed),
            dropped: job.dropped.load(Relaxed),
            replaced: job.replaced.load(Relaxed),
            ..Counts::default()
        });
    }

    /// A filter changed something.
    pub(crate) fn is_filtered(&self) -> bool {
        self.dropped.load(Relaxed) + self.replaced.load(Relaxed) > 0
    }

    /// Values had expired.
    pub(crate) fn has_expired(&self) -> bool {
        self.expired.load(Relaxed) > 0
    }

    /// Expired values went without a rewrite.
    pub(crate) fn add_expired(&self, count: u64) {
        self.expired.fetch_add(count, Relaxed);
    }

    pub(crate) fn stats(&self, keyspace: &str, lacks_filter: bool) -> CleanupStats {
        CleanupStats {
            keyspace: keyspace.to_string(),
            expired: self.expired.load(Relaxed),
            filter_kept: self.kept.load(Relaxed),
            filter_dropped: self.dropped.load(Relaxed),
            filter_replaced: self.replaced.load(Relaxed),
            lacks_filter,
        }
    }
}
