//! A Bloom filter in cache lines: all probes of a key fall into one line of 64 bytes, so that a
//! question costs one cache miss (Putze, Sanders, Singler: "Cache-, Hash- and Space-Efficient
//! Bloom Filters", 2007).
//!
//! The high bits of the hash choose the line. Nine bits of the mixed hash choose a bit in it; seven
//! probes use up a mix, the eighth begins the next.

use super::hash::{mix, reduce};
use base::prefetch::LINE_BYTES;

const LINE_BITS: usize = LINE_BYTES * 8;
const PROBES_MAX: u8 = 30;
const PROBES_PER_MIX: u8 = 7;

/// Appends the lines for `hashes`; gives the number of probes.
pub fn build(hashes: &[u64], bits_per_key: u8, out: &mut Vec<u8>) -> u8 {
    // Fewer probes than ln 2 * bits: lines fill unevenly, and full lines like few probes.
    let probes = ((u32::from(bits_per_key) * 6 + 5) / 10).clamp(1, u32::from(PROBES_MAX)) as u8;
    let lines = (hashes.len() * usize::from(bits_per_key)).div_ceil(LINE_BITS).max(1);
    let start = out.len();
    out.resize(start + lines * LINE_BYTES, 0);
    let body = &mut out[start..];
    for &hash in hashes {
        let line = reduce(hash, lines as u64) as usize * LINE_BYTES;
        let line: &mut [u8] = &mut body[line..line + LINE_BYTES];
        for_each_bit(hash, probes, |bit| {
            line[bit >> 3] |= 1 << (bit & 7);
            true
        });
    }
    probes
}

/// `body` is a whole number of lines.
pub fn fits(body: &[u8], probes: u8) -> bool {
    !body.is_empty() && body.len().is_multiple_of(LINE_BYTES) && (1..=PROBES_MAX).contains(&probes)
}

/// The first byte that a question about `hash` reads.
#[inline]
pub fn first_byte(body: &[u8], hash: u64) -> Option<&u8> {
    let (lines, _) = body.as_chunks::<LINE_BYTES>();
    lines.get(reduce(hash, lines.len() as u64) as usize)?.first()
}

/// Every probe of `hash` finds its bit set.
#[inline]
pub fn may_contain(body: &[u8], probes: u8, hash: u64) -> bool {
    let (lines, _) = body.as_chunks::<LINE_BYTES>();
    let line = &lines[reduce(hash, lines.len() as u64) as usize];
    for_each_bit(hash, probes, |bit| line[bit >> 3] & (1 << (bit & 7)) != 0)
}

/// Calls `visit` with the bits of `hash` in its line, until it says no; gives its last answer.
#[inline]
fn for_each_bit(hash: u64, probes: u8, mut visit: impl FnMut(usize) -> bool) -> bool {
    let mut bits = mix(hash);
    let mut left = probes;
    loop {
        let mut window = bits;
        for _ in 0..left.min(PROBES_PER_MIX) {
            if !visit((window as usize) & (LINE_BITS - 1)) {
                return false;
            }
            window >>= 9;
        }
        if left <= PROBES_PER_MIX {
            return true;
        }
        left -= PROBES_PER_MIX;
        bits = mix(bits);
    }
}

/// What theory expects of `count` hashes in `bytes` bytes: the keys of a line are Poisson
/// distributed, and within a line it is a common Bloom filter.
#[cfg(test)]
pub fn false_positive_rate(count: usize, bytes: usize, probes: u8) -> f64 {
    let mean = count as f64 * LINE_BYTES as f64 / bytes as f64;
    let mut rate = 0.0;
    let mut probability = (-mean).exp();
    for keys in 0..1000 {
        let set = 1.0 - (1.0 - 1.0 / LINE_BITS as f64).powi(keys * i32::from(probes));
        rate += probability * set.powi(i32::from(probes));
        probability *= mean / f64::from(keys + 1);
    }
    rate
}
