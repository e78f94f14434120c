//! How a database reacts to damaged, foreign and hostile files, and whether its maintenance
//! functions keep their promises. `SHINGLE_TEST_SCALE` multiplies the number of mutations; 1 takes
//! about a minute.
//!
//! The rule for every mutation: the result is an error that names the file, or exactly the data
//! that was written, or, for data that was never durable, a prefix of the commits. Nothing else,
//! and never a panic.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod build;
mod device;
mod doors;
mod exchanged;
mod golden;
mod image;
mod large;
mod maintenance;
mod memory;
mod regressions;
mod replay;
mod salvage;
mod sweep;
mod targets;
mod verdict;

/// How many times the usual number of mutations to try.
fn scale() -> usize {
    std::env::var("SHINGLE_TEST_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}
