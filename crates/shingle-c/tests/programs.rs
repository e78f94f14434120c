//! C programs against the library, compiled here: as C99 and C++17, with all warnings as errors,
//! and under valgrind where it is installed.

#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text
}

/// Links in `folder` to the library, by the names that it has where it is installed. The library
/// that cargo built for this test stands beside the test.
fn install_library(folder: &Path) {
    let built = std::env::current_exe().unwrap().with_file_name("libshingle_c.so");
    assert!(built.exists(), "no {}", built.display());
    for name in ["libshingle.so", "libshingle.so.0"] {
        std::os::unix::fs::symlink(&built, folder.join(name)).unwrap();
    }
}

/// Compiles `tests/c/<name>`.
fn compiled(folder: &Path, name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join(name.replace('.', "-"));
    let (compiler, standard) = match name.ends_with(".cc") {
        true => ("c++", "-std=c++17"),
        false => ("cc", "-std=c99"),
    };
    install_library(folder);
    run(Command::new(compiler)
        .args([standard, "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O1"])
        .arg("-I")
        .arg(root.join("include"))
        .arg(root.join("tests/c").join(name))
        .arg("-o")
        .arg(&program)
        .arg(format!("-L{}", folder.display()))
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .args(["-lshingle", "-lpthread"]));
    program
}

fn has_valgrind() -> bool {
    let is_there = Command::new("valgrind").arg("--version").output().is_ok();
    if !is_there {
        println!("notice: there is no valgrind, so leaks were not looked for");
    }
    is_there
}

/// Runs a program, and again under valgrind: no leak, no access outside.
fn runs_clean(name: &str, arguments: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), name);
    let text = run(Command::new(&program).arg(folder.path().join("db")).args(arguments));
    assert!(text.ends_with("done\n"), "{text}");
    if has_valgrind() {
        run(Command::new("valgrind")
            .args(["--quiet", "--error-exitcode=9", "--leak-check=full"])
            .args(["--errors-for-leak-kinds=definite,indirect", "--fair-sched=try"])
            .arg(&program)
            .arg(folder.path().join("db-again"))
            .args(arguments));
    }
}

#[test]
fn every_function_does_what_it_says_and_leaks_nothing() {
    runs_clean("whole.c", &[]);
}

#[test]
fn threads_use_handles_while_another_closes_them() {
    runs_clean("threads.c", &[]);
}

#[test]
fn a_thousand_lives_keep_memory_and_open_files_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), "lives.c");
    let text = run(Command::new(&program).arg(folder.path().join("db")).arg("1000"));
    assert!(text.ends_with("done\n"), "{text}");
}

#[test]
fn damage_is_an_error_that_names_the_file_and_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (path, program) = (folder.path().join("db"), compiled(folder.path(), "damage.c"));
    let db = shingle::Options::new().open(&path).unwrap();
    for n in 0..1000 {
        db.put(format!("key{n:04}"), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    let table = db.files().into_iter().find(|file| file.name.ends_with(".table")).unwrap().name;
    db.close().unwrap();
    let table = path.join(table);
    let mut bytes = std::fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let text = run(Command::new(&program).arg(&path));
    assert!(text.ends_with("done\n"), "{text}");
}

#[test]
fn the_header_is_cxx_17_too() {
    let folder = tempfile::tempdir().unwrap();
    run(Command::new(compiled(folder.path(), "header.cc")).arg(folder.path().join("db")));
}
