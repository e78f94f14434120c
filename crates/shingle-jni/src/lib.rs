//! The native part of the Java binding: what the class `org.shingle.Native` declares.
//!
//! Invariants:
//! - A function that fails has thrown a Java exception when it returns, and returns zero or null.
//! - Databases, keyspaces, snapshots, cursors, transactions and resources are handles, which are
//!   checked: one that is used after it was closed is an exception.
//! - No panic crosses, and Rust never calls a method of a program.
//! - The Java object that owns a handle is an argument of each function, so that the garbage
//!   collector does not close the handle during the call.
//! - `env` is the only file that trusts the Java machine and the memory that it gives.
#![allow(unsafe_code)] // names for Java; its memory is trusted in `env` alone
#![allow(non_snake_case)] // the names that Java looks for

pub mod batch;
pub mod cursor;
pub mod db;
pub mod env;
pub mod failure;
pub mod keyspace;
pub mod kinds;
pub mod options;
mod position;
pub mod read;
pub mod snapshot;
pub mod transaction;
pub mod write;
