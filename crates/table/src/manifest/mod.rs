//! The manifest: a log (see [`crate::log`]) whose records are edits of the database, and the root
//! that names it. Tags and field order stand in docs/format/manifest.md.
//!
//! An edit is a version byte and tagged, length-delimited fields. A reader skips a field with an
//! unknown odd tag, which is optional, and refuses an edit with an unknown even one, which is
//! required.

mod decode;
mod encode;
mod root;
mod text;

#[cfg(test)]
mod tests;

pub use decode::decode_edit;
pub use encode::encode_edit;
pub use root::{ROOT_BYTES, Root, decode_root, encode_root};
pub use text::render_edit;

/// The version of edits that this program writes and reads.
const VERSION: u8 = 1;

/// Tags of an edit's fields. On disk: never reuse one.
mod edit_tag {
    pub const CREATED: u64 = 2;
    pub const DROPPED: u64 = 4;
    pub const KEYSPACE: u64 = 6;
    pub const NEXT_FILE: u64 = 8;
    pub const NEXT_RUN: u64 = 10;
    pub const LAST_SEQUENCE: u64 = 12;
    pub const LOG_FLOOR: u64 = 14;
    pub const NEXT_KEYSPACE: u64 = 16;
    pub const COLD_MARK: u64 = 18;
}

/// Tags of the changes of a keyspace. On disk: never reuse one.
mod change_tag {
    pub const FILE: u64 = 2;
    pub const ADD_RUN: u64 = 4;
    pub const ADD_NODE: u64 = 6;
    pub const REMOVE_NODE: u64 = 8;
    pub const PUSH_SLICES: u64 = 10;
    pub const REMOVE_SLICES: u64 = 12;
    pub const NARROW_SLICE: u64 = 14;
    pub const SET_RANGE: u64 = 16;
    pub const SET_CURSOR: u64 = 18;
    pub const SET_FLUSHED: u64 = 20;
    pub const ADD_SEGMENT: u64 = 22;
    pub const GROW_SEGMENT: u64 = 24;
    pub const BURY_VALUES: u64 = 26;
    pub const RETIRE_SEGMENT: u64 = 28;
    pub const REMOVE_SEGMENT: u64 = 30;
    pub const CONFIRM_SEGMENT: u64 = 32;
    pub const ALLOW_EXPIRY: u64 = 34;
    pub const ADD_EXPIRING_RUN: u64 = 36;
    pub const INGESTED_FILE: u64 = 38;
}
