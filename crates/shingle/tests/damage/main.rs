//! How a database meets damaged, foreign and hostile files, and whether its care functions keep
//! their word. `SHINGLE_TEST_SCALE` multiplies the number of mutations; 1 takes about a minute.
//!
//! The rule for every mutation: an error that names the file, or exactly the data that was written,
//! or, for what was never durable, a prefix of the commits. Nothing else, and never a panic.

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
