//! Compaction filters: the application decides, when a value is compacted, whether it stays.
//!
//! A filter is named, and a keyspace names its filter, as with merge operators. Nothing needs a
//! filter to read: a process that does not know the filter of a keyspace opens the database, and
//! compacts the keyspace without it.
//!
//! A filter is the program's own code. Where it fails or panics, the compaction fails, its inputs
//! stay as they are, and it is tried again after a pause.

use base::key::display_key;
use base::{Error, ErrorKind, Expiry, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use table::Bytes;

/// What a compaction does with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterDecision {
    /// The value stays.
    Keep,
    /// The key is deleted.
    Drop,
    /// The key has this value instead; its expiry, if any, stays.
    Replace(Vec<u8>),
}

/// A key and its value, as a compaction shows them to a filter.
pub struct FilterEntry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) expiry: Option<Expiry>,
    pub(crate) value: &'a dyn Fn() -> Result<Bytes>,
}

impl FilterEntry<'_> {
    /// The key.
    pub fn key(&self) -> &[u8] {
        self.key
    }

    /// When the value expires, if it does.
    pub fn expiry(&self) -> Option<Expiry> {
        self.expiry
    }

    /// The value. A separated value is read here: a filter that decides by the key alone does not
    /// call this.
    ///
    /// # Errors
    ///
    /// [`Corruption`](ErrorKind::Corruption) or [`Io`](ErrorKind::Io) where a separated value
    /// cannot be read.
    pub fn value(&self) -> Result<Bytes> {
        (self.value)()
    }
}

/// Decides about the values that a compaction reads.
///
/// A compaction shows the newest version of a key among its inputs, if no snapshot that lives shows
/// it. It never shows merge operands, nor what has expired or was deleted. Flushes do not ask the
/// filter. A decision takes effect when the compaction ends: readers may see the value until then,
/// and the filter may be asked about it again.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use shingle::{CompactionFilter, FilterDecision, FilterEntry, KeyspaceOptions, Options, Result};
/// use std::sync::Arc;
///
/// /// Drops the sessions of guests.
/// struct NoGuests;
///
/// impl CompactionFilter for NoGuests {
///     fn name(&self) -> &str {
///         "no-guests"
///     }
///
///     fn filter(&self, entry: &FilterEntry<'_>) -> Result<FilterDecision> {
///         let is_guest = entry.key().starts_with(b"guest/");
///         Ok(if is_guest { FilterDecision::Drop } else { FilterDecision::Keep })
///     }
/// }
///
/// let db = Options::new().compaction_filter(Arc::new(NoGuests)).open(dir.path())?;
/// let options = KeyspaceOptions {
///     compaction_filter: Some("no-guests".into()),
///     ..KeyspaceOptions::default()
/// };
/// let sessions = db.open_or_create_keyspace("sessions", options)?;
/// sessions.put("guest/1", "")?;
/// sessions.put("user/1", "")?;
/// sessions.compact()?;
/// assert_eq!(sessions.iter().count(), 1);
/// # Ok(())
/// # }
/// ```
pub trait CompactionFilter: Send + Sync {
    /// The name that keyspaces refer to.
    fn name(&self) -> &str;

    /// Decides about one value. Several threads may call it at the same time.
    ///
    /// # Errors
    ///
    /// Why there is no decision. The compaction then fails and is tried again after a pause; the
    /// event log has the error.
    fn filter(&self, entry: &FilterEntry<'_>) -> Result<FilterDecision>;
}

/// The decision of `filter`; an error that names the filter and the key where it fails or panics.
pub(crate) fn decide(
    filter: &Arc<dyn CompactionFilter>,
    entry: &FilterEntry<'_>,
) -> Result<FilterDecision> {
    let failed = |kind, why: &str| {
        let key = display_key(entry.key);
        let message = format!("the compaction filter `{}` at key {key}: {why}", filter.name());
        Error::new(kind, message)
    };
    match catch_unwind(AssertUnwindSafe(|| filter.filter(entry))) {
        Ok(decided) => decided.map_err(|error| match error.kind() {
            // A closed or full database has these kinds; the filter's failure is its own.
            ErrorKind::NoSpace | ErrorKind::Cancelled | ErrorKind::Closed | ErrorKind::Poisoned => {
                failed(ErrorKind::InvalidArgument, error.message())
            }
            kind => failed(kind, error.message()),
        }),
        Err(_) => Err(failed(ErrorKind::InvalidArgument, "it panicked")),
    }
}
