//! A range of keys on the command line: the same flags, with the same meaning, in every command
//! that takes one.

use clap::Args;
use std::ffi::OsString;

/// The keys that a command works on: all of them where no flag is given.
#[derive(Args, Debug, Default)]
pub struct RangeArgs {
    /// The first key
    #[arg(long, value_name = "KEY")]
    pub from: Option<OsString>,
    /// The first key after the range
    #[arg(long, value_name = "KEY")]
    pub to: Option<OsString>,
    /// Only keys that start with this
    #[arg(long, conflicts_with_all = ["from", "to"])]
    pub prefix: Option<OsString>,
}

impl RangeArgs {
    /// No flag was given.
    pub fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.prefix.is_none()
    }
}

/// How many records of a range, and in which order.
#[derive(Args, Debug, Default)]
pub struct OrderArgs {
    /// Maximum number of records
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Go from the last key to the first
    #[arg(long)]
    pub reverse: bool,
}
