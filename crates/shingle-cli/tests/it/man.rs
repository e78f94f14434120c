//! The manual pages.

use crate::{Ran, Shell};
use std::path::Path;
use std::process::Command;

/// A page as a person reads it, where there is a formatter.
fn formatted(page: &Path) -> Option<String> {
    let attempts =
        [("mandoc", &["-T", "utf8"][..]), ("man", &["-l"]), ("groff", &["-man", "-Tutf8"])];
    for (program, arguments) in attempts {
        let mut command = Command::new(program);
        command.args(arguments).arg(page).env("MANWIDTH", "100").env("MANPAGER", "cat");
        let Ok(output) = command.env("PAGER", "cat").output() else { continue };
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        // Some systems have a `man` that says only that there are no pages.
        if output.status.success() && output.stdout.starts_with(b"\n") | (output.stdout.len() > 500)
        {
            assert!(complaint.is_empty(), "{program} {}: {complaint}", page.display());
            return Some(String::from_utf8_lossy(&output.stdout).into_owned());
        }
    }
    None
}

/// Text without what a terminal makes bold by writing it twice.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{8}' => drop(plain.pop()),
            '\x1b' => drop(characters.by_ref().find(|c| c.is_ascii_alphabetic())),
            other => plain.push(other),
        }
    }
    plain
}

#[test]
fn every_command_has_a_page_that_a_formatter_takes() {
    let shell = Shell::new();
    let man = |arguments: &[&str]| {
        Ran(shell.command().arg("man").args(arguments).output().expect("it runs"))
    };
    man(&["pages/man1"]).ok();
    for name in ["shingle", "shingle-scan", "shingle-keyspace-create", "shingle-lab-run"] {
        let path = shell.path(&format!("pages/man1/{name}.1"));
        let roff = std::fs::read_to_string(&path).expect("the page is there");
        for line in roff.lines().filter(|line| line.starts_with('.')) {
            let request = line[1..].split(' ').next().unwrap_or_default();
            let known = ["TH", "SH", "TP", "IP", "PP", "RS", "RE", "nf", "fi", "br", "ie", "el"];
            assert!(known.contains(&request), "{name}: {line}");
        }
        let heads = roff.lines().filter(|line| line.starts_with(".TH ")).count();
        assert_eq!(heads, 1, "{name}");
        let flags = if name == "shingle" { "\"FLAGS OF EVERY COMMAND\"" } else { "OPTIONS" };
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", flags] {
            assert!(roff.contains(&format!(".SH {section}")), "{name} has no {section}");
        }
        let Some(text) = formatted(&path).map(|text| plain(&text)) else { continue };
        assert!(text.contains("SYNOPSIS") && text.contains(name), "{name}: {text}");
    }
    let scan = std::fs::read_to_string(shell.path("pages/man1/shingle-scan.1")).unwrap();
    for part in ["\\-\\-prefix", ".SH \"EXAMPLES\"", "\\fBshingle\\fR(1)"] {
        assert!(scan.contains(part), "{part}: {scan}");
    }
    let whole = std::fs::read_to_string(shell.path("pages/man1/shingle.1")).unwrap();
    assert!(whole.contains(".SH \"EXIT CODES\"") && whole.contains("SHINGLE_DB"), "{whole}");
    assert_eq!(man(&[]).ok(), whole, "without a directory, the page of the command");
    assert!(!shell.path("pages/man1/shingle-crash-writer.1").exists());
}
