//! Value layouts: where large values go, how they lie there, and what garbage collection takes next.
//!
//! - [`layout`]: the contract of layouts, and their registry. [`INLINE`], [`LOG`], [`HASHED`].
//! - [`pointer`], [`record`]: what stands in the tree, and in a segment.
//! - [`segment`]: writing, reading and scanning the files.
//!
//! Layouts are pure; [`segment`] is the one module with I/O. What a version knows of segments is in
//! [`tree::segments`].

mod hashed;
mod inline;
pub mod layout;
mod log;
pub mod pointer;
pub mod record;
pub mod segment;
#[cfg(any(test, feature = "simulate"))]
pub mod simulate;

pub use hashed::HASHED;
pub use inline::INLINE;
pub use layout::{Collection, Descriptor, Validity, ValueLayout, ValueLimits, by_name, registry};
pub use log::LOG;
pub use pointer::ValuePointer;
pub use record::{Record, SegmentPlace};
