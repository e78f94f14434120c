//! File stores: where the engine's bytes go. See [`store`] for the contract.

pub mod store;

pub use store::{
    AppendFile, FileHint, FileKind, FileName, FileStore, FileSummary, ReadFile, Space, StoreLock,
    SyncFile,
};
