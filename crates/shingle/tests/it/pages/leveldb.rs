use shingle::{Options, Preset, ReadOptions, WriteOptions};

fn fruit(path: &std::path::Path) -> shingle::Result<()> {
    let db = Options::new().preset(Preset::LevelDb).open(path)?; // LevelDB's rules of compaction
    db.put("apple", "red")?;
    db.put_with("pear", "green", &WriteOptions::synced())?; // WriteOptions::sync
    let mut it = db.cursor(ReadOptions::default()); // NewIterator
    it.seek_to_first()?;
    while it.valid() {
        println!("{} bytes of key, {} of value", it.key().len(), it.value().len());
        it.next()?;
    }
    db.close()
}
