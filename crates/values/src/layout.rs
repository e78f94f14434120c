//! Layouts: each decides which group a value goes to, when its segment ends, and what garbage
//! collection reads next, as pure functions of the segments.
//!
//! A layout has no state, no clock and no handle, as a policy of the tree has none: what there is
//! to know stands in [`Segments`]. So the same code runs in the engine and in simulation. The
//! engine never asks which layout made a choice.
//!
//! Rules that hold for every layout:
//! - A record that the tree does not point to is dead, whatever a group's order says: every move of
//!   a value is conditional on the exact pointer. A group's order only tells, without a lookup in
//!   the tree, which records are certainly superseded.
//! - Nothing is overwritten. Garbage collection (GC) writes new segments, commits, and retires the
//!   old ones.
//! - A GC is picked only where it gives back space, and where the capacity has space for what it
//!   writes; so a full store ends in an error and never in a loop.

use crate::limits::ValueLimits;
use base::FileId;
use std::collections::BTreeSet;
use tree::segments::{GROUP_DEPTH_MAX, Segment, Usage};
use tree::{Group, Segments, Tier};

/// How GC tells live records from dead ones, before the condition of their move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// The newest record of a key in the group may be live, the others are dead: no look-up.
    GroupOrder,
    /// A look-up in the index for each record.
    Lookup,
}

/// What garbage collection does next.
#[derive(Clone, Debug, PartialEq)]
pub struct Collection {
    /// The group.
    pub group: Group,
    /// The segments that it reads, in the order of their writes, and then retires.
    pub files: Vec<FileId>,
    /// Survivors go to the groups of this many bits.
    pub to_depth: u8,
    /// Survivors without a newer version in the group go to the cold log, and leave a tag.
    pub tags_cold: bool,
    /// How live records are found.
    pub validity: Validity,
    /// Bytes that it reads.
    pub read_bytes: u64,
    /// Bytes that it is expected to write.
    pub write_bytes: u64,
}

/// Decides where values go, and what is collected.
pub trait ValueLayout: Send + Sync {
    /// Its name in options and reports.
    fn name(&self) -> &'static str;

    /// Values go to segments at all.
    fn separates(&self) -> bool;

    /// A commit writes large values to the newest segment, and pointers to the log; else values go
    /// to segments when they are flushed. Only where all new values lie in one log.
    fn writes_at_commit(&self) -> bool {
        false
    }

    /// Bits that distinguish the groups of new values; none where all lie in one log.
    fn depth(&self, _segments: &Segments, _limits: &ValueLimits) -> u8 {
        0
    }

    /// Bytes at which a segment of a group ends, where `segments_before` of the group are there.
    fn segment_bytes_max(&self, limits: &ValueLimits, _segments_before: usize) -> u64 {
        limits.segment_bytes
    }

    /// About the maximum of bytes that one GC writes: the space that a capacity sets aside.
    fn collection_bytes_max(&self, limits: &ValueLimits) -> u64 {
        limits.segment_bytes
    }

    /// The next GC, of segments outside `busy`. None: nothing is due. Segments that a crash left
    /// provisional go first where there is space for what they hold.
    fn pick(
        &self,
        segments: &Segments,
        limits: &ValueLimits,
        busy: &BTreeSet<FileId>,
    ) -> Option<Collection>;
}

/// What there is to know about a layout before using it.
#[derive(Clone, Copy)]
pub struct Descriptor {
    /// Its name in options and reports.
    pub name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    /// The manual: what it does, when to choose it, what it costs.
    pub help: &'static str,
    /// The paper or system it comes from.
    pub paper: &'static str,
    /// The numbers that it goes by, by their names in [`crate::LIMIT_FIELDS`].
    pub options: &'static [&'static str],
    /// Makes one; costs nothing.
    pub make: fn() -> Box<dyn ValueLayout>,
}

/// A segment that a crash, or a failed GC, left provisional: it is unknown which of its records the
/// tree points to.
pub(crate) fn unconfirmed(segments: &Segments, busy: &BTreeSet<FileId>) -> Option<Collection> {
    segments
        .iter()
        .find(|segment| {
            let is_open = segment.retired.is_none() && segment.is_provisional;
            is_open && !busy.contains(&segment.file.id)
        })
        .map(by_lookup)
}

/// The collection of one segment whose records are looked up.
pub(crate) fn by_lookup(segment: &Segment) -> Collection {
    let tier = segment.group.tier;
    Collection {
        group: segment.group,
        files: vec![segment.file.id],
        to_depth: if tier == Tier::Cold { 0 } else { segment.group.depth },
        tags_cold: false,
        validity: Validity::Lookup,
        read_bytes: segment.bytes,
        write_bytes: segment.live_bytes(),
    }
}

/// Bytes that a GC is expected to give back.
pub(crate) fn reclaimed(collection: &Collection) -> u64 {
    collection.read_bytes - collection.write_bytes
}

/// Bytes that are neither dead nor retired.
pub(crate) fn live_bytes(usage: &Usage) -> u64 {
    usage.total_bytes - usage.retired_bytes - usage.dead_bytes
}

/// Dead bytes that may stand beside the live bytes.
fn allowed_bytes(usage: &Usage, limits: &ValueLimits) -> f64 {
    match limits.cold_apart {
        true => allowed_in_tiers(usage, limits).into_iter().sum(),
        false => limits.reserved_ratio * live_bytes(usage) as f64,
    }
}

/// The same in the main tier and in the cold log, where that has space of its own. The main tier
/// has as much space as if it held the cold values too.
fn allowed_in_tiers(usage: &Usage, limits: &ValueLimits) -> [f64; 2] {
    let (live, cold) = (live_bytes(usage) as f64, usage.cold_live_bytes as f64);
    [limits.reserved_ratio * live + cold, limits.reserved_ratio * cold]
}

/// The tiers that have more dead bytes than may stand beside the live bytes.
pub(crate) fn due_tiers(usage: &Usage, limits: &ValueLimits, reserve_bytes: u64) -> Vec<Tier> {
    if !limits.cold_apart || is_crowded(usage, limits, reserve_bytes) {
        let is_due = is_due(usage, limits, reserve_bytes);
        return if is_due { vec![Tier::Main, Tier::Cold] } else { Vec::new() };
    }
    let dead = [usage.dead_bytes - usage.cold_dead_bytes, usage.cold_dead_bytes];
    let tiers = [Tier::Main, Tier::Cold].into_iter().zip(dead);
    let due = tiers.zip(allowed_in_tiers(usage, limits));
    let due = due.filter(|((_, dead), allowed)| *dead > 0 && *dead as f64 >= *allowed);
    due.map(|((tier, _), _)| tier).collect()
}

/// Little of the capacity is left.
fn is_crowded(usage: &Usage, limits: &ValueLimits, reserve_bytes: u64) -> bool {
    limits.capacity_bytes.is_some_and(|capacity| {
        usage.total_bytes > capacity.saturating_sub(reserve_bytes.saturating_mul(2))
    })
}

/// More is dead than may stand beside the live bytes, when each GC writes `reserve_bytes`.
pub(crate) fn is_due(usage: &Usage, limits: &ValueLimits, reserve_bytes: u64) -> bool {
    let is_over = usage.dead_bytes as f64 >= allowed_bytes(usage, limits);
    usage.dead_bytes > 0 && (is_crowded(usage, limits, reserve_bytes) || is_over)
}

/// A GC that would give back less than one byte for this many that it writes is not worth its
/// writes.
pub(crate) const WRITES_PER_RECLAIMED_MAX: u64 = 64;

/// GCs that may wait at any time without being behind.
const COLLECTIONS_WAITING_MAX: u64 = 4;

/// How far GC is behind: dead bytes over those that may stand beside the live bytes, in percent.
/// `collection_bytes_max`: what one GC may write. Dead bytes that are not worth the writes of a GC
/// are no debt.
pub fn debt_percent(usage: &Usage, limits: &ValueLimits, collection_bytes_max: u64) -> u64 {
    let allowed = allowed_bytes(usage, limits)
        .max((live_bytes(usage) * 2 / WRITES_PER_RECLAIMED_MAX) as f64)
        .max(collection_bytes_max.saturating_mul(COLLECTIONS_WAITING_MAX) as f64);
    (100.0 * usage.dead_bytes as f64 / allowed.max(1.0)) as u64
}

/// The capacity has space for what `collection` writes before it gives space back. Where the
/// capacity was lowered below the bytes in use, one GC at a time goes beyond it.
pub(crate) fn has_room(
    collection: &Collection,
    usage: &Usage,
    limits: &ValueLimits,
    reserve_bytes: u64,
) -> bool {
    let is_small = usage.retired_bytes == 0 && collection.write_bytes <= reserve_bytes;
    limits.capacity_bytes.is_none_or(|capacity| {
        is_small || usage.total_bytes.saturating_add(collection.write_bytes) <= capacity
    })
}

/// Bits that tell groups of `segment_bytes` apart when `live_bytes` spread over them.
pub(crate) fn depth_for(live_bytes: u64, limits: &ValueLimits) -> u8 {
    let groups = (live_bytes / limits.segment_bytes.max(1)).max(1);
    (groups.ilog2() as u8).min(GROUP_DEPTH_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tree::{FileRef, ObsoleteFiles};

    #[test]
    fn debt_is_what_is_dead_beyond_what_may_be() {
        let limits = ValueLimits { reserved_ratio: 0.5, ..ValueLimits::default() };
        let debt = |total_bytes, dead_bytes, one: u64| {
            let usage = Usage { total_bytes, dead_bytes, ..Usage::default() };
            debt_percent(&usage, &limits, one)
        };
        assert_eq!(debt(0, 0, 0), 0);
        assert_eq!(debt(1500, 500, 0), 100);
        assert_eq!(debt(2500, 1500, 0), 300);
        // A few GCs may wait, however few bytes are live.
        assert_eq!(debt(410, 400, 100), 100);
        // What gives back too little to be collected is not waited for.
        let limits = ValueLimits { reserved_ratio: 0.001, ..limits };
        let usage = Usage { total_bytes: 6500, dead_bytes: 100, ..Usage::default() };
        assert!(debt_percent(&usage, &limits, 0) < 100);
    }

    #[test]
    fn a_collection_keeps_to_the_capacity_unless_that_was_lowered() {
        let limits = ValueLimits { capacity_bytes: Some(130), ..ValueLimits::default() };
        let writing = |write_bytes| Collection {
            group: Group::all(Tier::Main),
            files: Vec::new(),
            to_depth: 0,
            tags_cold: false,
            validity: Validity::Lookup,
            read_bytes: 40,
            write_bytes,
        };
        let usage = |total_bytes, retired_bytes| Usage {
            total_bytes,
            dead_bytes: 9,
            retired_bytes,
            ..Usage::default()
        };
        assert!(has_room(&writing(30), &usage(100, 20), &limits, 10));
        assert!(!has_room(&writing(31), &usage(100, 20), &limits, 10));
        assert!(has_room(&writing(10), &usage(500, 0), &limits, 10));
        assert!(!has_room(&writing(10), &usage(500, 1), &limits, 10));
        assert!(has_room(&writing(0), &usage(130, 1), &limits, 10));
    }

    #[test]
    fn a_collection_is_due_when_more_is_dead_than_may_be() {
        let limits = ValueLimits { reserved_ratio: 0.5, ..ValueLimits::default() };
        let usage = |total_bytes, dead_bytes| Usage { total_bytes, dead_bytes, ..Usage::default() };
        assert!(!is_due(&usage(100, 0), &limits, 10));
        assert!(!is_due(&usage(149, 49), &limits, 10));
        assert!(is_due(&usage(150, 50), &limits, 10));
        let tight = ValueLimits { capacity_bytes: Some(130), ..limits };
        assert!(is_due(&usage(111, 1), &tight, 10));
        assert!(!is_due(&usage(110, 10), &tight, 10));
        assert!(!is_due(&usage(130, 0), &tight, 10), "nothing to win");
    }

    #[test]
    fn a_cold_log_with_space_of_its_own_leaves_its_space_to_the_others() {
        let limits =
            ValueLimits { reserved_ratio: 0.5, cold_apart: true, ..ValueLimits::default() };
        // 100 live bytes, of which 60 are cold.
        let due = |main_dead: u64, cold_dead: u64, limits: &ValueLimits| {
            let usage = Usage {
                total_bytes: 100 + main_dead + cold_dead,
                dead_bytes: main_dead + cold_dead,
                retired_bytes: 0,
                cold_live_bytes: 60,
                cold_dead_bytes: cold_dead,
            };
            due_tiers(&usage, limits, 10)
        };
        assert_eq!(due(109, 29, &limits), []);
        assert_eq!(due(110, 29, &limits), [Tier::Main]);
        assert_eq!(due(109, 30, &limits), [Tier::Cold]);
        let shared = ValueLimits { cold_apart: false, ..limits };
        assert_eq!(due(49, 0, &shared), []);
        assert_eq!(due(25, 25, &shared), [Tier::Main, Tier::Cold]);
        let tight = ValueLimits { capacity_bytes: Some(130), ..limits };
        assert_eq!(due(11, 0, &tight), [Tier::Main, Tier::Cold], "little of the capacity is left");
    }

    /// Regression: an unconfirmed segment that did not fit was the only one that was ever tried.
    #[test]
    fn an_unconfirmed_segment_that_does_not_fit_lets_others_go_first() {
        let obsolete = Arc::new(ObsoleteFiles::default());
        for descriptor in crate::registry().iter().filter(|d| d.name != "inline") {
            let layout = (descriptor.make)();
            let limits = ValueLimits {
                segment_bytes: 100,
                log_segment_bytes: 100,
                reserved_ratio: 0.1,
                capacity_bytes: Some(400),
                ..ValueLimits::default()
            };
            let mut segments = Segments::default();
            for (id, prefix, dead_bytes) in [(1, 0, 0), (2, 1, 90), (3, 2, 0), (4, 3, 100)] {
                let group = Group { tier: Tier::Main, prefix: prefix << 62, depth: 2 };
                let file = FileRef::new_values(FileId(id), 0, obsolete.clone());
                let is_provisional = id == 1;
                let segment =
                    Segment { is_provisional, dead_bytes, ..Segment::new(file, group, 100) };
                segments.add(segment).unwrap();
            }
            segments.retire(FileId(4), 1).unwrap();
            // Only what writes nothing fits beside what is retired.
            assert!(layout.pick(&segments, &limits, &BTreeSet::new()).is_none());
            segments.bury(FileId(2), 10);
            let picked = layout.pick(&segments, &limits, &BTreeSet::new());
            assert_eq!(picked.unwrap().files, [FileId(2)], "{}", descriptor.name);
            // Where there is space, the unconfirmed one goes first.
            segments.remove(FileId(4)).unwrap();
            let picked = layout.pick(&segments, &limits, &BTreeSet::new());
            assert_eq!(picked.unwrap().files, [FileId(1)], "{}", descriptor.name);
        }
    }
}
