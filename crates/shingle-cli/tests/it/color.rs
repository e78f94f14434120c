//! Colours of help and errors.

use crate::{Ran, Shell};

/// Help and an error, under some variables.
fn ran(arguments: &[&str], variables: &[(&str, &str)]) -> [bool; 2] {
    let shell = Shell::new();
    let is_coloured = |last: &str| {
        let mut command = shell.command();
        command.args(arguments).arg(last).envs(variables.iter().copied());
        let ran = Ran(command.output().expect("it runs"));
        let (out, err) = (ran.out(), ran.err());
        assert!(!(out.is_empty() && err.is_empty()));
        out.contains('\x1b') || err.contains('\x1b')
    };
    [is_coloured("--help"), is_coloured("check")]
}

#[test]
fn colours_follow_the_flag_first_and_then_the_variables() {
    const FORCE: (&str, &str) = ("CLICOLOR_FORCE", "1");
    const NONE: (&str, &str) = ("NO_COLOR", "1");
    assert_eq!(ran(&[], &[]), [false; 2], "no terminal");
    assert_eq!(ran(&[], &[FORCE]), [true; 2]);
    assert_eq!(ran(&[], &[FORCE, NONE]), [false; 2]);
    assert_eq!(ran(&["--color", "always"], &[]), [true; 2]);
    assert_eq!(ran(&["--color=always"], &[NONE]), [true; 2]);
    assert_eq!(ran(&["--color", "never"], &[FORCE]), [false; 2]);
    assert_eq!(ran(&["--color", "auto"], &[FORCE]), [true; 2]);
}

#[test]
fn results_and_json_have_no_colours() {
    let shell = Shell::new();
    let color = ["--color", "always"];
    shell.run(&[&color[..], &["put", "a", "b"]].concat()).ok();
    assert_eq!(shell.run(&[&color[..], &["scan"]].concat()).ok(), "a : b\n");
    shell.run(&[&color[..], &["--json", "get", "x"]].concat()).fails_as_json(127);
    assert_eq!(shell.run(&["--color", "pink", "scan"]).code(), 2);
}
