//! What README.md shows is done here: its commands build and install the library, and its program
//! is compiled and run.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

/// The blocks of README.md in a language.
fn blocks(language: &str) -> Vec<String> {
    let text = include_str!("../README.md");
    let parts = text.split("```").skip(1).step_by(2);
    parts
        .filter_map(|part| part.strip_prefix(language)?.strip_prefix('\n'))
        .map(Into::into)
        .collect()
}

#[test]
fn the_commands_of_the_readme_build_a_program_that_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    let (programs, commands) = (blocks("c"), blocks("sh"));
    assert_eq!((programs.len(), commands.len()), (1, 1));
    std::fs::write(folder.path().join("fruit.c"), &programs[0]).unwrap();
    let commands = commands[0].replace("fruit.c", "\"$FOLDER/fruit.c\"");
    let commands = commands.replace("-o fruit", "-o \"$FOLDER/fruit\"");
    let script = format!("set -eu\n{}\ncd \"$FOLDER\"\n./fruit\n./fruit\n", commands);
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(root)
        .env("FOLDER", folder.path())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && out.ends_with("red\nred\n"), "{out}\n{err}");
}
