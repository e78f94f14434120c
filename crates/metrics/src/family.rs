//! Metrics as data, before they have a form.

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Things: files, compactions, entries.
    Count,
}

/// How a number changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Grows from zero at each opening of the database.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution of durations since the opening.
    Histogram,
}

/// What a number describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// The database: a process that reads the files beside the writer finds the same.
    Database,
    /// One opening of it: work since the opening, or memory of the process.
    Opening,
}

/// A distribution of durations.
#[derive(Clone, Debug, PartialEq)]
pub struct Buckets {
    /// Upper bounds in seconds, and the number of samples up to each.
    pub up_to: Vec<(f64, u64)>,
    /// Samples.
    pub count: u64,
    /// Their sum in seconds.
    pub sum_seconds: f64,
}

/// The value of a sample.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A whole number.
    Whole(u64),
    /// A number with a fraction.
    Real(f64),
    /// A distribution.
    Buckets(Buckets),
}

/// A number with its labels.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sample {
    /// Names and values of the labels.
    pub labels: Vec<(&'static str, String)>,
    /// The number.
    pub value: Value,
}

impl Sample {
    /// A sample without labels.
    pub(crate) fn new(value: Value) -> Sample {
        Sample { labels: Vec::new(), value }
    }

    /// The same with one more label.
    pub(crate) fn label(mut self, name: &'static str, value: impl Into<String>) -> Sample {
        self.labels.push((name, value.into()));
        self
    }
}

/// A metric with its samples.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Family {
    /// The name, with the unit and without `_total`.
    pub name: &'static str,
    /// What it says, in one sentence.
    pub help: &'static str,
    /// How it changes.
    pub kind: Kind,
    /// What it counts.
    pub unit: Unit,
    /// The samples; none where the database has nothing of the kind.
    pub samples: Vec<Sample>,
}

/// Adds a label to every sample, such as the name of the database in a process with several.
///
/// `name` consists of letters, digits and `_`. It differs from the labels of all metrics; `db` and
/// `instance` do.
pub fn with_label(families: &mut [Family], name: &'static str, value: &str) {
    for sample in families.iter_mut().flat_map(|family| &mut family.samples) {
        sample.labels.insert(0, (name, value.to_string()));
    }
}
