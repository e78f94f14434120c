use shingle::{KeyspaceOptions, Options, WriteBatch, WriteOptions};

fn scores(path: &std::path::Path) -> shingle::Result<()> {
    let db = Options::new().open(path)?; // Database::create
    let scores = db.open_or_create_keyspace("scores", KeyspaceOptions::default())?; // a table
    let mut batch = WriteBatch::new(); // begin_write, open_table
    batch.put_in(&scores, 7u64.to_be_bytes(), 100u64.to_le_bytes())?; // keys and values are bytes
    db.write(batch, &WriteOptions::synced())?; // commit with Durability::Immediate
    let moment = scores.snapshot(); // begin_read
    for entry in moment.range(0u64.to_be_bytes()..=9u64.to_be_bytes()) {
        let (key, value) = entry?;
        println!("{} bytes of key, {} of value", key.len(), value.len());
    }
    db.close()
}
