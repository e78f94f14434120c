//! A directory as a whole: work on it that is more than one opening of its database, its removal,
//! and its replacement by another one.

use super::{OsStore, calls};
use crate::FileStore;
use crate::names::{LOCK_NAME, ROOT_NAME, is_database_file};
use base::{ErrorKind, Result};
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use std::path::Path;

impl OsStore {
    /// Locks the store for as long as it lives. Later locks of this same store succeed and do
    /// nothing: several steps follow each other with every other opener kept out all the time.
    ///
    /// # Errors
    ///
    /// As [`FileStore::lock`].
    pub fn claim(&self) -> Result<()> {
        let mut claim = self.claim.lock();
        if claim.is_none() {
            *claim = Some(self.take_lock()?);
        }
        Ok(())
    }

    /// Whether the directory has a database, or what is left of one: files
    /// of data, and a store was opened here before.
    ///
    /// # Errors
    ///
    /// [`Io`](ErrorKind::Io).
    pub fn has_database(&self) -> Result<bool> {
        let names = self.directory.names()?;
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        Ok(has(ROOT_NAME) || has(LOCK_NAME) && !self.list()?.is_empty())
    }

    /// Removes all files of the database whose notes are `notes`, and the directory where nothing
    /// else is in it. The root goes behind all others, so that an interrupted removal can be done
    /// again. The lock's own file goes last, while it is locked.
    ///
    /// # Errors
    ///
    /// As [`FileStore::lock`]; [`Io`](ErrorKind::Io).
    pub fn destroy(self, notes: &[&str]) -> Result<()> {
        self.check_writable()?;
        self.claim()?;
        for (name, _) in self.directory.files()? {
            let goes_last = name == ROOT_NAME || name == LOCK_NAME;
            if !goes_last && is_database_file(&name, notes) {
                self.directory.unlink(&name)?;
            }
        }
        self.sync_names()?;
        for name in [ROOT_NAME, LOCK_NAME] {
            match self.directory.unlink(name) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.directory.remove();
        Ok(())
    }

    /// Gives the directory of `other` the name of this one, which gets the name `aside`. Both are
    /// claimed before. Where the file system can, every opener finds one of them under the name.
    ///
    /// # Errors
    ///
    /// As [`FileStore::lock`]; [`Io`](ErrorKind::Io), and then both have their names.
    pub fn replace_by(&self, other: &OsStore, aside: &Path) -> Result<()> {
        self.claim()?;
        other.claim()?;
        let (ours, theirs) = (self.directory.path(), other.directory.path());
        let failed = |errno| calls::error("rename", ours.display().to_string(), errno);
        let rename = |from: &Path, to: &Path| calls::patiently(|| rustix::fs::rename(from, to));
        let exchanged = calls::patiently(|| {
            rustix::fs::renameat_with(CWD, ours, CWD, theirs, RenameFlags::EXCHANGE)
        });
        match exchanged {
            Ok(()) => rename(theirs, aside).map_err(failed)?,
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rename(ours, aside).map_err(failed)?;
                rename(theirs, ours)
                    .inspect_err(|_| {
                        // The first error is the one to report.
                        let _ = rename(aside, ours);
                    })
                    .map_err(failed)?;
            }
            Err(errno) => return Err(failed(errno)),
        }
        for path in [ours, aside] {
            if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                self.directory.open_other(parent)?.sync(base::Cause::Housekeeping)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::OsOptions;
    use crate::{FileHint, FileName, Notes};
    use base::FileId;
    use std::fs;
    use std::sync::Arc;

    fn open(path: &Path) -> OsStore {
        OsStore::open(path, Arc::default(), OsOptions::default()).unwrap()
    }

    fn filled(path: &Path, root: &[u8]) -> OsStore {
        let store = open(path);
        store.claim().unwrap();
        drop(store.create(FileName::table(FileId(1)), &FileHint::NONE).unwrap());
        store.write_note("LOG", b"x", true).unwrap();
        store.set_root(root).unwrap();
        store
    }

    #[test]
    fn a_claimed_store_locks_itself_and_keeps_others_out_until_it_goes() {
        let home = tempfile::tempdir().unwrap();
        let (first, second) = (open(home.path()), open(home.path()));
        first.claim().unwrap();
        first.claim().unwrap();
        for _ in 0..2 {
            drop((first.lock().unwrap(), first.lock_shared().unwrap()));
            for refused in [second.lock().err(), second.lock_shared().err(), second.claim().err()] {
                assert_eq!(refused.unwrap().kind(), ErrorKind::Locked);
            }
        }
        drop(first);
        second.claim().unwrap();
    }

    #[test]
    fn a_removed_database_leaves_the_files_of_others_and_then_the_directory() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("db");
        for foreign in [None, Some("notes.txt"), Some("000012.ldb")] {
            let store = filled(&path, b"r");
            assert!(store.has_database().unwrap());
            if let Some(name) = foreign {
                fs::write(path.join(name), b"mine").unwrap();
            }
            store.destroy(&["LOG"]).unwrap();
            let left = fs::read_dir(&path).ok();
            let left = left.map(|left| left.map(|entry| entry.unwrap().file_name()).collect());
            assert_eq!(left, foreign.map(|name| vec![name.into()]));
            let _ = fs::remove_dir_all(&path);
        }
    }

    #[test]
    fn an_interrupted_removal_can_be_done_again() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("db");
        // A directory in place of a file of ours cannot be removed.
        drop(filled(&path, b"r"));
        fs::create_dir(path.join("CURRENT.tmp")).unwrap();
        fs::remove_file(path.join("CURRENT")).unwrap();
        let store = open(&path);
        assert!(store.has_database().unwrap());
        store.destroy(&["LOG"]).unwrap();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
        assert!(!open(&path).has_database().unwrap());
    }

    #[test]
    fn a_database_is_removed_only_by_who_can_lock_it() {
        let home = tempfile::tempdir().unwrap();
        let first = filled(home.path(), b"r");
        let error = open(home.path()).destroy(&["LOG"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert_eq!(first.root().unwrap().unwrap(), b"r");
        assert!(home.path().join("LOG").exists());
    }

    #[test]
    fn a_replaced_directory_is_not_locked_by_who_opened_it_before() {
        let home = tempfile::tempdir().unwrap();
        let path = |name| home.path().join(name);
        let (old, new) = (filled(&path("db"), b"old"), filled(&path("saved"), b"new"));
        let (waiting, aside) = (open(&path("db")), path("db.damaged"));
        old.replace_by(&new, &aside).unwrap();
        assert_eq!(waiting.lock().err().unwrap().kind(), ErrorKind::Locked);
        drop((old, new));
        let error = waiting.lock().err().unwrap();
        assert!(error.to_string().contains("replaced"), "{error}");
        let now = open(&path("db"));
        now.claim().unwrap();
        assert_eq!(now.root().unwrap().unwrap(), b"new");
        assert_eq!(open(&aside).root().unwrap().unwrap(), b"old");
        assert!(!path("saved").exists());
    }
}
