//! Tests of leveled compaction.
