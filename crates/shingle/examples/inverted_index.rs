//! A search index over documents: for each word the documents that contain it.
//!
//! `cargo run --example inverted_index`
//!
//! What it shows: one key for each pair of word and document, so that adding a document rewrites
//! no list; scans by prefix; a batch that keeps documents and index in step; filters that know
//! prefixes, so that a search for a word that is nowhere reads next to nothing.
#![allow(clippy::print_stdout)]

use shingle::{Db, Keyspace, KeyspaceOptions, Options, PrefixRule, Result};
use shingle::{Snapshot, WriteBatch, WriteOptions};
use std::collections::BTreeSet;
use std::path::Path;

/// Ends a word in a key. No word contains it.
const END: u8 = 0;

struct Index {
    db: Db,
    documents: Keyspace,
    /// Keys are the word, [`END`], the name of the document; values are empty.
    words: Keyspace,
}

impl Index {
    fn open(path: &Path) -> Result<Index> {
        let db = Options::new().open(path)?;
        let documents = db.open_or_create_keyspace("documents", KeyspaceOptions::default())?;
        // Filters contain "word END" besides whole keys.
        let by_word = PrefixRule::Delimiter { byte: END, count: 1 };
        let options = KeyspaceOptions { prefix: by_word, ..KeyspaceOptions::default() };
        let words = db.open_or_create_keyspace("words", options)?;
        Ok(Index { db, documents, words })
    }

    /// Adds a document, or replaces it.
    fn put(&self, name: &str, text: &str) -> Result<()> {
        let mut batch = WriteBatch::new();
        if let Some(old) = self.documents.get(name)? {
            for word in words_of(&String::from_utf8_lossy(&old)) {
                batch.delete_in(&self.words, key(&word, name))?;
            }
        }
        // Operations of a batch take effect in order: a word of both texts is there at the end.
        for word in words_of(text) {
            batch.put_in(&self.words, key(&word, name), "")?;
        }
        batch.put_in(&self.documents, name, text)?;
        self.db.write(batch, &WriteOptions::default())
    }

    /// The names of the documents that contain every word of `query`.
    fn search(&self, query: &str) -> Result<BTreeSet<String>> {
        // All words are looked up at one moment, so that a document which is just being replaced
        // is found by its old words or by its new ones.
        let moment = self.words.snapshot();
        let mut found: Option<BTreeSet<String>> = None;
        for word in words_of(query) {
            let with_word = documents_with(&moment, &word)?;
            found = Some(match found {
                Some(found) => found.intersection(&with_word).cloned().collect(),
                None => with_word,
            });
        }
        Ok(found.unwrap_or_default())
    }
}

/// The documents that contain one word.
fn documents_with(words: &Snapshot, word: &str) -> Result<BTreeSet<String>> {
    let prefix = key(word, "");
    let mut names = BTreeSet::new();
    for entry in words.prefix(&prefix) {
        let (key, _) = entry?;
        names.insert(String::from_utf8_lossy(&key[prefix.len()..]).into_owned());
    }
    Ok(names)
}

fn key(word: &str, document: &str) -> Vec<u8> {
    [word.as_bytes(), &[END], document.as_bytes()].concat()
}

fn words_of(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let index = Index::open(&home.path().join("index.db"))?;
    index.put("roof.txt", "Shingles overlap, so that rain runs off the roof.")?;
    index.put("disk.txt", "On a shingled disk, tracks overlap like shingles on a roof.")?;
    index.put("beach.txt", "A beach of shingles is a beach of pebbles.")?;

    for query in ["shingles", "shingles roof", "beach", "granite"] {
        let found: Vec<String> = index.search(query)?.into_iter().collect();
        println!("{query}: {}", if found.is_empty() { "nothing".into() } else { found.join(", ") });
    }

    index.put("beach.txt", "The beach is of sand now.")?;
    let found: Vec<String> = index.search("shingles")?.into_iter().collect();
    println!("shingles, after an edit: {}", found.join(", "));
    index.db.close()?;
    Ok(())
}
