//! Background work: flushes, moves of the tree, removal of dead files.
//!
//! The scheduler hands out bounded steps; between two steps a job can be paused, and a more urgent one
//! goes first. Jobs hold fixed memory: read-ahead for each input, one block under construction.

pub(crate) mod clean;
pub(crate) mod events;
pub(crate) mod flush;
pub(crate) mod output;
pub(crate) mod reduce;
pub(crate) mod relocate;
pub(crate) mod rewrite;
pub(crate) mod scheduler;
pub(crate) mod work_stats;
