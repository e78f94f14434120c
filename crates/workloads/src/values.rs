//! Values of a given compressibility, cut from one buffer as db_bench does.

use base::checksum::hash64;
use base::random::Random;
use std::ops::{Range, RangeInclusive};

/// Bytes of the buffer, at least; longer values get a longer one.
const BUFFER_BYTES_MIN: usize = 1 << 20;
/// The buffer is made of pieces that compress by themselves.
const PIECE_BYTES: usize = 100;

/// How long values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSize {
    /// All of the same length.
    Fixed(usize),
    /// Uniform between two lengths, both included.
    Uniform(usize, usize),
    /// Normal around the middle of two lengths, one sixth of their distance wide, cut at both.
    Normal(usize, usize),
    /// One of two lengths, by the key and so for its life: the first for this many keys in 100.
    ByKey(usize, usize, u8),
}

impl ValueSize {
    /// The shortest and the longest value.
    pub fn range(&self) -> RangeInclusive<usize> {
        match *self {
            ValueSize::Fixed(size) => size..=size,
            ValueSize::Uniform(min, max) | ValueSize::Normal(min, max) => min..=max.max(min),
            ValueSize::ByKey(one, other, _) => one.min(other)..=one.max(other),
        }
    }

    /// Bytes of a value on average.
    pub fn mean(&self) -> f64 {
        if let ValueSize::ByKey(one, other, percent) = *self {
            let share = f64::from(percent) / 100.0;
            return share * one as f64 + (1.0 - share) * other as f64;
        }
        let range = self.range();
        (*range.start() as f64 + *range.end() as f64) / 2.0
    }

    fn draw(&self, key: &[u8], random: &mut Random) -> usize {
        let range = self.range();
        let (min, max) = (*range.start(), *range.end());
        match self {
            ValueSize::Fixed(size) => *size,
            ValueSize::ByKey(one, other, percent) => {
                if hash64(key) % 100 < u64::from(*percent) {
                    *one
                } else {
                    *other
                }
            }
            ValueSize::Uniform(..) => min + random.below((max - min) as u64 + 1) as usize,
            ValueSize::Normal(..) => {
                let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
                let unit = radius * (std::f64::consts::TAU * random.unit()).cos();
                let size = self.mean() + unit * (max - min) as f64 / 6.0;
                (size.round().max(min as f64) as usize).min(max)
            }
        }
    }
}

/// A source of values; every one is a slice of the same buffer.
#[derive(Clone, Debug)]
pub struct Values {
    buffer: Vec<u8>,
    position: usize,
    size: ValueSize,
    random: Random,
}

impl Values {
    /// Values of `size` that a good compressor shrinks to `compression_ratio` (0 to 1) of their
    /// length.
    pub fn new(size: ValueSize, compression_ratio: f64, seed: u64) -> Values {
        let mut random = Random::new(seed);
        let bytes = BUFFER_BYTES_MIN.max(*size.range().end());
        let random_bytes =
            ((PIECE_BYTES as f64 * compression_ratio) as usize).clamp(1, PIECE_BYTES);
        let mut buffer = Vec::with_capacity(bytes + PIECE_BYTES);
        let mut piece = vec![0; random_bytes];
        while buffer.len() < bytes {
            piece.iter_mut().for_each(|byte| *byte = b' ' + random.below(95) as u8);
            buffer.extend(piece.iter().cycle().take(PIECE_BYTES));
        }
        Values { buffer, position: 0, size, random }
    }

    /// The next value, of `key`.
    pub fn draw(&mut self, key: &[u8]) -> &[u8] {
        let place = self.draw_place(key);
        self.at(place)
    }

    /// Where the next value stands, for callers that need several values at once.
    pub fn draw_place(&mut self, key: &[u8]) -> Range<usize> {
        let size = self.size.draw(key, &mut self.random);
        if self.position + size > self.buffer.len() {
            self.position = 0;
        }
        let start = self.position;
        self.position += size;
        start..start + size
    }

    /// The value at a place that [`Values::draw_place`] returned.
    pub fn at(&self, place: Range<usize>) -> &[u8] {
        &self.buffer[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_repeat_with_the_seed_and_have_the_asked_size() {
        let mut a = Values::new(ValueSize::Fixed(100), 0.5, 301);
        let mut b = Values::new(ValueSize::Fixed(100), 0.5, 301);
        for _ in 0..20_000 {
            assert_eq!(a.draw(b"").len(), 100);
            assert_eq!(a.draw(b""), {
                b.draw(b"");
                b.draw(b"")
            });
        }
        assert_eq!(Values::new(ValueSize::Fixed(3 << 20), 1.0, 1).draw(b"").len(), 3 << 20);
    }

    #[test]
    fn half_of_a_piece_repeats_at_ratio_one_half() {
        let mut values = Values::new(ValueSize::Fixed(100), 0.5, 301);
        let value = values.draw(b"");
        assert_eq!(value[..50], value[50..]);
        let mut values = Values::new(ValueSize::Fixed(100), 1.0, 301);
        let value = values.draw(b"");
        assert_ne!(value[..50], value[50..]);
    }

    #[test]
    fn size_distributions_keep_their_bounds_and_mean() {
        for size in [ValueSize::Uniform(10, 50), ValueSize::Normal(10, 50)] {
            let mut values = Values::new(size, 1.0, 1);
            let sizes: Vec<usize> = (0..10_000).map(|_| values.draw(b"").len()).collect();
            assert!(sizes.iter().all(|size| (10..=50).contains(size)));
            let mean = sizes.iter().sum::<usize>() as f64 / 10_000.0;
            assert!((mean - 30.0).abs() < 0.5, "{size:?}: {mean}");
        }
    }
    /// Sizes were drawn anew with each write: objects that turn into counters and back.
    #[test]
    fn a_key_keeps_its_class_of_size() {
        let size = ValueSize::ByKey(10, 50, 30);
        let mut values = Values::new(size, 1.0, 1);
        let keys: Vec<String> = (0..10_000).map(|n| format!("{n:08}")).collect();
        let mut sizes =
            || -> Vec<usize> { keys.iter().map(|key| values.draw(key.as_bytes()).len()).collect() };
        let first = sizes();
        assert_eq!(first, sizes());
        let mean = first.iter().sum::<usize>() as f64 / 10_000.0;
        assert!((mean - size.mean()).abs() < 0.5, "{mean}");
    }
}
