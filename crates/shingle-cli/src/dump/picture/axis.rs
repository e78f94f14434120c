//! Where a key stands: by the bytes of the tree before it.
//!
//! Ends of slices and nodes cut the keys into intervals. What a slice has in each of its intervals
//! is not known; it is taken to lie there as the bytes of all other slices do, which is found by
//! repeating: spread each slice by the weights so far, and sum up. Narrow slices decide.

use base::{Key, KeyRange};
use tree::Version;

/// More rounds move nothing that can be seen.
const ROUNDS: usize = 6;

/// Keys in order, each with its place.
pub(super) struct Axis {
    /// Where intervals begin, ascending; the last interval has no end.
    starts: Vec<Key>,
    /// For each, its place; and one more: the right end.
    at: Vec<f64>,
}

impl Axis {
    /// The axis of a tree between two places.
    pub(super) fn of(version: &Version, left: f64, right: f64) -> Axis {
        let nodes = version.levels.iter().flat_map(|level| level.nodes.iter());
        let ranges = nodes.map(|node| &node.range).chain(version.slices().map(|s| &s.range));
        let mut starts: Vec<Key> = ranges
            .flat_map(|range| [Some(range.start.clone()), range.end.clone()])
            .flatten()
            .collect();
        starts.sort_unstable();
        starts.dedup();
        let mut axis = Axis { at: vec![left; starts.len() + 1], starts };
        let weights = axis.weights(version);
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        for (at, weight) in axis.at.iter_mut().skip(1).zip(weights) {
            sum += weight;
            *at = left + sum / total.max(f64::MIN_POSITIVE) * (right - left);
        }
        axis
    }

    /// Bytes in each interval.
    fn weights(&self, version: &Version) -> Vec<f64> {
        let count = self.starts.len();
        let mut weights = vec![1.0; count];
        let spans: Vec<(usize, usize, f64)> = version
            .slices()
            .map(|slice| (self.start(&slice.range), self.end(&slice.range), slice.bytes as f64))
            .collect();
        for _ in 0..ROUNDS {
            let mut sums = vec![0.0f64; count + 1];
            (0..count).for_each(|i| sums[i + 1] = sums[i] + weights[i]);
            let mut steps = vec![0.0f64; count + 1];
            for &(from, to, bytes) in &spans {
                let factor = bytes / (sums[to] - sums[from]).max(f64::MIN_POSITIVE);
                steps[from] += factor;
                steps[to] -= factor;
            }
            let mut factor = 0.0f64;
            for (weight, step) in weights.iter_mut().zip(steps) {
                factor += step;
                *weight *= factor.max(0.0);
            }
        }
        weights
    }

    /// The interval where a range begins.
    fn start(&self, range: &KeyRange) -> usize {
        self.starts.partition_point(|key| *key < range.start)
    }

    /// The interval before which it ends.
    fn end(&self, range: &KeyRange) -> usize {
        let end = range.end.as_ref();
        end.map_or(self.starts.len(), |end| self.starts.partition_point(|key| key < end))
    }

    /// Where a range begins.
    pub(super) fn of_start(&self, range: &KeyRange) -> f64 {
        self.at[self.start(range).min(self.starts.len())]
    }

    /// Where it ends.
    pub(super) fn of_end(&self, range: &KeyRange) -> f64 {
        self.at[self.end(range)]
    }

    /// The last known key at or before a share of the axis.
    pub(super) fn key_at(&self, share: f64) -> &[u8] {
        let (left, right) = (self.at[0], self.at[self.at.len() - 1]);
        let place = left + share * (right - left);
        let after = self.at.partition_point(|&at| at <= place + 1e-6);
        let keys = self.starts.len();
        self.starts.get(after.min(keys).saturating_sub(1)).map_or(&[], |key| key)
    }
}
