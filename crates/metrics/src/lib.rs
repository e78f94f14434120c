//! Statistics of [`shingle`] as metrics.
//!
//! [`families`] turns [`Stats`] into a neutral list: each [`Family`] has a name, a unit, a help
//! line and samples with labels. [`text`] writes the list for Prometheus and OpenMetrics. The
//! feature `opentelemetry` gives the same numbers to a meter of OpenTelemetry.
//!
//! Each metric is defined once, in a table: [`definitions`] lists them, with the names that RocksDB
//! has for the same numbers.
//!
//! ```
//! # fn main() -> shingle::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! let db = shingle::Options::new().open(dir.path())?;
//! db.put("apple", "red")?;
//! let families = shingle_metrics::families(&db.stats());
//! let text = shingle_metrics::text::prometheus(&families);
//! assert!(text.contains("shingle_user_written_bytes_total 8\n"));
//! # Ok(())
//! # }
//! ```
//!
//! # Cost
//!
//! [`Db::stats`](shingle::Db::stats) takes the lock of the trees for a short time and lists the
//! files. It is meant for one call in some seconds, not for one call in each operation.
//!
//! # Stability
//!
//! Names and labels of metrics follow semantic versioning: a release that changes one is a new
//! major version. New metrics may come with any release.

#![warn(clippy::missing_errors_doc)]

mod definition;
mod family;
#[cfg(feature = "opentelemetry")]
pub mod otel;
mod table;
pub mod text;

pub use definition::{Definition, RocksdbName};
pub use family::{Buckets, Family, Kind, Sample, Scope, Unit, Value, with_label};

use shingle::Stats;

/// Every metric that this crate knows.
pub fn definitions() -> &'static [Definition] {
    table::TABLE
}

/// Every metric of a database, in the order of [`definitions`].
pub fn families(stats: &Stats) -> Vec<Family> {
    definitions().iter().map(|definition| definition.family(stats)).collect()
}

/// The metrics of one scope. [`Scope::Database`] is for a process that reads the database beside
/// the program that writes it.
pub fn families_of(stats: &Stats, scope: Scope) -> Vec<Family> {
    let of_scope = definitions().iter().filter(|definition| definition.scope == scope);
    of_scope.map(|definition| definition.family(stats)).collect()
}

/// The example of the readme compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
