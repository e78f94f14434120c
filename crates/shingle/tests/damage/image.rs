//! The bytes of a whole database, to be changed and opened again.

use base::Ledger;
use media::mem::MemStore;
use media::os::{OsOptions, OsStore};
use media::{FileHint, FileName, FileStore};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Every file of a database, and its root.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Image {
    pub root: Option<Vec<u8>>,
    pub files: BTreeMap<FileName, Arc<Vec<u8>>>,
}

impl Image {
    /// What `store` holds now, synced or not: the state that the death of the process leaves.
    pub fn of(store: &dyn FileStore) -> Image {
        let read = |name| {
            let file = store.open(name, false).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_at(0, &mut bytes, base::Cause::Check).unwrap();
            (name, Arc::new(bytes))
        };
        let files = store.list().unwrap().iter().map(|file| read(file.name)).collect();
        Image { root: store.root().unwrap(), files }
    }

    /// The database in a directory.
    pub fn of_directory(path: &Path) -> Image {
        let read = OsOptions { create: false, read_only: true, ..OsOptions::default() };
        Image::of(&OsStore::open(path, Arc::new(Ledger::default()), read).unwrap())
    }

    pub fn with(&self, name: FileName, bytes: Vec<u8>) -> Image {
        let mut image = self.clone();
        image.files.insert(name, Arc::new(bytes));
        image
    }

    pub fn without(&self, name: FileName) -> Image {
        let mut image = self.clone();
        image.files.remove(&name);
        image
    }

    pub fn bytes(&self) -> usize {
        self.files.values().map(|bytes| bytes.len()).sum()
    }

    /// A store in memory that holds it.
    pub fn in_memory(&self) -> Arc<MemStore> {
        let store = MemStore::new(Arc::new(Ledger::default()));
        self.fill(&store);
        Arc::new(store)
    }

    /// A directory that holds it.
    pub fn in_directory(&self) -> tempfile::TempDir {
        let directory = temporary();
        let options = OsOptions { direct_background: false, ..OsOptions::default() };
        let ledger = Arc::new(Ledger::default());
        self.fill(&OsStore::open(directory.path(), ledger, options).unwrap());
        directory
    }

    fn fill(&self, store: &dyn FileStore) {
        for (&name, bytes) in &self.files {
            let mut file = store.create(name, &FileHint::default()).unwrap();
            file.append(bytes, base::Cause::Check).unwrap();
            file.sync(base::Cause::Check).unwrap();
        }
        store.sync_names().unwrap();
        if let Some(root) = &self.root {
            store.set_root(root).unwrap();
        }
    }
}

/// A temporary directory, in memory where the system has one there.
pub fn temporary() -> tempfile::TempDir {
    match Path::new("/dev/shm").is_dir() {
        true => tempfile::tempdir_in("/dev/shm").unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

/// Every file of a directory, including foreign ones, with its modification time.
pub fn everything_in(path: &Path) -> BTreeMap<String, (Vec<u8>, std::time::SystemTime)> {
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let changed = entry.metadata().unwrap().modified().unwrap();
        (name, (std::fs::read(entry.path()).unwrap(), changed))
    };
    std::fs::read_dir(path).unwrap().map(entry).collect()
}
