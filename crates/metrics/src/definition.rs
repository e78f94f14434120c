//! The definition of a metric: everything but its samples.

use crate::family::{Family, Kind, Sample, Scope, Unit};
use shingle::Stats;

/// What a metric is; the samples come from [`Stats`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Definition {
    /// The name, with the unit and without `_total`.
    pub name: &'static str,
    /// What it says, in one sentence.
    pub help: &'static str,
    /// How it changes.
    pub kind: Kind,
    /// What it counts.
    pub unit: Unit,
    /// Whether it describes the database or one opening of it.
    pub scope: Scope,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What RocksDB calls the same number, or a part of it.
    pub rocksdb: &'static [RocksdbName],
    pub(crate) samples: fn(&Stats) -> Vec<Sample>,
}

/// RocksDB's name for a number of the same meaning: a ticker, a histogram or a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RocksdbName {
    /// The name.
    pub name: &'static str,
    /// The labels of the samples whose sum it is, in the form of a selector in a query; empty for
    /// all samples.
    pub selector: &'static str,
}

impl Definition {
    /// The names of its series in Prometheus: with `_total`, or with the suffixes of a histogram.
    pub fn series(&self) -> Vec<String> {
        match self.kind {
            Kind::Counter => vec![format!("{}_total", self.name)],
            Kind::Gauge => vec![self.name.to_string()],
            Kind::Histogram => {
                ["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", self.name)).to_vec()
            }
        }
    }

    pub(crate) fn family(&self, stats: &Stats) -> Family {
        let &Definition { name, help, kind, unit, samples, .. } = self;
        Family { name, help, kind, unit, samples: samples(stats) }
    }
}
