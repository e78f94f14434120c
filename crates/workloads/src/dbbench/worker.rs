//! One thread of a benchmark: the loops of all operations.

use super::benchmarks::{Background, Benchmark, Operation, Order, Wanted};
use super::config::{CHECKSUM_BLOCK_BYTES, Config, KeyOrigin};
use super::monitor::Monitor;
use super::shared::Shared;
use crate::clock::Clock;
use crate::keys::DecimalKeys;
use crate::pace::Pacer;
use crate::random::{KeyNumbers, Lehmer, Permutation};
use crate::record::Tally;
use crate::store::{Direction, WriteOptions};
use crate::values::{ValueSize, Values};
use crate::zipf::Scrambled;
use base::Result;
use base::checksum::crc32c;
use base::random::Random;
use std::sync::atomic::Ordering::Relaxed;

const VALUE_SEED: u64 = 301;
/// A step of a scan takes well under a microsecond: timing each would measure the clock.
const SCAN_STEPS_PER_SAMPLE: u64 = 16;

/// Which latency an operation counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
}

/// When operations may start.
#[derive(Clone, Debug, Default)]
struct Pace {
    all: Option<Pacer>,
    reads: Option<Pacer>,
    writes: Option<Pacer>,
}

impl Pace {
    fn new(shared: &Shared<'_>, index: usize, batch: u64) -> Pace {
        let config = shared.config;
        let foreground = index < config.threads;
        let pacer = |rate: f64| {
            let (threads, turn) = if foreground { (config.threads, index) } else { (1, 0) };
            (rate > 0.0).then(|| Pacer::new(shared.start_ns, rate, threads, turn))
        };
        let entry_bytes = config.key_size as f64 + value_size(config, shared.benchmark).mean();
        let operations_per_call = match shared.benchmark.operation {
            Operation::Fill(_) | Operation::Overwrite => batch as f64,
            _ => 1.0,
        };
        Pace {
            all: if foreground { pacer(config.rate / operations_per_call) } else { None },
            reads: pacer(config.read_rate),
            writes: pacer(config.write_rate_bytes as f64 / entry_bytes / batch as f64),
        }
    }

    /// Waits until an operation is due; returns when its latency begins.
    fn begin(&mut self, kind: Kind, clock: &dyn Clock) -> u64 {
        let own = match kind {
            Kind::Read => self.reads.as_mut(),
            Kind::Write => self.writes.as_mut(),
        };
        match self.all.as_mut().or(own) {
            Some(pacer) => pacer.wait(clock),
            None => clock.now_ns(),
        }
    }
}

fn value_size(config: &Config, benchmark: &Benchmark) -> ValueSize {
    benchmark.value_bytes.map_or(config.value_size, ValueSize::Fixed)
}

/// The values that every thread of a benchmark writes. To be made before the clock starts.
pub(super) fn values(config: &Config, benchmark: &Benchmark) -> Values {
    Values::new(value_size(config, benchmark), config.compression_ratio, VALUE_SEED)
}

/// A thread of a benchmark.
pub(super) struct Worker<'a> {
    shared: &'a Shared<'a>,
    index: usize,
    batch: u64,
    options: WriteOptions,
    keys: DecimalKeys,
    numbers: KeyNumbers,
    permutation: Permutation,
    zipf: Option<Scrambled>,
    random: Random,
    values: Values,
    pace: Pace,
    tally: Tally,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Asked after each operation.
    monitor: Option<Monitor<'a>>,
}

impl<'a> Worker<'a> {
    /// The `index`-th thread; `serial` is its number among all threads of the run.
    pub(super) fn new(
        shared: &'a Shared<'a>,
        values: &Values,
        index: usize,
        serial: u64,
    ) -> Result<Worker<'a>> {
        let Config { num, seed, .. } = *shared.config;
        let batch = shared.benchmark.batch.unwrap_or(shared.config.batch_size);
        let own_seed = seed.wrapping_add(serial);
        let numbers = match shared.config.key_origin {
            KeyOrigin::Uniform => KeyNumbers::Uniform(Random::new(own_seed)),
            KeyOrigin::LevelDb => KeyNumbers::LevelDb(Lehmer::new(own_seed as u32)),
        };
        let zipf = shared.config.zipf.map(|theta| Scrambled::c(num, theta)).transpose()?;
        Ok(Worker {
            shared,
            index,
            batch,
            options: WriteOptions {
                sync: shared.config.sync || shared.benchmark.sync,
                disable_wal: shared.config.disable_wal,
            },
            keys: DecimalKeys::new(shared.config.key_size, num)?,
            numbers,
            permutation: Permutation::new(num, seed),
            zipf,
            random: Random::new(!own_seed),
            values: values.clone(),
            pace: Pace::new(shared, index, batch),
            tally: Tally::default(),
            key: Vec::new(),
            value: Vec::new(),
            monitor: None,
        })
    }

    /// Runs with a monitor on the same thread.
    pub(super) fn run_watched(mut self, monitor: Option<Monitor<'a>>) -> Result<Tally> {
        self.monitor = monitor;
        self.run()
    }

    /// Runs the benchmark to its end.
    pub(super) fn run(mut self) -> Result<Tally> {
        let result = self.run_operation();
        if result.is_err() {
            self.shared.stop.store(true, Relaxed);
        }
        self.tally.thread_ns = self.now_ns() - self.shared.start_ns;
        result.map(|()| self.tally)
    }

    fn run_operation(&mut self) -> Result<()> {
        let limit = self.limit();
        match self.shared.benchmark.operation {
            Operation::Fill(order) => self.drive(limit, |worker, done, left| {
                worker.write(order, done, worker.batch.min(left))
            }),
            Operation::Overwrite => self.drive(limit, |worker, done, left| {
                worker.write(Order::Random, done, worker.batch.min(left))
            }),
            Operation::Delete(order) => {
                self.drive(limit, |worker, done, _| worker.delete(order, done))
            }
            Operation::ReadSequential(direction) => self.read_all(direction, limit as usize),
            Operation::ReadRandom(wanted) => {
                self.drive(limit, |worker, _, left| worker.read_random(wanted, left))
            }
            Operation::Seek => self.drive(limit, |worker, _, _| {
                worker.set_key(Order::Random, 0);
                worker.seek(true)
            }),
            Operation::SeekFirst => self.drive(limit, |worker, _, _| worker.seek(false)),
            Operation::ReadOrWrite => self.drive(limit, |worker, done, left| {
                if worker.random.below(100) < worker.shared.config.read_percent {
                    worker.read_random(Wanted::All, left)
                } else {
                    worker.write(Order::Random, done, 1)
                }
            }),
            Operation::Update => self.drive(limit, |worker, _, _| worker.read_and_write(false)),
            Operation::Append => self.drive(limit, |worker, _, _| worker.read_and_write(true)),
            Operation::Checksum => self.checksum(),
            Operation::Maintain(_) | Operation::Report => Ok(()),
        }
    }

    /// Runs beside the benchmark until it ends, once at least.
    pub(super) fn run_background(mut self) -> Result<Tally> {
        loop {
            let result = match self.shared.benchmark.background {
                Some(Background::Write) => self.write(Order::Random, 0, self.batch).map(|_| ()),
                Some(Background::Scan) => self.read_all(Direction::Forward, usize::MAX),
                None => return Ok(self.tally),
            };
            let stop = self.shared.stop.fetch_or(result.is_err(), Relaxed);
            result?;
            if stop {
                return Ok(self.tally);
            }
        }
    }

    /// How many operations this thread does when it goes by count.
    fn limit(&self) -> u64 {
        self.shared.config.operations(self.shared.benchmark, self.index)
    }

    /// Repeats `operation`, which gets the number of operations done and the number left and
    /// returns how many it did, until none is left, or until the time is over where the benchmark
    /// goes by time.
    fn drive(
        &mut self,
        limit: u64,
        mut operation: impl FnMut(&mut Worker<'a>, u64, u64) -> Result<u64>,
    ) -> Result<()> {
        let deadline_ns = self.shared.config.seconds(self.shared.benchmark).map(|seconds| {
            self.shared.start_ns.saturating_add(seconds.saturating_mul(1_000_000_000))
        });
        let limit = if deadline_ns.is_some() { u64::MAX } else { limit };
        let mut done = 0;
        while done < limit && !self.shared.stop.load(Relaxed) {
            if deadline_ns.is_some_and(|deadline_ns| self.now_ns() >= deadline_ns) {
                break;
            }
            done += operation(self, done, limit - done)?;
            self.shared.done[self.index].set(done);
            if let Some(monitor) = &mut self.monitor {
                monitor.report()?;
            }
        }
        self.tally.ops += done;
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.shared.clock.now_ns()
    }

    fn begin(&mut self, kind: Kind) -> u64 {
        self.pace.begin(kind, self.shared.clock)
    }

    fn end(&mut self, kind: Kind, start_ns: u64) {
        let latency_ns = self.now_ns().saturating_sub(start_ns);
        match kind {
            Kind::Read => self.tally.read.record(latency_ns),
            Kind::Write => self.tally.write.record(latency_ns),
        }
    }

    fn number(&mut self, order: Order, position: u64) -> u64 {
        let num = self.shared.config.num;
        let is_fill = matches!(self.shared.benchmark.operation, Operation::Fill(_));
        match (order, &self.zipf) {
            (Order::Sequential, _) => position % num,
            (Order::Unique, _) => {
                let threads = self.shared.config.threads as u64;
                self.permutation.at((position * threads + self.index as u64) % num)
            }
            (Order::Random, Some(zipf)) if !is_fill => zipf.draw(&mut self.random),
            (Order::Random, _) => self.numbers.below(num),
        }
    }

    fn set_key(&mut self, order: Order, position: u64) {
        let number = self.number(order, position);
        self.keys.write(number, &mut self.key);
    }

    fn write(&mut self, order: Order, position: u64, batch: u64) -> Result<u64> {
        if batch != 1 {
            return self.write_batch(order, position, batch);
        }
        self.set_key(order, position);
        let place = self.values.draw_place(&self.key);
        self.tally.write_bytes += (self.key.len() + place.len()) as u64;
        let start_ns = self.begin(Kind::Write);
        self.shared.store.put(&self.key, self.values.at(place), self.options)?;
        self.end(Kind::Write, start_ns);
        Ok(1)
    }

    fn write_batch(&mut self, order: Order, position: u64, batch: u64) -> Result<u64> {
        let mut keys = Vec::with_capacity(batch as usize);
        for i in 0..batch {
            self.set_key(order, position + i);
            keys.push((self.key.clone(), self.values.draw_place(&self.key)));
        }
        let entries: Vec<(&[u8], &[u8])> = keys
            .iter()
            .map(|(key, place)| (key.as_slice(), self.values.at(place.clone())))
            .collect();
        let bytes = entries.iter().map(|(key, value)| (key.len() + value.len()) as u64);
        self.tally.write_bytes += bytes.sum::<u64>();
        let start_ns = self.pace.begin(Kind::Write, self.shared.clock);
        self.shared.store.put_batch(&entries, self.options)?;
        self.end(Kind::Write, start_ns);
        Ok(batch)
    }

    fn delete(&mut self, order: Order, position: u64) -> Result<u64> {
        self.set_key(order, position);
        self.tally.write_bytes += self.key.len() as u64;
        let start_ns = self.begin(Kind::Write);
        self.shared.store.delete(&self.key, self.options)?;
        self.end(Kind::Write, start_ns);
        Ok(1)
    }

    fn read_random(&mut self, wanted: Wanted, left: u64) -> Result<u64> {
        let gets = if wanted == Wanted::Batch { self.batch.min(left) } else { 1 };
        for _ in 0..gets {
            if wanted == Wanted::Hot {
                let number = self.numbers.below(self.shared.config.num.div_ceil(100));
                self.keys.write(number, &mut self.key);
            } else {
                self.set_key(Order::Random, 0);
            }
            if wanted == Wanted::Missing {
                self.key.push(b'.');
            }
            let start_ns = self.begin(Kind::Read);
            self.get(start_ns)?;
        }
        Ok(gets)
    }

    /// Reads the current key; `true` when it exists.
    fn get(&mut self, start_ns: u64) -> Result<bool> {
        let found = self.shared.store.get(&self.key, &mut self.value)?;
        self.end(Kind::Read, start_ns);
        self.tally.lookups += 1;
        if found {
            self.tally.found += 1;
            self.tally.read_bytes += (self.key.len() + self.value.len()) as u64;
        }
        Ok(found)
    }

    /// Seeks to the current key, or to the first key in the direction.
    fn seek(&mut self, to_key: bool) -> Result<u64> {
        let (mut bytes, mut first, mut found) = (0, true, false);
        let direction = if self.shared.config.reverse_iterator {
            Direction::Reverse
        } else {
            Direction::Forward
        };
        let count = self.shared.config.seek_nexts.saturating_add(1);
        let start_ns = self.begin(Kind::Read);
        let start = to_key.then_some(self.key.as_slice());
        self.shared.store.scan(start, count, direction, &mut |key, value| {
            found |= std::mem::take(&mut first) && start.is_none_or(|start| key == start);
            bytes += (key.len() + value.len()) as u64;
        })?;
        self.end(Kind::Read, start_ns);
        self.tally.lookups += 1;
        self.tally.found += u64::from(found);
        self.tally.read_bytes += bytes;
        Ok(1)
    }

    /// Reads a random key and writes it: a new value, or the old one with a new one behind it.
    fn read_and_write(&mut self, append: bool) -> Result<u64> {
        self.set_key(Order::Random, 0);
        let start_ns = self.begin(Kind::Read);
        let found = self.get(start_ns)?;
        if !(append && found) {
            self.value.clear();
        }
        let place = self.values.draw_place(&self.key);
        self.value.extend_from_slice(self.values.at(place));
        self.tally.write_bytes += (self.key.len() + self.value.len()) as u64;
        let start_ns = self.now_ns();
        self.shared.store.put(&self.key, &self.value, self.options)?;
        self.end(Kind::Write, start_ns);
        Ok(1)
    }

    fn read_all(&mut self, direction: Direction, count: usize) -> Result<()> {
        let Worker { shared, tally, index, .. } = self;
        let gauge = shared.done.get(*index);
        let (mut steps, mut sample_start_ns) = (0u64, shared.clock.now_ns());
        shared.store.scan(None, count, direction, &mut |key, value| {
            tally.read_bytes += (key.len() + value.len()) as u64;
            steps += 1;
            if steps.is_multiple_of(SCAN_STEPS_PER_SAMPLE) {
                let now_ns = shared.clock.now_ns();
                tally.read.record((now_ns - sample_start_ns) / SCAN_STEPS_PER_SAMPLE);
                sample_start_ns = now_ns;
                if let Some(gauge) = gauge {
                    gauge.set(steps);
                }
            }
        })?;
        tally.ops += steps;
        Ok(())
    }

    fn checksum(&mut self) -> Result<()> {
        let block = vec![b'x'; CHECKSUM_BLOCK_BYTES];
        self.drive(self.limit(), |worker, _, _| {
            std::hint::black_box(crc32c(std::hint::black_box(&block)));
            worker.tally.read_bytes += block.len() as u64;
            Ok(1)
        })
    }
}
