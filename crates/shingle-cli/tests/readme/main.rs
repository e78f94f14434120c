//! What the README and the manual show is what happens: the README's Rust example is compiled and
//! run, and every shell block is run with the built command.

mod example {
    #![allow(clippy::print_stdout)]
    include!("example.rs");

    /// The example under a name that can be called from here.
    pub fn run() -> shingle::Result<()> {
        main()
    }
}

use std::path::Path;
use std::process::Command;

const README: &str = include_str!("../../../../README.md");
const EXAMPLE: &str = include_str!("example.rs");
const MANUAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/manual");
/// A database that LevelDB made, for the page that imports one.
const OF_LEVELDB: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../foreign/tests/data/snappy.leveldb");
const OF_ROCKSDB: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../foreign/tests/data/rocksdb/families.rocksdb");
/// Lines that build the command; here it is built.
const BUILDS: [&str; 4] = ["cargo test", "cargo install", "cargo build", "export PATH="];

/// The code blocks of `language`.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let parts = text.split(fence.as_str()).skip(1);
    parts.map(|part| part.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn the_rust_example_is_the_one_that_is_tested() {
    assert_eq!(blocks(README, "rust"), [EXAMPLE]);
    assert!(EXAMPLE.lines().count() <= 15);
}

/// Runs every `sh` block of `text`, one after another, in one new directory.
fn run_blocks(text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("README.md"), README).expect("it can be written");
    for (name, made) in [("old-leveldb", OF_LEVELDB), ("old-rocksdb", OF_ROCKSDB)] {
        let old = directory.path().join(name);
        std::fs::create_dir(&old).expect("it can be made");
        for entry in std::fs::read_dir(made).expect("it is there").flatten() {
            std::fs::copy(entry.path(), old.join(entry.file_name())).expect("it can be copied");
        }
    }
    let command = env!("CARGO_BIN_EXE_shingle");
    let commands = Path::new(command).parent().expect("the command lies in a directory");
    let path = format!("{}:{}", commands.display(), std::env::var("PATH").unwrap_or_default());
    for block in blocks(text, "sh") {
        let script: Vec<String> = block
            .lines()
            .filter(|line| !BUILDS.iter().any(|build| line.starts_with(build)))
            .map(|line| line.replace("cargo run --release --bin shingle --", command))
            .collect();
        let output = Command::new("sh")
            .args(["-e", "-c", &script.join("\n")])
            .current_dir(&directory)
            .env("PATH", &path)
            .env("TMPDIR", directory.path())
            .env("SHINGLE_DEMO_MB", "5")
            .env_remove("SHINGLE_DB")
            .output()
            .expect("there is a shell");
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{block}\n{said}{complained}");
    }
    directory
}

#[test]
fn the_shell_blocks_of_the_readme_run() {
    assert!(blocks(README, "sh").len() > 1);
    let directory = run_blocks(README);
    assert!(directory.path().join("shingle-demo.html").is_file());
}

#[test]
fn the_shell_blocks_of_the_manual_run() {
    let entries = std::fs::read_dir(MANUAL).expect("the manual is a folder");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let pages = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let texts = pages.map(|page| std::fs::read_to_string(page).expect("it can be read"));
    let run: Vec<String> = texts.filter(|text| !blocks(text, "sh").is_empty()).collect();
    assert!(run.len() > 20, "{} pages have blocks", run.len());
    for text in &run {
        run_blocks(text);
    }
}

/// The page promises a test for each feature.
#[test]
fn the_page_of_features_names_tests_that_exist() {
    let page = std::fs::read_to_string(format!("{MANUAL}/features.md")).expect("it can be read");
    let is_name = |word: &&str| word.len() > 11 && !word.contains(|c: char| !is_of_a_name(c));
    let options = shingle::options::TABLE;
    let is_option = |word: &&str| options.iter().any(|option| option.name == *word);
    let named: Vec<&str> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(is_name)
        .filter(|word| !is_option(word))
        .collect();
    assert!(named.len() > 30, "{named:?}");
    let folders = [
        concat!(env!("CARGO_MANIFEST_DIR"), "/.."),
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/tests"),
    ];
    let files = folders.into_iter().flat_map(walkdir::WalkDir::new);
    let files = files.map(|file| file.expect("it can be read"));
    let sources = files.filter(|file| file.path().extension().is_some_and(|e| e == "rs"));
    let texts: Vec<String> =
        sources.map(|file| std::fs::read_to_string(file.path()).expect("it is text")).collect();
    for name in named {
        let declaration = format!("fn {name}()");
        assert!(texts.iter().any(|text| text.contains(&declaration)), "there is no test `{name}`");
    }
}

/// Names of tests have these characters only.
fn is_of_a_name(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'
}

#[test]
fn the_rust_example_runs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::env::set_current_dir(&directory).expect("it is there");
    example::run().expect("the example works");
}
