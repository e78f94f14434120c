//! The generators of random key numbers: LevelDB's, for its exact sequence, and a good one.

use base::random::Random;

/// LevelDB's generator: Lehmer's multiplicative congruence, 16807 modulo 2^31 - 1.
///
/// db_bench draws its keys as `next() % num`, so a fillrandom of `num` keys has about 63.2 %
/// distinct ones.
#[derive(Clone, Debug)]
pub struct Lehmer {
    state: u32,
}

impl Lehmer {
    const MODULUS: u32 = 2_147_483_647;

    /// The sequence that LevelDB draws from `seed`.
    pub fn new(seed: u32) -> Lehmer {
        let state = seed & Lehmer::MODULUS;
        Lehmer { state: if state == 0 || state == Lehmer::MODULUS { 1 } else { state } }
    }

    /// The next number in 1 .. 2^31 - 1.
    pub fn next_u32(&mut self) -> u32 {
        self.state = (u64::from(self.state) * 16_807 % u64::from(Lehmer::MODULUS)) as u32;
        self.state
    }
}

/// Where uniform key numbers come from.
#[derive(Clone, Debug)]
pub enum KeyNumbers {
    /// 64-bit numbers, uniform over any range, as in RocksDB's db_bench.
    Uniform(Random),
    /// LevelDB's sequence; it reaches no key above 2^31.
    LevelDb(Lehmer),
}

impl KeyNumbers {
    /// A key number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        match self {
            KeyNumbers::Uniform(random) => random.below(bound),
            KeyNumbers::LevelDb(lehmer) => u64::from(lehmer.next_u32()) % bound,
        }
    }
}

/// A pseudo-random permutation of `0..count`: every number once, in no order, without a table.
///
/// Four Feistel rounds over the smallest even number of bits that holds `count`; numbers outside
/// the range walk on along their cycle until they are inside.
#[derive(Clone, Debug)]
pub struct Permutation {
    count: u64,
    half_bits: u32,
    round_keys: [u64; 4],
}

impl Permutation {
    /// The permutation of `0..count` for `seed`.
    pub fn new(count: u64, seed: u64) -> Permutation {
        let bits = 64 - count.saturating_sub(1).leading_zeros();
        let mut random = Random::new(seed);
        Permutation {
            count,
            half_bits: bits.div_ceil(2).max(1),
            round_keys: std::array::from_fn(|_| random.next_u64()),
        }
    }

    /// Where `position`, which is below the count, goes.
    pub fn at(&self, position: u64) -> u64 {
        debug_assert!(position < self.count, "position outside of the permutation");
        let mut number = position;
        loop {
            number = self.encrypt(number);
            if number < self.count {
                return number;
            }
        }
    }

    fn encrypt(&self, number: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for round_key in self.round_keys {
            let mixed = Random::new(right ^ round_key).next_u64() & mask;
            (left, right) = (right, left ^ mixed);
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distinct_share(numbers: &mut KeyNumbers, count: u64) -> f64 {
        let mut seen = vec![false; count as usize];
        for _ in 0..count {
            seen[numbers.below(count) as usize] = true;
        }
        seen.iter().filter(|&&seen| seen).count() as f64 / count as f64
    }

    #[test]
    fn the_lehmer_sequence_is_park_and_millers() {
        let mut lehmer = Lehmer::new(1);
        let numbers: Vec<u32> = (0..10_000).map(|_| lehmer.next_u32()).collect();
        assert_eq!(numbers[0], 16_807);
        assert_eq!(numbers[9_999], 1_043_618_065);
        assert_eq!(Lehmer::new(0).next_u32(), 16_807);
        assert_eq!(Lehmer::new(2_147_483_647).next_u32(), 16_807);
    }

    #[test]
    fn a_random_fill_leaves_the_known_share_of_distinct_keys() {
        let share = distinct_share(&mut KeyNumbers::LevelDb(Lehmer::new(1000)), 1_000_000);
        assert!((share - 0.6315).abs() < 0.0001, "LevelDB: {share}");
        let share = distinct_share(&mut KeyNumbers::Uniform(Random::new(1000)), 1_000_000);
        assert!((share - 0.6321).abs() < 0.001, "uniform: {share}");
    }

    #[test]
    fn a_permutation_has_every_number_once_and_mixes() {
        for count in [1, 2, 3, 10, 1000, 65_536, 65_537] {
            let permutation = Permutation::new(count, 7);
            let mut seen = vec![false; count as usize];
            (0..count).for_each(|i| seen[permutation.at(i) as usize] = true);
            assert!(seen.iter().all(|&seen| seen), "count {count}");
        }
        let permutation = Permutation::new(1000, 7);
        assert_eq!([0, 1, 2, 3].map(|i| permutation.at(i)), [112, 157, 658, 407]);
        let rising = (1..1000).filter(|&i| permutation.at(i) > permutation.at(i - 1)).count();
        assert!((400..600).contains(&rising), "{rising} of 999 steps rise");
    }
}
