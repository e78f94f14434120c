//! What the tree lock guards: the tree of each keyspace, the parts of it that background work uses,
//! and the open manifest. [`crate::engine::versions`] changes it by edits.

use crate::engine::backed_off::BackedOff;
use crate::engine::read_share::ReadShare;
use crate::keyspace::KeyspaceState;
use crate::memtable::Memtable;
use crate::read::context::ReadContext;
use crate::read::view::TreeView;
use base::{Error, ErrorKind, FileId, KeyspaceId, Result, SequenceNumber};
use media::FileName;
use std::collections::BTreeMap;
use std::sync::Arc;
use table::log::LogWriter;
use tree::edit::{DatabaseEdit, KeyspaceEdit, KeyspaceRecord};
use tree::policy::{self, Busy, Limits, Observed, View};
use tree::{ObsoleteFiles, Plan, RunTable, Version};

/// What the tree lock guards.
pub(crate) struct Trees {
    pub keyspaces: BTreeMap<KeyspaceId, TreeState>,
    pub manifest: Option<Manifest>,
    pub obsolete_files: Arc<ObsoleteFiles>,
    /// The log floor as the manifest has it.
    pub log_floor: FileId,
    /// The mark by which this copy of the database knows its cold store; see [`DatabaseEdit`].
    pub cold_mark: Option<u64>,
    pub next_keyspace: u32,
    /// Moves that failed and wait for another try.
    pub backed_off: Vec<BackedOff>,
    /// Files whose removal failed or waits for its turn.
    pub dead_files: Vec<FileName>,
    /// Files that are being removed.
    pub removals: usize,
}

/// The tree of one keyspace.
pub(crate) struct TreeState {
    pub keyspace: Arc<KeyspaceState>,
    pub version: Arc<Version>,
    /// The same, as policies see it.
    policy_version: Arc<Version>,
    pub runs: RunTable,
    /// The parts that background work uses.
    pub busy: Busy,
    /// The read form of `version`.
    pub view: Arc<TreeView>,
    /// When a run is due because of what has expired, in milliseconds since 1970.
    pub expiry_due_ms: Option<u64>,
    /// What the policy knows of the workload.
    pub observed: Observed,
    read_share: ReadShare,
}

/// The open log of edits.
pub(crate) struct Manifest {
    pub file: FileId,
    pub writer: LogWriter,
    /// Length of the first record, which holds everything. The root has it.
    pub first_bytes: u64,
    /// Length at the last try to begin another one.
    pub tried_bytes: u64,
    /// An append was out of space. The end may hold a part of a record, and the next edit goes to a
    /// new manifest.
    pub is_broken: bool,
}

impl TreeState {
    pub(crate) fn new(
        keyspace: Arc<KeyspaceState>,
        version: Arc<Version>,
        runs: RunTable,
        view: Arc<TreeView>,
        expiry_delay_ms: u64,
    ) -> TreeState {
        TreeState {
            expiry_due_ms: first_due_ms(&version, expiry_delay_ms),
            keyspace,
            policy_version: version.without_below(),
            version,
            runs,
            busy: Busy::default(),
            view,
            observed: Observed::default(),
            read_share: ReadShare::default(),
        }
    }

    /// Notes the workload, for the next pick.
    pub(crate) fn observe(&mut self, sequence: SequenceNumber, is_idle: bool) {
        let reads = self.keyspace.reads();
        self.observed.reads_share = self.read_share.observe(reads, sequence);
        self.observed.seeks = self.view.seeks();
        self.observed.misses = self.view.misses();
        self.observed.is_idle = is_idle;
    }

    /// The move of the keyspace's scheme that is due, or what deletions are worth.
    pub(crate) fn next_move(&self, view: &View<'_>) -> Option<Plan> {
        let policy = &*self.keyspace.policy;
        // Where older data can come below, no merge drops tombstones.
        match self.keyspace.options.ingests_below {
            true => policy.pick(view),
            false => policy::next_move(policy, view),
        }
    }

    /// Makes `version` the tree.
    pub(crate) fn replace(
        &mut self,
        version: Arc<Version>,
        read: &Arc<ReadContext>,
        expiry_delay_ms: u64,
    ) {
        self.expiry_due_ms = first_due_ms(&version, expiry_delay_ms);
        self.view = Arc::new(TreeView::new(version.clone(), Some(&self.view), read));
        self.policy_version = version.without_below();
        self.version = version;
    }

    /// What the policy sees.
    pub(crate) fn picker_view<'a>(
        &'a self,
        limits: &'a Limits,
        oldest: SequenceNumber,
    ) -> View<'a> {
        View {
            version: &self.policy_version,
            busy: &self.busy,
            limits,
            observed: &self.observed,
            oldest_snapshot: oldest,
        }
    }
}

impl Trees {
    pub(crate) fn tree(&mut self, id: KeyspaceId) -> Result<&mut TreeState> {
        self.keyspaces.get_mut(&id).ok_or_else(|| {
            Error::new(ErrorKind::Closed, format!("keyspace {id} does not exist any more"))
        })
    }

    /// For `edit`, which drops more than newer entries hide: readers of the next views do not tell
    /// those of the views before what they stepped over.
    pub(crate) fn renew_hidden(&mut self, edit: &DatabaseEdit) -> Result<()> {
        for part in &edit.keyspaces {
            let tree = self.tree(part.keyspace)?;
            tree.view = Arc::new(tree.view.with_no_hidden());
        }
        Ok(())
    }

    /// One edit that turns an empty database into this one.
    pub(crate) fn snapshot_edit(
        &self,
        engine_numbers: (u64, u64),
        last_sequence: u64,
    ) -> DatabaseEdit {
        let created = self.keyspaces.values().map(|tree| KeyspaceRecord {
            id: tree.keyspace.id,
            name: tree.keyspace.name.clone(),
            options: tree.keyspace.options.encode(),
        });
        let keyspaces = self.keyspaces.values().map(|tree| KeyspaceEdit {
            keyspace: tree.keyspace.id,
            changes: tree.version.snapshot_changes(),
        });
        DatabaseEdit {
            created: created.collect(),
            dropped: Vec::new(),
            keyspaces: keyspaces.collect(),
            next_file: Some(engine_numbers.0),
            next_run: Some(engine_numbers.1),
            next_keyspace: Some(self.next_keyspace),
            last_sequence: Some(last_sequence),
            log_floor: Some(self.log_floor),
            cold_mark: self.cold_mark,
        }
    }
}

/// When the first run of `version` is due because of what has expired, in milliseconds since 1970.
fn first_due_ms(version: &Version, delay_ms: u64) -> Option<u64> {
    if !version.may_expire {
        return None;
    }
    version.slices().filter_map(|slice| slice.run.expiry_due_ms(delay_ms)).min()
}

/// Memtables that an edit brought into the tree.
pub(crate) type Flushed = BTreeMap<KeyspaceId, Vec<Arc<Memtable>>>;
