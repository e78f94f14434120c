//! Space over time: samples while the demonstration runs.

use super::account::SpaceSample;
use shingle::Db;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(200);

/// Takes a sample now and then.
pub struct Sampler {
    start: Instant,
    last: Instant,
    db: Option<Db>,
    user_write_bytes_before: u64,
    /// The samples so far.
    pub samples: Vec<SpaceSample>,
}

impl Sampler {
    /// Time begins at `start`.
    pub fn new(start: Instant) -> Sampler {
        Sampler { start, last: start, db: None, user_write_bytes_before: 0, samples: Vec::new() }
    }

    /// Samples are taken from this opening of the database.
    pub fn attach(&mut self, db: &Db) {
        self.db = Some(db.clone());
        self.sample();
    }

    /// The database is about to be closed.
    pub fn detach(&mut self) {
        self.sample();
        self.user_write_bytes_before = self.samples.last().map_or(0, |s| s.user_write_bytes);
        self.db = None;
    }

    /// Another program wrote `bytes` while the database was closed here.
    pub fn add_foreign(&mut self, bytes: u64) {
        self.user_write_bytes_before += bytes;
    }

    /// Takes a sample if it is time for one.
    pub fn tick(&mut self) {
        if self.last.elapsed() >= INTERVAL {
            self.sample();
        }
    }

    /// Takes a sample.
    pub fn sample(&mut self) {
        let Some(db) = &self.db else { return };
        self.last = Instant::now();
        let stats = db.stats();
        self.samples.push(SpaceSample {
            ms: self.start.elapsed().as_millis() as u64,
            user_write_bytes: self.user_write_bytes_before + stats.ledger.user_write_bytes,
            space_bytes: stats.space_bytes,
        });
    }
}
