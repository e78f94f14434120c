//! How unevenly operations fall on keys.
//!
//! The exponent of Zipf's law is fitted by the chance that two operations are on the same key: it
//! is `zeta(n, 2s) / zeta(n, s)^2` for `n` keys and exponent `s`. It can be estimated without
//! ranking keys, so that chance alone does not look like skew.

use crate::zipf::zeta;

/// Steeper laws are all the same: one key has nearly everything.
const EXPONENT_MAX: f64 = 4.0;

/// The chance that two operations are on the same key.
///
/// `counts` are the operations on each key of the sample, a key standing for `keys_per_key`;
/// `operations` all operations of the trace.
pub fn collision_chance(counts: &[u64], keys_per_key: u64, operations: u64) -> f64 {
    let pairs: f64 = counts.iter().map(|&count| count as f64 * (count as f64 - 1.0)).sum();
    let all = operations as f64 * (operations as f64 - 1.0);
    if all > 0.0 { pairs * keys_per_key as f64 / all } else { 0.0 }
}

/// The exponent of Zipf's law over `keys` keys that has this chance; 0 is no skew.
pub fn exponent(keys: u64, chance: f64) -> f64 {
    let keys = keys.max(1);
    let of = |exponent: f64| zeta(keys, 2.0 * exponent) / zeta(keys, exponent).powi(2);
    let (mut low, mut high) = (0.0, EXPONENT_MAX);
    if chance <= of(low) || keys == 1 {
        return 0.0;
    }
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if of(middle) < chance { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The share of operations on the hottest `share` of keys; `counts` descend.
pub fn hot_share(counts: &[u64], share: f64) -> f64 {
    let all: u64 = counts.iter().sum();
    let keys = ((counts.len() as f64 * share).ceil() as usize).min(counts.len());
    let hot: u64 = counts.iter().take(keys).sum();
    hot as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zipf::Steep;
    use base::random::Random;

    #[test]
    fn the_exponent_that_keys_were_drawn_with_is_found() {
        let keys = 10_000;
        for drawn in [0.0, 0.5, 0.8, 0.99, 1.2] {
            let mut random = Random::new(5);
            let mut counts = vec![0u64; keys as usize];
            for _ in 0..200_000 {
                let key = match drawn {
                    0.0 => random.below(keys),
                    _ => Steep::new(keys, drawn).unwrap().draw(&mut random),
                };
                counts[key as usize] += 1;
            }
            let found = exponent(keys, collision_chance(&counts, 1, 200_000));
            assert!((found - drawn).abs() < 0.1, "drawn {drawn}, found {found}");
        }
    }

    #[test]
    fn one_key_and_none_have_no_skew() {
        assert_eq!(exponent(1, 1.0), 0.0);
        assert_eq!(exponent(0, collision_chance(&[], 1, 0)), 0.0);
        assert_eq!(hot_share(&[], 0.01), 0.0);
        assert_eq!(hot_share(&[90, 5, 5], 0.01), 0.9);
    }
}
