//! The arguments of `backup`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What to do with a directory of backups.
#[derive(Args, Debug)]
pub struct BackupArgs {
    /// The step.
    #[command(subcommand)]
    pub step: BackupStep,
}

/// The steps of `backup`.
#[derive(Subcommand, Debug)]
pub enum BackupStep {
    /// Add a backup of the database to a directory
    Create(BackupDirectory),
    /// List the backups in a directory
    List(Kept),
    /// Read all files of a backup and compare them with what was stored
    Verify(VerifyArgs),
    /// Write the database of a backup to a new directory
    Restore(RestoreArgs),
    /// Remove old backups, and the files that only they needed
    Prune(PruneArgs),
}

/// A directory of backups.
#[derive(Args, Debug)]
pub struct BackupDirectory {
    /// The directory of backups
    pub directory: PathBuf,
}

/// The backups of one database, or all that a directory has.
#[derive(Args, Debug)]
pub struct Kept {
    /// The directory of backups
    pub directory: PathBuf,
    /// Of the backups of several databases, only those of this one: its 16 hex digits in
    /// `backup list`
    #[arg(long, value_parser = database)]
    pub database: Option<u64>,
}

fn database(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16)
        .map_err(|_| "no 16 hex digits, as `backup list` shows them".into())
}

/// Which backup to verify.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// Where it is.
    #[command(flatten)]
    pub kept: Kept,
    /// Its number; default: the newest
    #[arg(long)]
    pub number: Option<u64>,
}

/// Which backup to restore, and where.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// Where it is.
    #[command(flatten)]
    pub kept: Kept,
    /// The new database
    pub target: PathBuf,
    /// Its number; default: the newest
    #[arg(long)]
    pub number: Option<u64>,
    /// The newest one taken at this time or before, in seconds since 1970
    #[arg(long, conflicts_with = "number")]
    pub at: Option<u64>,
}

/// Which backups stay.
#[derive(Args, Debug)]
pub struct PruneArgs {
    /// Where they are.
    #[command(flatten)]
    pub kept: Kept,
    /// How many of the newest stay
    #[arg(long, default_value_t = 7)]
    pub keep: usize,
}
