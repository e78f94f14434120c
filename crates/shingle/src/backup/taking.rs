//! Takes the files of a checkpoint into a backup directory: those that no generation has.

use super::catalog::{Content, Entry, FileList};
use super::files::{self, Meter};
use crate::engine::checkpoint::CheckpointTarget;
use base::{FileId, Result};
use media::{AppendFile, FileHint, FileName, FileStore, Part};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A generation that is being taken.
pub(super) struct Taking<'a> {
    pub store: &'a dyn FileStore,
    /// The files that the directory has.
    pub known: BTreeMap<Content, FileId>,
    pub next_file: u64,
    pub list: FileList,
    pub meter: Meter<'a>,
}

pub(super) struct TakingState<'a> {
    pub taking: Taking<'a>,
    pub new_bytes: u64,
    /// The manifest, and the file that holds it here.
    pub manifest: Option<(FileName, FileId)>,
}

/// Takes the files of a checkpoint.
pub(super) struct Target<'a>(pub RefCell<TakingState<'a>>);

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
