//! A store without bytes: drives a policy and the tree with runs that are sets of numbers.
//!
//! It executes plans as the engine does, except that entries are counted and not written: so what a
//! policy writes can be measured in seconds, and tests can compare a tree with the data that it
//! must hold. A move may be begun, and finished after others: what was read is what the version
//! held at the beginning.

mod executor;
mod workload;

pub use executor::{Entry, Store, Work};
pub use workload::{Keys, Report, Workload, spread};
