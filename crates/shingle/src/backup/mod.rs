//! Backups: a directory with several generations of a database, which share files.
//!
//! A generation is a checkpoint whose files are kept by content: a file that any generation has is
//! not written again. The directory is a file store of its own kind. Its root names the file of
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
mod taking;
#[cfg(test)]
mod tests;

use crate::api::Db;
use crate::engine::checkpoint::clear;
use crate::progress::{Progress, Reporter};
use base::{Cause, DatabaseId, Error, ErrorKind, FileId, Ledger, Result};
use catalog::{FileList, Generation, Root, Sealed};
use files::Meter;
use media::os::{OsOptions, OsStore};
use media::{FileHint, FileName, FileStore, StoreLock};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use table::manifest::decode_root;
use taking::{Taking, TakingState, Target};

/// A directory of backups. Any number of databases may have their generations in it:
/// [`Backups::of_database`] chooses one. Copies of a database count as the same database.
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
    /// Those of other databases are left out.
    database: Option<DatabaseId>,
}

/// One generation of a backup directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Its number; later ones have larger numbers.
    pub number: u64,
    /// The database that it is of: a number that a database gets when it is created, and that its
    /// copies share. Written as 16 hex digits.
    pub database: u64,
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
            database: generation.database.map_or(0, |database| database.0),
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
        let backups = Backups { store, database: None };
        backups.catalog()?;
        Ok(backups)
    }

    /// Only the backups of one database, see [`Backup::database`]: lists have no others, and
    /// pruning leaves the others as they are.
    pub fn of_database(self, database: u64) -> Backups {
        Backups { database: Some(DatabaseId(database)), ..self }
    }

    fn catalog(&self) -> Result<Catalog> {
        let mut root = self.store.root()?;
        loop {
            let read = match &root {
                Some(root) => self.catalog_of(root),
                None => self.check_new().map(|()| Catalog::default()),
            };
            let Err(error) = read else { return read };
            // Another process may have replaced the root, and removed the file that it named.
            match self.store.root()? {
                now if now == root => return Err(error),
                now => root = now,
            }
        }
    }

    fn catalog_of(&self, root: &[u8]) -> Result<Catalog> {
        let root = catalog::decode_root(root).map_err(|error| {
            let message = format!("{}: {}", self.store.describe(), error.message());
            Error::new(error.kind(), message)
        })?;
        match root {
            Root::Named(None) => Ok(Catalog::default()),
            Root::Named(Some(sealed)) => {
                let generations = self.read_sealed(sealed, catalog::decode_generations)?;
                Ok(Catalog { generations, file: Some(sealed.file) })
            }
            Root::Listed(mut generations) => {
                for generation in &mut generations {
                    // If the list is damaged, it is unknown which database it was.
                    let list = self.list_of(generation).ok();
                    let root = list.and_then(|list| decode_root(&list.root).ok());
                    generation.database = root.map(|root| root.database);
                }
                Ok(Catalog { generations, file: None })
            }
        }
    }

    /// Those of the chosen database; where none is chosen, all.
    fn chosen(&self) -> Result<Vec<Generation>> {
        let mut generations = self.catalog()?.generations;
        generations.retain(|each| self.database.is_none() || each.database == self.database);
        Ok(generations)
    }

    /// What `decode` makes of a file of ours, after its checksum was compared.
    fn read_sealed<T>(&self, sealed: Sealed, decode: fn(&[u8]) -> Result<T>) -> Result<T> {
        let name = FileName::manifest(sealed.file);
        let read = || {
            let bytes = files::read_whole(&*self.store, name)?;
            if base::checksum::hash64(&bytes) != sealed.hash {
                return Err(Error::new(ErrorKind::Corruption, "the file is not the one stored"));
            }
            decode(&bytes)
        };
        read().map_err(|error| error.in_file(name.to_string()))
    }

    /// Those of the chosen database; where none is chosen, there must be one only.
    fn of_one_database(&self) -> Result<Vec<Generation>> {
        let chosen = self.chosen()?;
        let databases: BTreeSet<_> = chosen.iter().filter_map(|each| each.database).collect();
        match self.database {
            Some(database) if chosen.is_empty() => {
                let what = format!("has no backup of database {:016x}", database.0);
                Err(self.choose(ErrorKind::NotFound, &what))
            }
            None if databases.len() > 1 => {
                let what = format!("has backups of {} databases", databases.len());
                Err(self.choose(ErrorKind::InvalidArgument, &what))
            }
            _ => Ok(chosen),
        }
    }

    /// The error that asks for a choice, with the databases that there are.
    fn choose(&self, kind: ErrorKind, what: &str) -> Error {
        let mut of: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
        for generation in self.catalog().unwrap_or_default().generations {
            let (count, newest) = of.entry(Backup::of(&generation).database).or_default();
            (*count, *newest) = (*count + 1, generation.number);
        }
        let known = of.iter().map(|(database, (count, newest))| {
            format!("{database:016x} ({count}, the newest is number {newest})")
        });
        let known = known.collect::<Vec<_>>().join(", ");
        let message = format!(
            "{} {what}; choose a database, with --database or Backups::of_database: {known}",
            self.store.describe()
        );
        Error::new(kind, message)
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
        let found = self.chosen()?.into_iter().find(|each| each.number == number);
        found.ok_or_else(|| {
            let message = format!("there is no backup {number} in {}", self.store.describe());
            Error::new(ErrorKind::NotFound, message)
        })
    }

    fn list_of(&self, generation: &Generation) -> Result<FileList> {
        let sealed = Sealed { file: generation.list, hash: generation.list_hash };
        self.read_sealed(sealed, catalog::decode_list)
    }

    /// The generations, oldest first.
    ///
    /// # Errors
    ///
    /// As for [`Backups::open`].
    pub fn list(&self) -> Result<Vec<Backup>> {
        Ok(self.chosen()?.iter().map(Backup::of).collect())
    }

    /// The newest generation.
    ///
    /// # Errors
    ///
    /// As for [`Backups::at`].
    pub fn newest(&self) -> Result<Option<Backup>> {
        self.at(u64::MAX)
    }

    /// The newest generation that was taken at this time or before, in microseconds since 1970.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) where there are backups of several
    /// databases and none is chosen; [`NotFound`](crate::ErrorKind::NotFound) where all are of
    /// others than the chosen one. Also as for [`Backups::open`].
    pub fn at(&self, micros: u64) -> Result<Option<Backup>> {
        let generations = self.of_one_database()?;
        let found = generations.iter().rfind(|generation| generation.taken_micros <= micros);
        Ok(found.map(Backup::of))
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
        let mut catalog = self.catalog()?;
        if self.store.root()?.is_none() {
            // Before the first file: files without a root are those of a lost one.
            self.store.set_root(&catalog::encode_root(None))?;
        }
        self.remove_unneeded(&catalog)?;
        let taken = self.take(&catalog.generations, db, progress).and_then(|generation| {
            let all = [&catalog.generations[..], std::slice::from_ref(&generation)].concat();
            Ok((self.store_generations(&all)?, generation))
        });
        let (sealed, generation) = taken.inspect_err(|_| drop(self.remove_unneeded(&catalog)))?;
        self.replace(&mut catalog, sealed)?;
        Ok(Backup::of(&generation))
    }

    fn store_generations(&self, generations: &[Generation]) -> Result<Sealed> {
        let bytes = catalog::encode_generations(generations);
        let file = FileId(self.next_file()?);
        self.store_small(file, &bytes)?;
        self.store.sync_names()?;
        Ok(Sealed { file, hash: base::checksum::hash64(&bytes) })
    }

    /// Makes the generations in the file `sealed` those of the directory.
    fn replace(&self, catalog: &mut Catalog, sealed: Sealed) -> Result<()> {
        // If this fails, the next opening finds one root or the other, and all files of both.
        self.store.set_root(&catalog::encode_root(Some(sealed)))?;
        if let Some(old) = catalog.file.replace(sealed.file) {
            // Otherwise it goes when the next backup is taken.
            let _ = self.store.remove(FileName::manifest(old));
        }
        Ok(())
    }

    fn store_small(&self, file: FileId, bytes: &[u8]) -> Result<()> {
        let mut file = self.store.create(FileName::manifest(file), &FileHint::default())?;
        file.append(bytes, Cause::Checkpoint)?;
        file.sync(Cause::Checkpoint)
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
        self.store_small(list, &bytes)?;
        Ok(Generation {
            database: Some(decode_root(&taking.list.root)?.database),
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
    /// newest generation always stays. Of several databases, one must be chosen
    /// ([`Backups::of_database`]); the generations of the others stay.
    ///
    /// # Errors
    ///
    /// As for [`Backups::at`] where no database is chosen, or one without backups;
    /// [`Locked`](crate::ErrorKind::Locked) where a backup is being taken;
    /// [`Corruption`](crate::ErrorKind::Corruption) where the list of a generation that stays is
    /// damaged: then nothing is removed.
    pub fn prune(&self, keep: &Keep) -> Result<Pruned> {
        let _lock = self.lock()?;
        let mut catalog = self.catalog()?;
        let chosen = self.of_one_database()?;
        let goes = |(at, generation): (usize, &Generation)| {
            let is_last = chosen.len() - at <= keep.last.max(1);
            !is_last && keep.taken_after_micros.is_none_or(|after| generation.taken_micros <= after)
        };
        let going = chosen.iter().enumerate().filter(|each| goes(*each));
        let going: Vec<u64> = going.map(|(_, generation)| generation.number).collect();
        catalog.generations.retain(|generation| !going.contains(&generation.number));
        // Damage must show before anything goes.
        self.needed_files(&catalog)?;
        if !going.is_empty() {
            let sealed = self.store_generations(&catalog.generations)?;
            self.replace(&mut catalog, sealed)?;
        }
        let (files, bytes) = self.remove_unneeded(&catalog)?;
        Ok(Pruned { backups: going, files, bytes })
    }

    fn needed_files(&self, catalog: &Catalog) -> Result<BTreeSet<FileName>> {
        let mut needed: BTreeSet<FileName> =
            catalog.file.into_iter().map(FileName::manifest).collect();
        for generation in &catalog.generations {
            needed.insert(FileName::manifest(generation.list));
            let entries = self.list_of(generation)?.entries;
            needed.extend(entries.iter().map(|entry| FileName::table(entry.stored)));
        }
        Ok(needed)
    }

    /// Removes what `catalog` does not need; returns how many files, and their bytes.
    fn remove_unneeded(&self, catalog: &Catalog) -> Result<(u64, u64)> {
        let needed = self.needed_files(catalog)?;
        let (mut files, mut bytes) = (0, 0);
        for file in self.store.list()?.iter().filter(|file| !needed.contains(&file.name)) {
            self.store.remove(file.name)?;
            files += 1;
            bytes += file.bytes;
        }
        Ok((files, bytes))
    }
}

/// The generations, oldest first, and the file that holds them.
#[derive(Default)]
struct Catalog {
    generations: Vec<Generation>,
    file: Option<FileId>,
}
