//! The Java classes against the library that cargo built for this test: the suite in
//! `java/shingle`, run by Maven.

#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![cfg(target_os = "linux")]

use shingle::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const INSTALL: &str = "install a JDK from 17 on and Maven: on Debian, \
                       `apt-get install openjdk-17-jdk-headless maven`";

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../java/shingle").canonicalize().unwrap()
}

fn text(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Runs Maven on the suite, with what it builds in a folder of its own.
fn suite(folder: &Path, offline: bool, options: &[&str]) -> Output {
    let library = std::env::current_exe().unwrap().with_file_name("libshingle_jni.so");
    assert!(library.exists(), "no {}", library.display());
    let native = folder.join("native");
    std::fs::create_dir_all(&native).unwrap();
    let link = native.join("libshingle_jni.so");
    if !link.exists() {
        std::os::unix::fs::symlink(&library, link).unwrap();
    }
    let mut command = Command::new("mvn");
    command.args(["--batch-mode", "--quiet"]).current_dir(project());
    if offline {
        command.arg("--offline");
    }
    command
        .arg(format!("-Dshingle.native={}", native.display()))
        .arg(format!("-Dshingle.build={}", folder.display()))
        .args(options)
        .arg("test")
        .output()
        .unwrap_or_else(|error| panic!("mvn: {error}: {INSTALL}"))
}

/// Whether the suite can run. Where it cannot, a notice says so; `SHINGLE_TEST_LANGUAGES` makes it
/// an error.
fn has_tools() -> bool {
    let runs = |program: &str, version: &str| {
        Command::new(program).arg(version).output().is_ok_and(|output| output.status.success())
    };
    let has_tools = runs("javac", "-version") && runs("mvn", "--version");
    if !has_tools {
        println!("notice: the Java classes were not tested: {INSTALL}");
        assert!(std::env::var_os("SHINGLE_TEST_LANGUAGES").is_none(), "{INSTALL}");
    }
    has_tools
}

#[test]
fn the_suite_passes() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // With -Xcheck:jni the Java machine checks each call of its function table, and warns.
    let options = ["-Dshingle.test.options=-Xcheck:jni"];
    // Maven needs the network only the first time, for its plugins and JUnit.
    let mut output = suite(folder.path(), true, &options);
    if text(&output).contains("offline mode") {
        output = suite(folder.path(), false, &options);
    }
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("WARNING in native method"), "{text}");
    let reports: Vec<PathBuf> = std::fs::read_dir(folder.path().join("surefire-reports"))
        .unwrap()
        .map(|report| report.unwrap().path())
        .collect();
    let suites = reports.iter().filter(|path| path.to_string_lossy().ends_with("Test.xml"));
    assert!(suites.count() >= 5, "{text}");
    // What the machine itself prints goes to a file of its own.
    for path in reports.iter().filter(|path| path.to_string_lossy().ends_with(".dumpstream")) {
        let printed = std::fs::read_to_string(path).unwrap();
        assert!(!printed.contains("WARNING in native method"), "{printed}");
    }
}

#[test]
fn java_has_the_numbers_of_all_kinds_of_errors() {
    let path = project().join("src/main/java/org/shingle/ErrorKind.java");
    let source = std::fs::read_to_string(path).unwrap();
    let kinds = [
        ("INVALID_ARGUMENT", ErrorKind::InvalidArgument),
        ("NOT_FOUND", ErrorKind::NotFound),
        ("ALREADY_EXISTS", ErrorKind::AlreadyExists),
        ("CORRUPTION", ErrorKind::Corruption),
        ("IO", ErrorKind::Io),
        ("NO_SPACE", ErrorKind::NoSpace),
        ("POISONED", ErrorKind::Poisoned),
        ("WOULD_WAIT", ErrorKind::WouldWait),
        ("LOCKED", ErrorKind::Locked),
        ("INCOMPATIBLE", ErrorKind::Incompatible),
        ("CLOSED", ErrorKind::Closed),
        ("UNSUPPORTED", ErrorKind::Unsupported),
        ("CANCELLED", ErrorKind::Cancelled),
        ("SHARED", ErrorKind::Shared),
        ("CONFLICT", ErrorKind::Conflict),
        ("TOO_LATE", ErrorKind::TooLate),
    ];
    for (name, kind) in kinds {
        let line = format!("    {name}({}),", kind.code());
        assert!(source.lines().any(|found| found == line), "{line}");
    }
    assert!(source.contains(&format!("PANIC({})", bindings::PANIC_CODE)));
}
