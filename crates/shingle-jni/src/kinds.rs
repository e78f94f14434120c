//! The kinds of things that Java holds by handles, and the tables of these.

use crate::position::Position;
use bindings::{Handles, Kind};
use jni_sys::jlong;
use parking_lot::Mutex;
use shingle::{Result, Transaction};

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
    CURSORS: Mutex<Position> = 4, "cursor";
    TRANSACTIONS: Mutex<Option<Transaction>> = 5, "transaction";
    RESOURCES: shingle::Resources = 6, "set of resources";
}

/// A handle as Java holds it. It uses all bits, so it may be a number below zero in Java.
pub(crate) fn handle(java: jlong) -> usize {
    usize::try_from(java.cast_unsigned()).unwrap_or(0)
}

/// Puts a thing into its table, and gives the handle to Java.
pub(crate) fn given<T>(table: &Handles<T>, thing: T) -> Result<jlong> {
    Ok(table.insert(thing)?.get() as jlong)
}
