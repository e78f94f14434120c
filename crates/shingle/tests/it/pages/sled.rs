use shingle::{KeyspaceOptions, Options, WriteBatch, WriteOptions};

fn users(path: &std::path::Path) -> shingle::Result<()> {
    let db = Options::new().open(path)?; // sled::open
    let users = db.open_or_create_keyspace("users", KeyspaceOptions::default())?; // open_tree
    users.put("7", "Ann")?; // insert; the old value is not returned
    let mut batch = WriteBatch::new();
    batch.put_in(&users, "8", "Bo")?;
    batch.delete_in(&users, "7")?;
    db.write(batch, &WriteOptions::default())?; // apply_batch
    for entry in users.range("1".."9") {
        let (key, value) = entry?;
        println!("{} bytes of key, {} of value", key.len(), value.len());
    }
    db.sync()?; // flush: what came before survives a power loss
    db.close()
}
