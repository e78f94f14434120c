//! Directories of earlier versions.

use super::*;
use crate::Options;
use media::mem::MemStore;

#[test]
fn a_directory_of_version_1_goes_on() {
    let directory = MemStore::new(Arc::default());
    let backups = Backups::open_store(Arc::new(directory.clone())).unwrap();
    let databases = [(); 2]
        .map(|()| Options::new().open_store(Arc::new(MemStore::new(Arc::default()))).unwrap());
    for (value, db) in ["1", "2"].into_iter().zip(&databases) {
        db.put("key", value).unwrap();
        backups.create(db, &mut |_| ()).unwrap();
    }
    let expected = backups.list().unwrap();
    let catalog = backups.catalog().unwrap();
    directory.set_root(&catalog::encode_old_root(&catalog.generations)).unwrap();
    directory.remove(FileName::manifest(catalog.file.unwrap())).unwrap();

    assert_eq!(backups.list().unwrap(), expected);
    let third = backups.create(&databases[0], &mut |_| ()).unwrap();
    assert_eq!(backups.list().unwrap(), [&expected[..], &[third]].concat());
    for backup in backups.list().unwrap() {
        assert!(backups.verify(backup.number, &mut |_| ()).unwrap().is_empty());
    }
}
