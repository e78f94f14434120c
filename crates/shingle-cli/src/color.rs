//! Colours of help and errors: by the flag `--color`, the variables NO_COLOR, CLICOLOR and
//! CLICOLOR_FORCE, and whether the output is a terminal.

use crate::args::ColorWhen;
use anstream::ColorChoice;
use clap::ValueEnum;
use clap::builder::styling::{AnsiColor, Style};
use std::ffi::OsString;

/// The name of the command before an error.
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
/// The word before a remedy.
pub const HELP: Style = AnsiColor::Green.on_default();

/// Does as `--color` in the arguments says, for errors of the command line too: they are found
/// before its flags are read.
pub fn choose(arguments: &[OsString]) {
    let mut when = ColorWhen::Auto;
    let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(value) => value.strip_prefix('='),
            None if word == "--" => break,
            None => None,
        };
        when = value.and_then(|value| ColorWhen::from_str(value, false).ok()).unwrap_or(when);
    }
    let choice = match when {
        ColorWhen::Auto => ColorChoice::Auto,
        ColorWhen::Always => ColorChoice::Always,
        ColorWhen::Never => ColorChoice::Never,
    };
    choice.write_global();
}
