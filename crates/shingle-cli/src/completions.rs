//! `completions`: scripts for shells from the definitions of the command line.
//!
//! The generator knows flags and fixed values. The names of keyspaces are known to the database
//! alone, so the scripts ask the command for them. A name that a shell could take for code is not
//! offered.

use crate::args::Cli;
use crate::args::output::CompletionsArgs;
use crate::context::Context;
use crate::failure::Outcome;
use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::Shell;

/// A kind of value that no argument of ours has: in its place go the keyspaces.
const HINT: ValueHint = ValueHint::Username;

/// What the generators write for [`HINT`], and what takes its place. In bash, the only value is a
/// call that the shell expands.
const BASH_CALL: &str = "$(_shingle_keyspaces)";
const ZSH_CALL: [&str; 2] = [":_users'", ":_shingle_keyspaces'"];
const FISH_CALL: [&str; 2] = ["(__fish_complete_users)", "(__shingle_keyspaces)"];

/// Keyspaces of the database that the command line names so far.
const BASH: &str = r#"
_shingle_keyspaces() {
    local at db=
    for ((at = 1; at < COMP_CWORD; at++)); do
        if [[ ${COMP_WORDS[at]} == --db ]]; then
            db=${COMP_WORDS[at + 1]}
            [[ $db == = ]] && db=${COMP_WORDS[at + 2]}
        fi
    done
    "${COMP_WORDS[0]}" ${db:+--db "${db/#\~/$HOME}"} --quiet keyspace list 2>/dev/null |
        grep -xE '[A-Za-z0-9_.:/-]+'
}
"#;
const ZSH: &str = r#"
_shingle_keyspaces() {
    local at db
    local -a line names
    line=(${(z)BUFFER})
    for ((at = 2; at < $#line; at++)); do
        case $line[at] in
            --db) db=$line[at+1] ;;
            --db=*) db=${line[at]#--db=} ;;
        esac
    done
    line[1]=${~${(Q)line[1]}}
    [[ -n $db ]] && db=--db=${~${(Q)db}}
    names=(${(f)"$($line[1] $db --quiet keyspace list 2>/dev/null)"})
    compadd -a names
}
"#;
const FISH: &str = r#"
function __shingle_keyspaces
    set -l words (commandline -opc)
    set -l db
    for at in (seq 2 (count $words))
        switch $words[$at]
            case --db
                set db --db=$words[(math $at + 1)]
            case '--db=*'
                set db $words[$at]
        end
    end
    if set -q db[1]
        set db (string replace -r -- '^--db=~' "--db=$HOME" $db)
    end
    set -l program (string replace -r -- '^~' $HOME $words[1])
    $program $db --quiet keyspace list 2>/dev/null
end
complete -c shingle -f -a "(__shingle_keyspaces)" \
    -n "__fish_shingle_using_subcommand keyspace; and __fish_seen_subcommand_from drop"
"#;

/// `shingle completions`.
pub fn completions(context: &mut Context, args: &CompletionsArgs) -> Outcome {
    Ok(context.out.write_all(script(args.shell).as_bytes())?)
}

/// The command without what is internal, which the generators would offer.
fn shown() -> Command {
    let whole = Cli::command();
    let commands = whole.get_subcommands().filter(|command| !command.is_hide_set());
    Command::new("shingle")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .args(whole.get_arguments())
        .subcommands(commands.cloned())
}

fn script(shell: Shell) -> String {
    let of_keyspaces = |argument: Arg| match shell {
        Shell::Bash => argument.value_parser([BASH_CALL]),
        _ => argument.value_hint(HINT),
    };
    let mut command = shown().mut_arg("keyspace", of_keyspaces).mut_subcommand(
        "keyspace",
        |keyspace: Command| {
            keyspace.mut_subcommand("drop", |drop| drop.mut_arg("name", of_keyspaces))
        },
    );
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "shingle", &mut script);
    let script = String::from_utf8_lossy(&script);
    match shell {
        Shell::Bash => format!("{script}{BASH}"),
        // The first line tells zsh what the file completes.
        Shell::Zsh => match script.split_once('\n') {
            Some((first, rest)) => {
                format!("{first}\n{ZSH}{}", rest.replace(ZSH_CALL[0], ZSH_CALL[1]))
            }
            None => script.into_owned(),
        },
        Shell::Fish => format!("{}{FISH}", script.replace(FISH_CALL[0], FISH_CALL[1])),
        _ => script.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_knows_keyspaces_and_hides_what_is_internal() {
        for (shell, call) in [
            (Shell::Bash, "compgen -W \"$(_shingle_keyspaces)\""),
            (Shell::Zsh, ZSH_CALL[1]),
            (Shell::Fish, FISH_CALL[1]),
        ] {
            let script = script(shell);
            // After the flag of each command.
            assert!(script.matches(call).count() > 20, "{shell}");
            for left in [ZSH_CALL[0], FISH_CALL[0], "crash-writer"] {
                assert!(!script.contains(left), "{shell}: {left}");
            }
        }
    }
}
