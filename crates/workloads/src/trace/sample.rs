//! A sample of a trace's keys, with everything that happened to them.
//!
//! A key is in the sample when its hash is below a bound; the bound is halved when the sample gets
//! too large. So every key has the same chance, what is kept of a key is complete and in order, and
//! a key of the sample stands for `2^halvings` keys of the trace (Waldspurger et al., SHARDS, FAST
//! 2015). A trace that fits is kept whole.

use super::operation::{Kind, Operation};
use base::checksum::hash64;
use std::collections::HashMap;

/// Bytes of a key that are kept, for its place in the order.
const KEY_BYTES_KEPT: usize = 64;

/// Keys that a sample keeps, however many operations there are on them.
const KEYS_MIN: usize = 64;

/// How large a sample may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Different keys.
    pub keys: usize,
    /// Operations on them.
    pub events: usize,
}

impl Default for Bounds {
    /// Below 200 MB.
    fn default() -> Bounds {
        Bounds { keys: 1 << 19, events: 1 << 21 }
    }
}

/// A key of the sample.
#[derive(Clone, Debug)]
pub struct SampledKey {
    /// Its hash, which chose it.
    pub hash: u64,
    /// Its first bytes.
    pub start: Box<[u8]>,
    /// It was there before the trace began, as far as can be told.
    pub is_old: bool,
}

/// An operation on a key of the sample.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The key's number in the sample.
    pub key: u32,
    /// What is done.
    pub kind: Kind,
    /// Bytes of the value; 0 where it is not known.
    pub value_bytes: u32,
    /// Records of a scan.
    pub records: u32,
    /// Bytes of keys and values that the whole trace wrote before.
    pub written_before_bytes: u64,
}

/// A sample.
#[derive(Clone, Debug)]
pub struct Sample {
    /// How often the bound was halved: a key stands for 2 to the power of this.
    pub halvings: u32,
    /// The keys, in the order of their first operation.
    pub keys: Vec<SampledKey>,
    /// The operations in their order; range deletions are not among them.
    pub events: Vec<Event>,
    numbers: HashMap<u64, u32>,
    bounds: Bounds,
}

impl Sample {
    /// An empty sample.
    pub fn new(bounds: Bounds) -> Sample {
        Sample {
            halvings: 0,
            keys: Vec::new(),
            events: Vec::new(),
            numbers: HashMap::new(),
            bounds,
        }
    }

    /// How many keys of the trace a key stands for.
    pub fn keys_per_key(&self) -> u64 {
        1 << self.halvings
    }

    /// An operation of the trace; `written_before_bytes` were written before it.
    pub fn take(&mut self, operation: &Operation<'_>, written_before_bytes: u64) {
        let hash = hash64(operation.key);
        if hash > u64::MAX >> self.halvings || operation.kind == Kind::DeleteRange {
            return;
        }
        let next = self.keys.len() as u32;
        let key = *self.numbers.entry(hash).or_insert(next);
        if key == next {
            let start = operation.key.get(..KEY_BYTES_KEPT).unwrap_or(operation.key);
            self.keys.push(SampledKey {
                hash,
                start: start.into(),
                is_old: operation.is_of_old_key(),
            });
        }
        // Of a few keys with endless operations, the first ones have to do.
        if self.events.len() >= self.bounds.events && self.keys.len() <= KEYS_MIN {
            return;
        }
        self.events.push(Event {
            key,
            kind: operation.kind,
            value_bytes: u32::try_from(operation.value_bytes.unwrap_or(0)).unwrap_or(u32::MAX),
            records: u32::try_from(operation.records).unwrap_or(u32::MAX),
            written_before_bytes,
        });
        while self.is_too_large() {
            self.halve();
        }
    }

    /// A few keys are never halved: the sample might end up with none.
    fn is_too_large(&self) -> bool {
        let is_large = self.keys.len() > self.bounds.keys || self.events.len() > self.bounds.events;
        is_large && self.keys.len() > KEYS_MIN && self.halvings < u64::BITS - 1
    }

    /// The same within other bounds.
    pub fn within(&self, bounds: Bounds) -> Sample {
        let mut sample = Sample { bounds, ..self.clone() };
        while sample.is_too_large() {
            sample.halve();
        }
        sample
    }

    fn halve(&mut self) {
        self.halvings += 1;
        let hash_max = u64::MAX >> self.halvings;
        let mut kept = 0;
        let numbers: Vec<Option<u32>> = (self.keys.iter())
            .map(|key| {
                let is_kept = key.hash <= hash_max;
                kept += u32::from(is_kept);
                is_kept.then(|| kept - 1)
            })
            .collect();
        self.keys.retain(|key| key.hash <= hash_max);
        let number_of = |old: u32| numbers.get(old as usize).copied().flatten();
        self.events.retain_mut(|event| match number_of(event.key) {
            Some(key) => {
                event.key = key;
                true
            }
            None => false,
        });
        self.numbers = (0u32..).zip(&self.keys).map(|(number, key)| (key.hash, number)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(sample: &mut Sample, keys: u32, rounds: u32) {
        for operation in 0..keys * rounds {
            let key = (operation % keys).to_be_bytes();
            let put = Operation::new(None, Kind::Put, &key).value(100);
            sample.take(&put, u64::from(operation) * 104);
        }
    }

    #[test]
    fn a_sample_keeps_its_bounds_and_everything_about_its_keys() {
        let bounds = Bounds { keys: 1000, events: 2500 };
        let mut sample = Sample::new(bounds);
        take_all(&mut sample, 10_000, 5);
        assert!(sample.keys.len() <= 1000 && sample.events.len() <= 2500);
        assert_eq!(sample.events.len(), 5 * sample.keys.len());
        let estimate = sample.keys.len() as f64 * sample.keys_per_key() as f64;
        assert!((estimate / 10_000.0 - 1.0).abs() < 0.2, "{estimate}");
        assert!(sample.events.is_sorted_by_key(|event| event.written_before_bytes));
        let small = sample.within(Bounds { keys: 100, events: 10_000 });
        assert!(small.keys.len() <= 100 && small.events.len() == 5 * small.keys.len());
    }

    #[test]
    fn a_trace_that_fits_is_kept_whole() {
        let mut sample = Sample::new(Bounds::default());
        take_all(&mut sample, 1000, 3);
        assert_eq!(
            (sample.keys_per_key(), sample.keys.len(), sample.events.len()),
            (1, 1000, 3000)
        );
    }

    #[test]
    fn one_key_with_endless_operations_stays_within_the_bounds() {
        let mut sample = Sample::new(Bounds { keys: 10, events: 100 });
        for _ in 0..1000 {
            sample.take(&Operation::new(None, Kind::Get, b"key"), 0);
        }
        assert_eq!((sample.keys.len(), sample.events.len()), (1, 100));
    }
}
