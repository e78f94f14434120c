//! The separation threshold: the same load, updates and reads, with values inline and with
//! separated values, at one size of values after another.
//!
//! Each side of a point has an empty store of its own, and the sides take turns in each round, so
//! that what else a machine does meets both. A phase ends when the background work that it caused
//! is done: what a side leaves for later is part of its price.

use crate::clock::Clock;
use crate::keys::DecimalKeys;
use crate::observe::{Observer, Progress};
use crate::random::Permutation;
use crate::store::{Store, StoreFactory, WriteOptions};
use crate::values::{ValueSize, Values};
use base::random::Random;
use base::{Error, Result};

/// Operations between two looks at the clock for progress.
const OPERATIONS_PER_NEWS: u64 = 256;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Bytes of a value, ascending.
    pub sizes: Vec<usize>,
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of keys and values that a load writes, at every size.
    pub load_bytes: u64,
    /// Updates, as a multiple of the keys.
    pub updates: f64,
    /// Point reads, as a multiple of the keys.
    pub reads: f64,
    /// How often each side of a point is measured; times and bytes are sums.
    pub rounds: u64,
    /// Values shrink to this share of their length under compression.
    pub compression_ratio: f64,
    /// Seed of keys and values.
    pub seed: u64,
}

/// What one way of keeping values cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// Time of the load, in random order of keys.
    pub load_ns: u64,
    /// Time of the updates, of uniformly random keys.
    pub update_ns: u64,
    /// Time of the reads, of uniformly random keys.
    pub read_ns: u64,
    /// Bytes that the user wrote.
    pub user_write_bytes: u64,
    /// Bytes that the store wrote.
    pub host_write_bytes: u64,
    /// Bytes that the store took in the end.
    pub space_bytes: u64,
}

/// Both sides at one size of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Keys of the store.
    pub keys: u64,
    /// Values in the runs.
    pub inline: Side,
    /// Separated values.
    pub apart: Side,
}

impl Side {
    /// Time of everything.
    pub fn total_ns(&self) -> u64 {
        self.load_ns + self.update_ns + self.read_ns
    }

    /// Bytes that the store wrote for each of the user.
    pub fn write_amplification(&self) -> f64 {
        self.host_write_bytes as f64 / self.user_write_bytes.max(1) as f64
    }
}

impl Point {
    /// Time with separated values, over the time with values inline.
    pub fn ratio(&self) -> f64 {
        self.apart.total_ns() as f64 / self.inline.total_ns().max(1) as f64
    }
}

/// The smallest size at which separated values cost no more time, at that size and all larger ones.
/// `None`: not even at the largest.
pub fn crossover(points: &[Point]) -> Option<usize> {
    let pays = points.iter().rev().take_while(|point| point.ratio() <= 1.0);
    pays.last().map(|point| point.value_bytes)
}

/// Measures every point of `plan`; `inline` and `apart` open stores of the two kinds.
pub fn measure(
    plan: &Plan,
    inline: &dyn StoreFactory,
    apart: &dyn StoreFactory,
    clock: &dyn Clock,
    observer: &dyn Observer,
) -> Result<Vec<Point>> {
    let is_ascending = plan.sizes.windows(2).all(|pair| pair[0] < pair[1]);
    if plan.sizes.is_empty() || plan.sizes[0] == 0 || !is_ascending {
        return Err(Error::invalid("sizes of values have to be ascending, from 1 on"));
    }
    plan.sizes.iter().map(|&bytes| point(plan, bytes, [inline, apart], clock, observer)).collect()
}

fn point(
    plan: &Plan,
    value_bytes: usize,
    stores: [&dyn StoreFactory; 2],
    clock: &dyn Clock,
    observer: &dyn Observer,
) -> Result<Point> {
    let keys = (plan.load_bytes / (plan.key_bytes + value_bytes) as u64).max(1);
    let mut sides = [Side::default(); 2];
    for round in 0..plan.rounds.max(1) {
        for ((side, factory), name) in sides.iter_mut().zip(stores).zip(["inline", "apart"]) {
            factory.destroy()?;
            let store = factory.open()?;
            let title = format!("{value_bytes} B {name}");
            let seed = plan.seed + round;
            let run = Run { plan, value_bytes, keys, seed, store: &*store, clock, observer, title };
            run.measure(side)?;
            store.close()?;
            factory.destroy()?;
        }
    }
    let [inline, apart] = sides;
    Ok(Point { value_bytes, keys, inline, apart })
}

/// One side of a point, once.
struct Run<'a> {
    plan: &'a Plan,
    value_bytes: usize,
    keys: u64,
    seed: u64,
    store: &'a dyn Store,
    clock: &'a dyn Clock,
    observer: &'a dyn Observer,
    title: String,
}

impl Run<'_> {
    fn measure(&self, side: &mut Side) -> Result<()> {
        let size = ValueSize::Fixed(self.value_bytes);
        let mut values = Values::new(size, self.plan.compression_ratio, self.seed);
        let order = Permutation::new(self.keys, self.seed);
        let mut random = Random::new(self.seed);
        let mut put = |key: &[u8]| self.store.put(key, values.draw(key), WriteOptions::default());
        side.load_ns += self.phase("load", self.keys, |number| order.at(number), &mut put)?;
        let updates = (self.keys as f64 * self.plan.updates) as u64;
        side.update_ns += self.phase("updates", updates, |_| random.below(self.keys), &mut put)?;
        let mut value = Vec::new();
        let get = |key: &[u8]| self.store.get(key, &mut value).map(drop);
        let reads = (self.keys as f64 * self.plan.reads) as u64;
        side.read_ns += self.phase("reads", reads, |_| random.below(self.keys), get)?;
        let counters = self.store.counters()?;
        side.user_write_bytes += counters.user_write_bytes.unwrap_or(0);
        side.host_write_bytes += counters.host_write_bytes.unwrap_or(0);
        side.space_bytes = counters.space_bytes.unwrap_or(0);
        Ok(())
    }

    /// Does `act` to the keys of `total` numbers, waits for what it left to the background, and
    /// gives the time.
    fn phase(
        &self,
        name: &str,
        total: u64,
        mut number: impl FnMut(u64) -> u64,
        mut act: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<u64> {
        let keys = DecimalKeys::new(self.plan.key_bytes, self.keys)?;
        let mut key = Vec::new();
        let title = format!("{} {name}", self.title);
        let begin_ns = self.clock.now_ns();
        for done in 0..total {
            keys.write(number(done), &mut key);
            act(&key)?;
            if done % OPERATIONS_PER_NEWS == 0 && self.observer.wants_progress() {
                self.news(&title, done, total, begin_ns);
            }
        }
        self.store.wait_idle()?;
        if self.observer.wants_progress() {
            self.news(&title, total, total, begin_ns);
        }
        Ok(self.clock.now_ns() - begin_ns)
    }

    fn news(&self, title: &str, done: u64, total: u64, begin_ns: u64) {
        let elapsed_ns = self.clock.now_ns() - begin_ns;
        let progress = Progress { benchmark: title, done, total: Some(total), elapsed_ns };
        self.observer.progress(&progress);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(value_bytes: usize, inline_ns: u64, apart_ns: u64) -> Point {
        let side = |load_ns| Side { load_ns, ..Side::default() };
        Point { value_bytes, keys: 1, inline: side(inline_ns), apart: side(apart_ns) }
    }

    #[test]
    fn the_crossover_is_where_apart_stays_ahead() {
        let points = [point(64, 10, 20), point(128, 10, 9), point(256, 10, 11)];
        assert_eq!(crossover(&points), None);
        let more = [&points[..], &[point(512, 10, 10), point(1024, 10, 4)]].concat();
        assert_eq!(crossover(&more), Some(512));
        assert_eq!(crossover(&more[3..]), Some(512));
        assert_eq!(crossover(&[]), None);
    }

    #[test]
    fn sizes_out_of_order_are_refused() {
        let plan = Plan {
            sizes: vec![128, 64],
            key_bytes: 16,
            load_bytes: 1000,
            updates: 1.0,
            reads: 1.0,
            rounds: 1,
            compression_ratio: 0.5,
            seed: 1,
        };
        let stores = crate::memory_store::MemoryStore::default();
        let clock = crate::WallClock::default();
        let measured = measure(&plan, &stores, &stores, &clock, &crate::Silent);
        assert!(measured.unwrap_err().message().contains("ascending"));
    }
}
