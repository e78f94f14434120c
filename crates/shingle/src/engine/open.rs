//! Opening: from files to a running engine, in stages.
//!
//! 1. *Found*: the root names the current manifest; the edits in it give the trees.
//! 2. *Checked*: every invariant holds, and every file that the trees refer to exists.
//! 3. *Replayed*: the logs give what was not flushed, as a prefix of the commit order.
//! 4. *Ready*: first, files that no edit ever named, and lost logs, are removed, to free space.
//!    Logs that change feeds may read are restated. Then the replayed memtables are flushed to a
//!    synced run, and a new manifest becomes the root. Only after that are the other leftovers
//!    removed.
//!
//! Nothing on disk changes before stage 4. After a crash in stage 4, the next opening reaches the
//! same state.

use crate::engine::Engine;
use crate::engine::changes::chain::{Newest, end_below, find_chain};
use crate::engine::changes::restate::restate;
use crate::engine::changes::retained::ChangeLogs;
use crate::engine::commit_state::{Active, CommitState, LiveLog, Sealed};
use crate::engine::context::{Numbers, Parts};
use crate::engine::core::Core;
use crate::engine::exchanged::Exchanged;
use crate::engine::memory::Memory;
use crate::engine::recover::{Found, Replayed, find, replay};
use crate::engine::trees::{TreeState, Trees};
use crate::engine::values::active_segment::{CommitValues, UnflushedExtents};
use crate::event::Event;
use crate::keyspace::{KeyspaceOptions, KeyspaceState, Rules};
use crate::memtable::Memtable;
use crate::notes;
use crate::options::Options;
use crate::read::clock::ExpiryClock;
use crate::read::context::ReadContext;
use crate::read::table_cache::TableCache;
use crate::read::values::ValueFiles;
use crate::read::view::{ReadView, TreeView};
use crate::settings::Settings;
use crate::span::span;
use base::env::Runtime;
use base::{DatabaseId, Error, ErrorKind, FileId, KeyspaceId, Result};
use media::{ColdOwner, FileHint, FileKind, FileName, FileStore, FileSummary};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use table::BlockCache;
use table::manifest::decode_root;
use tree::edit::KeyspaceRecord;
use tree::{ObsoleteFiles, RunTable, Version};

/// The name of the keyspace that every database has.
pub(crate) const DEFAULT_KEYSPACE: &str = "default";

/// Opens or creates the database in `store`.
pub(crate) fn open(
    options: &Options,
    store: Arc<dyn FileStore>,
    runtime: Arc<dyn Runtime>,
) -> Result<Arc<Engine>> {
    let opened = span!("open").within(|| open_inside(options, store, runtime))?;
    opened.events.deliver();
    Ok(opened)
}

fn open_inside(
    options: &Options,
    store: Arc<dyn FileStore>,
    runtime: Arc<dyn Runtime>,
) -> Result<Arc<Engine>> {
    let begin_ns = runtime.now_ns();
    let settings = Settings::of_database(options, &*store)?;
    // Before the lock, which writes: a foreign directory must stay unchanged.
    match store.root()? {
        Some(root) => {
            decode_root(&root).map_err(|error| error.in_file("CURRENT"))?;
            expect_new(options, &*store)?;
        }
        None => expect_creation(options, &*store, &store.list()?)?,
    }
    let lock = if options.read_only { store.lock_shared()? } else { store.lock()? };
    // Another process may have created, or removed, the database before this one had the lock.
    let found = match find(&*store)? {
        Some(found) => {
            expect_new(options, &*store)?;
            found
        }
        None => {
            let files = store.list()?;
            expect_creation(options, &*store, &files)?;
            let found = new_database(&files, &*runtime);
            found.check_cold_owner(&*store)?;
            found
        }
    };
    let mut useless = found.strays();
    let replayed =
        span!("recovery").within(|| replay(&*store, &found, settings.memtable_bytes_max))?;
    if !options.read_only {
        Exchanged::new(&*store, &found).check_useless(&replayed.lost_logs)?;
        useless.extend(replayed.lost_logs.iter().copied().map(FileName::wal));
    }
    let readers = Readers::new(options, &settings, (&store, &runtime), found.database);
    let read_only = options.read_only;
    let follows = false;
    let foundation = Foundation { store, runtime, settings, readers, read_only, follows };
    let changes = match read_only {
        true => None,
        false => change_logs(&foundation, &found, &replayed)?,
    };
    let core = assemble(foundation, found, &replayed, changes, None)?;
    let engine = Arc::new(Engine::new(core, lock));
    if options.read_only {
        engine.events.mute();
    } else {
        make_ready(&engine, &useless)?;
        note_options(&*engine.store, options);
        report_recovery(&engine, &replayed, begin_ns);
    }
    Ok(engine)
}

fn report_recovery(engine: &Engine, replayed: &Replayed, begin_ns: u64) {
    engine.events.add(Event::RecoveryFinished {
        wal_files: replayed.logs.iter().map(|file| file.0).collect(),
        keyspaces: engine.keyspaces().len() as u64,
        last_sequence: engine.snapshots.visible(),
        micros: (engine.runtime.now_ns() - begin_ns) / 1000,
    });
}

/// Writes the options down for people to read. Opening never needs them, so a failure to write them
/// is ignored. Replacing them costs a sync.
fn note_options(store: &dyn FileStore, options: &Options) {
    let Some(beside) = store.notes() else { return };
    let text = options.to_ini();
    let old = beside.read_note(notes::OPTIONS).ok().flatten();
    if old.as_deref() != Some(text.as_bytes()) {
        let _ = beside.write_note(notes::OPTIONS, text.as_bytes(), false);
    }
}

/// Refuses a database where a new one is wanted.
fn expect_new(options: &Options, store: &dyn FileStore) -> Result<()> {
    if !options.create_new {
        return Ok(());
    }
    let message = format!(
        "{} has a database, and a new one was asked for: choose another directory, or open it \
         without `create_new`",
        store.describe()
    );
    Err(Error::new(ErrorKind::AlreadyExists, message))
}

/// Checks that the options create a database in a store without a root, which has these `files`.
fn expect_creation(options: &Options, store: &dyn FileStore, files: &[FileSummary]) -> Result<()> {
    expect_no_data(files)?;
    if options.creates() {
        return Ok(());
    }
    let message = format!("there is no database in {}", store.describe());
    Err(Error::new(ErrorKind::NotFound, message))
}

/// Checks the files of a store without a root. A crash during creation leaves a manifest, but never
/// data.
fn expect_no_data(files: &[FileSummary]) -> Result<()> {
    match files.iter().find(|file| file.name.kind != FileKind::Manifest) {
        None => Ok(()),
        Some(file) => {
            let message =
                "there are data files but no root; restore CURRENT, or salvage the directory";
            Err(Error::new(ErrorKind::Corruption, message).in_file(file.name.to_string()))
        }
    }
}

/// The state of a store without a database, which has these `files`. Nothing is written yet.
fn new_database(files: &[FileSummary], runtime: &dyn Runtime) -> Found {
    let obsolete_files = Arc::new(ObsoleteFiles::default());
    let default =
        KeyspaceRecord { id: KeyspaceId(0), name: DEFAULT_KEYSPACE.into(), options: String::new() };
    let mut found = Found::empty(DatabaseId(runtime.random_u64()), obsolete_files);
    found.add_keyspace(default);
    found.next_keyspace = 1;
    found.next_file = files.iter().map(|file| file.name.id.0 + 1).max().unwrap_or(1);
    found.is_new = true;
    found
}

/// What reads go through. The views of a follower share it.
#[derive(Clone)]
pub(crate) struct Readers {
    pub cache: Arc<BlockCache>,
    pub read: Arc<ReadContext>,
    is_cache_shared: bool,
}

impl Readers {
    pub(crate) fn new(
        options: &Options,
        settings: &Settings,
        (store, runtime): (&Arc<dyn FileStore>, &Arc<dyn Runtime>),
        database: DatabaseId,
    ) -> Readers {
        let shared = options.resources.as_ref().map(|shared| shared.cache.clone());
        let is_cache_shared = shared.is_some();
        let memory = Memory::new(settings, is_cache_shared);
        let cache = shared.unwrap_or_else(|| BlockCache::new(Memory::first_cache_bytes(settings)));
        let limits = &settings.limits;
        let misses_min = limits.seek_compaction.then_some(limits.seek_misses_min.max(1));
        let written_bytes_max = memory.written_runs_bytes_max();
        let tables = TableCache::new(store.clone(), cache.clone(), database, written_bytes_max);
        let values = ValueFiles::new(store.clone(), database);
        let clock = ExpiryClock::new(runtime.clone());
        let read = Arc::new(ReadContext::new(tables, values, clock, misses_min));
        Readers { cache, read, is_cache_shared }
    }
}

/// What a core is built of, beside what was found.
pub(crate) struct Foundation {
    pub store: Arc<dyn FileStore>,
    pub runtime: Arc<dyn Runtime>,
    pub settings: Settings,
    pub readers: Readers,
    pub read_only: bool,
    pub follows: bool,
}

/// The logs of earlier openings that change feeds may read, and the end that the next log
/// continues; `None` without retention.
fn change_logs(on: &Foundation, found: &Found, replayed: &Replayed) -> Result<Option<ChangeLogs>> {
    let Some(retention) = on.settings.change_retention else { return Ok(None) };
    let (store, database) = (&*on.store, found.database);
    let end = match replayed.end {
        Some(end) => Some(end),
        None => end_below(store, database, found.log_floor)?,
    };
    // An opening without retention may have written what these logs do not have, and failed to
    // remove them. Or a log was replayed in part.
    let flushed = found.keyspaces.values().filter(|keyspace| !keyspace.is_without_wal());
    let flushed = flushed.map(|keyspace| keyspace.version.flushed_sequence).max().unwrap_or(0);
    let logged = flushed.max(replayed.logged_sequence);
    let end = end.filter(|end| logged <= end.last_sequence);
    let chain = end.map(|end| find_chain(store, database, Newest::Log(end.file), &[]));
    let chain = chain.transpose()?.unwrap_or_default().logs;
    let end = end.filter(|_| !chain.is_empty());
    Ok(Some(ChangeLogs::new(retention, chain, end, logged)))
}

/// Builds the core over what was found and replayed. Trees that `previous` has too are not compiled
/// again.
pub(crate) fn assemble(
    on: Foundation,
    found: Found,
    replayed: &Replayed,
    changes: Option<ChangeLogs>,
    previous: Option<&Engine>,
) -> Result<Core> {
    let mut trees = Trees {
        keyspaces: BTreeMap::new(),
        manifest: None,
        obsolete_files: found.obsolete_files.clone(),
        log_floor: found.log_floor,
        cold_mark: found.cold_mark,
        next_keyspace: found.next_keyspace,
        backed_off: Vec::new(),
        dead_files: Vec::new(),
        removals: 0,
    };
    let mut commit = CommitState::new(replayed.last_sequence + 1);
    commit.logs = replayed.logs.iter().map(|&file| LiveLog { file, bytes: 0 }).collect();
    let mut states = BTreeMap::new();
    for (id, keyspace) in found.keyspaces {
        let known = previous.and_then(|engine| engine.find_keyspace(id)).map(|state| state.tree());
        let version = Arc::new(keyspace.version);
        let view = TreeView::new(version.clone(), known.as_deref(), &on.readers.read);
        let view = Arc::new(view.with_no_hidden());
        let tree = (version, keyspace.runs, view);
        let (state, tree, active) = keyspace_parts(keyspace.record, tree, &on.settings)?;
        take_replayed(&mut commit, &state, replayed)?;
        states.insert(id, state);
        trees.keyspaces.insert(id, tree);
        commit.add_keyspace(active);
    }
    let numbers = Numbers {
        next_file: AtomicU64::new(found.next_file),
        next_run: AtomicU64::new(found.next_run),
    };
    let memory = Memory::shared(&on.settings, on.readers.is_cache_shared, &on.runtime);
    let parts = Parts {
        store: on.store,
        runtime: on.runtime,
        memory,
        settings: on.settings,
        database: found.database,
        cache: on.readers.cache,
        read: on.readers.read,
        keyspaces: states,
        numbers,
        changes,
        obsolete_files: found.obsolete_files,
        read_only: on.read_only,
        follows: on.follows,
    };
    Ok(Core::new(parts, commit, trees))
}

/// The three parts of a keyspace's state.
pub(crate) fn keyspace_parts(
    record: KeyspaceRecord,
    (version, run_table, view): (Arc<Version>, RunTable, Arc<TreeView>),
    settings: &Settings,
) -> Result<(Arc<KeyspaceState>, TreeState, Active)> {
    let options = KeyspaceOptions::decode(&record.options)?;
    let operator = settings.operator_of(&record.name, options.merge_operator.as_deref())?;
    let (memtable, writer) = Memtable::new(settings.memtable_bytes_max as usize)?;
    let first = ReadView { active: memtable, sealed: Vec::new(), tree: view.clone() };
    let rules = Rules {
        filter: settings.filter(options.compaction_filter.as_deref()),
        policy: (settings.scheme.make)().into(),
        limits: settings.limits.clone(),
        values: settings.value_rules(),
    };
    let (id, name) = (record.id, record.name);
    let state = Arc::new(KeyspaceState::new(id, name, options, operator, rules, first));
    if version.may_expire {
        state.set_may_expire();
    }
    let tree = TreeState::new(state.clone(), version, run_table, view, settings.expiry_delay_ms);
    let active = Active {
        keyspace: state.clone(),
        writer,
        key_start_before: None,
        first_log: None,
        counted_bytes: 0,
        values: CommitValues::default(),
        ingested: 0,
    };
    Ok((state, tree, active))
}

/// Gives a keyspace its replayed memtables, as sealed ones.
fn take_replayed(
    commit: &mut CommitState,
    state: &Arc<KeyspaceState>,
    replayed: &Replayed,
) -> Result<()> {
    // The first memtable takes the extents of all values that the logs point to.
    let mut unflushed =
        replayed.unflushed_ends.get(&state.id).map(UnflushedExtents::recovered).unwrap_or_default();
    for (file, _) in unflushed.ends() {
        state.values.claim(&[file]);
        commit.ended_segments.push((state.clone(), file));
    }
    for memtable in replayed.memtables.get(&state.id).into_iter().flatten() {
        state.add_sealed(memtable.clone());
        commit.sealed.push(Sealed {
            keyspace: state.clone(),
            memtable: memtable.clone(),
            first_log: replayed.logs.first().copied(),
            bytes: memtable.bytes(),
            unflushed: std::mem::take(&mut unflushed),
            is_flushing: false,
        });
    }
    Ok(())
}

/// Stage 4: makes the engine ready for use.
fn make_ready(engine: &Arc<Engine>, useless: &[FileName]) -> Result<()> {
    let state = engine.commits.lock();
    let has_sealed = !state.sealed.is_empty();
    let active_segments: Vec<FileId> = state.ended_segments.iter().map(|(_, file)| *file).collect();
    drop(state);
    // First, because the following steps need space.
    let named_by_logs = |name: &&FileName| active_segments.contains(&name.id);
    remove(engine, useless.iter().filter(|name| !named_by_logs(name)).copied());
    if useless.iter().any(|name| name.kind == FileKind::Wal) {
        // A lost log that came back after a crash would pass for the newest that change feeds read.
        engine.store.sync_names().map_err(|error| engine.poison_unless_tried_again(error))?;
    }
    let floor = engine.versions.lock().log_floor;
    restate(engine, floor)?;
    // A reader of the logs counts on from the log that the first one names, or from 0.
    let end = engine.changes.as_ref().and_then(ChangeLogs::end);
    engine.commits.lock().logged_sequence = end.map_or(0, |end| end.last_sequence);
    let mut trees = engine.versions.lock();
    if engine.store.cold_store().is_some() {
        trees.cold_mark.get_or_insert_with(|| engine.runtime.random_u64());
    }
    if !has_sealed {
        // Nothing in the old logs is needed.
        trees.log_floor = FileId(engine.next_numbers().0);
    }
    if engine.settings.reserve_bytes != Some(0) {
        engine.reserve.begin();
    }
    engine
        .with_reserve(|| engine.versions.write_manifest(&mut trees, engine.snapshots.visible()))?;
    own_cold_store(engine, &trees)?;
    drop(trees);
    if has_sealed {
        engine.with_reserve(|| engine.flush_replayed())?;
    }
    // Not earlier: a log may name one whose values were lost, and only the empty segment tells the
    // next opening that they were. By now no log is read again.
    if let Err(error) = engine.remove_empty_segments() {
        engine.check_poisoned()?;
        engine.events.add(Event::SegmentRemovalFailed { error });
    }
    let mut trees = engine.versions.lock();
    let files = engine.store.list()?;
    cut_segments(engine, &trees, &files);
    remove_leftovers(engine, &mut trees, &files)?;
    engine.versions.update_pressure(&trees);
    drop(trees);
    engine.fill_reserve();
    Ok(())
}

/// Marks the cold store, before the first file is created in it, with the mark that the manifest
/// has. A manifest that lists a segment there is younger than that. Without such a segment, a mark
/// that can be read does not prove that it is durable: it is written again.
fn own_cold_store(engine: &Engine, trees: &Trees) -> Result<()> {
    let Some(pair) = engine.store.cold_store() else { return Ok(()) };
    let owner = ColdOwner { database: engine.database, mark: trees.cold_mark };
    let mut segments = trees.keyspaces.values().flat_map(|tree| tree.version.segments.iter());
    let is_proved = segments.any(|segment| segment.is_in_cold_store);
    if pair.check_owner(owner)? && is_proved {
        return Ok(());
    }
    pair.own(owner)
}

/// Cuts segments behind what the manifest vouches for: values that commits wrote before this
/// opening, which have been written to new files by now, and values whose commit failed.
fn cut_segments(engine: &Engine, trees: &Trees, files: &[FileSummary]) {
    let find = |file| trees.keyspaces.values().find_map(|tree| tree.version.segments.get(file));
    for file in files.iter().filter(|file| file.name.kind == FileKind::Value) {
        let Some(segment) = find(file.name.id).filter(|one| one.bytes < file.bytes) else {
            continue;
        };
        match engine.extend_file(file.name, segment.bytes, &FileHint::default()) {
            // Shared with a checkpoint: its space is not for this database to free.
            Err(error) if error.kind() == ErrorKind::Shared => {}
            Err(error) => engine.events.add(Event::FileDeletionFailed { error }),
            Ok(_) => {}
        }
    }
}

/// Removes files. What cannot be removed now is removed at the next opening.
fn remove(engine: &Engine, names: impl Iterator<Item = FileName>) {
    for name in names {
        match engine.store.remove(name) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => engine.events.add(Event::FileDeletionFailed { error }),
        }
    }
}

/// Removes Shingle's files that nothing refers to.
fn remove_leftovers(engine: &Engine, trees: &mut Trees, files: &[FileSummary]) -> Result<()> {
    let live: BTreeSet<FileId> = trees
        .keyspaces
        .values()
        .flat_map(|tree| tree.version.files())
        .map(|usage| usage.file.id)
        .collect();
    let versions = trees.keyspaces.values().map(|tree| &tree.version);
    let segments: BTreeSet<FileId> =
        versions.flat_map(|v| v.segments.iter().map(|s| s.file.id)).collect();
    let manifest = trees.manifest.as_ref().map(|manifest| manifest.file);
    let floor = trees.log_floor;
    let changes = engine.changes.as_ref();
    changes.inspect(|changes| changes.pass_floor(floor));
    let keeps = |log: FileId| changes.is_some_and(|changes| changes.holds(log));
    let is_dead = |name: FileName| match name.kind {
        FileKind::Table => !live.contains(&name.id),
        FileKind::Wal => name.id < floor && !keeps(name.id),
        FileKind::Manifest => Some(name.id) != manifest,
        FileKind::Value => !segments.contains(&name.id),
    };
    trees.dead_files.clear();
    remove(engine, files.iter().map(|file| file.name).filter(|&name| is_dead(name)));
    engine.commits.lock().logs.retain(|log| log.file >= floor);
    Ok(())
}
