//! Filters: a set of hashes as bytes that never deny a member and seldom admit a stranger.
//!
//! A filter block is the filter's own bytes, one parameter byte and one kind byte. Reading it back
//! is a look at its length: any bytes of a fitting length are a filter, so hostile bytes can only
//! answer wrongly where the checksum is right.

mod bloom;
mod hash;
mod ribbon;

use crate::options::Filter;
use base::checksum::{hash64, hash64_seeded};
use base::prefetch::prefetch;
use std::ops::Deref;

const BLOOM: u8 = 1;
const RIBBON: u8 = 2;

/// The seed that keeps hashes of prefixes apart from hashes of keys.
const PREFIX_SEED: u64 = 0x7072_6566_6978;

/// The hash under which a user key stands in filters and hash indexes.
#[inline]
pub fn key_hash(user_key: &[u8]) -> u64 {
    hash64(user_key)
}

/// The hash under which a prefix stands in filters.
#[inline]
pub fn prefix_hash(prefix: &[u8]) -> u64 {
    hash64_seeded(prefix, PREFIX_SEED)
}

/// Appends the filter block of `hashes` to `out`; nothing for [`Filter::None`].
pub fn build(filter: Filter, hashes: &[u64], out: &mut Vec<u8>) {
    match filter {
        Filter::None => {}
        Filter::Bloom { bits_per_key } => {
            let probes = bloom::build(hashes, bits_per_key, out);
            out.extend_from_slice(&[probes, BLOOM]);
        }
        Filter::Ribbon { bits_per_key } => {
            ribbon::build(hashes, bits_per_key, out);
            out.extend_from_slice(&[bits_per_key, RIBBON]);
        }
    }
}

/// What kind of filter the bytes of a block are, and its parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    parameter: u8,
    kind: u8,
}

impl Shape {
    /// Bytes of a filter block that are not the filter's own.
    pub(crate) const BYTES: usize = 2;

    /// Splits a filter block; `None` when no filter has this shape.
    #[inline]
    pub(crate) fn split(bytes: &[u8]) -> Option<(&[u8], Shape)> {
        let (body, &[parameter, kind]) = bytes.split_last_chunk::<{ Shape::BYTES }>()?;
        let fits = match kind {
            BLOOM => bloom::fits(body, parameter),
            RIBBON => ribbon::fits(body, parameter),
            _ => false,
        };
        fits.then_some((body, Shape { parameter, kind }))
    }

    /// Prefetches what a question to the filter `body` about `hash` reads first.
    #[inline]
    pub(crate) fn prefetch(self, body: &[u8], hash: u64) {
        if let Some(first) = self.first_byte(body, hash) {
            prefetch(first);
        }
    }

    #[inline]
    fn first_byte(self, body: &[u8], hash: u64) -> Option<&u8> {
        match self.kind {
            BLOOM => bloom::first_byte(body, hash),
            _ => ribbon::first_byte(body, self.parameter, hash),
        }
    }

    /// False: `hash` was not built into the filter `body`. True: it was, or by bad luck it looks
    /// so.
    #[inline]
    pub(crate) fn may_contain(self, body: &[u8], hash: u64) -> bool {
        match self.kind {
            BLOOM => bloom::may_contain(body, self.parameter, hash),
            _ => ribbon::may_contain(body, self.parameter, hash),
        }
    }
}

/// A filter block read back.
#[derive(Debug)]
pub struct FilterBlock<B = Vec<u8>> {
    bytes: B,
    body_bytes: usize,
    shape: Shape,
}

impl<B: Deref<Target = [u8]>> FilterBlock<B> {
    /// Takes the bytes of a filter block; `None` when no filter has this shape.
    #[inline]
    pub fn new(bytes: B) -> Option<FilterBlock<B>> {
        let (body, shape) = Shape::split(&bytes)?;
        let body_bytes = body.len();
        Some(FilterBlock { bytes, body_bytes, shape })
    }

    /// False: the hash was not built in. True: it was, or by bad luck it looks so.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        self.shape.may_contain(&self.bytes[..self.body_bytes], hash)
    }
}

impl FilterBlock {
    /// Bytes that it takes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + size_of::<FilterBlock>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::prefetch::LINE_BYTES;
    use base::random::Random;

    fn hashes(seed: u64, count: usize) -> Vec<u64> {
        let mut random = Random::new(seed);
        (0..count).map(|_| random.next_u64()).collect()
    }

    fn built(filter: Filter, hashes: &[u64]) -> (FilterBlock, usize) {
        let mut out = Vec::new();
        build(filter, hashes, &mut out);
        let bytes = out.len();
        (FilterBlock::new(out).unwrap(), bytes)
    }

    fn false_positive_rate(filter: &FilterBlock, seed: u64) -> f64 {
        let strangers = hashes(seed, 400_000);
        let admitted = strangers.iter().filter(|&&hash| filter.may_contain(hash)).count();
        admitted as f64 / strangers.len() as f64
    }

    #[test]
    fn members_are_never_denied() {
        for count in [0, 1, 2, 3, 10, 127, 128, 129, 1000, 20_000] {
            let members = hashes(count as u64 + 1, count);
            let mut filters: Vec<Filter> =
                [1, 5, 10, 16, 24, 60].map(|bits_per_key| Filter::Bloom { bits_per_key }).to_vec();
            filters.extend([1, 7, 13, 24].map(|bits_per_key| Filter::Ribbon { bits_per_key }));
            for filter in filters {
                let (block, _) = built(filter, &members);
                assert!(members.iter().all(|&hash| block.may_contain(hash)), "{filter:?} {count}");
            }
        }
    }

    #[test]
    fn what_is_prefetched_is_what_a_question_reads() {
        let members = hashes(1, 20_000);
        for filter in [Filter::Bloom { bits_per_key: 10 }, Filter::Ribbon { bits_per_key: 7 }] {
            let mut bytes = Vec::new();
            build(filter, &members, &mut bytes);
            let (body, shape) = Shape::split(&bytes).unwrap();
            let mut changed = body.to_vec();
            let mut denied = 0;
            for &hash in members.iter().step_by(50) {
                let first = shape.first_byte(body, hash).unwrap();
                let start = std::ptr::from_ref(first).addr() - body.as_ptr().addr();
                let line = start..body.len().min(start + LINE_BYTES);
                let admits_when = |fill| {
                    changed[line.clone()].fill(fill);
                    shape.may_contain(&changed, hash)
                };
                denied += u32::from(![0, 0xff].map(admits_when).into_iter().all(|admits| admits));
                changed[line.clone()].copy_from_slice(&body[line]);
            }
            assert!(denied > 350, "{filter:?}: {denied} of 400");
        }
    }

    #[test]
    fn false_positives_of_bloom_are_what_theory_says() {
        for bits_per_key in [6, 8, 10, 14] {
            let (block, bytes) = built(Filter::Bloom { bits_per_key }, &hashes(1, 30_000));
            let rate = false_positive_rate(&block, 2);
            let theory = bloom::false_positive_rate(30_000, bytes - 2, block.shape.parameter);
            assert!((rate / theory - 1.0).abs() < 0.2, "{bits_per_key} bits: {rate} not {theory}");
        }
    }

    #[test]
    fn false_positives_of_ribbon_are_what_theory_says() {
        for (bits_per_key, count) in [(5, 4600), (7, 4600), (8, 30_000)] {
            let filter = Filter::Ribbon { bits_per_key };
            let (block, bytes) = built(filter, &hashes(3, count));
            let rate = false_positive_rate(&block, 4);
            let theory = 0.5f64.powi(i32::from(bits_per_key));
            assert!((rate / theory - 1.0).abs() < 0.2, "{bits_per_key} bits: {rate} not {theory}");
            let bits = bytes as f64 * 8.0 / count as f64;
            assert!(bits < f64::from(bits_per_key) * 1.1, "{bits} bits for {bits_per_key}");
        }
    }

    #[test]
    fn ribbon_is_a_quarter_smaller_than_bloom_at_equal_rates() {
        let members = hashes(5, 10_000);
        let (bloom, bloom_bytes) = built(Filter::Bloom { bits_per_key: 10 }, &members);
        let (ribbon, ribbon_bytes) = built(Filter::Ribbon { bits_per_key: 7 }, &members);
        assert!(false_positive_rate(&ribbon, 6) < false_positive_rate(&bloom, 6));
        assert!((ribbon_bytes as f64) < bloom_bytes as f64 * 0.76, "{ribbon_bytes} {bloom_bytes}");
    }

    #[test]
    fn any_bytes_are_refused_or_answer() {
        let mut random = Random::new(9);
        for _ in 0..20_000 {
            let mut bytes = vec![0; random.below(300) as usize];
            random.fill(&mut bytes);
            if let Some(last) = bytes.last_mut() {
                *last %= 4;
            }
            if let Some(filter) = FilterBlock::new(bytes) {
                filter.may_contain(random.next_u64());
            }
        }
    }
}
