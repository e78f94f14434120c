//! A range of keys means the same in every command.

use crate::{Ran, Shell};

/// k00 to k19, and one key after all of them.
fn filled() -> Shell {
    let shell = Shell::new();
    let lines: String = (0..20).map(|i| format!("k{i:02}\tv{i}\n")).collect();
    shell.feed(&["import", "-", "--format", "tsv"], lines.as_bytes()).ok();
    shell.run(&["put", "--hex", "0xFFFF", "0x01"]).ok();
    shell
}

/// Ranges by their flags, and how many keys they have.
const RANGES: [(&[&str], usize); 8] = [
    (&[], 21),
    (&["--from", "k03", "--to", "k05"], 2),
    (&["--from", "k18"], 3),
    (&["--to", "k02"], 2),
    (&["--prefix", "k1"], 10),
    (&["--prefix", ""], 21),
    (&["--from", "k05", "--to", "k05"], 0),
    (&["--hex", "--prefix", "0xFF"], 1),
];

#[test]
fn scan_count_export_and_delete_range_agree() {
    for (flags, keys) in RANGES {
        let shell = filled();
        let run = |command: &[&str]| shell.run(&[command, flags].concat());
        let listed = run(&["scan", "--keys-only"]).ok();
        assert_eq!(listed.lines().count(), keys, "{flags:?}");
        assert_eq!(run(&["count"]).ok(), format!("{keys}\n"), "{flags:?}");
        let exported = run(&["export", "-", "--format", "tsv"]).ok();
        assert_eq!(exported.lines().count(), keys, "{flags:?}");
        run(&["compact"]).ok();
        if flags.is_empty() {
            assert!(run(&["delete-range"]).fails(2).contains("which keys?"));
            continue;
        }
        run(&["delete-range"]).ok();
        assert_eq!(run(&["count"]).ok(), "0\n", "{flags:?}");
        assert_eq!(shell.run(&["count"]).ok(), format!("{}\n", 21 - keys), "{flags:?}");
    }
}

#[test]
fn every_command_refuses_the_same_ranges() {
    let shell = filled();
    for command in [
        &["scan"][..],
        &["count"],
        &["export", "-", "--format", "tsv"],
        &["delete-range"],
        &["compact"],
    ] {
        let run = |flags: &[&str]| shell.run(&[command, flags].concat());
        let words = run(&["--from", "b", "--to", "a"]).fails(2);
        assert!(words.contains("begins at b and ends at a"), "{words}");
        assert_eq!(run(&["--from", "a", "--prefix", "a"]).code(), 2, "{command:?}");
        assert!(run(&["--hex", "--from", "xyz"]).fails(2).contains("not hex"), "{command:?}");
    }
    assert_eq!(shell.run(&["count"]).ok(), "21\n");
}

#[test]
fn scan_and_export_take_a_number_and_an_order() {
    let shell = filled();
    let flags = ["--prefix", "k", "--limit", "2", "--reverse"];
    let run = |command: &[&str]| shell.run(&[command, &flags].concat()).ok();
    assert_eq!(run(&["scan"]), "k19 : v19\nk18 : v18\n");
    assert_eq!(run(&["export", "-", "--format", "tsv"]), "k19\tv19\nk18\tv18\n");
    run(&["export", "two.csv", "--verify"]);
    assert_eq!(shell.run(&["scan", "--limit", "0"]).ok(), "");
}

#[test]
fn scripts_that_give_the_bounds_of_a_deletion_without_flags_still_work() {
    let shell = filled();
    shell.run(&["delete-range", "k02", "k18"]).ok();
    assert_eq!(shell.run(&["count", "--prefix", "k"]).ok(), "4\n");
    assert_eq!(shell.run(&["delete-range", "k02"]).code(), 2);
    assert_eq!(shell.run(&["delete-range", "a", "b", "--prefix", "c"]).code(), 2);
    let help = Ran(shell.command().args(["delete-range", "--help"]).output().expect("it runs"));
    assert!(!help.ok().contains("BOUNDS"), "{}", help.out());
}

#[test]
fn counts_have_bytes_as_json() {
    let shell = filled();
    let counted = &shell.run(&["count", "--json", "--to", "k02"]).json()[0];
    assert_eq!((&counted["keys"], &counted["bytes"]), (&2.into(), &10.into()));
}
