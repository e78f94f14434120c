//! How much is linked to each node, and how urgent its merge is.

use crate::policy::View;
use crate::version::Node;
use std::sync::Arc;

/// A node with slices on top of its own run.
#[derive(Clone, Copy)]
pub(super) struct Linked<'a> {
    pub(super) level: u8,
    pub(super) node: &'a Arc<Node>,
    /// 1.0 is due.
    pub(super) score: f64,
}

/// What is linked, over the whole tree.
pub(super) struct Survey<'a> {
    pub(super) threshold: f64,
    pub(super) linked: Vec<Linked<'a>>,
    /// For each level, the bytes of its nodes without what is linked to them.
    pub(super) own_bytes: Vec<u64>,
}

impl<'a> Survey<'a> {
    pub(super) fn new(view: &View<'a>) -> Survey<'a> {
        let mut survey = Survey { threshold: threshold(view), linked: vec![], own_bytes: vec![] };
        let version = view.version;
        for (level, nodes) in (0u8..).zip(&version.levels) {
            let mut own_bytes = nodes.bytes();
            for node in nodes.nodes.iter().filter(|_| level > 0) {
                let Some((_, links)) = node.slices.split_last() else { continue };
                if links.is_empty() {
                    continue;
                }
                own_bytes -= links.iter().map(|slice| slice.bytes).sum::<u64>().min(own_bytes);
                let score = survey.score(view, level, node);
                survey.linked.push(Linked { level, node, score });
            }
            survey.own_bytes.push(own_bytes);
        }
        survey.linked.sort_by(|a, b| b.score.total_cmp(&a.score));
        survey
    }

    /// How urgent the merge of a node is: by the number of its slices, or by their bytes.
    pub(super) fn score(&self, view: &View<'_>, level: u8, node: &Node) -> f64 {
        let Some((own, links)) = node.slices.split_last().filter(|(_, links)| !links.is_empty())
        else {
            return 0.0;
        };
        let paid_bytes = view.paid_bytes(level, node.id);
        let paid = (paid_bytes as f64 / node.bytes().max(1) as f64).min(1.0);
        let threshold = (self.threshold * (1.0 - paid)).max(1.0);
        let bytes: u64 = links.iter().map(|slice| slice.bytes).sum();
        let times_own = bytes as f64 / own.bytes.max(1) as f64;
        let by_bytes = times_own * view.limits.fan_out;
        by_bytes.max(links.len() as f64) / threshold
    }

    /// The most urgent merge of a level; 0.0 without one.
    pub(super) fn most(&self, level: u8) -> f64 {
        let of_level = self.linked.iter().filter(|linked| linked.level == level);
        of_level.map(|linked| linked.score).fold(0.0, f64::max)
    }
}

/// How many slices make a node due: as the limits say, else by the share of writes.
///
/// Twice the fan-out when there are only writes, the fan-out at one read for each write, never
/// below two; but a single one once writes are so rare that even that would be too many.
pub(super) fn threshold(view: &View<'_>) -> f64 {
    if let Some(links) = view.limits.links_max {
        return links.max(1) as f64;
    }
    let fan_out = view.limits.fan_out.max(1.0);
    let Some(reads_share) = view.observed.reads_share else { return fan_out };
    let wanted = 2.0 * fan_out * (1.0 - reads_share);
    if wanted < 1.0 { 1.0 } else { wanted.max(2.0) }
}
