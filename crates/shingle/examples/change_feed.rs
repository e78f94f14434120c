//! An index that follows a database by its changes.
//!
//! Articles are written to one database. A consumer reads what was committed and keeps an index of
//! their words in another one. With each batch it stores the sequence number in the same write, so
//! after a stop, or a crash, it goes on exactly where it was.
#![allow(clippy::print_stdout)]

use shingle::{
    ChangesOptions, Db, ErrorKind, Operation, Options, Result, WriteBatch, WriteOptions,
};
use std::path::Path;

/// Where the index keeps the sequence number up to which it is complete.
const POSITION: &[u8] = b"position";

/// The articles, with changes of the last 64 MiB.
fn open_articles(path: &Path) -> Result<Db> {
    Options::new().changes_retention_bytes(64 << 20).open(path)
}

/// The key of a word in an article.
fn entry(word: &str, article: &[u8]) -> Vec<u8> {
    [b"word/", word.as_bytes(), b"/", article].concat()
}

/// Adds to `batch` what makes the index forget what it knows of `article`.
fn forget(index: &Db, article: &[u8], batch: &mut WriteBatch) -> Result<()> {
    let words = [b"text/", article].concat();
    let text = index.get(&words)?.unwrap_or_default();
    for word in String::from_utf8_lossy(&text).split_whitespace() {
        batch.delete(entry(word, article))?;
    }
    batch.delete(words)
}

/// Adds to `batch` what makes the index know `article` with this text.
fn learn(article: &[u8], text: &[u8], batch: &mut WriteBatch) -> Result<()> {
    for word in String::from_utf8_lossy(text).split_whitespace() {
        batch.put(entry(word, article), "")?;
    }
    batch.put([b"text/", article].concat(), text)
}

/// Brings the index up to date. Returns the number of batches that it took.
fn catch_up(articles: &Db, index: &Db) -> Result<usize> {
    let stored = index.get(POSITION)?;
    let position = stored.and_then(|bytes| bytes[..].try_into().ok()).map_or(0, u64::from_be_bytes);
    // What a power loss may take back must not be in the index.
    let durable = ChangesOptions::durable();
    let mut changes = match articles.changes_with(position, &durable) {
        Err(error) if error.kind() == ErrorKind::TooLate => return build_anew(articles, index),
        changes => changes?,
    };
    let mut count = 0;
    while let Some(change) = changes.next().transpose()? {
        for (_, operation) in change.operations() {
            // An article may occur twice in a batch, so each operation is a write of its own. Only
            // the last one tells the position: after a crash, all of them come again.
            let mut batch = WriteBatch::new();
            match operation {
                Operation::Put { key, value, .. } => {
                    forget(index, key, &mut batch)?;
                    learn(key, value, &mut batch)?;
                }
                Operation::Delete { key } => forget(index, key, &mut batch)?,
                _ => {}
            }
            index.write(batch, &WriteOptions::default())?;
        }
        index.put(POSITION, changes.sequence().to_be_bytes())?;
        count += 1;
    }
    Ok(count)
}

/// The index was away for too long: from a snapshot, and then on from its sequence number.
fn build_anew(articles: &Db, index: &Db) -> Result<usize> {
    let snapshot = articles.snapshot();
    articles.sync()?;
    let mut batch = WriteBatch::new();
    batch.delete_range("", "word0")?;
    for article in snapshot.iter() {
        let (key, text) = article?;
        learn(&key, &text, &mut batch)?;
    }
    batch.put(POSITION, snapshot.pins().sequence.to_be_bytes())?;
    index.write(batch, &WriteOptions::default())?;
    Ok(0)
}

fn show(index: &Db, word: &str) -> Result<()> {
    let start = entry(word, b"");
    let mut found = Vec::new();
    for pair in index.prefix(&start) {
        let (key, _) = pair?;
        found.push(String::from_utf8_lossy(&key[start.len()..]).into_owned());
    }
    println!("{word}: {}", if found.is_empty() { "nothing".into() } else { found.join(", ") });
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let index = Options::new().open(home.path().join("index.db"))?;

    let articles = open_articles(&home.path().join("articles.db"))?;
    articles.put("beach", "sand and shingle")?;
    articles.put("roof", "shingle and tile")?;
    articles.sync()?;
    println!("{} batches", catch_up(&articles, &index)?);
    show(&index, "shingle")?;

    // The consumer is away; the program goes on and restarts.
    articles.put("beach", "sand and pebbles")?;
    articles.delete("roof")?;
    articles.put("disk", "shingle bands")?;
    articles.close()?;

    let articles = open_articles(&home.path().join("articles.db"))?;
    println!("{} batches more", catch_up(&articles, &index)?);
    show(&index, "shingle")?;
    show(&index, "pebbles")?;
    show(&index, "tile")?;
    Ok(())
}
