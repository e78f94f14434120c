//! The factors of a scale.
//!
//! There are three, because values and data cannot shrink as tables do: see the decision record
//! "everything shrinks together".

use serde::Deserialize;

/// Factors by which everything shrinks together.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Of memtables, tables, levels, bands, segments, buffers, and of the rates of devices: a table
    /// takes as long to write as in the paper, and a seek weighs as much against it.
    pub sizes: f64,
    /// Of the data, of devices' capacities and of caches.
    pub data: f64,
    /// Of values, down to `value_min`.
    pub values: f64,
    /// Values do not shrink below this many bytes.
    pub value_min: f64,
    /// Minimum number of requests, where the paper makes that many.
    pub requests_min: u64,
}

impl Scale {
    /// A value of `paper` bytes here.
    pub fn value_bytes(&self, paper: f64) -> usize {
        (paper * self.values).max(paper.min(self.value_min)).round().max(1.0) as usize
    }

    /// Nothing shrinks.
    fn is_full_size(&self) -> bool {
        [self.sizes, self.data, self.values] == [1.0; 3]
    }

    /// One sentence for reports.
    pub fn describe(&self) -> String {
        if self.is_full_size() {
            return "sizes, data and values of the paper".to_string();
        }
        let part = |factor: f64| match factor {
            1.0 => "1".to_string(),
            factor => format!("1/{:.0}", 1.0 / factor),
        };
        format!(
            "sizes {}, data {}, values {} (not below {:.0} bytes)",
            part(self.sizes),
            part(self.data),
            part(self.values),
            self.value_min
        )
    }
}
