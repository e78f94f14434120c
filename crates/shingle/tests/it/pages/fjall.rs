use shingle::{KeyspaceOptions, Options, WriteBatch, WriteOptions};

fn items(path: &std::path::Path) -> shingle::Result<()> {
    let db = Options::new().open(path)?; // Database::builder(path).open()
    let items = db.open_or_create_keyspace("items", KeyspaceOptions::default())?; // keyspace()
    items.put("a", "hello")?; // insert
    let mut batch = WriteBatch::new(); // Database::batch
    batch.put_in(&items, "b", "world")?;
    batch.delete_in(&items, "a")?;
    db.write(batch, &WriteOptions::synced())?; // durability(SyncAll), commit
    for entry in items.prefix("b").rev() {
        let (key, value) = entry?; // no guard: both are there
        println!("{} bytes of key, {} of value", key.len(), value.len());
    }
    db.close()
}
