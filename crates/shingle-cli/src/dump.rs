//! `dump`.

use crate::args::DumpArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};

/// `shingle dump`.
pub fn dump(_context: &mut Context, _args: DumpArgs) -> Outcome {
    Err(Failure::said("dump: not wired yet", ""))
}
