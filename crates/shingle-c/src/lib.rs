//! The C interface: `libshingle`, with the header `include/shingle.h`.
//!
//! Invariants:
//! - A function that can fail returns 0 or the code of its error, and takes the place for the error
//!   last. The place may be null.
//! - Databases, keyspaces, snapshots, cursors, batches, transactions, options and resources are
//!   handles, which are checked: one that is used after it was closed is an error.
//! - Errors, values, chunks and texts are memory that the caller frees once.
//! - No panic crosses.
//! - What comes in as memory is trusted to be what its type says; `arguments` is the only place
//!   that does so.
//!
//! `cbindgen.toml` describes the header; a test says whether the header is current.
#![allow(unsafe_code)] // names for C; memory from C is trusted in `arguments` alone

pub mod arguments;
pub mod batch;
pub mod cursor;
pub mod db;
pub mod failure;
pub mod keyspace;
pub mod kinds;
pub mod options;
pub mod read;
pub mod snapshot;
pub mod transaction;
pub mod write;
