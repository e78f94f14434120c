//! demo
use crate::args::DemoArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
pub mod crash {
    use super::*;
    pub fn write_until_killed(_c: &mut Context, _a: crate::args::CrashWriterArgs) -> Outcome { Ok(()) }
}
pub fn demo(_context: &mut Context, _args: DemoArgs) -> Outcome {
    Err(Failure::said("demo: not wired yet", ""))
}
