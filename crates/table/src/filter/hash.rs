//! What filters make of the hash of a key.

/// Spreads every bit of `hash` over all others (the finalizer of SplitMix64).
#[inline]
pub(super) fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Maps `hash` to a number below `bound` by its high bits.
#[inline]
pub(super) fn reduce(hash: u64, bound: u64) -> u64 {
    ((u128::from(hash) * u128::from(bound)) >> 64) as u64
}
