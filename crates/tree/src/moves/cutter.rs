//! Where the output of a merge is cut into nodes.

use crate::plan::Cut;
use crate::version::{Node, Version};
use base::Key;
use std::sync::Arc;

/// Tells a merge, key by key in order, where a run ends. Cuts stand between user keys only.
#[derive(Debug)]
pub struct Cutter {
    cut: Cut,
    /// The nodes under the output level, in key order.
    below: Arc<Vec<Arc<Node>>>,
    /// The first node below that does not end before the current key.
    at: usize,
    /// Bytes of nodes below that the output has passed since it was last cut for their sake.
    passed_bytes: u64,
}

impl Cutter {
    /// For the output of a merge to `to_level`.
    pub fn new(version: &Version, to_level: u8, cut: Cut) -> Cutter {
        let below = version.level(to_level.saturating_add(1)).nodes.clone();
        Cutter { cut, below, at: 0, passed_bytes: 0 }
    }

    /// The key at which the next node below ends: until there only the bytes of a run end it. None:
    /// no node is left, or the last has no end.
    pub fn next_end(&self) -> Option<&Key> {
        self.below.get(self.at)?.range.end.as_ref()
    }

    /// Whether a run that has `run_bytes` bytes so far ends before `key`, a new user key. Keys come
    /// in ascending order; amortised constant time.
    pub fn ends_before(&mut self, key: &[u8], run_bytes: u64) -> bool {
        while let Some(node) = self.below.get(self.at) {
            if node.range.is_before_end(key) {
                break;
            }
            if run_bytes > 0 {
                self.passed_bytes += node.bytes();
            }
            self.at += 1;
        }
        let is_full = run_bytes >= self.cut.table_bytes_max;
        let overlaps = self.cut.overlap_bytes_max.is_some_and(|max| self.passed_bytes > max);
        let ends = run_bytes > 0 && (is_full || overlaps);
        if overlaps {
            self.passed_bytes = 0;
        }
        ends
    }
}
