//! What README.md shows is done here: its commands build and install the libraries, and its program
//! is compiled and run, with strings of both types.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod leveldb;

use std::path::Path;
use std::process::Command;

/// The only block of README.md in a language.
fn block(language: &str) -> String {
    let text = include_str!("../README.md");
    let parts = text.split("```").skip(1).step_by(2);
    let mut blocks =
        parts.filter_map(|part| part.strip_prefix(language)?.strip_prefix('\n').map(String::from));
    let block = blocks.next().unwrap();
    assert_eq!(blocks.next(), None);
    block
}

/// Runs a script in the repository, and gives what it printed.
fn run(script: &str, folder: &Path) -> String {
    let output = leveldb::command("sh")
        .args(["-euc", script])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env("FOLDER", folder)
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{out}\n{err}");
    out
}

#[test]
fn the_commands_of_the_readme_run_a_program_on_shingle() {
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path();
    std::fs::write(inside.join("fruit.cc"), block("cpp")).unwrap();
    let script = block("sh").replace("fruit.cc", "\"$FOLDER/fruit.cc\"");
    let script = script.replace("-o fruit", "-o \"$FOLDER/fruit\"");
    let script =
        script.replace("target/leveldb/bin", "cd \"$FOLDER\"; \"$OLDPWD\"/target/leveldb/bin");
    assert!(run(&script, inside).ends_with("red\n"));
    let root = std::fs::read(inside.join("fruit.db/CURRENT")).unwrap();
    assert!(root.starts_with(b"SHINGLE\0"), "{root:?}");

    let old = "installed=$PWD/target/leveldb; with=$installed/bin/with-shingle
        cd \"$FOLDER\"; rm -r fruit.db
        g++ -D_GLIBCXX_USE_CXX11_ABI=0 fruit.cc -o old \\
            \"$installed/lib/shingle/leveldb-old-abi/libleveldb.so.1d\"
        \"$with\" --old-abi ./old; \"$with\" --help";
    let text = run(old, inside);
    assert!(text.starts_with("red\nusage: with-shingle "), "{text}");
    let root = std::fs::read(inside.join("fruit.db/CURRENT")).unwrap();
    assert!(root.starts_with(b"SHINGLE\0"), "{root:?}");
}

#[test]
fn wrong_calls_of_with_shingle_say_what_is_wrong() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("with-shingle");
    let said = |arguments: &[&str]| {
        let output = Command::new(&script).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = said(&["--unknown"]);
    assert!(code == Some(2) && text.contains("no option --unknown"), "{text}");
    let (code, text) = said(&[]);
    assert!(code == Some(2) && text.starts_with("usage: "), "{text}");
    let (code, text) = said(&["true"]);
    assert!(code == Some(1) && text.contains("is missing: build it with"), "{text}");
}
