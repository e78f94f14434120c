//! What a store may do beyond the contract of [`FileStore`](crate::FileStore), each as a trait of
//! its own. The engine looks for the capability and works without it: a store has the ones that its
//! medium offers.
//!
//! | capability | a store without it |
//! |---|---|
//! | [`Notes`] | keeps no event log and no list of options |
//! | [`Capacity`] | is full when an append is refused, and keeps no reserve |
//! | [`DeviceMap`] | events and pictures do not say where files lie |
//! | [`Sharing`] | checkpoints copy its files |
//! | [`ColdStore`] | keeps cold values among all others |

use crate::names::FileName;
use base::{DatabaseId, Result};
use std::ops::Range;
use std::path::Path;

/// Small named texts beside the files (options, event log): never needed to open, and never
/// promised to be durable. A name is a plain file name; see
/// [`check_note_name`](crate::check_note_name).
pub trait Notes {
    /// Appends `bytes` to the note `name`, or replaces the note whole.
    fn write_note(&self, name: &str, bytes: &[u8], append: bool) -> Result<()>;

    /// Reads a note back; `None` if there is none.
    fn read_note(&self, name: &str) -> Result<Option<Vec<u8>>>;
}

/// Space on the medium, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes on the medium.
    pub total_bytes: u64,
    /// Bytes that can still be written.
    pub free_bytes: u64,
}

/// The space of the medium.
pub trait Capacity {
    /// Space on the medium; `None` where it is unknown.
    fn space(&self) -> Option<Space>;

    /// Keeps about `bytes` of the medium free, in place of what was kept free before: appends that
    /// find no other space are refused. 0 gives the space back. `false` where the store cannot.
    /// `NoSpace`, and nothing changes, where the medium has not as much. A store may keep the space
    /// free while it is closed.
    fn set_reserve(&self, bytes: u64) -> Result<bool> {
        let _ = bytes;
        Ok(false)
    }
}

/// Where files lie on a device: for pictures and the event log.
pub trait DeviceMap {
    /// Where bytes `range` of a file lie on the device, in their order. Nothing where the store
    /// does not know.
    fn places(&self, name: FileName, range: Range<u64>) -> Vec<Range<u64>>;
}

/// How much of a file another directory gets; see [`Sharing::share`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All that it has.
    Whole,
    /// At least this many bytes. Bytes beyond them are included where the file is linked.
    AtLeast(u64),
    /// The first bytes, exactly this many: always a copy.
    Exactly(u64),
}

impl Part {
    /// The bytes of a copy of a file that has `bytes`.
    pub fn of(self, bytes: u64) -> u64 {
        match self {
            Part::Whole => bytes,
            Part::AtLeast(part) | Part::Exactly(part) => part,
        }
    }
}

/// A store whose files are in a directory of the operating system, under their own names.
pub trait Sharing {
    /// The directory.
    fn directory(&self) -> &Path;

    /// Gives the directory `target` a file `name` with `part` of ours, durably but for its name.
    /// The file is shared (a hard link) where that changes nothing for either side. It is a copy
    /// while it is being written, for [`Part::Exactly`], from a read-only store, and where the file
    /// systems cannot link.
    fn share(&self, name: FileName, target: &Path, part: Part) -> Result<()>;

    /// Takes the file at `path`, outside of every store, in as `name`, durably but for its name:
    /// as a hard link, so that no byte is copied. `false`, and no change, where the file systems
    /// have no links between them.
    fn adopt(&self, path: &Path, name: FileName) -> Result<bool>;
}

/// A second store for files that were created with [`FileHint::is_cold`](crate::FileHint::is_cold).
pub trait ColdStore {
    /// The file is there.
    fn is_cold(&self, name: FileName) -> bool;

    /// Space there; `None` where it is unknown.
    fn cold_space(&self) -> Option<Space>;

    /// `true`: it is the cold store of `owner`. `false`: it can become that. It holds no file, or
    /// those of the owner's database from before there were marks. `InvalidArgument` otherwise.
    /// Writes nothing.
    fn check_owner(&self, owner: ColdOwner) -> Result<bool>;

    /// Makes `owner` the owner, as far as [`ColdStore::check_owner`] allows. Durable when it
    /// returns, also if `owner` was the owner before.
    fn own(&self, owner: ColdOwner) -> Result<()>;
}

/// Whose a cold store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColdOwner {
    /// Copies of a database (checkpoints, restored backups) have its number too.
    pub database: DatabaseId,
    /// Only one of the copies has this number, in its manifest. `None`: it has had no cold store,
    /// or one from before there were marks.
    pub mark: Option<u64>,
}
