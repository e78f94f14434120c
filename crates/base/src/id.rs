//! Identifiers, each a type of its own so that one cannot be taken for another.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A random number drawn when a database is created; part of every checksum in it, so that a
    /// block of another database is never taken for one of this.
    DatabaseId(u64)
);
id!(
    /// The number of a file; never given twice in the life of a database.
    FileId(u64)
);
id!(
    /// The number of a run; never given twice in the life of a database.
    RunId(u64)
);
id!(
    /// The number of a keyspace; never given twice in the life of a database. 0 is the default.
    KeyspaceId(u32)
);
