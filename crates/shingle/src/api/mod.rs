//! The public interface: handles that are cheap to clone and `Send + Sync`, and owned values.
//!
//! Nothing here decides anything: calls are checked, timed and handed to the engine.

mod batch;
mod changes;
mod cursor;
mod db;
mod default;
mod directory;
mod expiry;
mod follower;
mod ingest;
mod keyspaces;
mod maintenance;
mod property;
mod reads;
mod report;
mod snapshot;
#[cfg(any(test, feature = "testing"))]
#[expect(clippy::missing_errors_doc, reason = "for tests, which expect no error")]
mod testing;

pub use batch::WriteBatch;
pub(crate) use batch::of_another_database;
pub use changes::{Change, Changes, ChangesOptions, Operation, Since};
pub use cursor::{Cursor, Iter, ReadOptions};
pub use db::{Db, Keyspace, WriteOptions};
pub use directory::destroy;
pub use follower::Follower;
pub use maintenance::{check_closed, check_store};
pub use snapshot::{Pins, Snapshot};
