//! The commands on a database that are a few calls of the engine.

use crate::args::DataCommand;
use crate::context::Context;
use crate::failure::Outcome;
use crate::transfer;

pub mod backup;
mod changes;
pub mod data;
pub mod history;
pub mod ingest;
pub mod keyspace;
pub mod ledger;
mod levels;
pub mod maintenance;
pub mod options;
pub mod scan;
pub mod schemes;
pub mod stat;

/// Runs one of the commands that work from the shell of the system and inside `shingle shell`.
pub fn run(context: &mut Context, command: DataCommand) -> Outcome {
    match command {
        DataCommand::Put(args) => data::put(context, args),
        DataCommand::Get(args) => data::get(context, args),
        DataCommand::Delete(args) => data::delete(context, args),
        DataCommand::DeleteRange(args) => data::delete_range(context, args),
        DataCommand::Merge(args) => data::merge(context, args),
        DataCommand::Scan(args) => scan::scan(context, args),
        DataCommand::Count(args) => scan::count(context, args),
        DataCommand::Import(args) => transfer::import(context, args),
        DataCommand::Ingest(args) => ingest::ingest(context, args),
        DataCommand::Export(args) => transfer::export(context, args),
        DataCommand::Stat(args) => stat::stat(context, args),
        DataCommand::Changes(args) => changes::changes(context, &args),
        DataCommand::Check => maintenance::check(context),
        DataCommand::Compact(args) => maintenance::compact(context, args),
        DataCommand::Checkpoint(args) => maintenance::checkpoint(context, args),
    }
}
