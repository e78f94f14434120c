//! Finds what can be salvaged: keyspaces, pieces of runs, and the entries of the logs.

use crate::engine::recover::Found;
use crate::memtable::Memtable;
use crate::progress::Reporter;
use base::{
    Cause, DatabaseId, Error, ErrorKind, FileId, KeyRange, KeyspaceId, Result, RunId,
    SequenceNumber,
};
use media::{FileKind, FileName, FileStore, ReadFile};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use table::format::{self, FOOTER_BYTES, FOOTER_MAGIC, Footer};
use table::log::{LogIdentity, LogKind, LogReader, Salvage};
use table::manifest::{decode_edit, decode_root};
use table::{BlockCache, Extent, Run, TablePlace, sorted};
use tree::edit::{DatabaseEdit, KeyspaceRecord};
use tree::{Change, KeyspaceEdit, ObsoleteFiles};

/// The keyspace of runs whose keyspace is unknown.
const UNKNOWN: KeyspaceId = KeyspaceId(u32::MAX);

/// What follows from the loss of the tree.
const EVERY_RUN: &str = "so every run in every table is read, and what was deleted may be back";

/// A run, and the part of it that counts.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub file: FileId,
    pub extent: Extent,
    pub range: KeyRange,
}

/// A keyspace to be written.
pub(super) struct FoundKeyspace {
    pub name: String,
    pub options: String,
    pub pieces: Vec<Piece>,
    /// Entries of logs up to this sequence number are in the pieces.
    pub flushed: u64,
}

/// All that was found.
pub(super) struct Findings {
    pub database: DatabaseId,
    pub keyspaces: BTreeMap<KeyspaceId, FoundKeyspace>,
    pub memtables: BTreeMap<KeyspaceId, Vec<Arc<Memtable>>>,
}

/// Looks through every file of `store`. Damage goes to `losses`.
pub(super) fn find(
    store: &dyn FileStore,
    losses: &mut Vec<String>,
    reporter: &mut Reporter<'_>,
) -> Result<Findings> {
    let names: Vec<FileName> = store.list()?.into_iter().map(|file| file.name).collect();
    let (database, manifest) = begin(store, &names, losses)?;
    let edits = Edits::read(store, database, manifest, losses)?;
    let mut finder = Finder {
        store,
        database,
        losses,
        reporter,
        findings: Findings { database, keyspaces: BTreeMap::new(), memtables: BTreeMap::new() },
        // Without the tree it is unknown which log entries are still needed.
        knows_tree: edits.tree.is_some(),
        had_others: edits.next_keyspace > 1 || !edits.dropped.is_empty(),
        dropped: edits.dropped,
        unnamed: KeyspaceId(0),
        has_guessed: false,
    };
    for record in edits.records.into_values() {
        finder.keyspace(record);
    }
    if let Some(tree) = &edits.tree {
        finder.tree(tree);
    }
    finder.logs(&names, &edits.logs)?;
    if edits.tree.is_none() {
        // After the logs, which name keyspaces too.
        finder.tables(&names, &edits.owners, &edits.ingested)?;
    }
    Ok(finder.findings)
}

/// The database and its manifest: from the root, or else from the files themselves.
fn begin(
    store: &dyn FileStore,
    names: &[FileName],
    losses: &mut Vec<String>,
) -> Result<(DatabaseId, Option<FileId>)> {
    let no_root = || Error::new(ErrorKind::Corruption, "there is no root").in_file("CURRENT");
    let root = store.root().and_then(|root| decode_root(&root.ok_or_else(no_root)?));
    let error = match root {
        Ok(root) => return Ok((root.database, Some(root.manifest))),
        Err(error) => error,
    };
    losses.push(format!("the root, so the newest manifest is taken, if there is one: {error}"));
    // The newest manifest with a sound header, or else any file whose header names the database.
    for &name in names.iter().rev().filter(|name| name.kind == FileKind::Manifest) {
        let Some(database) = database_of(store, name)? else { continue };
        let file = store.open(name, true)?;
        let identity = LogIdentity { database, file: name.id, kind: LogKind::Manifest };
        if LogReader::open(&*file, identity, 0, Cause::Recovery).is_ok_and(|r| r.header().is_some())
        {
            return Ok((database, Some(name.id)));
        }
    }
    for &name in names {
        if let Some(database) = database_of(store, name)? {
            return Ok((database, None));
        }
    }
    Err(Error::new(ErrorKind::NotFound, "no file says which database it belongs to"))
}

/// The database that a file's header names; later readers of the file check it against the
/// checksums.
fn database_of(store: &dyn FileStore, name: FileName) -> Result<Option<DatabaseId>> {
    let mut head = [0; 28];
    let file = store.open(name, true)?;
    if file.len()? < head.len() as u64 {
        return Ok(None);
    }
    file.read_at(0, &mut head, Cause::Recovery)?;
    let at = match name.kind {
        // A sorted file that was ingested has the number 0, and names no database.
        FileKind::Table if head[20..].iter().all(|&byte| byte == 0) => return Ok(None),
        FileKind::Table if head.starts_with(&format::HEADER_MAGIC) => 12,
        FileKind::Wal | FileKind::Manifest if head.starts_with(b"SHINGLOG") => 16,
        _ => return Ok(None),
    };
    let id = head[at..at + 8].try_into().map(u64::from_le_bytes);
    Ok(id.ok().map(DatabaseId))
}

/// The content of the readable edits.
#[derive(Default)]
struct Edits {
    /// The trees, if every edit was read and every table exists.
    tree: Option<Found>,
    logs: NeededLogs,
    records: BTreeMap<KeyspaceId, KeyspaceRecord>,
    /// Keyspaces that do not exist any more. Their runs and log entries may still.
    dropped: BTreeSet<KeyspaceId>,
    /// Every keyspace that ever was has a smaller number.
    next_keyspace: u32,
    owners: BTreeMap<RunId, KeyspaceId>,
    ingested: BTreeMap<FileId, Ingested>,
}

/// What a manifest says of the logs.
#[derive(Default)]
pub(super) struct NeededLogs {
    has_edits: bool,
    /// Entries of logs below it are in runs.
    pub floor: FileId,
    /// A log with the number of the floor existed.
    pub floor_existed: bool,
}

impl NeededLogs {
    /// One more edit of the manifest.
    fn pass(&mut self, edit: &DatabaseEdit) {
        if let Some(floor) = edit.log_floor.filter(|&floor| floor > self.floor) {
            self.floor = floor;
            // Where no log is needed, the floor is the number that no file has yet. The first edit
            // only repeats an earlier floor, and the manifest itself has a number by then.
            let is_given = edit.next_file.is_some_and(|next| next > floor.0);
            self.floor_existed = self.has_edits && is_given;
        }
        self.has_edits = true;
    }
}

/// What the edits say of a sorted file that was ingested.
#[derive(Clone, Copy)]
struct Ingested {
    identity: DatabaseId,
    keyspace: KeyspaceId,
    sequence: SequenceNumber,
}

impl Edits {
    fn read(
        store: &dyn FileStore,
        database: DatabaseId,
        manifest: Option<FileId>,
        losses: &mut Vec<String>,
    ) -> Result<Edits> {
        let mut edits = Edits::default();
        let Some(manifest) = manifest else {
            losses.push(format!("the tree, {EVERY_RUN}: there is no manifest"));
            return Ok(edits);
        };
        let name = FileName::manifest(manifest);
        let file = match store.open(name, true) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                losses.push(format!("the tree, {EVERY_RUN}: {error}"));
                return Ok(edits);
            }
            Err(error) => return Err(error),
        };
        let identity = LogIdentity { database, file: manifest, kind: LogKind::Manifest };
        let tree = read_tree(&*file, identity);
        match tree.and_then(|(tree, logs)| Ok((check_files(store, tree)?, logs))) {
            Ok((tree, logs)) => (edits.tree, edits.logs) = (Some(tree), logs),
            Err(error) => losses.push(format!("the tree, {EVERY_RUN}: {error}")),
        }
        edits.read_records(&*file, identity)?;
        match &edits.tree {
            // Only these keyspaces still exist.
            Some(tree) => {
                let records = tree.keyspaces.iter().map(|(&id, k)| (id, k.record.clone()));
                edits.records = records.collect();
            }
            None => edits.drop_keyspaces(),
        }
        Ok(edits)
    }

    /// Reads every edit that can be read by itself.
    fn read_records(&mut self, file: &dyn ReadFile, identity: LogIdentity) -> Result<()> {
        let mut records = Salvage::open(file, identity, Cause::Recovery)?;
        while let Ok(Some(record)) = records.next() {
            let Ok(edit) = decode_edit(record.payload, file.name(), record.offset) else {
                continue;
            };
            self.dropped.extend(edit.dropped);
            self.next_keyspace = self.next_keyspace.max(edit.next_keyspace.unwrap_or(0));
            self.records.extend(edit.created.into_iter().map(|record| (record.id, record)));
            for part in edit.keyspaces {
                self.ingested.extend(ingested_files(&part));
                let runs = part.changes.iter().filter_map(|change| match change {
                    Change::AddRun(run) => Some(run.id),
                    _ => None,
                });
                self.owners.extend(runs.map(|run| (run, part.keyspace)));
            }
        }
        Ok(())
    }

    /// Forgets the keyspaces that do not exist any more. The edit that dropped one may be lost: its
    /// name was free then, so one that was created later has it.
    fn drop_keyspaces(&mut self) {
        let mut newest: BTreeMap<&str, KeyspaceId> = BTreeMap::new();
        for (&id, record) in &self.records {
            self.dropped.extend(newest.insert(&record.name, id));
        }
        self.records.retain(|id, _| !self.dropped.contains(id));
    }
}

/// The sorted files that an edit brings in, and what it says of them.
fn ingested_files(edit: &KeyspaceEdit) -> impl Iterator<Item = (FileId, Ingested)> + '_ {
    let keyspace = edit.keyspace;
    edit.changes.iter().filter_map(move |change| {
        let &Change::IngestedFile { file, identity, .. } = change else { return None };
        let sequence = edit.changes.iter().find_map(|change| match change {
            Change::AddRun(run) if run.file == file => Some(run.sequence_max),
            _ => None,
        });
        Some((file, Ingested { identity, keyspace, sequence: sequence? }))
    })
}

fn read_tree(file: &dyn ReadFile, identity: LogIdentity) -> Result<(Found, NeededLogs)> {
    let mut logs = NeededLogs::default();
    let mut found = Found::empty(identity.database, Arc::new(ObsoleteFiles::default()));
    let mut reader = LogReader::open(file, identity, 0, Cause::Recovery)?;
    if reader.header().is_none() {
        let what = "the manifest has no header";
        return Err(Error::corruption(file.name().to_string(), 0, what));
    }
    while let Some(record) = reader.next()? {
        let edit = decode_edit(record.payload, file.name(), record.offset)?;
        logs.pass(&edit);
        found.apply(edit)?;
    }
    Ok((found, logs))
}

/// Checks that the tables of a tree exist. A tree without its tables is an old one: newer runs are
/// elsewhere.
fn check_files(store: &dyn FileStore, tree: Found) -> Result<Found> {
    let names: BTreeSet<FileName> = store.list()?.into_iter().map(|file| file.name).collect();
    let files = tree.keyspaces.values().flat_map(|keyspace| keyspace.version.files());
    match files.map(|usage| FileName::table(usage.file.id)).find(|name| !names.contains(name)) {
        None => Ok(tree),
        Some(name) => {
            let what = "a table that the manifest refers to is missing";
            Err(Error::new(ErrorKind::Corruption, what).in_file(name.to_string()))
        }
    }
}

pub(super) struct Finder<'a, 'b> {
    pub store: &'a dyn FileStore,
    pub database: DatabaseId,
    pub losses: &'a mut Vec<String>,
    reporter: &'a mut Reporter<'b>,
    pub findings: Findings,
    pub knows_tree: bool,
    /// Without the tree: keyspaces that do not exist any more.
    pub dropped: BTreeSet<KeyspaceId>,
    /// There were other keyspaces than that which every database has.
    had_others: bool,
    /// The keyspace of runs for which nothing names one.
    unnamed: KeyspaceId,
    /// The losses say that runs are in `unnamed` only because nothing names another keyspace.
    has_guessed: bool,
}

impl Finder<'_, '_> {
    /// Reports the file that is searched next. How much is to be copied is not known yet.
    pub(super) fn step(&mut self, name: FileName) -> Result<()> {
        self.reporter.step(0, 1, name.to_string())
    }

    fn keyspace(&mut self, record: KeyspaceRecord) {
        let KeyspaceRecord { id, name, options } = record;
        let found = FoundKeyspace { name, options, pieces: Vec::new(), flushed: 0 };
        self.findings.keyspaces.insert(id, found);
    }

    /// The keyspace, under an invented name if its own is unknown.
    pub(super) fn keyspace_or_new(&mut self, id: KeyspaceId) -> &mut FoundKeyspace {
        let keyspaces = &mut self.findings.keyspaces;
        let invented = (!keyspaces.contains_key(&id)).then(|| invented_name(id, keyspaces));
        if let Some(name) = invented.as_ref().filter(|_| id != KeyspaceId(0) && id != UNKNOWN) {
            let what = format!("the name and the options of keyspace {}: it is `{name}`", id.0);
            self.losses.push(what);
        }
        keyspaces.entry(id).or_insert_with(|| FoundKeyspace {
            name: invented.unwrap_or_default(),
            options: String::new(),
            pieces: Vec::new(),
            flushed: 0,
        })
    }

    /// The keyspace of runs for which nothing names one.
    fn unnamed(&self, owners: &BTreeMap<RunId, KeyspaceId>) -> KeyspaceId {
        let mut named = self.findings.keyspaces.keys().chain(owners.values());
        let is_alone = named.all(|&id| id == KeyspaceId(0));
        if is_alone && !self.had_others { KeyspaceId(0) } else { UNKNOWN }
    }

    /// The slices of the tree.
    fn tree(&mut self, tree: &Found) {
        for (&id, keyspace) in &tree.keyspaces {
            let nodes = keyspace.version.levels.iter().flat_map(|level| level.nodes.iter());
            let slices = nodes.flat_map(|node| node.slices.iter());
            let pieces = slices.map(|slice| Piece {
                file: slice.run.file.id,
                extent: Extent::of_run(&slice.run, self.database),
                range: slice.range.clone(),
            });
            let pieces = pieces.collect();
            let found = self.keyspace_or_new(id);
            found.pieces = pieces;
            found.flushed = keyspace.version.flushed_sequence;
        }
    }

    /// Every run of every table, by the footers.
    fn tables(
        &mut self,
        names: &[FileName],
        owners: &BTreeMap<RunId, KeyspaceId>,
        ingested: &BTreeMap<FileId, Ingested>,
    ) -> Result<()> {
        self.unnamed = self.unnamed(owners);
        for &name in names.iter().filter(|name| name.kind == FileKind::Table) {
            self.step(name)?;
            let file = self.store.open(name, true)?;
            if self.ingested(name, &*file, ingested.get(&name.id).copied())? {
                continue;
            }
            let footers = self.footers(name, &*file)?;
            for footer in &footers {
                let extent = Extent {
                    database: self.database,
                    file: name.id,
                    run: footer.run,
                    offset: footer.start,
                    bytes: footer.bytes,
                    sequence: None,
                };
                let opened = Run::open(file.clone(), extent, BlockCache::new(0), Cause::Recovery);
                let range = match opened {
                    Ok(run) => run.summary().run.range.clone(),
                    // The rest is found out when it is read.
                    Err(_) => KeyRange::all(),
                };
                let file = name.id;
                let owner = owners.get(&footer.run).copied();
                self.piece_of(owner, Piece { file, extent, range });
            }
            self.gaps(name, file.len()?, &footers, owners);
        }
        Ok(())
    }

    /// Takes a sorted file that was ingested, if this is one: all of it is one run. `known`: what
    /// the edits say of it.
    fn ingested(
        &mut self,
        name: FileName,
        file: &dyn ReadFile,
        known: Option<Ingested>,
    ) -> Result<bool> {
        let (identity, sequence) = match known {
            Some(known) => (known.identity, known.sequence),
            None => match sorted::identity(file, Cause::Recovery) {
                Err(_) => return Ok(false),
                Ok(identity) => {
                    self.losses.push(format!(
                        "when {name} was ingested, so its entries count as the oldest of their keys"
                    ));
                    (identity, 0)
                }
            },
        };
        let extent = Extent::of_sorted(identity, file.len()?, sequence);
        let owner = known.map(|known| known.keyspace);
        self.piece_of(owner, Piece { file: name.id, extent, range: KeyRange::all() });
        Ok(true)
    }

    /// A piece of the keyspace `owner`. `None`: nothing names it.
    fn piece_of(&mut self, owner: Option<KeyspaceId>, piece: Piece) {
        let id = owner.unwrap_or(self.unnamed);
        if self.dropped.contains(&id) {
            return;
        }
        let (run, name) = (piece.extent.run, FileName::table(piece.file));
        let keyspace = self.keyspace_or_new(id);
        keyspace.pieces.push(piece);
        let to = keyspace.name.clone();
        if id == UNKNOWN {
            let what = format!("the keyspace of run {run} in {name}: it goes to `{to}`");
            self.losses.push(what);
        } else if owner.is_none() && !self.has_guessed {
            self.has_guessed = true;
            let what = format!(
                "which keyspaces there were: all records go to `{to}`, and of a key that several \
                 keyspaces had, only the newest record"
            );
            self.losses.push(what);
        }
    }

    /// Searches the space between the runs of a table, which may hold runs without a footer, for
    /// entries. If the manifest's edits do not name their keyspace, all runs of a table count as
    /// runs of one keyspace.
    fn gaps(
        &mut self,
        name: FileName,
        file_bytes: u64,
        footers: &[Footer],
        owners: &BTreeMap<RunId, KeyspaceId>,
    ) {
        // Those of a dropped keyspace say nothing: the space may be of another one.
        let mut owners = footers.iter().filter_map(|footer| owners.get(&footer.run).copied());
        let neighbour = owners.find(|owner| !self.dropped.contains(owner));
        let mut start = format::HEADER_BYTES;
        let runs = footers.iter().rev().map(|footer| (footer.start, footer.start + footer.bytes));
        for (run_start, run_end) in runs.chain([(file_bytes, file_bytes)]) {
            if run_start > start {
                let extent = Extent {
                    database: self.database,
                    file: name.id,
                    run: RunId(0),
                    offset: start,
                    bytes: run_start - start,
                    sequence: None,
                };
                self.piece_of(neighbour, Piece { file: name.id, extent, range: KeyRange::all() });
            }
            start = run_end;
        }
    }

    /// Finds the footers of a table from its end, across bytes that are no run.
    fn footers(&mut self, name: FileName, file: &dyn ReadFile) -> Result<Vec<Footer>> {
        let place = TablePlace { database: self.database, file: name.id };
        let mut footers = Vec::new();
        let mut end = file.len()?;
        loop {
            let (found, stopped) = format::footers_backwards(file, place, end, Cause::Recovery);
            end = found.last().map_or(end, |footer| footer.start);
            footers.extend(found);
            let Some(error) = stopped else { return Ok(footers) };
            self.losses.push(format!("bytes of {name} before byte {end}: {error}"));
            match footer_before(file, place, end)? {
                Some(before) => end = before,
                None => return Ok(footers),
            }
        }
    }
}

/// A name for a keyspace whose own is unknown, which no other has.
fn invented_name(id: KeyspaceId, known: &BTreeMap<KeyspaceId, FoundKeyspace>) -> String {
    let name = match id {
        KeyspaceId(0) => crate::engine::open::DEFAULT_KEYSPACE.into(),
        UNKNOWN => "salvaged".into(),
        KeyspaceId(number) => format!("keyspace-{number}"),
    };
    let is_free = |name: &String| known.values().all(|keyspace| keyspace.name != *name);
    let mut names = std::iter::once(name.clone()).chain((2..).map(|n| format!("{name}-{n}")));
    names.find(is_free).unwrap_or(name)
}

/// The end of the last sound footer that ends before byte `end`.
fn footer_before(file: &dyn ReadFile, place: TablePlace, end: u64) -> Result<Option<u64>> {
    const PIECE_BYTES: u64 = 64 << 10;
    let magic = FOOTER_MAGIC.len() as u64;
    let mut high = end.saturating_sub(1);
    while high >= FOOTER_BYTES {
        let low = high.saturating_sub(PIECE_BYTES);
        let mut bytes = vec![0; (high - low) as usize];
        file.read_at(low, &mut bytes, Cause::Recovery)?;
        for at in (0..(bytes.len() + 1).saturating_sub(magic as usize)).rev() {
            let to = low + at as u64 + magic;
            if bytes[at..].starts_with(&FOOTER_MAGIC) && to >= FOOTER_BYTES {
                let mut footer = [0; FOOTER_BYTES as usize];
                file.read_at(to - FOOTER_BYTES, &mut footer, Cause::Recovery)?;
                if Footer::decode(&footer, to, place).is_ok() {
                    return Ok(Some(to));
                }
            }
        }
        if low == 0 {
            break;
        }
        // A magic number may be split across two pieces.
        high = low + magic - 1;
    }
    Ok(None)
}
