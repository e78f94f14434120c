//! Help that fits a screen: the paragraph of a command, one line for each argument, examples. And
//! errors of the command line as one sentence.

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

/// How an example begins outside a shell.
const BEFORE_LINE: &str = "shingle --db my.db ";

/// `command` with the examples as lines of a shell have them: without the database, and without
/// those that need the system's shell.
pub fn for_lines(command: Command) -> Command {
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let is_line = |line: &&str| !line.contains(" > ") && !line.contains(" | ");
    let lines: Vec<String> =
        examples.lines().filter(is_line).map(|line| line.replace(BEFORE_LINE, "")).collect();
    command.after_help(lines.join("\n")).mut_subcommands(for_lines)
}

/// What is wrong with a command line, without its usage.
pub fn message(error: &clap::Error) -> String {
    let text = error.render().to_string();
    // The usage and the pointer to the help are behind it.
    let is_message = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more");
    let lines = text.lines().take_while(is_message).map(str::trim);
    let message = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    message.trim_start_matches("error: ").to_string()
}
