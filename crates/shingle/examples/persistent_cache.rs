//! A cache that survives restarts: results of slow work by their input, the oldest dropped when
//! there are too many bytes.
//!
//! `cargo run --example persistent_cache`
//!
//! What it shows: a keyspace without a log, because a lost result is only computed again; two
//! keyspaces that change in one batch; a bound on bytes; what the writes cost by cause.
#![allow(clippy::print_stdout)]

use shingle::{Bytes, Cause, Db, Keyspace, KeyspaceOptions, Options};
use shingle::{Result, WriteBatch, WriteOptions};
use std::path::Path;

struct Cache {
    db: Db,
    /// Result by input, behind the number under which the input is in `ages`.
    results: Keyspace,
    /// Input by the number of the insertion: the oldest comes first.
    ages: Keyspace,
    bytes: usize,
    bytes_max: usize,
    next: u64,
}

impl Cache {
    fn open(path: &Path, bytes_max: usize) -> Result<Cache> {
        let db = Options::new().memory_bytes(16 << 20).open(path)?;
        // Writes to these keyspaces skip the log: they cost half. All keyspaces without a log are
        // flushed together, so after a crash both have the state of the same moment.
        let without_log = KeyspaceOptions { without_wal: true, ..KeyspaceOptions::default() };
        let results = db.open_or_create_keyspace("results", without_log.clone())?;
        let ages = db.open_or_create_keyspace("ages", without_log)?;
        let mut cache = Cache { db, results, ages, bytes: 0, bytes_max, next: 0 };
        for result in cache.results.iter() {
            let (input, result) = result?;
            cache.bytes += input.len() + result.len();
        }
        if let Some(newest) = cache.ages.iter().next_back() {
            cache.next = newest?.0[..].try_into().map_or(0, u64::from_be_bytes) + 1;
        }
        Ok(cache)
    }

    /// The result for `input`: from the cache, else from `work`.
    fn get_or(&mut self, input: &str, work: impl Fn(&str) -> String) -> Result<(String, bool)> {
        if let Some(found) = self.results.get(input)? {
            return Ok((String::from_utf8_lossy(&found[8..]).into_owned(), true));
        }
        let result = work(input);
        self.insert(input, &result)?;
        Ok((result, false))
    }

    fn insert(&mut self, input: &str, result: &str) -> Result<()> {
        let age = self.next.to_be_bytes();
        let stored = [&age, result.as_bytes()].concat();
        let mut batch = WriteBatch::new();
        batch.put_in(&self.ages, age, input)?;
        batch.put_in(&self.results, input, &stored)?;
        self.bytes += input.len() + stored.len();
        self.next += 1;
        let mut oldest = self.ages.iter();
        while self.bytes > self.bytes_max {
            let Some((age, input)) = oldest.next().transpose()? else { break };
            self.bytes -= self.drop_into(&mut batch, &age, &input)?;
        }
        self.db.write(batch, &WriteOptions::default())
    }

    /// Drops the result of `input`, and returns its bytes.
    fn drop_into(&self, batch: &mut WriteBatch, age: &Bytes, input: &Bytes) -> Result<usize> {
        let stored = self.results.get(input)?.unwrap_or_default();
        batch.delete_in(&self.ages, age)?;
        batch.delete_in(&self.results, input)?;
        Ok(input.len() + stored.len())
    }
}

/// The slow work: counts the steps until 1 by halving even numbers and taking 3n + 1 of odd ones.
fn steps(input: &str) -> String {
    let mut n: u64 = input.parse().unwrap_or(1);
    let mut steps = 0;
    while n > 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    format!("{steps} steps")
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let path = home.path().join("cache.db");
    let ask = |cache: &mut Cache, input: &str| -> Result<()> {
        let (result, is_cached) = cache.get_or(input, steps)?;
        println!("{input}: {result}, {}", if is_cached { "from the cache" } else { "computed" });
        Ok(())
    };

    let mut cache = Cache::open(&path, 60)?;
    for input in ["27", "97", "27"] {
        ask(&mut cache, input)?;
    }
    cache.db.close()?; // Flushes, so that nothing is lost here.

    println!("after a restart:");
    let mut cache = Cache::open(&path, 60)?;
    for input in ["97", "871", "6171", "27"] {
        ask(&mut cache, input)?;
    }
    println!("{} results, {} of {} bytes", cache.results.iter().count(), cache.bytes, 60);
    println!("bytes of log: {}", cache.db.stats().ledger.cause(Cause::Wal).write_bytes);
    cache.db.close()?;
    Ok(())
}
