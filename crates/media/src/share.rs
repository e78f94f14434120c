//! A file of one store goes to another: shared where both are directories, and copied otherwise.

use crate::capability::Part;
use crate::names::FileName;
use crate::store::{FileHint, FileStore};
use base::{Cause, Result};

/// Gives `target` a file `name` with `part` of that of `source`, durably but for its name. The file
/// is shared or copied by [`Sharing`] where both stores are directories, and copied otherwise.
/// After an error, `target` may have a part of the file.
pub fn share(
    source: &dyn FileStore,
    target: &dyn FileStore,
    name: FileName,
    part: Part,
) -> Result<()> {
    match (source.sharing(), target.sharing()) {
        (Some(from), Some(to)) => from.share(name, to.directory(), part),
        _ => copy(source, target, name, part),
    }
}

const COPY_BYTES: u64 = 1 << 20;

fn copy(source: &dyn FileStore, target: &dyn FileStore, name: FileName, part: Part) -> Result<()> {
    let file = source.open(name, true)?;
    let bytes = part.of(file.len()?);
    let hint = FileHint { bytes_max: Some(bytes), background: true, ..FileHint::default() };
    let mut copy = target.create(name, &hint)?;
    let mut piece = vec![0; bytes.min(COPY_BYTES) as usize];
    while copy.len() < bytes {
        let count = (bytes - copy.len()).min(COPY_BYTES) as usize;
        file.read_at(copy.len(), &mut piece[..count], Cause::Checkpoint)?;
        copy.append(&piece[..count], Cause::Checkpoint)?;
    }
    copy.sync(Cause::Checkpoint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::MemStore;
    use crate::os::{OsOptions, OsStore};
    use base::{ErrorKind, FileId};
    use std::sync::Arc;

    fn write(store: &dyn FileStore, name: FileName, bytes: &[u8]) {
        let mut file = store.create(name, &FileHint::default()).unwrap();
        file.append(bytes, Cause::Flush).unwrap();
    }

    fn read(store: &dyn FileStore, name: FileName) -> Vec<u8> {
        let file = store.open(name, false).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes, Cause::Get).unwrap();
        bytes
    }

    #[test]
    fn a_file_goes_to_any_store_in_the_part_that_is_wanted() {
        let home = tempfile::tempdir().unwrap();
        let directory = |name: &str| -> Arc<dyn FileStore> {
            let path = home.path().join(name);
            Arc::new(OsStore::open(&path, Arc::default(), OsOptions::default()).unwrap())
        };
        let memory = || -> Arc<dyn FileStore> { Arc::new(MemStore::new(Arc::default())) };
        let content: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
        let pairs = [
            (memory(), memory()),
            (directory("a"), memory()),
            (memory(), directory("b")),
            (directory("c"), directory("d")),
        ];
        for (source, target) in pairs {
            let name = |id| FileName::table(FileId(id));
            (1..=4).for_each(|id| write(&*source, name(id), &content));
            share(&*source, &*target, name(1), Part::Whole).unwrap();
            assert!(read(&*target, name(1)) == content);
            share(&*source, &*target, name(2), Part::Exactly(2_000_001)).unwrap();
            assert!(read(&*target, name(2)) == content[..2_000_001]);
            share(&*source, &*target, name(3), Part::AtLeast(5)).unwrap();
            assert!(read(&*target, name(3)).starts_with(&content[..5]));
            let error = share(&*source, &*target, name(4), Part::AtLeast(3_000_001)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
            let error = share(&*source, &*target, name(1), Part::Whole).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
        }
    }
}
