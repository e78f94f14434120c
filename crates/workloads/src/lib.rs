//! Workloads and measuring: db_bench's benchmarks and YCSB against any [`store::Store`].
//!
//! Everything random follows from a seed and stays the same for ever; every time comes from a
//! [`clock::Clock`], so that the same workload runs on a real store and on a simulated one. Nothing
//! here prints: output goes to the writer that the caller hands in, live news to an
//! [`observe::Observer`].

pub mod amplification;
pub mod clock;
pub mod dbbench;
pub mod keys;
pub mod latency;
pub mod measure;
#[cfg(test)]
pub(crate) mod memory_store;
pub mod observe;
pub mod pace;
pub mod process;
pub mod random;
pub mod record;
pub mod shingle_store;
pub mod simulate;
pub mod store;
pub mod text;
pub mod threshold;
pub mod trace;
pub mod update_cache;
pub mod values;
pub mod watched;
pub mod ycsb;
pub mod zipf;

pub use amplification::Amplification;
pub use clock::{Clock, VirtualClock, WallClock};
pub use observe::{Observer, Progress, Silent};
pub use record::Record;
pub use store::{Counters, Direction, Store, StoreFactory, WriteOptions};
