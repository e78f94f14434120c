//! Small deterministic random numbers: results in files, tests and figures must not change when a
//! crate is upgraded, so the generator is ours. Not for secrets.

/// SplitMix64: a full-period generator of 64-bit numbers from one word of state.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The same seed gives the same numbers for ever.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound` (0 when `bound` is 0).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True once in `odds` calls on average.
    pub fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }

    /// A number in 0.0 .. 1.0.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Fills `out` with random bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let bytes = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_fixed() {
        let mut random = Random::new(0);
        assert_eq!(random.next_u64(), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn below_stays_below_and_reaches_both_ends() {
        let mut random = Random::new(1);
        let seen: std::collections::BTreeSet<u64> = (0..1000).map(|_| random.below(7)).collect();
        assert_eq!(seen.len(), 7);
        assert!(seen.iter().all(|&n| n < 7));
    }
}
