//! LevelDB's C interface, on Shingle: the 68 functions of `leveldb/c.h` with their rules.
//!
//! Invariants:
//! - An error is a text that `malloc` gave, at the place that the caller names; the one before it
//!   there is freed. Its begin is that of LevelDB's status: "IO error: ".
//! - Values and properties are memory of `malloc`, freed by `leveldb_free` or `free`.
//! - A database of LevelDB is never opened and never changed: the error names the import.
//! - No panic crosses: it is an error, or ends the process where a function has no place for one.
//!
//! LevelDB's rules ask callers not to use what they closed; here it is trusted, as there. The C++
//! interface in `cxx` builds on these functions.

#![allow(unsafe_code)] // names for C; memory from C is trusted in `memory` alone

mod batch;
mod db;
mod destroy;
mod iterator;
mod kinds;
mod memory;
mod options;
mod property;
mod repair;
mod sizes;
mod status;
