//! Value layouts: where large values go, how they lie there, and what garbage collection takes
//! next.
//!
//! - [`layout`]: the contract of layouts. [`registry`] has them all: [`INLINE`], [`LOG`],
//!   [`HASHED`]. [`ValueLimits`]: the numbers that they keep to.
//! - [`mod@pointer`], [`record`]: what stands in the tree, and in a segment.
//! - [`segment`]: writing, reading and scanning the files.
//!
//! Layouts are pure; [`segment`] is the one module with I/O. What a version knows of segments is in
//! [`tree::segments`].

mod hashed;
mod inline;
pub mod layout;
mod limits;
mod log;
pub mod pointer;
pub mod record;
pub mod segment;
#[cfg(any(test, feature = "simulate"))]
pub mod simulate;

pub use hashed::HASHED;
pub use inline::INLINE;
pub use layout::{Collection, Descriptor, Validity, ValueLayout};
pub use limits::{LIMIT_FIELDS, LimitField, Parameters, ValueLimits};
pub use log::LOG;
pub use pointer::ValuePointer;
pub use record::{Record, SegmentPlace};

use base::{Error, Result};

/// Every layout there is.
pub fn registry() -> &'static [Descriptor] {
    &[INLINE, LOG, HASHED]
}

/// The layout of this name; an error that lists the names otherwise.
pub fn by_name(name: &str) -> Result<&'static Descriptor> {
    registry().iter().find(|descriptor| descriptor.name == name).ok_or_else(|| {
        let names: Vec<&str> = registry().iter().map(|descriptor| descriptor.name).collect();
        Error::invalid(format!("no value layout is called {name}; there are {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_found() {
        for descriptor in registry() {
            assert_eq!(by_name(descriptor.name).unwrap().name, descriptor.name);
            assert_eq!((descriptor.make)().name(), descriptor.name);
            for option in descriptor.options {
                let field = LIMIT_FIELDS.iter().find(|field| field.name == *option).unwrap();
                assert!(!field.value(&ValueLimits::default()).is_empty(), "{option}");
            }
        }
        assert!(by_name("nowhere").err().unwrap().message().contains("inline"));
    }
}
