//! How many bytes of a run lie in a key range.

use crate::version::Run;
use base::KeyRange;

/// Tells how many bytes of a run lie in a range, from an index or by a guess.
pub trait SizeEstimate {
    /// Bytes of `run` inside `range`; at most the bytes of the run.
    fn bytes(&self, run: &Run, range: &KeyRange) -> u64;
}

/// Guesses that keys lie evenly between the first and the last key of their run, as numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Proportional;

impl SizeEstimate for Proportional {
    fn bytes(&self, run: &Run, range: &KeyRange) -> u64 {
        proportional(&run.range, run.bytes, range)
    }
}

/// Of the `bytes` of keys over `all`, those in `range`, if keys lie evenly as numbers.
pub(crate) fn proportional(all: &KeyRange, bytes: u64, range: &KeyRange) -> u64 {
    if range.covers(all) {
        return bytes;
    }
    let part = all.intersect(range);
    let (Some(end), Some(part_end)) = (&all.end, &part.end) else {
        return bytes / 2;
    };
    if part.is_empty() {
        return 0;
    }
    let start = &all.start;
    let common = start.iter().zip(end.iter()).take_while(|(a, b)| a == b).count();
    let origin = number(start, common);
    let width = number(end, common).saturating_sub(origin).max(1);
    let at = |key: &[u8]| number(key, common).saturating_sub(origin).min(width);
    let share = at(part_end) - at(&part.start).min(at(part_end));
    (u128::from(bytes) * u128::from(share) / u128::from(width)) as u64
}

/// Eight bytes of `key` after the first `skip`, as a number that keeps the order.
fn number(key: &[u8], skip: usize) -> u64 {
    let mut word = [0; 8];
    let tail = key.get(skip..).unwrap_or_default();
    let count = tail.len().min(8);
    word[..count].copy_from_slice(&tail[..count]);
    u64::from_be_bytes(word)
}
