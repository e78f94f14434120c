//! What the bindings of all languages need: handles that are checked, panics that become errors,
//! paths by their bytes, and scans that cross the boundary once for many entries.
//!
//! Invariants:
//! - A handle that was closed, was never given, or belongs to a thing of another kind is an error,
//!   whatever another thread does with it.
//! - No panic leaves [`guarded`].
//! - This crate knows no language: it has no types of C, Python or Java.

mod chunk;
mod guard;
mod handles;
mod path;

pub use chunk::{Chunk, Entries, fill, split_entry};
pub use guard::{Failure, PANIC_CODE, guarded};
pub use handles::{Handles, Kind, Pinned};
pub use path::path;
