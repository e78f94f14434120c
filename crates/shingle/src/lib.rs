//! Under construction.

pub mod memtable;
