use shingle::{KeyspaceOptions, Options, WriteBatch, WriteOptions};

fn orders(path: &std::path::Path) -> shingle::Result<()> {
    let db = Options::new().write_buffer_bytes(64 << 20).cache_bytes(256 << 20).open(path)?;
    let orders = db.open_or_create_keyspace("orders", KeyspaceOptions::default())?; // column family
    let mut batch = WriteBatch::new();
    batch.put("customer/7", "Ann")?;
    batch.put_in(&orders, "2026-11-01/1", "3 apples")?; // put_cf
    db.write(batch, &WriteOptions::synced())?; // write_opt with set_sync(true)
    for entry in orders.prefix("2026-11") {
        let (key, value) = entry?;
        println!("{} bytes of key, {} of value", key.len(), value.len());
    }
    db.close()
}
