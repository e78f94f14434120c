//! Help that fits a screen: the paragraph of a command, one line for each argument, examples.

use clap::{Arg, ArgAction, Command};

const TEMPLATE: &str = "{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// `command` and everything below it with one kind of help, `-h` and `--help` alike. A command's
/// long description stands first; arguments take a line each.
pub fn compact(command: Command) -> Command {
    let long = command.get_long_about().or(command.get_about()).cloned();
    let help =
        Arg::new("help").short('h').long("help").action(ArgAction::HelpShort).help("Print help");
    let mut command = command.disable_help_flag(true).arg(help).help_template(TEMPLATE);
    if let Some(long) = long {
        command = command.before_help(long);
    }
    command.mut_subcommands(compact)
}
