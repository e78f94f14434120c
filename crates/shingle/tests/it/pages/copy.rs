use shingle::{Options, WriteBatch, WriteOptions};

/// Copies `pairs`, such as an iterator over the whole old store, into a new database.
fn copy<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    pairs: impl Iterator<Item = (K, V)>,
    path: &std::path::Path,
) -> shingle::Result<u64> {
    let db = Options::new().open(path)?;
    let (mut batch, mut copied) = (WriteBatch::new(), 0);
    for (key, value) in pairs {
        batch.put(key, value)?;
        copied += 1;
        if batch.len() == 4096 {
            db.write(std::mem::take(&mut batch), &WriteOptions::default())?;
        }
    }
    db.write(batch, &WriteOptions::default())?;
    db.close()?; // flushes and syncs
    Ok(copied)
}
