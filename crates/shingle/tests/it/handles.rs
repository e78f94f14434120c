//! Handles of a database that was closed, and of another one.

use shingle::{Db, ErrorKind, KeyspaceOptions, Options, ReadOptions, WriteBatch, WriteOptions};

fn open(folder: &tempfile::TempDir, name: &str) -> (Db, shingle::Keyspace) {
    let db = Options::new().open(folder.path().join(name)).unwrap();
    let data = db.open_or_create_keyspace("data", KeyspaceOptions::default()).unwrap();
    (db, data)
}

#[test]
fn a_batch_with_keyspaces_of_another_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ((a, data_a), (b, data_b)) = (open(&folder, "a"), open(&folder, "b"));
    let kind = |result: shingle::Result<()>| result.unwrap_err().kind();
    let mut batch = WriteBatch::new();
    batch.put_in(&data_a, "key", "a").unwrap();
    assert_eq!(kind(batch.put_in(&data_b, "key", "b")), ErrorKind::InvalidArgument);
    assert_eq!(kind(batch.delete_in(&data_b, "key")), ErrorKind::InvalidArgument);
    assert_eq!(kind(batch.delete_range_in(&data_b, "a", "z")), ErrorKind::InvalidArgument);
    assert_eq!(batch.len(), 1);
    assert_eq!(kind(b.write(batch.clone(), &WriteOptions::default())), ErrorKind::InvalidArgument);
    assert_eq!(data_b.get("key").unwrap(), None);
    a.write(batch.clone(), &WriteOptions::default()).unwrap();
    assert_eq!(data_a.get("key").unwrap().as_deref(), Some(&b"a"[..]));
    // The keyspace `default` is that of the database which writes the batch.
    batch.clear();
    batch.put("key", "any").unwrap();
    for db in [&a, &b] {
        db.write(batch.clone(), &WriteOptions::default()).unwrap();
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"any"[..]));
    }
    assert_eq!(a.snapshot().of(&data_b).err().unwrap().kind(), ErrorKind::InvalidArgument);
    assert_eq!(a.snapshot().of(&data_a).unwrap().get("key").unwrap().as_deref(), Some(&b"a"[..]));
}

#[test]
fn after_a_close_keyspaces_are_closed_and_snapshots_and_cursors_readable() {
    let folder = tempfile::tempdir().unwrap();
    let (db, data) = open(&folder, "db");
    for keyspace in [db.default_keyspace(), &data] {
        keyspace.put("key", "value").unwrap();
    }
    let (snapshot, mut cursor) = (data.snapshot(), data.cursor(ReadOptions::default()));
    let default = db.default_keyspace().clone();
    db.close().unwrap();
    for keyspace in [&default, &data] {
        let errors = [
            keyspace.get("key").map(drop),
            keyspace.get_with_expiry("key").map(drop),
            keyspace.multi_get(&["key"]).map(drop),
            keyspace.put("key", "new"),
            keyspace.cursor(ReadOptions::default()).seek_to_first(),
            keyspace.iter().next().unwrap().map(drop),
        ];
        for error in errors {
            assert_eq!(error.unwrap_err().kind(), ErrorKind::Closed);
        }
    }
    assert_eq!(snapshot.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(snapshot.iter().count(), 1);
    cursor.seek_to_first().unwrap();
    assert_eq!((cursor.key(), cursor.value()), (&b"key"[..], &b"value"[..]));
}
