//! A queue that survives the process and the power: producers append jobs, a consumer takes them
//! in order.
//!
//! `cargo run --example durable_queue`
//!
//! What it shows: keys that sort in the order of the queue, synced writes, a batch that takes a
//! job and stores its result together, and what is left after the program stops in the middle.
#![allow(clippy::print_stdout)]

use shingle::{Db, Keyspace, KeyspaceOptions, Options, Result, WriteBatch, WriteOptions};
use std::path::Path;

/// A queue of jobs, and the results of those that are done.
struct Queue {
    db: Db,
    jobs: Keyspace,
    results: Keyspace,
    /// The number of the next job.
    next: u64,
}

impl Queue {
    fn open(path: &Path) -> Result<Queue> {
        let db = Options::new().open(path)?;
        let jobs = db.open_or_create_keyspace("jobs", KeyspaceOptions::default())?;
        let results = db.open_or_create_keyspace("results", KeyspaceOptions::default())?;
        // Numbers go on behind the last job that was ever there, waiting or done.
        let last = |keyspace: &Keyspace| -> Result<u64> {
            let last = keyspace.iter().next_back().transpose()?;
            Ok(last.map_or(0, |(key, _)| number(&key)))
        };
        let next = last(&jobs)?.max(last(&results)?) + 1;
        Ok(Queue { db, jobs, results, next })
    }

    /// Appends a job. When this returns, the job survives a power loss.
    fn push(&mut self, job: &str) -> Result<()> {
        // Big-endian numbers sort as bytes in the order in which they sort as numbers.
        self.jobs.put_with(self.next.to_be_bytes(), job, &WriteOptions::synced())?;
        self.next += 1;
        Ok(())
    }

    /// Does the oldest job with `work`. `false`: there is none.
    ///
    /// The job goes and its result comes in one batch: after a crash the database has either the
    /// job or its result, never both and never neither.
    fn work_on_next(&self, work: impl Fn(&str) -> String) -> Result<bool> {
        let Some(oldest) = self.jobs.iter().next() else { return Ok(false) };
        let (key, job) = oldest?;
        let result = work(&String::from_utf8_lossy(&job));
        let mut batch = WriteBatch::new();
        batch.delete_in(&self.jobs, &key)?;
        batch.put_in(&self.results, &key, result)?;
        self.db.write(batch, &WriteOptions::synced())?;
        Ok(true)
    }
}

fn number(key: &[u8]) -> u64 {
    key.try_into().map_or(0, u64::from_be_bytes)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let path = home.path().join("queue.db");
    let shout = |job: &str| job.to_uppercase();

    // The first run stops after two of four jobs.
    let mut queue = Queue::open(&path)?;
    for job in ["wash", "peel", "slice", "cook"] {
        queue.push(job)?;
    }
    queue.work_on_next(shout)?;
    queue.work_on_next(shout)?;
    println!("the first run stops: {} jobs wait", queue.jobs.iter().count());
    drop(queue);

    // The second run goes on where the first one stopped.
    let mut queue = Queue::open(&path)?;
    queue.push("serve")?;
    println!("the second run found {} jobs and adds one", queue.jobs.iter().count() - 1);
    while queue.work_on_next(shout)? {}
    for result in queue.results.iter() {
        let (key, result) = result?;
        println!("job {}: {}", number(&key), String::from_utf8_lossy(&result));
    }
    queue.db.close()?;
    Ok(())
}
