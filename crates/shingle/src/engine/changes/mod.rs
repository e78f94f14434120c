//! The change feed: committed batches, read from the write-ahead logs.
//!
//! With retention, logs have origins (`table::log_record`), and a log that the log floor passed is
//! kept for feeds until it is beyond the retention's bytes or age.
//!
//! Invariants:
//! - The logs that a feed reads are a *chain*: each names the end of the one before it, over
//!   openings too. So a feed has no gap, and a log that lost bytes is noticed.
//! - A log that a feed may need holds the values themselves: with retention, commits write no value
//!   to a segment. Garbage collection and compaction owe a feed nothing.
//! - A log is durable before the floor passes it, so what runs hold after a crash, the chain holds
//!   too. Logs that an earlier process left may not be: the opening restates them.
//! - Recovery needs no log below the floor. A full medium takes these logs back before anything
//!   else.

pub(crate) mod chain;
pub(crate) mod feed;
pub(crate) mod restate;
pub(crate) mod retained;
pub(crate) mod source;
