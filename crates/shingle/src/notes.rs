//! The notes of a database: small texts beside its files, for people or for speed. No opening needs
//! one. Every note has its name here, so that whoever removes a database knows its files.

/// The options of the last opening.
pub(crate) const OPTIONS: &str = "OPTIONS";
/// Events, and those before when it was full.
pub(crate) const LOG: &str = "LOG";
pub(crate) const OLD_LOG: &str = "LOG.old";
/// A measured separation threshold.
pub(crate) const THRESHOLD: &str = "THRESHOLD";

/// All of them.
pub(crate) const ALL: [&str; 4] = [OPTIONS, LOG, OLD_LOG, THRESHOLD];
