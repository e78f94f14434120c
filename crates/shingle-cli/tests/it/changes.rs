//! `changes`.

use crate::Shell;
use serde_json::json;

const KEEPS: [&str; 2] = ["-o", "changes_retention_bytes=1M"];

fn put(shell: &Shell, arguments: &[&str]) {
    shell.run(&[&KEEPS, arguments].concat()).ok();
}

#[test]
fn changes_are_printed_in_commit_order_from_a_sequence_number_on() {
    let shell = Shell::new();
    put(&shell, &["put", "apple", "red"]);
    put(&shell, &["put", "tab\there", "two\nlines"]);
    put(&shell, &["delete", "apple", "pear"]);
    put(&shell, &["delete-range", "--from", "a", "--to", "b"]);
    assert_eq!(
        shell.run(&["changes"]).ok(),
        "1 default put apple : red\n\
         2 default put tab\\there : two\\nlines\n\
         4 default delete apple\n\
         4 default delete pear\n\
         5 default delete-range a to b\n"
    );
    let later = shell.run(&["changes", "--since", "2", "--json"]).json();
    assert_eq!(later.len(), 2);
    assert_eq!(
        later[0],
        json!({
            "first_sequence": 3,
            "last_sequence": 4,
            "operations": [
                { "keyspace": "default", "operation": "delete", "key": "apple" },
                { "keyspace": "default", "operation": "delete", "key": "pear" },
            ],
        })
    );
    let stat = shell.run(&["stat"]).ok();
    assert!(stat.contains("Changes: from sequence 1, 4 logs"), "{stat}");
    let hex = shell.run(&["changes", "--since", "4", "--hex"]).ok();
    assert_eq!(hex, "5 default delete-range 0x61 to 0x62\n");
}

#[test]
fn who_comes_too_late_or_keeps_no_changes_is_told() {
    let shell = Shell::new();
    shell.run(&["put", "apple", "red"]).ok();
    let none = shell.run(&["changes"]).fails(1);
    assert!(none.contains("the writer keeps none"), "{none}");
    put(&shell, &["put", "pear", "green"]);
    let late = shell.run(&["changes", "--since", "0"]).fails(1);
    assert!(late.contains("only those after 1") && late.contains("retention"), "{late}");
    assert_eq!(shell.run(&["changes"]).ok(), "2 default put pear : green\n");
    // A command goes on with the options of the database. One that keeps none ends the feed.
    shell.run(&["put", "plum", "blue"]).ok();
    let both = "2 default put pear : green\n3 default put plum : blue\n";
    assert_eq!(shell.run(&["changes"]).ok(), both);
    shell.run(&["-o", "changes_retention_bytes=0", "put", "fig", "green"]).ok();
    shell.run(&["changes"]).fails(1);
}
