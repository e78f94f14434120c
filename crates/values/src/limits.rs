//! The numbers that layouts keep to. Each parameter of a layout is defined here once.

/// The entry of a layout's parameter in [`LIMIT_FIELDS`].
pub type LimitField = base::parameter::Parameter<ValueLimits, Parameters>;

base::parameters! {
    /// Sizes and shares that layouts keep to. Bytes are bytes of records.
    all ValueLimits;
    /// The parameters that a user set. `None`: the layout's default.
    chosen Parameters;
    /// Every parameter that a layout may name among its options.
    table LIMIT_FIELDS, "value_";
    beside {}
    /// Bytes at which a group's first segment ends; in a log, bytes of each segment.
    segment_bytes: u64, "bytes";
    /// Bytes at which each further segment of a group ends.
    log_segment_bytes: u64, "bytes";
    /// Garbage that may exist beside live values before garbage collection is due, as a share of
    /// the live bytes.
    reserved_ratio: f64, "share of the live bytes";
    /// GC takes the oldest segment, as WiscKey's circular log does, instead of the one that gives
    /// back most.
    oldest_first: bool, "yes or no";
    /// Moves values to a cold log that did not change between two garbage collections of their
    /// group. On where the database has a cold store.
    hotness: bool, "yes or no";
    /// The cold log has space of its own: its values take none of the others' space, and its
    /// garbage is a share of its own live bytes.
    cold_apart: bool, "yes or no";
    /// Maximum bytes of a keyspace's value segments; a part is reserved for garbage collection.
    /// `none`: the whole medium.
    capacity_bytes: Option<u64>, "bytes";
}

impl Default for ValueLimits {
    /// The paper's, HashKV 3.2 and 4.1.
    fn default() -> ValueLimits {
        ValueLimits {
            segment_bytes: 64 << 20,
            log_segment_bytes: 1 << 20,
            reserved_ratio: 0.3,
            oldest_first: false,
            hotness: false,
            cold_apart: false,
            capacity_bytes: None,
        }
    }
}
