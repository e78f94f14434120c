//! Values apart from the runs: written by commits, flushes and moves, collected in the background.
//!
//! Invariants:
//! - A segment is durable before the edit that lists it, and listed before the tree points into it.
//! - Nobody appends to a segment that a collection reads, no two jobs append to one, and nobody
//!   collects what a collection has listed and the tree does not point to yet: a job *claims* the
//!   segments that it begins, goes on with or reads.
//! - The tree alone says which records live. What a merge drops is counted dead in the merge's own
//!   edit; what a collection moves is moved on the condition that the tree still holds the very
//!   pointer, under the lock that orders commits.
//! - A retired segment is removed when nobody can see an entry that points into it, and the moved
//!   pointers are in runs. A snapshot sees such an entry if it is not older than the first of them
//!   and older than the retirement: so one snapshot keeps what was there when it was taken, and
//!   nothing that was written and overwritten since. Where many segments wait for the flush, the
//!   memtable is flushed before it is full: pointers are small, and what they replaced is not.
//! - Where a capacity bounds the segments, nobody makes them larger: users' writes are refused
//!   (`make_space`), a collection begins only where its output fits, and what moves would separate
//!   stays in the runs.

pub(crate) mod active_segment;
pub(crate) mod begin_segment;
pub(crate) mod capacity;
pub(crate) mod gc;
pub(crate) mod make_space;
pub(crate) mod retired;
mod segment_buffer;
pub(crate) mod separate;
pub(crate) mod writers;
