//! Statistics of separated values.

/// Separated values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueStats {
    /// Segments, retired ones included.
    pub segments: u64,
    /// Segment groups.
    pub groups: u64,
    /// Bytes of all segments.
    pub total_bytes: u64,
    /// Bytes known to be garbage, in segments that are not retired.
    pub dead_bytes: u64,
    /// Bytes of segments that garbage collection replaced, and that old readers still need.
    pub retired_bytes: u64,
    /// Garbage collection since the database was opened.
    pub collected: Collected,
    /// Bytes of all segments that are in the cold store.
    pub cold_store_bytes: u64,
    /// Time that background threads spent on values, since the database was opened.
    pub times: ValueTimes,
}

impl ValueStats {
    /// Adds `more`.
    pub(crate) fn add(&mut self, more: &ValueStats) {
        self.segments += more.segments;
        self.groups += more.groups;
        self.total_bytes += more.total_bytes;
        self.dead_bytes += more.dead_bytes;
        self.retired_bytes += more.retired_bytes;
        self.cold_store_bytes += more.cold_store_bytes;
        self.collected.add(&more.collected);
        self.times.add(&more.times);
    }
}

/// Time of background threads, in nanoseconds, with the parts of HashKV's latency breakdown (4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueTimes {
    /// Flushes and compactions writing values to segments, syncs included.
    pub write_ns: u64,
    /// Garbage collection reading segments and sorting their records.
    pub collect_read_ns: u64,
    /// Garbage collection looking up in the index which records are live.
    pub collect_lookup_ns: u64,
    /// Garbage collection writing live records to new segments, syncs included.
    pub collect_write_ns: u64,
    /// Garbage collection changing pointers in the index.
    pub collect_pointer_ns: u64,
}

impl ValueTimes {
    /// The parts, by name.
    pub fn parts(&self) -> [(&'static str, u64); 5] {
        [
            ("write", self.write_ns),
            ("collect_read", self.collect_read_ns),
            ("collect_lookup", self.collect_lookup_ns),
            ("collect_write", self.collect_write_ns),
            ("collect_pointer", self.collect_pointer_ns),
        ]
    }

    /// Adds `more`.
    pub(crate) fn add(&mut self, more: &ValueTimes) {
        self.write_ns += more.write_ns;
        self.collect_read_ns += more.collect_read_ns;
        self.collect_lookup_ns += more.collect_lookup_ns;
        self.collect_write_ns += more.collect_write_ns;
        self.collect_pointer_ns += more.collect_pointer_ns;
    }
}

/// Work of garbage collection of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// Number of completed GC jobs.
    pub count: u64,
    /// Bytes of the segments that GC retired.
    pub read_bytes: u64,
    /// Bytes that GC wrote to new segments.
    pub write_bytes: u64,
    /// Records that GC looked up in the index.
    pub lookups: u64,
}

impl Collected {
    /// Bytes reclaimed per byte written.
    pub fn reclaimed_per_written(&self) -> Option<f64> {
        let reclaimed = self.read_bytes.saturating_sub(self.write_bytes);
        (self.write_bytes > 0).then(|| reclaimed as f64 / self.write_bytes as f64)
    }

    /// Adds `more`.
    pub(crate) fn add(&mut self, more: &Collected) {
        self.count += more.count;
        self.read_bytes += more.read_bytes;
        self.write_bytes += more.write_bytes;
        self.lookups += more.lookups;
    }
}

/// A segment group of values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueGroup {
    /// The keyspace.
    pub keyspace: String,
    /// The keys of the group, and whether their values are cold.
    pub group: tree::Group,
    /// Segments that are not retired.
    pub segments: u64,
    /// Bytes that are not known to be garbage.
    pub live_bytes: u64,
    /// Bytes known to be garbage.
    pub dead_bytes: u64,
}
