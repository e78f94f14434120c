//! What calls cost through the Rust interface: the same work as `cost/cost.c` does through C, and
//! the programs beside it through Python and Java.
//!
//!     cost DIRECTORY ENTRIES

#![allow(clippy::print_stdout)]

use shingle::{Db, Options, ReadOptions, Result, WriteBatch, WriteOptions};
use std::path::Path;
use std::time::Instant;

const BATCH: usize = 100;

type Key = [u8; 16];

/// The keys of all numbers below the count of entries, in an order without a pattern.
fn key_of(n: usize) -> Key {
    let mut number = n as u64 * 2_654_435_761 % 10_000_000_019;
    let mut key = [0; 16];
    for digit in key.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    key
}

fn value_of(key: &Key, value: &mut [u8; 100]) {
    value[..16].copy_from_slice(key);
}

#[inline(never)]
fn cost_puts(db: &Db, keys: &[Key]) -> Result<()> {
    let mut value = [0; 100];
    for key in keys {
        value_of(key, &mut value);
        db.put(key, value)?;
    }
    Ok(())
}

#[inline(never)]
fn cost_batches(db: &Db, keys: &[Key]) -> Result<()> {
    let mut value = [0; 100];
    let keyspace = &db.keyspace("default")?;
    for keys in keys.chunks(BATCH) {
        let mut batch = WriteBatch::default();
        for key in keys {
            value_of(key, &mut value);
            batch.put_in(keyspace, key, value)?;
        }
        db.write(batch, &WriteOptions::default())?;
    }
    Ok(())
}

#[inline(never)]
fn cost_gets(db: &Db, keys: &[Key]) -> Result<()> {
    let mut bytes = 0;
    for key in keys.iter().rev() {
        bytes += db.get(key)?.map_or(0, |value| value.len());
    }
    assert_eq!(bytes, keys.len() * 100);
    Ok(())
}

#[inline(never)]
fn cost_copies(db: &Db, keys: &[Key]) -> Result<()> {
    let mut value = [0; 100];
    for key in keys.iter().rev() {
        let copied = |found: &[u8]| {
            let bytes = found.len().min(value.len());
            value[..bytes].copy_from_slice(&found[..bytes]);
            found.len()
        };
        assert_eq!(db.get_with(key, copied)?, Some(100));
    }
    Ok(())
}

/// The bytes of an entry and its ends, which every scan looks at that wants its entries.
fn looked_at(key: &[u8], value: &[u8]) -> usize {
    key.len() + value.len() + usize::from(key[0]) + usize::from(value[value.len() - 1])
}

#[inline(never)]
fn cost_steps(db: &Db, keys: &[Key]) -> Result<()> {
    let mut cursor = db.cursor(ReadOptions::default());
    cursor.seek_to_first()?;
    let mut found = 0;
    while cursor.valid() {
        found += looked_at(cursor.key(), cursor.value());
        cursor.next()?;
    }
    assert_eq!(found, keys.len() * (116 + usize::from(b'0')));
    Ok(())
}

fn timed(name: &str, db: &Db, keys: &[Key], work: fn(&Db, &[Key]) -> Result<()>) -> Result<()> {
    let began = Instant::now();
    work(db, keys)?;
    println!("{name} {:.0}", began.elapsed().as_nanos() as f64 / keys.len() as f64);
    Ok(())
}

fn open(folder: &Path, name: &str) -> Result<Db> {
    let options = Options::new().set("memory_bytes", "640M")?.set("write_buffer_bytes", "64M")?;
    options.set("compression", "none")?.open(folder.join(name))
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, entries] = &arguments[..] else { std::process::exit(2) };
    let entries = entries.parse().unwrap_or(0) / BATCH * BATCH;
    let keys: Vec<Key> = (0..entries).map(key_of).collect(); // before anything is counted
    let db = open(folder.as_ref(), "rust-batches")?;
    timed("batch", &db, &keys, cost_batches)?;
    db.close()?;
    let db = open(folder.as_ref(), "rust-puts")?;
    timed("put", &db, &keys, cost_puts)?;
    db.compact()?;
    for key in &keys {
        db.get(key)?; // fills the cache
    }
    timed("get_copy", &db, &keys, cost_copies)?;
    timed("scan", &db, &keys, cost_steps)?;
    timed("get", &db, &keys, cost_gets)?;
    db.close()
}
