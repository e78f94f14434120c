//! The Java classes against the library that cargo built for this test: the suites in
//! `java/shingle` and `java/shingle-kafka-streams`, run by Maven.

#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![cfg(target_os = "linux")]

use shingle::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const INSTALL: &str = "install a JDK from 17 on and Maven: on Debian, \
                       `apt-get install openjdk-17-jdk-headless maven`";

fn java() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../java").canonicalize().unwrap()
}

fn project() -> PathBuf {
    java().join("shingle")
}

fn text(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Runs Maven on a project, with what it builds in a folder of its own.
fn maven(project: &Path, folder: &Path, offline: bool, options: &[&str]) -> Output {
    let library = std::env::current_exe().unwrap().with_file_name("libshingle_jni.so");
    assert!(library.exists(), "no {}", library.display());
    let native = folder.join("native");
    std::fs::create_dir_all(&native).unwrap();
    let link = native.join("libshingle_jni.so");
    if !link.exists() {
        std::os::unix::fs::symlink(&library, link).unwrap();
    }
    let mut command = Command::new("mvn");
    command.args(["--batch-mode", "--quiet"]).current_dir(project);
    if offline {
        command.arg("--offline");
    }
    command
        .arg(format!("-Dshingle.native={}", native.display()))
        .arg(format!("-Dshingle.build={}", folder.join("java").display()))
        .arg(format!("-Dshingle.kafka.build={}", folder.join("kafka").display()))
        .arg(format!("-Dshingle.platform=linux-{}", std::env::consts::ARCH))
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

/// The parts of file names between `start` and `end`, in order.
fn names(paths: &[PathBuf], start: &str, end: &str) -> Vec<String> {
    let names = paths.iter().filter_map(|path| path.file_name()?.to_str());
    let part = |name: &str| Some(name.strip_prefix(start)?.strip_suffix(end)?.to_string());
    let mut parts: Vec<String> = names.filter_map(part).collect();
    parts.sort();
    parts
}

/// The test classes of the sources of a project.
fn suites(package: &Path) -> Vec<String> {
    let sources = std::fs::read_dir(java().join(package)).unwrap();
    let sources: Vec<PathBuf> = sources.map(|source| source.unwrap().path()).collect();
    let suites = names(&sources, "", "Test.java");
    assert!(suites.len() >= 5, "{suites:?}");
    suites.iter().map(|suite| format!("{suite}Test")).collect()
}

/// Runs the tests of a project, and fails where one failed, was skipped or did not run.
fn passes(project: &Path, built: &str, package: (&str, &str), options: &[&str]) {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // With -Xcheck:jni the Java machine checks each call of its function table, and warns.
    let options = [&["-Dshingle.test.options=-Xcheck:jni"], options].concat();
    // Maven needs the network only the first time, for its plugins and what the code depends on.
    let mut output = maven(project, folder.path(), true, &options);
    if text(&output).contains("offline mode") {
        output = maven(project, folder.path(), false, &options);
    }
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("WARNING in native method"), "{text}");
    let reports: Vec<PathBuf> =
        std::fs::read_dir(folder.path().join(built).join("surefire-reports"))
            .unwrap()
            .map(|report| report.unwrap().path())
            .collect();
    let (start, sources) = package;
    let ran = names(&reports, &format!("TEST-{start}."), ".xml");
    assert_eq!(ran, suites(Path::new(sources)), "{text}");
    for path in reports.iter().filter(|path| path.to_string_lossy().ends_with(".xml")) {
        let report = std::fs::read_to_string(path).unwrap();
        assert!(report.contains(" skipped=\"0\"") && !report.contains(" tests=\"0\""), "{report}");
    }
    // What the machine itself prints goes to a file of its own.
    for path in reports.iter().filter(|path| path.to_string_lossy().ends_with(".dumpstream")) {
        let printed = std::fs::read_to_string(path).unwrap();
        assert!(!printed.contains("WARNING in native method"), "{printed}");
    }
}

#[test]
fn the_suite_passes() {
    let package = ("org.shingle", "shingle/src/test/java/org/shingle");
    passes(&project(), "java", package, &[]);
}

#[test]
fn the_stores_of_kafka_streams_pass_their_suite() {
    let package = ("org.shingle.kafka", "shingle-kafka-streams/src/test/java/org/shingle/kafka");
    // The classes of `java/shingle` are built with it, and the other test runs their tests.
    let only =
        ["--projects=shingle-kafka-streams", "--also-make", "-Dtest=org/shingle/kafka/*Test"];
    let options = [&only[..], &["-Dsurefire.failIfNoSpecifiedTests=false"]].concat();
    passes(&java(), "kafka", package, &options);
}

/// The names and numbers of the engine's kinds, from its source: it has no list of them.
fn kinds_of_the_engine() -> Vec<(String, u16)> {
    let path = project().join("../../crates/base/src/error.rs");
    let source = std::fs::read_to_string(path).unwrap();
    let code = source.split_once("pub fn code(self) -> u16 {").unwrap().1;
    let code = code.split_once("    }\n\n").unwrap().0;
    let arms = code.lines().filter_map(|line| line.trim().strip_prefix("ErrorKind::"));
    arms.map(|arm| {
        let (name, number) = arm.trim_end_matches(',').split_once(" => ").unwrap();
        (constant(name), number.parse().unwrap())
    })
    .collect()
}

/// `NotFound` as Java writes it: `NOT_FOUND`.
fn constant(name: &str) -> String {
    let mut constant = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !constant.is_empty() {
            constant.push('_');
        }
        constant.extend(letter.to_uppercase());
    }
    constant
}

#[test]
fn java_has_the_numbers_of_all_kinds_of_errors() {
    let path = project().join("src/main/java/org/shingle/ErrorKind.java");
    let source = std::fs::read_to_string(path).unwrap();
    let constants = source.lines().filter_map(|line| {
        let (name, number) = line.trim().trim_end_matches([',', ';']).split_once('(')?;
        let is_constant = name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
        let number = number.strip_suffix(')')?.parse().ok()?;
        is_constant.then(|| (name.to_string(), number))
    });
    let constants: Vec<(String, u16)> = constants.collect();
    let mut expected = kinds_of_the_engine();
    assert!(expected.contains(&("TOO_LATE".into(), ErrorKind::TooLate.code())), "{expected:?}");
    expected.push(("PANIC".into(), bindings::PANIC_CODE));
    expected.push(("UNKNOWN".into(), 0));
    assert_eq!(constants, expected);
}
