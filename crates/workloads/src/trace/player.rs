//! A trace on a store: its operations one after another, each measured.
//!
//! Keys are those of the trace. Where a trace has a shorter key in place of the real one, it is
//! filled up with zeros. Values are random bytes of the sizes that the trace has. Range deletions
//! are left out: a trace has only their beginning.

use super::operation::{Kind, Operation};
use crate::clock::Clock;
use crate::measure::Meter;
use crate::pace::Pacer;
use crate::record::{Record, Tally};
use crate::store::{Direction, Store, WriteOptions};
use base::Result;
use base::key::KEY_BYTES_MAX;
use base::random::Random;

/// Values are cut from this many random bytes; a longer value has a buffer as long as itself.
const VALUES_BYTES: usize = 1 << 20;

/// How a trace is replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Replay {
    /// What values are made of.
    pub seed: u64,
    /// Operations in a second, each measured from when it was due; 0: one begins when the one
    /// before has ended.
    pub rate: f64,
    /// For every write.
    pub write_options: WriteOptions,
}

/// Replays operations on a store.
pub struct Player<'a> {
    store: &'a dyn Store,
    clock: &'a dyn Clock,
    write_options: WriteOptions,
    pacer: Option<Pacer>,
    meter: Meter,
    tally: Tally,
    random: Random,
    /// Random bytes, and where the next value begins.
    values: Vec<u8>,
    at: usize,
    key: Vec<u8>,
    found: Vec<u8>,
}

impl<'a> Player<'a> {
    /// Begins to measure.
    pub fn new(store: &'a dyn Store, clock: &'a dyn Clock, replay: Replay) -> Result<Player<'a>> {
        let meter = Meter::start(store, clock)?;
        let mut player = Player {
            store,
            clock,
            write_options: replay.write_options,
            pacer: (replay.rate > 0.0).then(|| Pacer::new(meter.start_ns(), replay.rate, 1, 0)),
            meter,
            tally: Tally::default(),
            random: Random::new(replay.seed),
            values: Vec::new(),
            at: 0,
            key: Vec::new(),
            found: Vec::new(),
        };
        player.fill_values(VALUES_BYTES);
        Ok(player)
    }

    fn fill_values(&mut self, bytes: usize) {
        self.values.resize(bytes, 0);
        self.random.fill(&mut self.values);
        self.at = 0;
    }

    /// Replays `operation`; a value whose size it does not have has `value_bytes`.
    pub fn apply(&mut self, operation: &Operation<'_>, value_bytes: usize) -> Result<()> {
        if operation.kind == Kind::DeleteRange {
            return Ok(());
        }
        let key_bytes = operation.key_bytes.min(KEY_BYTES_MAX as u64) as usize;
        self.key.clear();
        self.key.extend_from_slice(operation.key);
        self.key.resize(key_bytes.max(operation.key.len()), 0);
        if operation.kind.is_write() && value_bytes > self.values.len() {
            self.fill_values(value_bytes);
        }
        let begin_ns = match &mut self.pacer {
            Some(pacer) => pacer.wait(self.clock),
            None => self.clock.now_ns(),
        };
        self.call(operation, value_bytes)?;
        let latency_ns = self.clock.now_ns().saturating_sub(begin_ns);
        let is_write = operation.kind.is_write();
        let latency = if is_write { &mut self.tally.write } else { &mut self.tally.read };
        latency.record(latency_ns);
        self.tally.ops += 1;
        Ok(())
    }

    fn call(&mut self, operation: &Operation<'_>, value_bytes: usize) -> Result<()> {
        let (store, options) = (self.store, self.write_options);
        match operation.kind {
            Kind::Put | Kind::Update => {
                if self.at + value_bytes > self.values.len() {
                    self.at = 0;
                }
                let value = &self.values[self.at..self.at + value_bytes];
                store.put(&self.key, value, options)?;
                self.at += value_bytes;
                self.tally.write_bytes += (self.key.len() + value_bytes) as u64;
            }
            Kind::Delete => {
                store.delete(&self.key, options)?;
                self.tally.write_bytes += self.key.len() as u64;
            }
            Kind::Get => {
                self.tally.lookups += 1;
                if store.get(&self.key, &mut self.found)? {
                    self.tally.found += 1;
                    self.tally.read_bytes += (self.key.len() + self.found.len()) as u64;
                }
            }
            Kind::Scan => {
                let count = usize::try_from(operation.records).unwrap_or(usize::MAX);
                let mut read_bytes = 0;
                store.scan(Some(&self.key), count, Direction::Forward, &mut |key, value| {
                    read_bytes += (key.len() + value.len()) as u64;
                })?;
                self.tally.read_bytes += read_bytes;
            }
            Kind::DeleteRange => {}
        }
        Ok(())
    }

    /// What was measured.
    pub fn finish(self) -> Result<Record> {
        self.meter.finish("replay", self.store, &self.tally, self.clock.now_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::WallClock;
    use crate::memory_store::MemoryStore;

    #[test]
    fn the_store_has_what_the_trace_says() {
        let (store, clock) = (MemoryStore::default(), WallClock::default());
        let mut player = Player::new(&store, &clock, Replay::default()).unwrap();
        let put = |key| Operation::new(None, Kind::Put, key);
        player.apply(&put(b"a"), 30).unwrap();
        player.apply(&Operation { key_bytes: 4, ..put(b"b") }, VALUES_BYTES + 1).unwrap();
        player.apply(&put(b"c"), 5).unwrap();
        player.apply(&Operation::new(None, Kind::Delete, b"a"), 0).unwrap();
        player.apply(&Operation::new(None, Kind::DeleteRange, b"c"), 0).unwrap();
        player.apply(&Operation::new(None, Kind::Get, b"c"), 0).unwrap();
        player.apply(&Operation::new(None, Kind::Get, b"d"), 0).unwrap();
        player.apply(&Operation::new(None, Kind::Scan, b"b").over(9), 0).unwrap();
        let record = player.finish().unwrap();
        assert_eq!(record.ops, 7);
        let mut value = Vec::new();
        assert!(!store.get(b"a", &mut value).unwrap());
        assert!(store.get(b"b\0\0\0", &mut value).unwrap());
        assert_eq!(value.len(), VALUES_BYTES + 1);
        assert!(store.get(b"c", &mut value).unwrap());
        assert_eq!(value.len(), 5);
        assert_eq!(record.user_bytes, 31 + 4 + VALUES_BYTES as u64 + 1 + 6 + 1);
        assert!(record.latency_ns.read.is_some() && record.latency_ns.write.is_some());
    }
}
