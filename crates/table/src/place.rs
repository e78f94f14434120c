//! Where the pieces of a table file are, as their checksums know it.
//!
//! A checksum covers database, file, offset and kind of its piece, so that bytes of another place
//! never pass for the ones that were asked for.

use base::checksum::Place;
use base::{DatabaseId, FileId};

/// Which file of which database; part of every checksum in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TablePlace {
    /// The database.
    pub database: DatabaseId,
    /// The file.
    pub file: FileId,
}

impl TablePlace {
    /// The table file `file` of `database`, as its checksums know it.
    pub fn of(file: &tree::FileRef, database: DatabaseId) -> TablePlace {
        let own = TablePlace { database, file: file.id };
        file.identity.map_or(own, TablePlace::of_sorted)
    }

    /// A sorted file of this identity, which stands in the place of the database. Its number is 0,
    /// which no table of a database has.
    pub fn of_sorted(identity: DatabaseId) -> TablePlace {
        TablePlace { database: identity, file: FileId(0) }
    }

    /// The place of a piece in this file, for its checksum.
    pub(crate) fn at(self, offset: u64, kind: u8) -> Place {
        Place { database: self.database, file: self.file, offset, kind }
    }
}
