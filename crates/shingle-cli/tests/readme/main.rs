//! What the README shows is what happens: its Rust example is compiled and run, its shell blocks
//! are run with the built command.

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
const MANUAL: [&str; 3] = [
    include_str!("../../../../docs/manual/command.md"),
    include_str!("../../../../docs/manual/device.md"),
    include_str!("../../../../docs/manual/shell.md"),
];

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
    let command = env!("CARGO_BIN_EXE_shingle");
    let commands = Path::new(command).parent().expect("the command lies in a directory");
    let path = format!("{}:{}", commands.display(), std::env::var("PATH").unwrap_or_default());
    for block in blocks(text, "sh") {
        let script: Vec<String> = block
            .lines()
            .filter(|line| !line.starts_with("cargo test") && !line.starts_with("cargo install"))
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
    for page in MANUAL {
        assert!(blocks(page, "sh").len() > 1);
        run_blocks(page);
    }
}

#[test]
fn the_rust_example_runs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::env::set_current_dir(&directory).expect("it is there");
    example::run().expect("the example works");
}
