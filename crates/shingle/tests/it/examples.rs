//! The examples do what their page of the manual shows: each is run, and what it prints is compared
//! with the page. Cargo builds examples before it runs tests.

use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/manual/examples.md");

/// The program of an example, which `cargo test` has built. A run of these tests alone does not
/// build examples, so this does where there is none, or an old one.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let program = profile.join("examples").join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.rs"));
    let time = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    if time(&program) < time(&source) {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let arguments = ["build", "--locked", "--package", "shingle", "--example", name];
        assert!(Command::new(cargo).args(arguments).status().unwrap().success());
    }
    program
}

/// What an example prints.
fn run(name: &str) -> String {
    let output = Command::new(program(name)).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

/// What the page says that an example prints: the text block of its section.
fn shown(name: &str) -> &'static str {
    let section = PAGE.split("\n## ").find(|section| section.contains(&format!("{name}.rs")));
    let section = section.unwrap_or_else(|| panic!("the page has no section on {name}"));
    let block = section.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    block.unwrap_or_else(|| panic!("the section on {name} has no text block"))
}

#[test]
fn the_durable_queue_prints_what_its_page_shows() {
    assert_eq!(run("durable_queue"), shown("durable_queue"));
}

#[test]
fn the_inverted_index_prints_what_its_page_shows() {
    assert_eq!(run("inverted_index"), shown("inverted_index"));
}

#[test]
fn the_persistent_cache_prints_what_its_page_shows() {
    assert_eq!(run("persistent_cache"), shown("persistent_cache"));
}

#[test]
fn transfers_keep_their_sum() {
    // How many transfers are repeated depends on the threads.
    let said = run("transfer");
    let last = |text: &str| text.lines().nth(1).map(str::to_string);
    assert_eq!(last(&said).as_deref(), Some("the sum is 1000"));
    assert_eq!(last(&said), last(shown("transfer")));
}

#[test]
fn the_time_series_prints_what_its_page_shows() {
    // The last line has the size of tables, which the format may change.
    let without_size = |text: &str| text.rsplit_once("space").unwrap().0.to_string();
    assert_eq!(without_size(&run("time_series")), without_size(shown("time_series")));
}

#[test]
fn the_sessions_print_what_their_page_shows() {
    assert_eq!(run("sessions"), shown("sessions"));
}

#[test]
fn the_index_that_follows_changes_prints_what_its_page_shows() {
    assert_eq!(run("change_feed"), shown("change_feed"));
}

#[test]
fn the_bulk_load_prints_what_its_page_shows() {
    assert_eq!(run("bulk_load"), shown("bulk_load"));
}

#[test]
fn the_follower_sees_the_counter_grow() {
    let said = run("follower");
    let counts: Vec<u64> =
        said.lines().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap_or(0)).collect();
    assert_eq!(counts.len(), 5, "{said}");
    assert!(counts.is_sorted(), "{said}");
    assert!(shown("follower").starts_with("the counter is "));
}

#[test]
fn the_page_lists_every_example_that_is_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // Those that begin so measure the engine.
        assert!(name.starts_with("measure_") || PAGE.contains(&name), "{name} is not on the page");
    }
}
