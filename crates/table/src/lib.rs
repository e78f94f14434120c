//! Under construction.

pub mod batch;
pub mod log;
pub mod manifest;
