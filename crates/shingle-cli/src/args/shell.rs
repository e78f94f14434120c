//! The command line of `shell`, and that of each line inside it.

use super::data::DataCommand;
use super::{KeyspaceAction, LineArgs};
use clap::{Args, Parser, Subcommand};

#[derive(Args, Debug)]
pub struct ShellArgs {
    /// Only read, also where no process writes
    #[arg(long)]
    pub read_only: bool,
}

/// One line of a shell.
///
/// A word is a key or value as it stands. Quotes keep spaces; outside '...' a backslash escapes as
/// in the output of `scan`: \\ \t \n \r \xHH. A line that begins with # is a comment.
#[derive(Parser, Debug)]
#[command(no_binary_name = true, name = "", subcommand_required = true)]
pub struct Line {
    #[command(flatten)]
    pub flags: LineArgs,
    #[command(subcommand)]
    pub command: LineCommand,
}

/// The commands of a shell.
#[derive(Subcommand, Debug)]
pub enum LineCommand {
    #[command(flatten)]
    Data(DataCommand),
    /// List, create, drop or use keyspaces
    ///
    /// A keyspace is an ordered map with a name of its own. Batches are atomic across keyspaces.
    #[command(after_help = "\
Examples:
  keyspace list
  keyspace create users
  keyspace use users")]
    Keyspace(LineKeyspaceArgs),
    /// Use another keyspace in the following lines
    Use {
        /// Its name
        name: String,
    },
    /// Begin a batch
    ///
    /// Collects the following put, delete, delete-range and merge lines. `commit` writes them as
    /// one atomic batch, over all keyspaces; `discard` forgets them. Reads do not see a batch
    /// before its commit.
    #[command(after_help = "\
Examples:
  begin
  put apple red
  delete pear
  commit --sync")]
    Begin,
    /// Write the batch
    Commit {
        /// Return when the batch survives a power loss
        #[arg(long)]
        sync: bool,
    },
    /// Forget the batch
    Discard,
    /// Write what is in memory to tables
    Flush,
    /// Leave the shell
    #[command(visible_alias = "exit")]
    Quit,
}

#[derive(Args, Debug)]
pub struct LineKeyspaceArgs {
    #[command(subcommand)]
    pub action: LineKeyspaceAction,
}

#[derive(Subcommand, Debug)]
pub enum LineKeyspaceAction {
    #[command(flatten)]
    Plain(KeyspaceAction),
    /// Use a keyspace in the following lines
    Use {
        /// Its name
        name: String,
    },
}
