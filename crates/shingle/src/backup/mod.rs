//! Backups: a directory with several generations of a database, which share files.
//!
//! A generation is a checkpoint whose files are kept by content: a file that any generation has is
//! not written again. The directory is a file store of its own kind. Its root lists the
//! generations ([`catalog`]); each has a list of files. Replacing the root is the one step by which
//! a generation comes or goes.
//!
//! Invariants:
//! - Every file that a generation in the root needs is there, durable, and never changed.
//! - What no generation needs is left by a crash, and goes when the next one comes.
//! - Two files are the same only if length and digest of all their bytes are. Names do not count:
//!   copies of a database that go on separately give their files the same names.

mod catalog;
mod files;

use crate::api::Db;
use crate::engine::checkpoint::{CheckpointTarget, clear};
use crate::progress::{Progress, Reporter};
use base::{Cause, Error, ErrorKind, FileId, Ledger, Result};
use catalog::{Content, Entry, FileList, Generation};
use files::Meter;
use media::os::{OsOptions, OsStore};
use media::{AppendFile, FileHint, FileName, FileStore, Part, StoreLock};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// A directory of backups. Any number of databases may have their generations in it, but copies of
/// one database share more.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let home = tempfile::tempdir().unwrap();
/// use shingle::{Backups, Options};
///
/// let db = Options::new().open(home.path().join("fruit.db"))?;
/// db.put("apple", "red")?;
///
/// let backups = Backups::open(home.path().join("backups"))?;
/// let first = backups.create(&db, &mut |_| ())?;
/// db.put("apple", "green")?;
/// backups.create(&db, &mut |_| ())?;
///
/// backups.restore(first.number, home.path().join("restored.db"), &mut |_| ())?;
/// let restored = Options::new().open(home.path().join("restored.db"))?;
/// assert_eq!(restored.get("apple")?.as_deref(), Some(&b"red"[..]));
/// # Ok(())
/// # }
/// ```
pub struct Backups {
    store: Arc<dyn FileStore>,
}

/// One generation of a backup directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Its number; later ones have larger numbers.
    pub number: u64,
    /// When it was taken, in microseconds since 1970.
    pub taken_micros: u64,
    /// The sequence number of the last write in it.
    pub sequence: u64,
    /// Number of its files.
    pub files: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// Bytes that no earlier generation had when it was taken.
    pub new_bytes: u64,
}

/// Which generations stay when others are pruned: those that any of the two rules keeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keep {
    /// This many of the newest.
    pub last: usize,
    /// Those that were taken after this time, in microseconds since 1970.
    pub taken_after_micros: Option<u64>,
}

/// What pruning removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The generations, by number.
    pub backups: Vec<u64>,
    /// Files that no remaining generation needs.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
}

impl Backup {
    fn of(generation: &Generation) -> Backup {
        Backup {
            number: generation.number,
            taken_micros: generation.taken_micros,
            sequence: generation.sequence,
            files: generation.files,
            bytes: generation.bytes,
            new_bytes: generation.new_bytes,
        }
    }
}

impl Backups {
    /// The backup directory at `path`, which is created if it is missing.
    ///
    /// # Errors
    ///
    /// [`Incompatible`](crate::ErrorKind::Incompatible) where `path` is a database, or of a newer
    /// version; [`InvalidArgument`](crate::ErrorKind::InvalidArgument) where it holds other files;
    /// [`Corruption`](crate::ErrorKind::Corruption) where its root is damaged or lost;
    /// [`Io`](crate::ErrorKind::Io) where the system refused.
    pub fn open(path: impl AsRef<Path>) -> Result<Backups> {
        let store =
            OsStore::open(path.as_ref(), Arc::new(Ledger::default()), OsOptions::default())?;
        if store.root()?.is_none()
            && let Some(foreign) = store.foreign_file(&[])?
        {
            return Err(Error::invalid(format!(
                "{} has no backups, but holds `{foreign}`: choose an empty or new directory",
                store.describe()
            )));
        }
        Backups::open_store(Arc::new(store))
    }

    /// The backup directory in `store`.
    ///
    /// # Errors
    ///
    /// As for [`Backups::open`].
    pub fn open_store(store: Arc<dyn FileStore>) -> Result<Backups> {
        let backups = Backups { store };
        backups.generations()?;
        Ok(backups)
    }

    fn generations(&self) -> Result<Vec<Generation>> {
        let Some(root) = self.store.root()? else { return self.check_new().map(|()| Vec::new()) };
        catalog::decode_root(&root).map_err(|error| {
            let message = format!("{}: {}", self.store.describe(), error.message());
            Error::new(error.kind(), message)
        })
    }

    /// Without a root there are no backups, unless it was lost.
    fn check_new(&self) -> Result<()> {
        if self.store.list()?.is_empty() {
            return Ok(());
        }
        let message = format!(
            "{} has files, but no root that lists backups: bring the root back, or choose an \
             empty or new directory. Nothing was removed",
            self.store.describe()
        );
        Err(Error::new(ErrorKind::Corruption, message))
    }

    fn generation(&self, number: u64) -> Result<Generation> {
        let found = self.generations()?.into_iter().find(|each| each.number == number);
        found.ok_or_else(|| {
            let message = format!("there is no backup {number} in {}", self.store.describe());
            Error::new(ErrorKind::NotFound, message)
        })
    }

    fn list_of(&self, generation: &Generation) -> Result<FileList> {
        let name = FileName::manifest(generation.list);
        let read = || {
            let bytes = files::read_whole(&*self.store, name)?;
            if base::checksum::hash64(&bytes) != generation.list_hash {
                return Err(Error::new(ErrorKind::Corruption, "the list is not the one stored"));
            }
            catalog::decode_list(&bytes)
        };
        read().map_err(|error| error.in_file(name.to_string()))
    }

    /// The generations, oldest first.
    ///
    /// # Errors
    ///
    /// As for [`Backups::open`].
    pub fn list(&self) -> Result<Vec<Backup>> {
        Ok(self.generations()?.iter().map(Backup::of).collect())
    }

    /// The newest generation that was taken at this time or before, in microseconds since 1970.
    ///
    /// # Errors
    ///
    /// As for [`Backups::open`].
    pub fn at(&self, micros: u64) -> Result<Option<Backup>> {
        Ok(self.list()?.into_iter().rfind(|backup| backup.taken_micros <= micros))
    }

    /// Adds a generation with the contents of `db`, which others may write meanwhile. Reads every
    /// file of the database, and writes those that no generation has.
    ///
    /// # Errors
    ///
    /// [`Locked`](crate::ErrorKind::Locked) where another backup is being taken. Also as for
    /// [`Db::checkpoint`]. The generations that were there stay what they are.
    pub fn create(&self, db: &Db, progress: &mut dyn FnMut(Progress)) -> Result<Backup> {
        let _lock = self.lock()?;
        let mut generations = self.generations()?;
        if self.store.root()?.is_none() {
            // Before the first file: files without a root are those of a lost one.
            self.store.set_root(&catalog::encode_root(&generations))?;
        }
        self.remove_unneeded(&generations)?;
        let taken = self.take(&generations, db, progress);
        let generation = taken.inspect_err(|_| drop(self.remove_unneeded(&generations)))?;
        generations.push(generation.clone());
        self.store.sync_names()?;
        // If this fails, the next opening finds one root or the other, and all files of both.
        self.store.set_root(&catalog::encode_root(&generations))?;
        Ok(Backup::of(&generation))
    }

    /// Stores the files of a generation that comes after `generations`, and their list.
    fn take(
        &self,
        generations: &[Generation],
        db: &Db,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Generation> {
        let mut known = BTreeMap::new();
        for generation in generations {
            let entries = self.list_of(generation)?.entries;
            known.extend(entries.iter().map(|entry| (entry.content, entry.stored)));
        }
        let total_bytes = db.files().iter().map(|file| file.bytes).sum();
        let meter = Meter { done_bytes: 0, total_bytes, report: Reporter::new(progress) };
        let next_file = self.next_file()?;
        let taking =
            Taking { store: &*self.store, known, next_file, list: FileList::default(), meter };
        let taking = Target(RefCell::new(TakingState { taking, new_bytes: 0, manifest: None }));
        let sequence = db.write_backup(&taking)?;
        let state = taking.0.into_inner();
        let number = generations.last().map_or(1, |last| last.number + 1);
        self.store_list(number, sequence, db.wall_micros(), state)
    }

    fn store_list(
        &self,
        number: u64,
        sequence: u64,
        taken_micros: u64,
        state: TakingState<'_>,
    ) -> Result<Generation> {
        let TakingState { taking, new_bytes, .. } = state;
        let list = FileId(taking.next_file);
        let bytes = catalog::encode_list(&taking.list);
        let mut file = self.store.create(FileName::manifest(list), &FileHint::default())?;
        file.append(&bytes, Cause::Checkpoint)?;
        file.sync(Cause::Checkpoint)?;
        Ok(Generation {
            number,
            taken_micros,
            sequence,
            bytes: taking.list.entries.iter().map(|entry| entry.content.bytes).sum(),
            new_bytes,
            files: taking.list.entries.len() as u64,
            list,
            list_hash: base::checksum::hash64(&bytes),
        })
    }

    fn next_file(&self) -> Result<u64> {
        let files = self.store.list()?;
        Ok(files.iter().map(|file| file.name.id.0 + 1).max().unwrap_or(1))
    }

    fn lock(&self) -> Result<StoreLock> {
        self.store.lock()
    }

    /// Reads all files of a generation and compares them with what was stored. The result lists the
    /// damage.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) where there is no such generation;
    /// [`Corruption`](crate::ErrorKind::Corruption) where its list is damaged.
    pub fn verify(&self, number: u64, progress: &mut dyn FnMut(Progress)) -> Result<Vec<String>> {
        let generation = self.generation(number)?;
        let list = self.list_of(&generation)?;
        let mut meter =
            Meter { done_bytes: 0, total_bytes: generation.bytes, report: Reporter::new(progress) };
        let mut problems = Vec::new();
        for entry in &list.entries {
            let name = FileName::table(entry.stored);
            let checked = self.store.open(name, true).and_then(|file| {
                let bytes = file.len()?.min(entry.content.bytes);
                let found = files::content(&*file, bytes, &mut meter)?;
                if found == entry.content {
                    Ok(())
                } else {
                    Err(files::wrong(name, entry.content, found))
                }
            });
            if let Err(error) = checked {
                if error.kind() == ErrorKind::Cancelled {
                    return Err(error);
                }
                problems.push(format!("{} of the database: {error}", entry.name));
            }
        }
        Ok(problems)
    }

    /// Writes the database of a generation to the directory `target`, which is empty or is created.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) where there is no such generation;
    /// [`AlreadyExists`](crate::ErrorKind::AlreadyExists) where `target` holds files;
    /// [`Corruption`](crate::ErrorKind::Corruption) where a file is not what was stored.
    pub fn restore(
        &self,
        number: u64,
        target: impl AsRef<Path>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        // Before the target is created.
        self.generation(number)?;
        let ledger = Arc::new(Ledger::default());
        let store = OsStore::open(target.as_ref(), ledger, OsOptions::default())?;
        if let Some(foreign) = store.foreign_file(&[])? {
            let message = format!("{} holds `{foreign}`: choose another", store.describe());
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        self.restore_to(number, &store, progress)
    }

    /// [`Backups::restore`] to a store without files.
    ///
    /// # Errors
    ///
    /// As for [`Backups::restore`].
    pub fn restore_to(
        &self,
        number: u64,
        target: &dyn FileStore,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let generation = self.generation(number)?;
        let list = self.list_of(&generation)?;
        let _lock = target.lock()?;
        if target.root()?.is_some() || !target.list()?.is_empty() {
            let message = format!("{} holds files: choose an empty one", target.describe());
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        let mut meter =
            Meter { done_bytes: 0, total_bytes: generation.bytes, report: Reporter::new(progress) };
        self.restore_files(&list, target, &mut meter).inspect_err(|_| clear(target))?;
        target.sync_names()?;
        target.set_root(&list.root)
    }

    fn restore_files(
        &self,
        list: &FileList,
        target: &dyn FileStore,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        for entry in &list.entries {
            let stored = FileName::table(entry.stored);
            let file = self.store.open(stored, true)?;
            let bytes = file.len()?.min(entry.content.bytes);
            let found = files::copy(&*file, bytes, target, entry.name, meter)?;
            if found != entry.content {
                return Err(files::wrong(stored, entry.content, found));
            }
        }
        Ok(())
    }

    /// Removes the generations that `keep` does not keep, and the files that only they needed. The
    /// newest generation always stays.
    ///
    /// # Errors
    ///
    /// [`Locked`](crate::ErrorKind::Locked) where a backup is being taken;
    /// [`Corruption`](crate::ErrorKind::Corruption) where the list of a generation that stays is
    /// damaged: then nothing is removed.
    pub fn prune(&self, keep: &Keep) -> Result<Pruned> {
        let _lock = self.lock()?;
        let generations = self.generations()?;
        let count = generations.len();
        let stays = |(at, generation): (usize, &Generation)| {
            let is_last = count - at <= keep.last.max(1);
            is_last || keep.taken_after_micros.is_some_and(|after| generation.taken_micros > after)
        };
        let (staying, going): (Vec<_>, Vec<_>) =
            generations.into_iter().enumerate().partition(|(at, each)| stays((*at, each)));
        let staying: Vec<Generation> = staying.into_iter().map(|(_, each)| each).collect();
        // Damage must show before anything goes.
        self.needed_files(&staying)?;
        if !going.is_empty() {
            self.store.set_root(&catalog::encode_root(&staying))?;
        }
        let (files, bytes) = self.remove_unneeded(&staying)?;
        let backups = going.into_iter().map(|(_, generation)| generation.number).collect();
        Ok(Pruned { backups, files, bytes })
    }

    fn needed_files(&self, generations: &[Generation]) -> Result<BTreeSet<FileName>> {
        let mut needed = BTreeSet::new();
        for generation in generations {
            needed.insert(FileName::manifest(generation.list));
            let entries = self.list_of(generation)?.entries;
            needed.extend(entries.iter().map(|entry| FileName::table(entry.stored)));
        }
        Ok(needed)
    }

    /// Removes what none of `generations` needs; returns how many files, and their bytes.
    fn remove_unneeded(&self, generations: &[Generation]) -> Result<(u64, u64)> {
        let needed = self.needed_files(generations)?;
        let (mut files, mut bytes) = (0, 0);
        for file in self.store.list()?.iter().filter(|file| !needed.contains(&file.name)) {
            self.store.remove(file.name)?;
            files += 1;
            bytes += file.bytes;
        }
        Ok((files, bytes))
    }
}

/// A generation that is being taken.
struct Taking<'a> {
    store: &'a dyn FileStore,
    known: BTreeMap<Content, FileId>,
    next_file: u64,
    list: FileList,
    meter: Meter<'a>,
}

struct TakingState<'a> {
    taking: Taking<'a>,
    new_bytes: u64,
    /// The manifest, and the file that holds it here.
    manifest: Option<(FileName, FileId)>,
}

/// Takes the files of a checkpoint.
struct Target<'a>(RefCell<TakingState<'a>>);

impl Taking<'_> {
    fn new_file(&mut self) -> FileId {
        let file = FileId(self.next_file);
        self.next_file += 1;
        file
    }

    /// Takes the first bytes of a file; returns how many of them are new.
    fn take(&mut self, source: &dyn FileStore, name: FileName, part: Part) -> Result<u64> {
        let file = source.open(name, true)?;
        let bytes = part.of(file.len()?);
        let first = Content { bytes, hash: 0 };
        let of_length = first..=Content { hash: u64::MAX, ..first };
        if self.known.range(of_length).next().is_some() {
            let content = files::content(&*file, bytes, &mut self.meter)?;
            if let Some(&stored) = self.known.get(&content) {
                self.list.entries.push(Entry { name, content, stored });
                return Ok(0);
            }
        }
        let stored = self.new_file();
        let target = FileName::table(stored);
        let content = files::copy(&*file, bytes, self.store, target, &mut self.meter)?;
        self.known.insert(content, stored);
        self.list.entries.push(Entry { name, content, stored });
        Ok(bytes)
    }
}

impl CheckpointTarget for Target<'_> {
    fn take(&self, source: &dyn FileStore, name: FileName, part: Part) -> Result<()> {
        let mut state = self.0.borrow_mut();
        let new_bytes = state.taking.take(source, name, part)?;
        state.new_bytes += new_bytes;
        Ok(())
    }

    fn create_manifest(&self, name: FileName) -> Result<Box<dyn AppendFile>> {
        let mut state = self.0.borrow_mut();
        let stored = state.taking.new_file();
        state.manifest = Some((name, stored));
        state.taking.store.create(FileName::table(stored), &FileHint::default())
    }

    fn finish(&self, root: &[u8]) -> Result<()> {
        let mut state = self.0.borrow_mut();
        state.taking.list.root = root.to_vec();
        let Some((name, stored)) = state.manifest.take() else { return Ok(()) };
        let file = state.taking.store.open(FileName::table(stored), true)?;
        let bytes = file.len()?;
        let content = files::content(&*file, bytes, &mut state.taking.meter)?;
        state.taking.list.entries.push(Entry { name, content, stored });
        state.new_bytes += bytes;
        Ok(())
    }
}
