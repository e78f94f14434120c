//! The layout `log`: WiscKey's circular log, as the baseline that HashKV is compared with.
//!
//! New values go to the end; garbage collection takes the oldest segment and looks each of its
//! records up in the index. Under uniform updates its write amplification is that of a FIFO device:
//! `1 / (1 - u)` with `u = exp(-a (1 - u))` and `a` the space over the live bytes.

use crate::layout::{
    Collection, Descriptor, ValueLayout, WRITES_PER_RECLAIMED_MAX, by_lookup, has_room, is_due,
    live_bytes, unconfirmed,
};
use crate::limits::ValueLimits;
use base::FileId;
use std::collections::BTreeSet;
use tree::Segments;
use tree::segments::{Segment, Usage};

/// The layout's line in the registry.
pub const LOG: Descriptor = Descriptor {
    name: "log",
    summary: "large values in one circular log; garbage collection from its oldest end",
    help: "Values over the threshold are appended to one log of segments. When the dead bytes\n\
           pass the reserved share, the oldest segment is read, each record is looked up in the\n\
           index, and live records are written again at the end. New values are written once: a\n\
           commit appends them, and the write-ahead log has their pointers.\n\
           Choose it for large values that are written once or uniformly often.\n\
           It costs an index look-up for each record that is collected, and under skewed updates\n\
           it moves the same cold values again and again.",
    paper: "Lu et al., WiscKey, FAST 2016; the vLog of HashKV, section 2.2",
    options: &["value_segment_bytes", "value_reserved_ratio", "value_capacity_bytes"],
    make: || Box::new(Log),
};

struct Log;

impl ValueLayout for Log {
    fn name(&self) -> &'static str {
        LOG.name
    }

    fn separates(&self) -> bool {
        true
    }

    fn writes_at_commit(&self) -> bool {
        true
    }

    fn pick(
        &self,
        segments: &Segments,
        limits: &ValueLimits,
        busy: &BTreeSet<FileId>,
    ) -> Option<Collection> {
        oldest(segments, limits, self.collection_bytes_max(limits), busy)
    }
}

/// The oldest segment, when garbage collection is due. The newest one is still being written.
pub(crate) fn oldest(
    segments: &Segments,
    limits: &ValueLimits,
    reserve_bytes: u64,
    busy: &BTreeSet<FileId>,
) -> Option<Collection> {
    let usage = segments.usage();
    let fits = |c: &Collection| has_room(c, &usage, limits, reserve_bytes);
    if let Some(collection) = unconfirmed(segments, busy) {
        return Some(collection).filter(fits);
    }
    if !is_due(&usage, limits, reserve_bytes) || is_tedious(&usage) {
        return None;
    }
    let mut candidates = segments.iter().filter(|segment| segment.retired.is_none());
    let oldest = candidates.next()?;
    let is_free = |segment: &Segment| !busy.contains(&segment.file.id);
    // Where nothing is dead within reach, moving the oldest would go round for ever.
    let has_dead = |segment: &Segment| segment.dead_bytes > 0 && is_free(segment);
    let gives_back = has_dead(oldest) || candidates.any(has_dead);
    (gives_back && is_free(oldest)).then(|| by_lookup(oldest)).filter(fits)
}

/// One round through the log would give back too little for what it writes.
fn is_tedious(usage: &Usage) -> bool {
    usage.dead_bytes.saturating_mul(WRITES_PER_RECLAIMED_MAX) < live_bytes(usage)
}
