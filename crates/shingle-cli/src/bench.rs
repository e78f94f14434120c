//! `bench`: the workloads of the lab on a database of the engine.

use crate::args::BenchArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};

/// `shingle bench`.
pub fn bench(_context: &mut Context, _args: BenchArgs) -> Outcome {
    Err(Failure::said("bench: not wired yet", ""))
}
