//! Separated values: commits, flushes and moves write them, and GC reclaims their space in the
//! background.
//!
//! Invariants:
//! - A segment is durable before the edit that lists it, and listed before the tree points into it.
//! - No job appends to a segment that GC reads, no two jobs append to one segment, and GC does not
//!   read a segment that GC has listed and the tree does not point to yet. To ensure this, a job
//!   *claims* the segments that it begins, continues or reads.
//! - The tree alone says which records are live. Records that a merge drops are counted as garbage
//!   in the merge's own edit. GC changes a pointer on the condition that the tree still holds
//!   exactly the old one, under the lock that orders commits.
//! - A retired segment is removed when no reader can see an entry that points into it, and the
//!   moved pointers are in runs. A snapshot sees such an entry if the snapshot is not older than
//!   the first of them and older than the retirement. So a snapshot keeps the values that existed
//!   when it was taken, and none that were written and overwritten since. Where many segments wait
//!   for the flush, the memtable is flushed before it is full: pointers are small, and what they
//!   replaced is not.
//! - Where a capacity bounds the segments, nothing exceeds it: users' writes are refused
//!   (`make_space`), GC begins only where its output fits, and values that moves would separate
//!   stay in the runs.

pub(crate) mod active_segment;
pub(crate) mod begin_segment;
pub(crate) mod capacity;
pub(crate) mod gc;
pub(crate) mod make_space;
pub(crate) mod retired;
mod segment_buffer;
pub(crate) mod separate;
pub(crate) mod writers;
