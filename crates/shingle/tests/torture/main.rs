//! Processes with real threads and real files are killed at any moment, while calls fail, syncs
//! fail and the disk is full. Every acknowledged write must be there, and nothing else.
//!
//! The test runs itself as a child (`child`), which writes batches that follow from their numbers
//! (`model`) and reports what was acknowledged. The parent kills the child, destroys what failed
//! syncs left unwritten (`medium`), and compares everything. Each scheme meets each value layout in
//! turn. A directory lives through several rounds, some of them under another scheme and layout.
//!
//! Run it with `cargo test -p shingle --test torture -- --ignored --nocapture`.
//! `SHINGLE_TORTURE_SECONDS` sets the duration; the default is 10 seconds.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

mod child;
mod medium;
mod model;
mod parent;

use std::path::Path;
use std::time::{Duration, Instant};

/// Threads of a child that write.
pub const WRITERS: u64 = 2;

const DIRECTORY: &str = "SHINGLE_TORTURE_DIRECTORY";
const PLAN: &str = "SHINGLE_TORTURE_PLAN";

/// What else happens to the process, beside its death.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Torment {
    Kill,
    /// Calls of the store fail.
    Calls,
    /// Syncs fail, and what they did not write is lost.
    Syncs,
    /// From time to time there is hardly any space.
    Full,
    /// Calls fail, or there is no space, during the opening.
    Opening,
}

impl Torment {
    pub const ALL: [Torment; 5] =
        [Torment::Kill, Torment::Calls, Torment::Syncs, Torment::Full, Torment::Opening];
}

/// One round.
#[derive(Clone, Debug)]
pub struct Plan {
    pub scheme: String,
    pub layout: String,
    pub torment: Torment,
    pub seed: u64,
}

impl Plan {
    /// The cell `number`: schemes and layouts in turn, so that each scheme meets each layout.
    fn of(number: u64, torment: Torment, seed: u64) -> Plan {
        let (schemes, layouts) = (tree::policy::registry(), values::registry());
        let of_schemes = schemes.len() as u64;
        let layout = (number / of_schemes) % layouts.len() as u64;
        Plan {
            scheme: schemes[(number % of_schemes) as usize].name.to_string(),
            layout: layouts[layout as usize].name.to_string(),
            torment,
            seed,
        }
    }

    fn encode(&self) -> String {
        let torment = Torment::ALL.iter().position(|each| *each == self.torment);
        format!("{} {} {} {}", self.scheme, self.layout, torment.unwrap_or(0), self.seed)
    }

    fn decode(text: &str) -> Plan {
        let words: Vec<&str> = text.split(' ').collect();
        Plan {
            scheme: words[0].to_string(),
            layout: words[1].to_string(),
            torment: Torment::ALL[words[2].parse::<usize>().unwrap()],
            seed: words[3].parse().unwrap(),
        }
    }
}

/// The child: does nothing unless the parent asks.
#[test]
fn child_of_the_torture() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let plan = Plan::decode(&std::env::var(PLAN).unwrap());
    child::run(&plan, Path::new(&directory));
}

#[test]
#[ignore = "takes as long as it is told to; see the head of this file"]
fn tortured_processes_keep_what_was_acknowledged() {
    let number = |name: &str, default: u64| -> u64 {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let seconds = Duration::from_secs(number("SHINGLE_TORTURE_SECONDS", 10));
    let first = number("SHINGLE_TEST_SEED", 0);
    let end = Instant::now() + seconds;
    let counts = std::thread::scope(|scope| {
        let lanes: Vec<_> =
            (0..2).map(|lane| scope.spawn(move || parent::run_lane(first, lane, end))).collect();
        let counts = lanes.into_iter().map(|lane| lane.join().unwrap());
        counts.reduce(parent::Counts::sum).unwrap()
    });
    println!("{counts}");
    assert!(counts.problems.is_empty(), "{:#?}", counts.problems);
    assert!(counts.batches() > 0, "no batch was acknowledged");
    assert!(counts.ingestions() > 0, "no file was ingested");
}
