//! The commands on a database that are a few calls of the engine.

pub mod care;
pub mod data;
pub mod history;
pub mod keyspace;
pub mod ledger;
mod levels;
pub mod options;
pub mod scan;
pub mod schemes;
pub mod stat;
