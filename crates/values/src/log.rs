//! The layout `log`: new values go to the end of one log; garbage collection takes any segment.
//!
//! WiscKey's log is circular: garbage collection takes the oldest segment. Under uniform updates
//! its write amplification is that of a FIFO device: `1 / (1 - u)` with `u = exp(-a (1 - u))` and
//! `a` the space over the live bytes. Under skewed updates it moves the same cold values again and
//! again. `value_oldest_first` keeps that order, to compare with.
//!
//! Otherwise the segment is chosen as a log-structured file system cleans (Rosenblum and
//! Ousterhout, SOSP 1991): the more bytes it gives back for each byte that it writes, and the more
//! segments were begun since, the sooner. What is overwritten often becomes garbage soon, so a
//! young segment is worth waiting for. Values that were moved lie in segments of their own, apart
//! from new ones: the longer a value lives, the colder is what lies beside it.

use crate::layout::{
    Collection, Descriptor, ValueLayout, WRITES_PER_RECLAIMED_MAX, by_lookup, has_room, is_due,
    live_bytes, reclaimed, unconfirmed,
};
use crate::limits::ValueLimits;
use base::FileId;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tree::Segments;
use tree::segments::{Segment, Usage};

/// The layout's line in the registry.
pub const LOG: Descriptor = Descriptor {
    name: "log",
    summary: "large values in one log; garbage collection of the segment that is worth it most",
    help: "Values over the threshold are appended to one log of segments. When the dead bytes\n\
           pass the reserved share, the segment is read that gives back most for what it writes,\n\
           old ones first. Its keys are looked up in the index, in key order, and live records\n\
           are written to a segment of their own, in that order. New values are written once: a\n\
           commit appends them, and the write-ahead log has their pointers.\n\
           Choose it for large values.\n\
           It costs an index look-up for each record that is collected, and the order of values:\n\
           scans read them at random.",
    paper: "Lu et al., WiscKey, FAST 2016; cleaning of Rosenblum and Ousterhout, SOSP 1991",
    options: &[
        "value_segment_bytes",
        "value_reserved_ratio",
        "value_oldest_first",
        "value_capacity_bytes",
    ],
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
        next(segments, limits, self.collection_bytes_max(limits), busy)
    }
}

/// The next collection of a log, each of which may write `reserve_bytes`.
pub(crate) fn next(
    segments: &Segments,
    limits: &ValueLimits,
    reserve_bytes: u64,
    busy: &BTreeSet<FileId>,
) -> Option<Collection> {
    let usage = segments.usage();
    let fits = |c: &Collection| has_room(c, &usage, limits, reserve_bytes);
    if let Some(collection) = unconfirmed(segments, busy).filter(fits) {
        return Some(collection);
    }
    if !is_due(&usage, limits, reserve_bytes) {
        return None;
    }
    match limits.oldest_first {
        true => oldest(segments, &usage, busy).filter(fits),
        false => worthiest(segments, limits, busy, fits),
    }
}

/// Beyond this many times as many segments as full ones would be, small ones are joined.
const SEGMENTS_PER_FULL_MAX: u64 = 2;
/// Segments that are never too many.
const SEGMENTS_MIN: u64 = 4;

/// The segment that GC gets most from for each byte that it writes, times its age: the
/// number of segments that were begun since. What is left of a segment takes a segment of its own.
/// So where there are many small ones, more of them are taken, as far as one segment holds what is
/// left of all.
fn worthiest(
    segments: &Segments,
    limits: &ValueLimits,
    busy: &BTreeSet<FileId>,
    fits: impl Fn(&Collection) -> bool,
) -> Option<Collection> {
    let begun: Vec<&Segment> = segments.iter().filter(|s| s.retired.is_none()).collect();
    let bytes: u64 = begun.iter().map(|segment| segment.bytes).sum();
    let full = bytes / limits.segment_bytes.max(1);
    let is_crowded = begun.len() as u64 > SEGMENTS_MIN + SEGMENTS_PER_FULL_MAX * full;
    let mut candidates: Vec<(u128, &Segment)> = (1..)
        .zip(begun.into_iter().rev())
        .filter(|(_, segment)| segment.dead_bytes > 0 && !busy.contains(&segment.file.id))
        .map(|(age, segment)| (worth(segment, age), segment))
        .collect();
    candidates.sort_by_key(|(worth, _)| Reverse(*worth));
    let mut candidates = candidates.into_iter().map(|(_, segment)| segment);
    let gives_back =
        |c: &Collection| reclaimed(c).saturating_mul(WRITES_PER_RECLAIMED_MAX) > c.write_bytes;
    let first = candidates.find(|segment| {
        let collection = by_lookup(segment);
        gives_back(&collection) && fits(&collection)
    })?;
    let mut collection = by_lookup(first);
    for segment in candidates.filter(|s| is_crowded && s.bytes <= limits.segment_bytes / 2) {
        let joined = joined(&collection, segment);
        if joined.write_bytes <= limits.segment_bytes && fits(&joined) {
            collection = joined;
        }
    }
    collection.files.sort_unstable();
    Some(collection)
}

fn worth(segment: &Segment, age: u128) -> u128 {
    // Compared without a division that loses much.
    let live_bytes = segment.live_bytes().max(1);
    ((u128::from(segment.dead_bytes) * age) << 32) / u128::from(live_bytes)
}

fn joined(collection: &Collection, segment: &Segment) -> Collection {
    let mut joined = collection.clone();
    joined.files.push(segment.file.id);
    joined.read_bytes += segment.bytes;
    joined.write_bytes += segment.live_bytes();
    joined
}

/// The oldest segment. The newest one is still being written.
fn oldest(segments: &Segments, usage: &Usage, busy: &BTreeSet<FileId>) -> Option<Collection> {
    if is_tedious(usage) {
        return None;
    }
    let mut candidates = segments.iter().filter(|segment| segment.retired.is_none());
    let oldest = candidates.next()?;
    let is_free = |segment: &Segment| !busy.contains(&segment.file.id);
    // Where nothing is dead within reach, moving the oldest would go round for ever.
    let has_dead = |segment: &Segment| segment.dead_bytes > 0 && is_free(segment);
    let gives_back = has_dead(oldest) || candidates.any(has_dead);
    (gives_back && is_free(oldest)).then(|| by_lookup(oldest))
}

/// One round through the log would give back too little for what it writes.
fn is_tedious(usage: &Usage) -> bool {
    usage.dead_bytes.saturating_mul(WRITES_PER_RECLAIMED_MAX) < live_bytes(usage)
}
