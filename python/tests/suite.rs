//! The tests of the package, as `cargo test` runs them: pytest on the library that cargo built, and
//! the commands and programs of README.md, in a virtual environment of their own.

#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A virtual environment with what the tests need, made once. Where there is no Python, a notice
/// says so; `SHINGLE_TEST_LANGUAGES` makes it an error.
fn environment() -> Option<&'static Path> {
    static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let make = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
        let made = Command::new("python3").args(["-m", "venv"]).arg(&folder).output();
        if !made.as_ref().is_ok_and(|output| output.status.success()) {
            let install = "install Python 3 with venv: on Debian, `apt-get install python3-venv`";
            println!("notice: the Python package was not tested: {install}: {made:?}");
            assert!(std::env::var_os("SHINGLE_TEST_LANGUAGES").is_none(), "{install}");
            return None;
        }
        let requirements = package().join("tests/requirements.txt");
        run(Command::new(folder.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check", "-r"])
            .arg(requirements));
        Some(folder)
    };
    MADE.get_or_init(make).as_deref()
}

fn python(environment: &Path) -> Command {
    let mut command = Command::new(environment.join("bin/python"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("MPLBACKEND", "Agg");
    command
}

/// The package with the library that cargo built for this test, which stands beside the test.
fn built() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("shingle");
    std::fs::create_dir(&made).unwrap();
    for entry in std::fs::read_dir(package().join("shingle")).unwrap() {
        let from = entry.unwrap().path();
        if from.is_file() {
            std::fs::copy(&from, made.join(from.file_name().unwrap())).unwrap();
        }
    }
    let library = std::env::current_exe().unwrap().with_file_name("lib_shingle.so");
    assert!(library.exists(), "no {}", library.display());
    std::os::unix::fs::symlink(library, made.join("_shingle.abi3.so")).unwrap();
    folder
}

#[test]
fn pytest_passes() {
    let Some(environment) = environment() else { return };
    let folder = built();
    let text = run(python(environment)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(package().join("tests"))
        .env("PYTHONPATH", folder.path())
        .current_dir(folder.path()));
    assert!(text.contains(" passed"), "{text}");
}

/// Valgrind sees memory that Python gives only where it comes from malloc. Its report has errors of
/// the interpreter too, so `ours.py` tells those of the library.
#[test]
fn threads_use_no_memory_that_another_has_freed() {
    let Some(environment) = environment() else { return };
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("notice: there is no valgrind, so accesses to freed memory were not looked for");
        return;
    }
    let (library, folder) = (built(), tempfile::tempdir().unwrap());
    let programs = package().join("../crates/bindings/sanitize");
    let report = folder.path().join("report.xml");
    let text = run(Command::new("valgrind")
        .args(["--xml=yes", "--error-limit=no", "--num-callers=40", "--fair-sched=try"])
        .args(["--leak-check=full", "--show-leak-kinds=definite"])
        .arg(format!("--xml-file={}", report.display()))
        .arg(environment.join("bin/python"))
        .arg(programs.join("threads.py"))
        .arg(folder.path())
        .env("PYTHONPATH", library.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONMALLOC", "malloc"));
    assert!(text.ends_with("done\n"), "{text}");
    run(python(environment).arg(programs.join("ours.py")).arg(report).arg("_shingle"));
}

/// The blocks of README.md in a language.
fn blocks(language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(package().join("README.md")).unwrap();
    let parts = text.split("```").skip(1).step_by(2);
    let of_language = |part: &str| Some(part.strip_prefix(language)?.strip_prefix('\n')?.into());
    parts.filter_map(of_language).collect()
}

#[test]
fn the_readme_installs_the_package_and_its_programs_run() {
    let Some(environment) = environment() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::var("PATH").unwrap();
    let bin = environment.join("bin");
    for block in blocks("sh") {
        run(Command::new("sh")
            .args(["-ec", &block])
            .env("PATH", format!("{}:{path}", bin.display()))
            .current_dir(package().join("..")));
    }
    let programs = blocks("python");
    assert!(!programs.is_empty());
    for program in programs {
        run(python(environment).args(["-c", &program]).current_dir(folder.path()));
    }
}

/// The code of a notebook, cell after cell, without the lines that only a notebook has.
fn code(notebook: &Path) -> String {
    let text = std::fs::read_to_string(notebook).unwrap();
    let notebook: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cells = notebook["cells"].as_array().unwrap().iter();
    let lines = cells.filter(|cell| cell["cell_type"] == "code").flat_map(|cell| {
        let source = cell["source"].as_array().unwrap().iter();
        source.map(|line| line.as_str().unwrap().trim_end().to_string()).collect::<Vec<_>>()
    });
    lines.filter(|line| !line.starts_with('%')).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_notebook_draws_its_picture() {
    let Some(environment) = environment() else { return };
    let (library, folder) = (built(), tempfile::tempdir().unwrap());
    let program = code(&package().join("examples/schemes.ipynb"));
    run(python(environment)
        .args(["-c", &program])
        .env("PYTHONPATH", library.path())
        .current_dir(&folder));
    let picture = std::fs::read(folder.path().join("schemes.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 10_000);
}
