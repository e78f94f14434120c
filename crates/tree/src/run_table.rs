//! The runs and files that the newest version of each keyspace knows, by number: edits name runs,
//! versions hold them.
//!
//! The table follows the line of versions of a database, edit by edit. It keeps nothing alive; a
//! run that the newest version has no slice of is forgotten at once, even while a reader's older
//! version holds it, so that an edit is accepted now exactly when its replay will be.

use crate::version::{FileRef, ObsoleteFiles, Run, Version};
use base::{DatabaseId, FileId, RunId};
use std::collections::{BTreeSet, HashMap};
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::sync::{Arc, Weak};

/// Runs and files by number, for replaying edits. One for a keyspace.
#[derive(Clone, Debug)]
pub struct RunTable {
    obsolete_files: Arc<ObsoleteFiles>,
    files: HashMap<FileId, Weak<FileRef>>,
    runs: HashMap<RunId, Entry>,
    /// What is shown of each file.
    shown: HashMap<FileId, InFile>,
    files_sweep_at: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    run: Weak<Run>,
    slices: usize,
}

/// How many of the runs in a file have slices, and how many slices they have.
#[derive(Clone, Debug, Default)]
struct InFile {
    runs: usize,
    slices: usize,
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A slice points into it, the first.
    Begins,
    /// No slice points into it any more.
    Ends,
}

impl RunTable {
    /// A table that knows nothing. Files that it makes report their end to `obsolete_files`.
    pub fn new(obsolete_files: Arc<ObsoleteFiles>) -> RunTable {
        RunTable {
            obsolete_files,
            files: HashMap::new(),
            runs: HashMap::new(),
            shown: HashMap::new(),
            files_sweep_at: 64,
        }
    }

    /// Where files are reported that nothing refers to.
    pub fn obsolete_files(&self) -> &Arc<ObsoleteFiles> {
        &self.obsolete_files
    }

    /// The run of this number, if the newest version has a slice of it.
    pub fn run(&self, id: RunId) -> Option<Arc<Run>> {
        self.runs.get(&id)?.run.upgrade()
    }

    /// How many runs the newest versions have.
    pub fn runs_count(&self) -> usize {
        self.runs.len()
    }

    /// Compares the counts with the slices of the newest version, and says what differs.
    pub fn errors(&self, version: &Version) -> Vec<String> {
        let mut recounted: HashMap<RunId, usize> = HashMap::new();
        let mut in_files: HashMap<FileId, (BTreeSet<RunId>, usize)> = HashMap::new();
        for slice in version.slices() {
            *recounted.entry(slice.run.id).or_default() += 1;
            let (runs, slices) = in_files.entry(slice.run.file.id).or_default();
            runs.insert(slice.run.id);
            *slices += 1;
        }
        let counted: HashMap<RunId, usize> =
            self.runs.iter().map(|(&id, entry)| (id, entry.slices)).collect();
        let shown = self.shown.iter().map(|(&file, shown)| (file, (shown.runs, shown.slices)));
        let counted_in_files: HashMap<FileId, (usize, usize)> = shown.collect();
        let in_files =
            in_files.into_iter().map(|(file, (runs, slices))| (file, (runs.len(), slices)));
        let mut errors = differences("slices of run", &counted, &recounted);
        let in_files = in_files.collect();
        errors.extend(differences("runs and slices in table file", &counted_in_files, &in_files));
        errors
    }

    /// A slice of the newest version points into this file.
    pub(crate) fn shows(&self, file: FileId) -> bool {
        self.shown.contains_key(&file)
    }

    /// How many slices of the newest version point into this file.
    pub(crate) fn slices_in(&self, file: FileId) -> usize {
        self.shown.get(&file).map_or(0, |shown| shown.slices)
    }

    /// The file of this number, made if nothing holds it.
    pub(crate) fn file(&mut self, id: FileId) -> Arc<FileRef> {
        self.file_or(id, |obsolete_files| FileRef::new(id, 0, obsolete_files))
    }

    /// The ingested file of this number, made if nothing holds it.
    pub(crate) fn ingested_file(&mut self, id: FileId, identity: DatabaseId) -> Arc<FileRef> {
        self.file_or(id, |obsolete_files| FileRef::new_ingested(id, identity, 0, obsolete_files))
    }

    fn file_or(
        &mut self,
        id: FileId,
        make: impl FnOnce(Arc<ObsoleteFiles>) -> Arc<FileRef>,
    ) -> Arc<FileRef> {
        if let Some(file) = self.files.get(&id).and_then(Weak::upgrade) {
            return file;
        }
        if self.files.len() >= self.files_sweep_at {
            self.files.retain(|_, file| file.strong_count() > 0);
            self.files_sweep_at = 64.max(2 * self.files.len());
        }
        let file = make(self.obsolete_files.clone());
        self.files.insert(id, Arc::downgrade(&file));
        file
    }

    /// A file of values that begins to exist.
    pub(crate) fn values_file(&mut self, id: FileId, bytes: u64) -> Arc<FileRef> {
        FileRef::new_values(id, bytes, self.obsolete_files.clone())
    }

    /// `change` slices more, or fewer, show `run`. Says what that means for its file.
    pub(crate) fn count(&mut self, run: &Arc<Run>, change: isize) -> Option<Shown> {
        if change == 0 {
            return None;
        }
        let entry = self
            .runs
            .entry(run.id)
            .or_insert_with(|| Entry { run: Arc::downgrade(run), slices: 0 });
        let before = entry.slices;
        entry.slices = before.saturating_add_signed(change);
        let is_gone = entry.slices == 0;
        if is_gone {
            self.runs.remove(&run.id);
        }
        let shown = self.shown.entry(run.file.id).or_default();
        shown.slices = shown.slices.saturating_add_signed(change);
        match (before > 0, is_gone) {
            (false, false) => {
                shown.runs += 1;
                (shown.runs == 1).then_some(Shown::Begins)
            }
            (true, true) => {
                shown.runs -= 1;
                let ends = shown.runs == 0;
                ends.then(|| self.shown.remove(&run.file.id)).map(|_| Shown::Ends)
            }
            _ => None,
        }
    }
}

/// Where two counts differ, in the order of their numbers.
fn differences<Number: Ord + Hash + Display, Count: Copy + Default + PartialEq + Debug>(
    account: &str,
    counted: &HashMap<Number, Count>,
    recounted: &HashMap<Number, Count>,
) -> Vec<String> {
    let numbers: BTreeSet<&Number> = counted.keys().chain(recounted.keys()).collect();
    let counts = |number| {
        let of = |counts: &HashMap<Number, Count>| counts.get(number).copied().unwrap_or_default();
        (of(counted), of(recounted))
    };
    let both = numbers.into_iter().map(|number| (number, counts(number)));
    both.filter(|(_, (counted, recounted))| counted != recounted)
        .map(|(number, (counted, recounted))| {
            format!("{account} {number}: {counted:?} counted, {recounted:?} recounted")
        })
        .collect()
}
