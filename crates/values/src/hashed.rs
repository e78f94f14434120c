//! The layout `hashed`: HashKV's segment groups (HashKV 3).
//!
//! The hash of its key names the group of a value, so all versions of a key lie in one group. A
//! group has a main segment and, once that is full, log segments; the survivors of garbage
//! collection lie in main segments. Garbage collection takes the group with most to reclaim for
//! each byte that it must write, whole; its own order tells which records are superseded, so dead
//! records cost no look-up. With updates spread evenly, groups stand evenly between just collected
//! and `2 r` dead bytes for each live one, for a reserved share of `r`: each byte is written `1 + 1
//! / (2 r)` times.
//!
//! Two things that the paper leaves open:
//! - *How many groups?* The paper provisions a fixed capacity. Here the number of hash bits follows
//!   the live bytes, of which a group has one to two main segments: new values go to groups of the
//!   present depth, and a group of fewer bits is divided when it is collected. Versions of a key
//!   may then lie in a group and in a part of it; the condition on the pointer keeps that right.
//! - *Hotness* (3.4): a value that garbage collection finds without a newer version moves to the
//!   cold log and leaves a tag, so that the next update of the key shows it to be warm. The cold
//!   log is collected as well, by its segments' dead bytes, with look-ups. Its values and garbage
//!   count as all others do, or it has space of its own, as in the prototype
//!   (`value_cold_apart`): what moves there leaves its space to new values.

use crate::layout::{
    Collection, Descriptor, Validity, ValueLayout, WRITES_PER_RECLAIMED_MAX, by_lookup, depth_for,
    due_tiers, has_room, live_bytes, reclaimed, unconfirmed,
};
use crate::limits::ValueLimits;
use base::FileId;
use std::collections::BTreeSet;
use tree::segments::Segment;
use tree::{Group, Segments, Tier};

/// The layout's line in the registry.
pub const HASHED: Descriptor = Descriptor {
    name: "hashed",
    summary: "large values in groups by the hash of their key; cheap updates (HashKV)",
    help: "Values over the threshold go to the segment group of their key's hash. When the dead\n\
           bytes pass the reserved share, the group with most to reclaim is read whole, and the\n\
           newest version of each key is written to a new segment.\n\
           Choose it for large values under frequent, skewed updates.\n\
           It costs 1 + 1/(2 r) writes for each value byte at a reserved share of r, and the\n\
           order of values: scans read them at random.",
    paper: "Chan et al., HashKV, USENIX ATC 2018",
    options: &[
        "value_segment_bytes",
        "value_log_segment_bytes",
        "value_reserved_ratio",
        "value_hotness",
        "value_cold_apart",
        "value_capacity_bytes",
    ],
    make: || Box::new(Hashed),
};

struct Hashed;

impl ValueLayout for Hashed {
    fn name(&self) -> &'static str {
        HASHED.name
    }

    fn separates(&self) -> bool {
        true
    }

    fn depth(&self, segments: &Segments, limits: &ValueLimits) -> u8 {
        let now = depth_for(live_bytes(&segments.usage()), limits);
        // Never fewer bits than a group has already: depth must not swing with each deletion.
        segments
            .iter()
            .filter(|segment| segment.group.tier == Tier::Main && segment.retired.is_none())
            .map(|segment| segment.group.depth)
            .max()
            .map_or(now, |deepest| deepest.max(now))
    }

    fn segment_bytes_max(&self, limits: &ValueLimits, segments_before: usize) -> u64 {
        match segments_before {
            0 => limits.segment_bytes,
            _ => limits.log_segment_bytes,
        }
    }

    /// A group has less than twice its mean of live bytes, about.
    fn collection_bytes_max(&self, limits: &ValueLimits) -> u64 {
        limits.segment_bytes.saturating_mul(2)
    }

    fn pick(
        &self,
        segments: &Segments,
        limits: &ValueLimits,
        busy: &BTreeSet<FileId>,
    ) -> Option<Collection> {
        let (usage, reserve_bytes) = (segments.usage(), self.collection_bytes_max(limits));
        let fits = |c: &Collection| has_room(c, &usage, limits, reserve_bytes);
        if let Some(collection) = unconfirmed(segments, busy).filter(fits) {
            return Some(collection);
        }
        let due = due_tiers(&usage, limits, reserve_bytes);
        if due.is_empty() {
            return None;
        }
        let depth = self.depth(segments, limits);
        segments
            .groups()
            .into_iter()
            .filter(|(group, _)| due.contains(&group.tier))
            .flat_map(|(group, mut members)| {
                // The segment that a flush appends to stays behind: it is newer than the others.
                members.retain(|segment| !busy.contains(&segment.file.id));
                candidates(group, &members, depth, limits)
            })
            .filter(|c| reclaimed(c).saturating_mul(WRITES_PER_RECLAIMED_MAX) > c.write_bytes)
            .filter(fits)
            // Reclaimed bytes for each written one, compared without a division.
            .max_by_key(|c| (u128::from(reclaimed(c)) << 32) / u128::from(c.write_bytes.max(1)))
    }
}

/// What can be collected of a group: all of it, or any one segment of the cold log.
fn candidates(
    group: Group,
    members: &[&Segment],
    depth: u8,
    limits: &ValueLimits,
) -> Vec<Collection> {
    if group.tier == Tier::Cold {
        return members.iter().map(|segment| by_lookup(segment)).collect();
    }
    vec![Collection {
        group,
        files: members.iter().map(|segment| segment.file.id).collect(),
        to_depth: depth.max(group.depth),
        tags_cold: limits.hotness,
        validity: Validity::GroupOrder,
        read_bytes: members.iter().map(|segment| segment.bytes).sum(),
        write_bytes: members.iter().map(|segment| segment.live_bytes()).sum(),
    }]
}
