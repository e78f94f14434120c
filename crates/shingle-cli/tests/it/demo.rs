//! The demonstration, on a small directory.

use crate::{Ran, Shell, write};

fn shell_with_data() -> Shell {
    let shell = Shell::new();
    for i in 0..300 {
        let name = format!("data/part{}/file{i}.txt", i % 9);
        let text = format!("words about number {i} and others\n").repeat(1 + i % 50);
        write(&shell.path(&name), text.as_bytes());
    }
    shell
}

fn demo(shell: &Shell, arguments: &[&str]) -> Ran {
    let all = [&["demo", "--from", "data", "--html", "page.html"], arguments].concat();
    Ran(shell.command().args(all).output().expect("it runs"))
}

#[test]
fn it_tells_its_steps_and_cleans_up() {
    let shell = shell_with_data();
    let text = demo(&shell, &["--dir", "place"]).ok();
    for step in 1..=8 {
        assert!(text.contains(&format!("{step}/8  ")), "{text}");
    }
    assert!(text.contains("\nok: ") && text.contains("0 lost"), "{text}");
    assert!(!shell.path("place").exists());
}

#[test]
fn its_page_is_whole_and_needs_no_network() {
    let shell = shell_with_data();
    demo(&shell, &["--quiet"]).ok();
    let page = std::fs::read_to_string(shell.path("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    for foreign in ["http:", "https:", "src=", "<script", "@import", "NaN", "inf"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    for element in ["svg", "table", "h2", "ul", "text", "tr"] {
        let count = |mark: &str| page.matches(mark).count();
        let opened = count(&format!("<{element}>")) + count(&format!("<{element} "));
        assert!(opened > 0 && opened == count(&format!("</{element}>")), "{element}");
    }
}

#[test]
fn its_account_is_json() {
    let shell = shell_with_data();
    let account = &demo(&shell, &["--json", "--keep", "--dir", "kept"]).json()[0];
    assert_eq!(account["ok"], true);
    assert_eq!(account["crashes"].as_array().unwrap().len(), 3);
    assert!(account["range_deleted_keys"].as_u64().unwrap() > 0);
    assert!(shell.path("kept").is_dir());
    let ran = demo(&shell, &["--dir", "kept"]);
    assert!(ran.fails(1).contains("not empty"));
}

#[test]
fn without_data_it_is_kind() {
    let shell = Shell::new();
    std::fs::create_dir(shell.path("data")).unwrap();
    assert!(demo(&shell, &[]).fails(1).contains("found no data"));
}
