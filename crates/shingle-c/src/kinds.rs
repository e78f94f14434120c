//! The kinds of things that C holds by handles, and the tables of these.
//!
//! Each type here is only a name that tells handles apart in C: nothing of it is ever in memory.

use bindings::{Handles, Kind};
use parking_lot::Mutex;

/// An open database.
pub struct Db(());

/// A keyspace of an open database.
pub struct Keyspace(());

/// The state of a database at a moment.
pub struct Snapshot(());

/// A position in the keys of a keyspace.
pub struct Cursor(());

/// Operations that become visible and durable together.
pub struct Batch(());

/// Reads and writes that happen together or not at all.
pub struct Transaction(());

/// How to open a database.
pub struct Options(());

/// What several databases share.
pub struct Resources(());

macro_rules! tables {
    ($($table:ident: $thing:ty = $number:literal, $name:literal;)*) => {$(
        pub(crate) static $table: Handles<$thing> =
            Handles::new(Kind { number: $number, name: $name });
    )*};
}

tables! {
    DBS: shingle::Db = 1, "database";
    KEYSPACES: shingle::Keyspace = 2, "keyspace";
    SNAPSHOTS: shingle::Snapshot = 3, "snapshot";
    CURSORS: Mutex<shingle::Cursor> = 4, "cursor";
    BATCHES: Mutex<shingle::WriteBatch> = 5, "batch";
    TRANSACTIONS: Mutex<Option<shingle::Transaction>> = 6, "transaction";
    OPTIONS: Mutex<shingle::Options> = 7, "set of options";
    RESOURCES: shingle::Resources = 8, "set of resources";
}
