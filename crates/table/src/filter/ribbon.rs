//! A homogeneous Ribbon filter of width 128 (Dillinger, Hübschle-Schneider, Sanders, Walzer: "Fast
//! Succinct Retrieval and Approximate Membership using Ribbon", 2022).
//!
//! Each hash is a linear equation over GF(2): 128 consecutive slots from a start, weighted by its
//! coefficients, add up to zero in each of `r` columns. A stranger's equation holds by chance with
//! probability 2^-r. All right sides are zero, so the system always has a solution and building
//! never fails; free slots are filled with random bits, or else the zero solution would admit all.
//!
//! Stored are groups of 128 slots, each as `r` columns of 128 bits.

use super::hash::{mix, reduce};

const WIDTH: usize = 128;
const COLUMN_BYTES: usize = WIDTH / 8;
const BITS_MAX: usize = 24;

struct Equation {
    start: usize,
    /// Bit k weighs slot `start + k`; bit 0 is set.
    coefficients: u128,
}

#[inline]
fn equation(hash: u64, slots: usize) -> Equation {
    let low = mix(hash ^ 0x9e37_79b9_7f4a_7c15);
    let high = mix(low.wrapping_add(hash));
    let coefficients = (u128::from(high) << 64 | u128::from(low)) | 1;
    Equation { start: reduce(hash, (slots - WIDTH + 1) as u64) as usize, coefficients }
}

/// Slots for `count` keys: enough that few equations depend on each other, which would admit more
/// strangers than 2^-r (the paper's section on homogeneous Ribbon: overhead (4 + r/4) / width).
fn slots_for(count: usize, bits: usize) -> usize {
    let overhead = count * (16 + bits) / (4 * WIDTH);
    (count + overhead + WIDTH - 1).div_ceil(WIDTH).max(1) * WIDTH
}

/// Appends the filter of `hashes` with `bits_per_key` columns.
pub fn build(hashes: &[u64], bits_per_key: u8, out: &mut Vec<u8>) {
    let columns = usize::from(bits_per_key).min(BITS_MAX);
    let slots = slots_for(hashes.len(), columns);
    let rows = eliminate(hashes, slots);
    solve(&rows, columns, out);
}

/// Gaussian elimination on the fly: row i, if any, has its first set coefficient at slot i.
fn eliminate(hashes: &[u64], slots: usize) -> Vec<u128> {
    let mut rows = vec![0u128; slots];
    for &hash in hashes {
        let Equation { mut start, mut coefficients } = equation(hash, slots);
        while coefficients != 0 {
            let shift = coefficients.trailing_zeros();
            coefficients >>= shift;
            start += shift as usize;
            if rows[start] == 0 {
                rows[start] = coefficients;
                break;
            }
            coefficients ^= rows[start];
        }
    }
    rows
}

/// Back substitution from the last slot to the first; a window of 128 solved slots for each column.
fn solve(rows: &[u128], columns: usize, out: &mut Vec<u8>) {
    let base = out.len();
    out.resize(base + rows.len() / WIDTH * columns * COLUMN_BYTES, 0);
    let mut windows = [0u128; BITS_MAX];
    for (slot, &row) in rows.iter().enumerate().rev() {
        let free = if row == 0 { mix(slot as u64 + 1) } else { 0 };
        for (column, window) in windows.iter_mut().enumerate().take(columns) {
            *window <<= 1;
            let bit = parity(row & *window) ^ (free >> column);
            *window |= u128::from(bit & 1);
        }
        if slot.is_multiple_of(WIDTH) {
            let group = base + slot / WIDTH * columns * COLUMN_BYTES;
            let group = &mut out[group..group + columns * COLUMN_BYTES];
            for (bytes, window) in group.chunks_exact_mut(COLUMN_BYTES).zip(&windows) {
                bytes.copy_from_slice(&window.to_le_bytes());
            }
        }
    }
}

/// `body` is a whole number of groups.
pub fn fits(body: &[u8], columns: u8) -> bool {
    let group_bytes = usize::from(columns) * COLUMN_BYTES;
    (1..=BITS_MAX).contains(&usize::from(columns))
        && !body.is_empty()
        && body.len().is_multiple_of(group_bytes)
}

/// The first byte that a question about `hash` reads.
#[inline]
pub fn first_byte(body: &[u8], columns: u8, hash: u64) -> Option<&u8> {
    let (words, _) = body.as_chunks::<COLUMN_BYTES>();
    let columns = usize::from(columns);
    let start = equation(hash, words.len() / columns * WIDTH).start;
    words.get(start / WIDTH * columns)?.first()
}

/// The equation of `hash` holds in every column.
#[inline]
pub fn may_contain(body: &[u8], columns: u8, hash: u64) -> bool {
    let columns = usize::from(columns);
    let (words, _) = body.as_chunks::<COLUMN_BYTES>();
    let Equation { start, coefficients } = equation(hash, words.len() / columns * WIDTH);
    let (group, shift) = (start / WIDTH, start % WIDTH);
    let first = &words[group * columns..(group + 1) * columns];
    if shift == 0 {
        return first.iter().all(|word| even(u128::from_le_bytes(*word) & coefficients));
    }
    let second = &words[(group + 1) * columns..(group + 2) * columns];
    first.iter().zip(second).all(|(low, high)| {
        let low = u128::from_le_bytes(*low) >> shift;
        let high = u128::from_le_bytes(*high) << (WIDTH - shift);
        even((low | high) & coefficients)
    })
}

#[inline]
fn even(word: u128) -> bool {
    parity(word) == 0
}

/// 1 if an odd number of bits are set. Folded by hand: many targets have no wide count of bits.
#[inline]
fn parity(word: u128) -> u64 {
    let mut fold = word as u64 ^ (word >> 64) as u64;
    fold ^= fold >> 32;
    fold ^= fold >> 16;
    fold ^= fold >> 8;
    (0x6996 >> ((fold ^ (fold >> 4)) & 0xf)) & 1
}
