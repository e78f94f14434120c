//! Sketches of the keys of a run: how many different keys several runs have together, in 1 KiB
//! a run.
//!
//! A sketch is a HyperLogLog: a hash chooses one of 1024 registers, which keeps the longest row of
//! zeros that a hash of its had. Sketches of several runs become that of their union by the maximum
//! of each register. The standard error is 3.3 % of the union. The estimator is that of Ertl ("New
//! cardinality estimation algorithms for HyperLogLog sketches", 2017), which needs no correction
//! for small or large numbers.
//!
//! What runs have more than their union, one supersedes in another. So a policy knows the garbage
//! of a stack without reading it.

use std::fmt;
use std::sync::Arc;

/// Bits of a hash that choose the register.
const INDEX_BITS: u32 = 10;
const REGISTERS: usize = 1 << INDEX_BITS;

/// The standard error of the number of keys, as a share of it.
pub const KEYS_ERROR: f64 = 0.033;

/// The most zeros that the other bits of a hash can begin with, and one.
const RANK_MAX: usize = (u64::BITS - INDEX_BITS + 1) as usize;

/// The keys of one run, or of several.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySketch {
    registers: [u8; REGISTERS],
}

impl Default for KeySketch {
    /// No keys.
    fn default() -> KeySketch {
        KeySketch { registers: [0; REGISTERS] }
    }
}

impl fmt::Debug for KeySketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySketch of {:.0} keys", self.keys())
    }
}

impl KeySketch {
    /// Adds a key by its hash; once more changes nothing.
    #[inline]
    pub fn add(&mut self, hash: u64) {
        let rest = hash << INDEX_BITS | 1 << (INDEX_BITS - 1);
        let rank = rest.leading_zeros() as u8 + 1;
        let register = &mut self.registers[(hash >> (u64::BITS - INDEX_BITS)) as usize];
        *register = rank.max(*register);
    }

    /// Adds the keys of another sketch.
    pub fn add_all(&mut self, other: &KeySketch) {
        let both = self.registers.iter_mut().zip(&other.registers);
        both.for_each(|(register, other)| *register = *other.max(register));
    }

    /// How many different keys it has, about.
    pub fn keys(&self) -> f64 {
        let mut counts = [0u32; RANK_MAX + 1];
        self.registers.iter().for_each(|&rank| counts[usize::from(rank)] += 1);
        let share = |rank: usize| f64::from(counts[rank]) / REGISTERS as f64;
        let mut sum = tau(1.0 - share(RANK_MAX));
        for rank in (1..RANK_MAX).rev() {
            sum = 0.5 * (sum + share(rank));
        }
        sum += sigma(share(0));
        REGISTERS as f64 / (2.0 * std::f64::consts::LN_2 * sum)
    }
}

/// `x + Σ x^(2^k) 2^(k-1)` for `k` from 1.
fn sigma(x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut weight, mut sum) = (x, 1.0, x);
    loop {
        power *= power;
        let before = sum;
        sum += power * weight;
        weight += weight;
        if sum == before {
            return sum;
        }
    }
}

/// `(1 - x - Σ (1 - x^(2^-k))^2 2^-k) / 3` for `k` from 1.
fn tau(x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut root, mut weight, mut sum) = (x, 1.0, 1.0 - x);
    loop {
        root = root.sqrt();
        weight *= 0.5;
        let before = sum;
        sum -= (1.0 - root).powi(2) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}

/// What is known of a run's keys: the sketch of the process that wrote it. No file has it, so it
/// makes no difference between two runs.
#[derive(Clone, Debug, Default)]
pub struct KnownKeys(Option<Arc<(KeySketch, u64)>>);

impl PartialEq for KnownKeys {
    fn eq(&self, _: &KnownKeys) -> bool {
        true
    }
}

impl Eq for KnownKeys {}

impl KnownKeys {
    /// The keys of this sketch, and how many there are.
    pub fn of(sketch: KeySketch, count: u64) -> KnownKeys {
        KnownKeys(Some(Arc::new((sketch, count))))
    }

    /// The sketch, where this process wrote the run.
    pub fn sketch(&self) -> Option<&KeySketch> {
        self.0.as_ref().map(|known| &known.0)
    }

    /// How many different keys there are, where this process wrote the run.
    pub fn count(&self) -> Option<u64> {
        self.0.as_ref().map(|known| known.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::checksum::hash64;

    fn sketch(keys: std::ops::Range<u64>) -> KeySketch {
        let mut sketch = KeySketch::default();
        keys.for_each(|key| sketch.add(hash64(&key.to_be_bytes())));
        sketch
    }

    /// Three standard errors, and what little numbers are off by.
    fn assert_near(found: f64, expected: f64) {
        let error = 3.0 * KEYS_ERROR * expected;
        assert!((found - expected).abs() <= error, "{found} keys, {expected} expected");
    }

    #[test]
    fn different_keys_are_counted_within_the_error_from_none_to_many() {
        assert_eq!(KeySketch::default().keys(), 0.0);
        for keys in [1, 10, 100, 300, 1000, 3000, 30_000, 1_000_000] {
            assert_near(sketch(0..keys).keys(), keys as f64);
        }
    }

    #[test]
    fn a_union_counts_what_two_have_in_common_once() {
        let mut union = sketch(0..60_000);
        union.add_all(&sketch(40_000..100_000));
        assert_eq!(union, sketch(0..100_000));
        union.add_all(&sketch(40_000..100_000));
        assert_near(union.keys(), 100_000.0);
    }

    #[test]
    fn every_hash_has_a_register_and_a_rank() {
        let mut sketch = KeySketch::default();
        [0, u64::MAX, 1, 1 << 63].into_iter().for_each(|hash| sketch.add(hash));
        assert!(sketch.keys() > 0.0 && sketch.keys().is_finite());
    }
}
