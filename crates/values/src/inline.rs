//! The layout `inline`: values stay in the runs, and compaction is their garbage collection.

use crate::{Descriptor, Placed, ValueLayout};
use base::Result;

/// The layout's line in the registry.
pub const INLINE: Descriptor = Descriptor {
    name: "inline",
    summary: "values stay in the runs; best for small values and for scans",
    make: || Box::new(Inline),
};

struct Inline;

impl ValueLayout for Inline {
    fn place(&self, _key: &[u8], _value: &[u8]) -> Result<Placed> {
        Ok(Placed::Inline)
    }
}
