//! The numbers that layouts keep to, with what there is to say about each.

/// Sizes and shares that layouts keep to. Bytes are bytes of records.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueLimits {
    /// Live bytes that a group is meant to hold; where its first segment ends (HashKV: 64 MiB).
    pub main_segment_bytes: u64,
    /// Where each further segment of a group ends (HashKV: 1 MiB).
    pub log_segment_bytes: u64,
    /// Dead bytes that may stand beside the live bytes, as a share of the live bytes (HashKV: 0.3).
    pub reserved_ratio: f64,
    /// Values that did not change between two GCs of their group move to the cold log.
    pub hotness: bool,
    /// Bytes that all segments together never exceed. GC begins when less than twice what one GC
    /// writes is left, even if the reserved share allows more; the last of that space is reserved
    /// for GC. None: the reserved share alone decides.
    pub capacity_bytes: Option<u64>,
}

impl Default for ValueLimits {
    /// The paper's, HashKV 3.2 and 4.1.
    fn default() -> ValueLimits {
        ValueLimits {
            main_segment_bytes: 64 << 20,
            log_segment_bytes: 1 << 20,
            reserved_ratio: 0.3,
            hotness: false,
            capacity_bytes: None,
        }
    }
}

/// A number of [`ValueLimits`], for manuals.
pub struct LimitField {
    /// The field.
    pub name: &'static str,
    /// What it counts.
    pub unit: &'static str,
    /// What happens at it.
    pub help: &'static str,
    show: fn(&ValueLimits) -> String,
}

impl LimitField {
    /// Its value in `limits`.
    pub fn value(&self, limits: &ValueLimits) -> String {
        (self.show)(limits)
    }
}

/// The numbers that layouts name among their options.
pub static LIMIT_FIELDS: &[LimitField] = &[
    LimitField {
        name: "main_segment_bytes",
        unit: "bytes",
        help: "a group's first segment ends; in a log, each does",
        show: |limits| limits.main_segment_bytes.to_string(),
    },
    LimitField {
        name: "log_segment_bytes",
        unit: "bytes",
        help: "each further segment of a group ends",
        show: |limits| limits.log_segment_bytes.to_string(),
    },
    LimitField {
        name: "reserved_ratio",
        unit: "share of the live bytes",
        help: "dead bytes before garbage collection is due",
        show: |limits| limits.reserved_ratio.to_string(),
    },
    LimitField {
        name: "hotness",
        unit: "yes or no",
        help: "values that did not change between two garbage collections move to a cold log",
        show: |limits| if limits.hotness { "yes" } else { "no" }.into(),
    },
    LimitField {
        name: "capacity_bytes",
        unit: "bytes",
        help: "segments of a keyspace never exceed it; option value_capacity_bytes",
        show: |limits| limits.capacity_bytes.map_or("not set".into(), |bytes| bytes.to_string()),
    },
];
