//! The command line of `completions` and `man`.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

/// Below the help of `completions`.
pub const COMPLETIONS_HELP: &str = "\
Examples:
  shingle completions bash > ~/.local/share/bash-completion/completions/shingle
  shingle completions zsh > ~/.zfunc/_shingle
  shingle completions fish > ~/.config/fish/completions/shingle.fish";

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

#[derive(Args, Debug)]
pub struct ManArgs {
    /// Where the pages go: a directory, made where it is missing
    pub directory: Option<PathBuf>,
}
