//! Measures the cost of range deletions: `measure_range_deletions DIR SHAPE DELETIONS [defaults]`,
//! where the shape is `rolling` or `disjoint`; without `defaults` the write buffer has 1 GiB. Each
//! line has the engine, the shape, the number of deletions and where they are. For the rest see
//! `docs/design/range-deletions.md`, and `peers/range-deletions/rocksdb.c` for the same work in
//! RocksDB.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use base::random::Random;
use shingle::{Db, Options, ReadOptions, Result};
use std::time::Instant;

/// At the even and at some odd numbers below `SPACE`.
const ENTRIES: u64 = 200_000;
const SPACE: u64 = 2_000_000;
/// Maximum duration of the repetitions of a measurement.
const LIMIT_NS: u128 = 4_000_000_000;

struct Bench {
    db: Db,
    random: Random,
    rolling: bool,
    deletions: u64,
}

/// Processor time of this thread in nanoseconds, so that other work on the machine does not count.
fn processor_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn key(n: u64) -> [u8; 16] {
    let mut key = [b'0'; 16];
    key[8..].copy_from_slice(&n.to_be_bytes());
    key
}

/// Entry `i`: a victim and a survivor in each 20 numbers.
fn entry(i: u64) -> u64 {
    i / 2 * 20 + i % 2
}

impl Bench {
    fn survivor(&mut self) -> u64 {
        let half = ENTRIES / 2;
        let i = match self.rolling {
            true => half / 2 + self.random.below(half / 2),
            false => self.random.below(half),
        };
        entry(2 * i)
    }

    fn victim(&mut self) -> u64 {
        if self.rolling {
            return entry(self.random.below(ENTRIES / 2));
        }
        let count = self.deletions.clamp(1, ENTRIES / 2);
        entry(2 * (self.random.below(count) * (ENTRIES / 2 / count)) + 1)
    }

    fn delete_range(&mut self, i: u64) -> Result<()> {
        let deletions = self.deletions;
        if self.rolling {
            return self.db.delete_range([], key(SPACE / 2 * (i % deletions + 1) / deletions));
        }
        let (i, half) = (i * 7919 % deletions, ENTRIES / 2); // in no order
        let from = match deletions <= half {
            true => i * (half / deletions) * 20 + 1,
            false => i / (deletions / half) * 20 + 1 + 2 * (i % (deletions / half)),
        };
        self.db.delete_range(key(from), key(from + 1))
    }

    fn get(&mut self, n: u64) -> Result<()> {
        self.db.get(key(n)).map(drop)
    }

    fn put(&mut self, n: u64) -> Result<()> {
        self.db.put(key(n), [b'v'; 100])
    }

    fn seek(&mut self) -> Result<()> {
        let at = key(self.survivor());
        let mut cursor = self.db.cursor(ReadOptions::default());
        cursor.seek(at)?;
        for _ in 0..10 {
            if cursor.valid() {
                cursor.next()?;
            }
        }
        Ok(())
    }

    /// Average processor time of a call in microseconds, and the longest call by the clock in
    /// milliseconds.
    fn timed(
        &mut self,
        count: u64,
        mut call: impl FnMut(&mut Bench, u64) -> Result<()>,
    ) -> Result<(f64, f64)> {
        let (begin, processor) = (Instant::now(), processor_ns());
        let (mut last, mut longest, mut done) = (0, 0, 0);
        while done < count && last < LIMIT_NS {
            call(self, done)?;
            let now = begin.elapsed().as_nanos();
            longest = longest.max(now - last);
            (last, done) = (now, done + 1);
        }
        let processor = (processor_ns() - processor) as f64;
        Ok((processor / done.max(1) as f64 / 1e3, longest as f64 / 1e6))
    }

    /// Processor time per key of a whole scan in nanoseconds, and the number of keys.
    fn scan(&self, reverse: bool) -> Result<(f64, u64)> {
        let begin = processor_ns();
        let mut cursor = self.db.cursor(ReadOptions::default());
        if reverse {
            cursor.seek_to_last()?
        } else {
            cursor.seek_to_first()?
        }
        let mut count = 0u64;
        while cursor.valid() {
            count += 1;
            if reverse { cursor.prev()? } else { cursor.next()? }
        }
        Ok(((processor_ns() - begin) as f64 / count.max(1) as f64, count))
    }

    fn measure(&mut self, title: &str, place: &str) -> Result<()> {
        let (put, put_max) = self.timed(10_000, |bench, _| {
            let n = bench.survivor();
            bench.put(n)
        })?;
        let (get, _) = self.timed(20_000, |bench, _| {
            let n = bench.survivor();
            bench.get(n)
        })?;
        let (get_deleted, _) = self.timed(20_000, |bench, _| {
            let n = bench.victim();
            bench.get(n)
        })?;
        let (seek, _) = self.timed(2_000, |bench, _| bench.seek())?;
        let ((forward, _), (backward, count)) = (self.scan(false)?, self.scan(true)?);
        let (delete_and_get, _) = match self.deletions {
            0 => (0.0, 0.0),
            _ => self.timed(200, |bench, i| {
                bench.delete_range(i)?;
                let n = bench.survivor();
                bench.get(n)
            })?,
        };
        println!(
            "{title}\t{place}\t{put:.2}\t{put_max:.2}\t{get:.2}\t{get_deleted:.2}\t{seek:.2}\t\
             {forward:.0}\t{backward:.0}\t{count}\t{delete_and_get:.2}"
        );
        Ok(())
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, dir, shape, deletions, rest @ ..] = &arguments[..] else {
        eprintln!("measure_range_deletions DIR rolling|disjoint DELETIONS [defaults]");
        std::process::exit(2);
    };
    let deletions = deletions.parse().unwrap_or(0);
    // So that this number of deletions stays in one memtable until it is flushed.
    let options = Options::new().cache_bytes(256 << 20);
    let options = match rest.is_empty() {
        true => options.write_buffer_bytes(1 << 30).expert(|e| e.memtable_bytes = Some(1 << 30)),
        false => options,
    };
    let rolling = shape == "rolling";
    let mut bench = Bench { db: options.open(dir)?, random: Random::new(1), rolling, deletions };
    for i in 0..ENTRIES {
        bench.put(entry(i))?;
    }
    bench.db.flush()?;
    bench.db.compact()?;
    bench.db.wait_idle()?;
    let title = format!("shingle\t{shape}\t{deletions}");
    let begin = processor_ns();
    let mut longest = 0;
    for i in 0..deletions {
        let from = Instant::now();
        bench.delete_range(i)?;
        longest = longest.max(from.elapsed().as_nanos());
    }
    let each = (processor_ns() - begin) as f64 / deletions.max(1) as f64 / 1e3;
    println!("{title}\tdeletions\t{each:.2}\t{:.2}", longest as f64 / 1e6);
    bench.measure(&title, "memory")?;
    let begin = Instant::now();
    bench.db.flush()?;
    println!("{title}\tflush\t{}", begin.elapsed().as_millis());
    bench.measure(&title, "flushed")?;
    bench.db.close()
}
