//! The models of drives.

pub mod ssd;
