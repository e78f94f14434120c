use shingle::{Options, WriteBatch, WriteOptions};

fn main() -> shingle::Result<()> {
    let db = Options::new().open("my.db")?;
    db.put("apple", "red")?;
    let mut batch = WriteBatch::new();
    batch.put("banana", "yellow")?;
    batch.delete("apple")?;
    db.write(batch, &WriteOptions::default())?;
    for record in db.prefix("ban") {
        let (key, value) = record?;
        println!("{} is {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
    }
    db.close()
}
