//! A keyspace inside the engine: its fixed properties, and the view that its readers use.

use crate::cleanup::Cleanup;
use crate::compaction_filter::CompactionFilter;
use crate::memtable::Memtable;
use crate::merge_operator::KeyspaceOperator;
use crate::read::context::ReadContext;
use crate::read::view::{ReadView, TreeView};
use crate::value_rules::ValueRules;
use base::{Error, ErrorKind, KeyspaceId, Result};
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use table::PrefixRule;
use tree::moves::OlderData;
use tree::policy::{Limits, Policy};
use tree::{Input, Version};

/// The longest time to live of a keyspace.
const TTL_MAX: Duration = Duration::from_secs(1000 * 366 * 86_400);

/// Fixed properties of a keyspace, given when it is created and stored in the manifest.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = shingle::Options::new().open(dir.path())?;
/// use shingle::{KeyspaceOptions, PrefixRule};
///
/// // Filters also know the first 8 bytes of each key: scans with such a prefix skip tables.
/// let options =
///     KeyspaceOptions { prefix: PrefixRule::Fixed(8), ..KeyspaceOptions::default() };
/// db.create_keyspace("events", options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceOptions {
    /// Writes skip the log: a crash, even of the process alone, loses what is not flushed. For
    /// stores behind a replicated log. All keyspaces without a log are flushed together,
    /// atomically.
    pub without_wal: bool,
    /// The name of the operator that its merge operands need.
    pub merge_operator: Option<String>,
    /// Time to live of its values: a write that does not say otherwise expires after this time. Not
    /// for a keyspace with a merge operator, because operands do not expire.
    pub ttl: Option<Duration>,
    /// The name of the filter that its compactions ask.
    pub compaction_filter: Option<String>,
    /// The part of a key that its filters contain beside the whole key.
    pub prefix: PrefixRule,
    /// Sorted files may be ingested below what is there
    /// ([`IngestOptions::below`](crate::IngestOptions)). So every deletion is kept for good: it
    /// must hide what may come below it later.
    pub ingests_below: bool,
}

impl Default for KeyspaceOptions {
    fn default() -> KeyspaceOptions {
        KeyspaceOptions {
            without_wal: false,
            merge_operator: None,
            ttl: None,
            compaction_filter: None,
            prefix: PrefixRule::None,
            ingests_below: false,
        }
    }
}

impl KeyspaceOptions {
    /// The form in the manifest: one `key = value` line each, without defaults.
    pub(crate) fn encode(&self) -> String {
        let mut text = String::new();
        if self.without_wal {
            text.push_str("without_wal = true\n");
        }
        if let Some(name) = &self.merge_operator {
            text.push_str(&format!("merge_operator = {name}\n"));
        }
        if let Some(ttl) = self.ttl {
            text.push_str(&format!("ttl_ms = {}\n", ttl.as_millis()));
        }
        if let Some(name) = &self.compaction_filter {
            text.push_str(&format!("compaction_filter = {name}\n"));
        }
        if self.ingests_below {
            text.push_str("ingests_below = true\n");
        }
        match self.prefix {
            PrefixRule::None => {}
            PrefixRule::Fixed(bytes) => text.push_str(&format!("prefix = fixed {bytes}\n")),
            PrefixRule::Delimiter { byte, count } => {
                text.push_str(&format!("prefix = delimiter {byte} {count}\n"));
            }
        }
        text
    }

    /// Checks what can be said of the options alone. `InvalidArgument` otherwise.
    pub(crate) fn check(&self) -> Result<()> {
        let is_plain = |name: &String| !name.chars().any(char::is_control);
        if !self.merge_operator.as_ref().is_none_or(is_plain) {
            return Err(Error::invalid("the name of a merge operator has control characters"));
        }
        if !self.compaction_filter.as_ref().is_none_or(is_plain) {
            return Err(Error::invalid("the name of a compaction filter has control characters"));
        }
        let Some(ttl) = self.ttl else { return Ok(()) };
        if self.merge_operator.is_some() {
            return Err(Error::invalid(
                "a keyspace with a merge operator has no time to live: operands do not expire",
            ));
        }
        if ttl.subsec_nanos() % 1_000_000 != 0 || ttl.is_zero() || ttl > TTL_MAX {
            return Err(Error::invalid(
                "a time to live is a whole number of milliseconds, from 1 to 1000 years",
            ));
        }
        Ok(())
    }

    pub(crate) fn decode(text: &str) -> Result<KeyspaceOptions> {
        let mut options = KeyspaceOptions::default();
        for line in text.lines() {
            let unknown = || {
                let message =
                    format!("a keyspace has the property `{line}`, unknown to this version");
                Error::new(ErrorKind::Incompatible, message)
            };
            let (key, value) = line.split_once(" = ").ok_or_else(unknown)?;
            match key {
                "without_wal" => options.without_wal = value.parse().map_err(|_| unknown())?,
                "ingests_below" => options.ingests_below = value.parse().map_err(|_| unknown())?,
                "merge_operator" => options.merge_operator = Some(value.to_string()),
                "ttl_ms" => {
                    let millis = value.parse().map_err(|_| unknown())?;
                    options.ttl = Some(Duration::from_millis(millis));
                }
                "compaction_filter" => options.compaction_filter = Some(value.to_string()),
                "prefix" => options.prefix = parse_prefix(value).ok_or_else(unknown)?,
                _ => return Err(unknown()),
            }
        }
        Ok(options)
    }
}

fn parse_prefix(text: &str) -> Option<PrefixRule> {
    let words: Vec<&str> = text.split(' ').collect();
    match words.as_slice() {
        ["fixed", bytes] => Some(PrefixRule::Fixed(bytes.parse().ok()?)),
        ["delimiter", byte, count] => {
            Some(PrefixRule::Delimiter { byte: byte.parse().ok()?, count: count.parse().ok()? })
        }
        _ => None,
    }
}

/// What the database's options determine for each keyspace.
pub(crate) struct Rules {
    pub filter: Option<Arc<dyn CompactionFilter>>,
    pub policy: Arc<dyn Policy>,
    pub limits: Limits,
    pub values: ValueRules,
}

/// One keyspace.
pub(crate) struct KeyspaceState {
    pub id: KeyspaceId,
    pub name: String,
    pub options: KeyspaceOptions,
    pub operator: Option<Arc<KeyspaceOperator>>,
    /// `None` also where this process does not know it.
    pub filter: Option<Arc<dyn CompactionFilter>>,
    pub policy: Arc<dyn Policy>,
    pub limits: Limits,
    pub values: ValueRules,
    view: RwLock<Arc<ReadView>>,
    /// Beside the lock, which every read touches anyway.
    reads: AtomicU64,
    dropped: AtomicBool,
    /// The manifest allows entries that expire.
    may_expire: AtomicBool,
    pub cleanup: Cleanup,
}

impl KeyspaceState {
    pub(crate) fn new(
        id: KeyspaceId,
        name: String,
        options: KeyspaceOptions,
        operator: Option<Arc<KeyspaceOperator>>,
        rules: Rules,
        view: ReadView,
    ) -> KeyspaceState {
        KeyspaceState {
            id,
            name,
            options,
            operator,
            filter: rules.filter,
            policy: rules.policy,
            limits: rules.limits,
            values: rules.values,
            view: RwLock::new(Arc::new(view)),
            reads: AtomicU64::new(0),
            dropped: AtomicBool::new(false),
            may_expire: AtomicBool::new(false),
            cleanup: Cleanup::default(),
        }
    }

    /// The view for a read that begins now. Its sequence number is a separate question: see
    /// [`crate::read::moment`].
    #[inline]
    pub(crate) fn view(&self) -> Arc<ReadView> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.view.read().clone()
    }

    /// [`KeyspaceState::view`] that counts as no read.
    pub(crate) fn current_view(&self) -> Arc<ReadView> {
        self.view.read().clone()
    }

    /// The current tree, for a caller that reads nothing of it.
    pub(crate) fn tree(&self) -> Arc<TreeView> {
        self.view.read().tree.clone()
    }

    /// Files may have come in below since `view` was taken.
    pub(crate) fn may_have_more_below(&self, view: &ReadView) -> bool {
        self.options.ingests_below && !self.tree().has_same_below(&view.tree)
    }

    /// The number of views taken: point reads, and cursors made.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    fn change_view(&self, change: impl FnOnce(&mut ReadView)) {
        let mut view = self.view.write();
        let mut next = ReadView::clone(&view);
        change(&mut next);
        *view = Arc::new(next);
    }

    /// From this call on, writes go to `fresh`; the active memtable waits for its flush.
    pub(crate) fn seal(&self, fresh: Arc<Memtable>) {
        self.change_view(|view| {
            let sealed = std::mem::replace(&mut view.active, fresh);
            view.sealed.insert(0, sealed);
        });
    }

    /// From this call on, writes go to `fresh`; the active memtable has no entries.
    pub(crate) fn renew(&self, fresh: Arc<Memtable>) {
        self.change_view(|view| view.active = fresh);
    }

    /// Adds a memtable that recovery filled; it is newer than those added before.
    pub(crate) fn add_sealed(&self, memtable: Arc<Memtable>) {
        self.change_view(|view| view.sealed.insert(0, memtable));
    }

    /// Space for records of large values, beside `pending_bytes` that memtables are going to add;
    /// `None` where nothing bounds it.
    pub(crate) fn value_space_bytes(&self, pending_bytes: u64) -> Option<u64> {
        self.value_space_bytes_for_gc(pending_bytes, 0)
    }

    /// The same, for a GC that will free `freed_bytes`.
    pub(crate) fn value_space_bytes_for_gc(
        &self,
        pending_bytes: u64,
        freed_bytes: u64,
    ) -> Option<u64> {
        self.values.capacity_bytes()?;
        self.values.space_bytes_for_gc(self.segment_bytes() + pending_bytes, freed_bytes)
    }

    /// Bytes of the segments in the tree.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.view().tree.segments.usage().total_bytes
    }

    /// Shows `tree` to readers; it contains the memtables in `flushed`.
    pub(crate) fn install(&self, tree: Arc<TreeView>, flushed: &[Arc<Memtable>]) {
        self.change_view(|view| {
            view.tree = tree;
            let is_flushed = |m: &Arc<Memtable>| flushed.iter().any(|f| Arc::ptr_eq(f, m));
            view.sealed.retain(|memtable| !is_flushed(memtable));
        });
    }

    /// Releases the tree and the memtables of a dropped keyspace.
    pub(crate) fn empty_view(&self, context: &Arc<ReadContext>) {
        let nothing = Arc::new(Version::empty(1));
        let tree = Arc::new(TreeView::new(nothing, None, context));
        self.change_view(|view| {
            view.sealed.clear();
            view.tree = tree;
        });
    }

    /// Where versions may be that are older than a merge of `inputs` into `to_level`; anywhere, if
    /// some can still come below.
    pub(crate) fn older_data(
        &self,
        version: &Version,
        inputs: &[Input],
        to_level: u8,
    ) -> OlderData {
        if self.options.ingests_below {
            return OlderData::everywhere();
        }
        OlderData::new(version, inputs, to_level)
    }

    /// The manifest allows entries that expire.
    pub(crate) fn may_expire(&self) -> bool {
        self.may_expire.load(Ordering::Acquire)
    }

    pub(crate) fn set_may_expire(&self) {
        self.may_expire.store(true, Ordering::Release);
    }

    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_dropped() { Err(self.dropped_error()) } else { Ok(()) }
    }

    #[cold]
    fn dropped_error(&self) -> Error {
        Error::new(ErrorKind::Closed, format!("keyspace `{}` was dropped", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_the_manifest() {
        for options in [
            KeyspaceOptions::default(),
            KeyspaceOptions {
                without_wal: true,
                merge_operator: Some("add-u64".into()),
                ttl: None,
                compaction_filter: Some("no-guests".into()),
                ingests_below: true,
                prefix: PrefixRule::Delimiter { byte: b'/', count: 2 },
            },
            KeyspaceOptions { prefix: PrefixRule::Fixed(8), ..KeyspaceOptions::default() },
            KeyspaceOptions {
                ttl: Some(Duration::from_millis(90_001)),
                ..KeyspaceOptions::default()
            },
        ] {
            assert_eq!(KeyspaceOptions::decode(&options.encode()).unwrap(), options);
        }
    }

    #[test]
    fn properties_of_a_newer_version_are_refused() {
        let error = KeyspaceOptions::decode("colour = blue\n").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Incompatible);
    }
}
