//! Two stores as one: a database in the first, and its cold values in the second, the *cold store*
//! (HashKV 3.4 keeps its cold log apart).
//!
//! Invariants:
//! - A file stays in the store that it was created in: in the cold store those that were created
//!   with [`FileHint::is_cold`], in the first all others, and the root and the notes.
//! - No name is in both, but for what a crash left in the cold store before the database was opened
//!   without it. Such a file is hidden by its namesake in the first store, and listed after that.
//! - Names in the cold store are durable before the names, and before the root, of the first store
//!   that were asked for later.
//! - The root of the cold store says whose it is. Nothing is created, and nothing removed, in one
//!   that has files of another database or of another copy of it, or files without a root.

use crate::{
    AppendFile, Capacity, ColdOwner, ColdStore, DeviceMap, FileHint, FileKind, FileName, FileStore,
    FileSummary, Notes, Part, ReadFile, Sharing, Space, StoreLock, lacks,
};
use base::checksum::hash64;
use base::coding::Reader;
use base::{DatabaseId, Error, Ledger, Result};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const MAGIC: [u8; 8] = *b"SHINCOLD";

/// The root of a cold store without a mark, as it was written before there were marks.
const UNMARKED_BYTES: usize = 24;

/// A store, and the store of its cold files.
pub struct PairStore {
    first: Arc<dyn FileStore>,
    cold: Arc<dyn FileStore>,
    /// The files that are in the cold store, as far as this handle created or listed them. One that
    /// another handle removed may stay: numbers of files are not used again.
    cold_files: Mutex<BTreeSet<FileName>>,
    /// Names were created or removed in the cold store since they were last synced.
    has_unsynced_names: AtomicBool,
    /// Held while they are: a thread that finds none unsynced must not overtake the thread that
    /// syncs them.
    syncing: Mutex<()>,
}

impl PairStore {
    /// `first` and `cold` together. They must write to one ledger: `InvalidArgument` otherwise.
    pub fn new(first: Arc<dyn FileStore>, cold: Arc<dyn FileStore>) -> Result<PairStore> {
        if !Arc::ptr_eq(first.ledger(), cold.ledger()) {
            let message = "a store and its cold store must have one ledger, to be counted together";
            return Err(Error::invalid(message));
        }
        let pair = PairStore {
            first,
            cold,
            cold_files: Mutex::default(),
            has_unsynced_names: AtomicBool::new(false),
            syncing: Mutex::default(),
        };
        pair.look()?;
        Ok(pair)
    }

    /// Finds out what is where.
    fn look(&self) -> Result<()> {
        let (_, cold) = self.lists()?;
        *self.cold_files.lock() = cold.iter().map(|file| file.name).collect();
        Ok(())
    }

    /// The files of the first store, and those of the cold store that have no namesake there.
    fn lists(&self) -> Result<(Vec<FileSummary>, Vec<FileSummary>)> {
        let files = self.first.list()?;
        let first: BTreeSet<FileName> = files.iter().map(|file| file.name).collect();
        let is_cold = |name: FileName| name.kind == FileKind::Value && !first.contains(&name);
        let cold = self.cold.list()?.into_iter().filter(|file| is_cold(file.name)).collect();
        Ok((files, cold))
    }

    fn of(&self, name: FileName) -> &Arc<dyn FileStore> {
        if self.is_cold(name) { &self.cold } else { &self.first }
    }

    fn sync_cold_names(&self) -> Result<()> {
        let _syncing = self.syncing.lock();
        if !self.has_unsynced_names.swap(false, Relaxed) {
            return Ok(());
        }
        self.cold.sync_names().inspect_err(|_| self.has_unsynced_names.store(true, Relaxed))
    }
}

impl ColdStore for PairStore {
    fn is_cold(&self, name: FileName) -> bool {
        self.cold_files.lock().contains(&name)
    }

    fn cold_space(&self) -> Option<Space> {
        self.cold.capacity()?.space()
    }

    fn check_owner(&self, owner: ColdOwner) -> Result<bool> {
        let refused = |what: &str| {
            let place = self.cold.describe();
            let message = format!("{place} {what}: name the cold store of this database");
            Err(Error::invalid(message))
        };
        let root = self.cold.root()?;
        let found = root.as_ref().map(|root| decode_owner(root));
        match found {
            Some(Some(found)) if found == owner => Ok(true),
            Some(None) => refused("holds a database, or something else"),
            _ if self.cold.list()?.is_empty() => Ok(false),
            Some(Some(found)) if found.database != owner.database => {
                refused("is the cold store of another database")
            }
            Some(Some(found)) if found.mark.is_none() => Ok(false),
            Some(Some(_)) => refused(
                "is the cold store of another copy of this database (this one, or the other, is a \
                 checkpoint or a restored backup)",
            ),
            None => refused("has files, and nothing says whose"),
        }
    }

    fn own(&self, owner: ColdOwner) -> Result<()> {
        self.check_owner(owner)?;
        self.cold.set_root(&encode_owner(owner))
    }
}

/// The root of a cold store: magic, database, the mark if there is one, and a checksum over them.
fn encode_owner(owner: ColdOwner) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&owner.database.0.to_le_bytes());
    out.extend(owner.mark.iter().flat_map(|mark| mark.to_le_bytes()));
    let checksum = hash64(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// The owner that a root names; `None`: it is not the root of a cold store.
fn decode_owner(root: &[u8]) -> Option<ColdOwner> {
    let mut reader = Reader::new(root);
    reader.take(MAGIC.len())?;
    let database = DatabaseId(reader.u64()?);
    let mark = if root.len() == UNMARKED_BYTES { None } else { Some(reader.u64()?) };
    let owner = ColdOwner { database, mark };
    (root == encode_owner(owner)).then_some(owner)
}

impl FileStore for PairStore {
    fn ledger(&self) -> &Arc<Ledger> {
        self.first.ledger()
    }

    fn create(&self, name: FileName, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        if !hint.is_cold || name.kind != FileKind::Value {
            return self.first.create(name, hint);
        }
        let file = self.cold.create(name, hint)?;
        self.has_unsynced_names.store(true, Relaxed);
        self.cold_files.lock().insert(name);
        Ok(file)
    }

    fn extend(&self, name: FileName, at: u64, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.of(name).extend(name, at, hint)
    }

    fn open(&self, name: FileName, background: bool) -> Result<Arc<dyn ReadFile>> {
        self.of(name).open(name, background)
    }

    fn recalls_writes(&self) -> bool {
        self.first.recalls_writes()
    }

    fn files_synced_together(&self) -> usize {
        self.first.files_synced_together()
    }

    fn remove(&self, name: FileName) -> Result<()> {
        if !self.is_cold(name) {
            return self.first.remove(name);
        }
        self.cold.remove(name)?;
        self.has_unsynced_names.store(true, Relaxed);
        self.cold_files.lock().remove(&name);
        Ok(())
    }

    fn list(&self) -> Result<Vec<FileSummary>> {
        let (mut files, cold) = self.lists()?;
        // The writer of a database that this handle follows may have created some since.
        self.cold_files.lock().extend(cold.iter().map(|file| file.name));
        files.extend(cold);
        Ok(files)
    }

    fn sync_names(&self) -> Result<()> {
        self.sync_cold_names()?;
        self.first.sync_names()
    }

    fn root(&self) -> Result<Option<Vec<u8>>> {
        self.first.root()
    }

    fn set_root(&self, root: &[u8]) -> Result<()> {
        self.sync_cold_names()?;
        self.first.set_root(root)
    }

    fn lock(&self) -> Result<StoreLock> {
        let locks = (self.first.lock()?, self.cold.lock()?);
        self.look()?;
        Ok(Box::new(locks))
    }

    fn lock_shared(&self) -> Result<StoreLock> {
        let locks = (self.first.lock_shared()?, self.cold.lock_shared()?);
        self.look()?;
        Ok(Box::new(locks))
    }

    fn describe(&self) -> String {
        format!("{} with cold values in {}", self.first.describe(), self.cold.describe())
    }

    fn cold_store(&self) -> Option<&dyn ColdStore> {
        Some(self)
    }

    fn notes(&self) -> Option<&dyn Notes> {
        self.first.notes()
    }

    fn capacity(&self) -> Option<&dyn Capacity> {
        self.first.capacity()
    }

    fn device_map(&self) -> Option<&dyn DeviceMap> {
        self.first.device_map().map(|_| self as &dyn DeviceMap)
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        // One of them alone would share only a part of the database's files.
        self.first.sharing().and(self.cold.sharing()).map(|_| self as &dyn Sharing)
    }
}

impl DeviceMap for PairStore {
    fn places(&self, name: FileName, range: Range<u64>) -> Vec<Range<u64>> {
        let map = self.first.device_map().filter(|_| !self.is_cold(name));
        map.map_or_else(Vec::new, |map| map.places(name, range))
    }
}

impl Sharing for PairStore {
    fn directory(&self) -> &Path {
        self.first.sharing().map_or(Path::new(""), Sharing::directory)
    }

    fn share(&self, name: FileName, target: &Path, part: Part) -> Result<()> {
        let store = self.of(name);
        let sharing = store.sharing().ok_or_else(|| lacks(&**store, "directory to share"))?;
        sharing.share(name, target, part)
    }

    fn adopt(&self, path: &Path, name: FileName) -> Result<bool> {
        let sharing = self.first.sharing();
        sharing.ok_or_else(|| lacks(&*self.first, "directory to share"))?.adopt(path, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;
    use crate::mem::{MemStore, Personality};
    use base::random::Random;
    use base::{Cause, ErrorKind, FileId};

    const COLD: FileHint = FileHint { is_cold: true, ..FileHint::NONE };

    fn stores() -> (MemStore, MemStore) {
        let ledger = Arc::new(Ledger::default());
        (MemStore::new(ledger.clone()), MemStore::new(ledger))
    }

    fn pair((first, cold): &(MemStore, MemStore)) -> PairStore {
        PairStore::new(Arc::new(first.clone()), Arc::new(cold.clone())).unwrap()
    }

    fn owner(database: u64, mark: impl Into<Option<u64>>) -> ColdOwner {
        ColdOwner { database: DatabaseId(database), mark: mark.into() }
    }

    fn value(id: u64) -> FileName {
        FileName::value(FileId(id))
    }

    fn write(store: &dyn FileStore, name: FileName, hint: &FileHint, bytes: &[u8]) {
        let mut file = store.create(name, hint).unwrap();
        file.append(bytes, Cause::ValueGc).unwrap();
        file.sync(Cause::ValueGc).unwrap();
    }

    #[test]
    fn the_contract_of_file_stores_holds() {
        conformance::check(&|| Arc::new(pair(&stores())));
    }

    #[test]
    fn cold_files_of_values_lie_in_the_second_store_and_are_found_there_again() {
        let stores = stores();
        let store = pair(&stores);
        write(&store, value(1), &FileHint::default(), b"warm");
        write(&store, value(2), &COLD, b"cold");
        write(&store, FileName::table(FileId(3)), &COLD, b"table");
        let names = |store: &dyn FileStore| -> Vec<FileName> {
            store.list().unwrap().iter().map(|file| file.name).collect()
        };
        assert_eq!(names(&stores.1), [value(2)]);
        for store in [store, pair(&stores)] {
            assert_eq!(names(&store).len(), 3);
            assert!(store.is_cold(value(2)) && !store.is_cold(value(1)));
            assert_eq!(store.open(value(2), false).unwrap().len().unwrap(), 4);
            store.extend(value(2), 4, &FileHint::default()).unwrap();
        }
        let store = pair(&stores);
        store.remove(value(2)).unwrap();
        assert!(stores.1.list().unwrap().is_empty() && names(&store).len() == 2);
    }

    #[test]
    fn a_list_finds_cold_files_that_another_handle_created() {
        let stores = stores();
        let (writer, reader) = (pair(&stores), pair(&stores));
        write(&writer, value(1), &COLD, b"cold");
        assert_eq!(reader.list().unwrap().len(), 1);
        assert_eq!(reader.open(value(1), false).unwrap().len().unwrap(), 4);
    }

    #[test]
    fn a_leftover_in_the_cold_store_is_hidden_by_its_namesake_and_listed_after_that() {
        let stores = stores();
        write(&stores.1, value(7), &FileHint::default(), b"leftover");
        write(&stores.0, value(7), &FileHint::default(), b"live");
        let store = pair(&stores);
        assert_eq!(store.list().unwrap().len(), 1);
        assert_eq!(store.open(value(7), false).unwrap().len().unwrap(), 4);
        store.remove(value(7)).unwrap();
        let store = pair(&stores);
        assert!(store.is_cold(value(7)));
        store.remove(value(7)).unwrap();
        assert!(store.list().unwrap().is_empty());
    }

    #[test]
    fn cold_names_are_durable_with_the_names_and_with_the_root() {
        for by_root in [false, true] {
            let stores = stores();
            let store = pair(&stores);
            write(&store, value(1), &COLD, b"cold");
            if by_root {
                store.set_root(b"root").unwrap()
            } else {
                store.sync_names().unwrap()
            }
            let lost = stores.1.crash_image(&mut Random::new(1), Personality::LoseUnsynced);
            assert_eq!(lost.list().unwrap().len(), 1, "by_root {by_root}");
        }
    }

    #[test]
    fn a_cold_store_is_of_one_database_until_it_is_empty() {
        let stores = stores();
        let store = pair(&stores);
        let (mine, other) = (owner(1, 7), owner(2, 7));
        assert!(!store.check_owner(mine).unwrap());
        store.own(mine).unwrap();
        write(&store, value(1), &COLD, b"cold");
        store.own(mine).unwrap();
        let error = store.own(other).unwrap_err();
        assert!(error.message().contains("another database"), "{error}");
        store.remove(value(1)).unwrap();
        store.own(other).unwrap();
        assert!(store.check_owner(other).unwrap());
        for root in [&b"a database's own"[..], b"", b"SHINCOLD", &[0; 32]] {
            stores.1.set_root(root).unwrap();
            assert!(store.own(other).unwrap_err().message().contains("holds a database"));
        }
    }

    #[test]
    fn a_cold_store_is_of_one_copy_of_a_database() {
        let stores = stores();
        let store = pair(&stores);
        store.own(owner(1, 7)).unwrap();
        write(&store, value(1), &COLD, b"cold");
        for mark in [None, Some(0), Some(8)] {
            let error = store.own(owner(1, mark)).unwrap_err();
            assert!(error.message().contains("another copy"), "{error}");
        }
        assert!(store.check_owner(owner(1, 7)).unwrap());
    }

    #[test]
    fn a_cold_store_from_before_there_were_marks_gets_one() {
        let stores = stores();
        let store = pair(&stores);
        stores.1.set_root(&encode_owner(owner(1, None))).unwrap();
        write(&store, value(1), &COLD, b"cold");
        assert!(store.own(owner(2, 7)).unwrap_err().message().contains("another database"));
        assert!(store.check_owner(owner(1, None)).unwrap());
        assert!(!store.check_owner(owner(1, 7)).unwrap());
        store.own(owner(1, 7)).unwrap();
        assert!(store.own(owner(1, None)).unwrap_err().message().contains("another copy"));
    }

    #[test]
    fn files_without_an_owner_and_two_ledgers_are_refused() {
        let stores = stores();
        write(&stores.1, value(1), &FileHint::default(), b"whose?");
        assert!(pair(&stores).own(owner(1, 7)).unwrap_err().message().contains("whose"));
        let stranger = Arc::new(MemStore::new(Arc::default()));
        let error = PairStore::new(Arc::new(stores.0), stranger).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn both_stores_are_locked() {
        let stores = stores();
        let lock = pair(&stores).lock().unwrap();
        assert_eq!(stores.1.lock().err().unwrap().kind(), ErrorKind::Locked);
        drop(lock);
        let held = stores.1.lock().unwrap();
        assert_eq!(pair(&stores).lock().err().unwrap().kind(), ErrorKind::Locked);
        drop(held);
        pair(&stores).lock().unwrap();
    }
}
