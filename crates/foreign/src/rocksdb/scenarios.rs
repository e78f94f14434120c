//! Manifests as text: a line is an edit, and the state after them is lines too.
//!
//! | word | means |
//! |---|---|
//! | `family N` | the edit is of this column family |
//! | `new NAME`, `drop` | the family is added, dropped |
//! | `order NAME` | the comparator; `bytes` is that of bytes |
//! | `log N`, `first-log N` | logs before are in tables; are not needed |
//! | `add L/N A..Z` | table N of level L with these keys; `Z!` is no key of it |
//! | `remove L/N` | the table goes |
//! | `blobs N COUNT`, `garbage N COUNT` | a blob file, and values of it that are garbage |
//! | `group N` | counts together with N edits behind it |
//! | `tag N BYTES` | a field that is not known, with its length |

use super::edit::{Edit, TableFile};
use super::manifest::Manifest;
use crate::entry::RangeDelete;

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn slice(out: &mut Vec<u8>, bytes: &[u8]) {
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn key(out: &mut Vec<u8>, text: &str, trailer: u64) {
    slice(out, &[text.as_bytes(), &trailer.to_le_bytes()].concat());
}

/// The record of an edit.
fn encoded(line: &str) -> Vec<u8> {
    let mut words = line.split_whitespace();
    let mut out = Vec::new();
    let field = |out: &mut Vec<u8>, tag: u64, number: &str| {
        varint(out, tag);
        varint(out, number.parse().unwrap());
    };
    while let Some(word) = words.next() {
        let mut next = || words.next().unwrap();
        match word {
            "family" => field(&mut out, 200, next()),
            "new" => {
                varint(&mut out, 201);
                slice(&mut out, next().as_bytes());
            }
            "drop" => varint(&mut out, 202),
            "order" => {
                varint(&mut out, 1);
                let name = next().replace("bytes", "leveldb.BytewiseComparator");
                slice(&mut out, name.as_bytes());
            }
            "log" => field(&mut out, 2, next()),
            "first-log" => field(&mut out, 10, next()),
            "group" => field(&mut out, 300, next()),
            "add" | "remove" => {
                let (level, number) = next().split_once('/').unwrap();
                field(&mut out, if word == "add" { 103 } else { 6 }, level);
                varint(&mut out, number.parse().unwrap());
                if word == "add" {
                    let (smallest, largest) = next().split_once("..").unwrap();
                    varint(&mut out, 1000);
                    key(&mut out, smallest, 5 << 8 | 1);
                    match largest.strip_suffix('!') {
                        Some(largest) => key(&mut out, largest, ((1 << 56) - 1) << 8 | 0x0f),
                        None => key(&mut out, largest, 9 << 8 | 1),
                    }
                    varint(&mut out, 5);
                    varint(&mut out, 9);
                    // A field that may be left out, and the end.
                    varint(&mut out, 6);
                    slice(&mut out, &[1]);
                    varint(&mut out, 1);
                }
            }
            "blobs" => {
                field(&mut out, 400, next());
                varint(&mut out, next().parse().unwrap());
                out.extend([9, 0, 0, 0]);
            }
            "garbage" => {
                field(&mut out, 401, next());
                varint(&mut out, next().parse().unwrap());
                out.extend([9, 0]);
            }
            "tag" => {
                varint(&mut out, next().parse().unwrap());
                slice(&mut out, next().as_bytes());
            }
            other => panic!("{other} is no word of a scenario"),
        }
    }
    out
}

/// What the edits give; an error as text.
fn state(edits: &str) -> String {
    let mut manifest = Manifest::with_default();
    let mut group = Vec::new();
    for line in edits.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let added = Edit::parse(&encoded(line)).and_then(|edit| manifest.add(&mut group, edit));
        if let Err(message) = added {
            return message;
        }
    }
    if let Err(error) = manifest.check() {
        return error.message().to_string();
    }
    let mut lines = Vec::new();
    for (id, family) in &manifest.families {
        let mut line = format!("{id} {} log {}:", family.name, family.log_number);
        for table in family.tables() {
            let end = String::from_utf8_lossy(&table.largest).into_owned();
            let begin = String::from_utf8_lossy(&table.smallest).into_owned();
            let mark = if table.is_largest_outside { "!" } else { "" };
            line.push_str(&format!(" {}/{} {begin}..{end}{mark}", table.level, table.number));
        }
        lines.push(line);
    }
    let needed: Vec<_> = (0..20).filter(|number| manifest.needs_log(*number)).take(1).collect();
    lines.push(format!("logs from {needed:?}"));
    lines.join("\n")
}

#[test]
fn edits_give_the_state_of_a_manifest() {
    let scenarios = [
        ("order bytes log 4", "0 default log 4:\nlogs from [4]"),
        // A table moves: it goes from one level and comes to another in one edit.
        (
            "order bytes log 4\nadd 0/7 a..k add 0/9 b..m\nadd 1/7 a..k remove 0/7",
            "0 default log 4: 0/9 b..m 1/7 a..k\nlogs from [4]",
        ),
        // The oldest log that any family needs, unless the manifest says it.
        (
            "order bytes log 9\nfamily 1 new users order bytes log 4\nfamily 1 log 6",
            "0 default log 9:\n1 users log 6:\nlogs from [6]",
        ),
        ("order bytes log 9\nfirst-log 8", "0 default log 9:\nlogs from [8]"),
        (
            "order bytes\nfamily 2 new gone order bytes add 0/3 a..b\nfamily 2 drop",
            "0 default log 0:\nlogs from [0]",
        ),
        // The files of values are all garbage.
        ("order bytes\nblobs 8 2\ngarbage 8 1\ngarbage 8 1", "0 default log 0:\nlogs from [0]"),
        // A group without its end was never written whole.
        (
            "order bytes log 3\ngroup 1 add 0/5 a..b\ngroup 0 log 5\ngroup 2 log 7\ngroup 1 log 8",
            "0 default log 5: 0/5 a..b\nlogs from [5]",
        ),
        ("order bytes tag 9000 abc tag 8193 id log 2", "0 default log 2:\nlogs from [2]"),
        ("order bytes add 3/5 a..f!", "0 default log 0: 3/5 a..f!\nlogs from [0]"),
    ];
    for (edits, expected) in scenarios {
        assert_eq!(state(edits), expected, "{edits}");
    }
}

#[test]
fn what_a_manifest_must_not_have_is_an_error_in_words() {
    let scenarios = [
        ("order bytes tag 700 abc", "an edit has a field 700 that is not whole or not known"),
        ("order bytes remove 0/5", "an edit removes table 5, which is not there"),
        ("order bytes add 0/5 a..b\nadd 0/5 a..b", "an edit adds table 5 a second time"),
        ("order bytes\nfamily 3 log 5", "an edit is of column family 3, which is not there"),
        ("order bytes\nfamily 0 new again", "an edit adds column family 0 a second time"),
        ("order bytes\ngroup 1 log 5\nlog 6", "an edit stands inside of a group"),
        ("order mine", "in the order of \"mine\""),
        ("order bytes.u64ts", "timestamps"),
        ("order bytes blobs 8 2\ngarbage 8 1", "000008.blob"),
    ];
    for (edits, part) in scenarios {
        let found = state(edits);
        assert!(found.contains(part), "{edits}: {found}");
    }
}

#[test]
fn no_cut_edit_is_taken_for_a_whole_one() {
    let line = "order bytes log 4 add 1/7 a..k remove 0/9 blobs 8 2 garbage 8 1";
    let (record, whole) = (encoded(line), Edit::parse(&encoded(line)).unwrap());
    for end in 0..record.len() {
        assert_ne!(Edit::parse(&record[..end]).as_ref(), Ok(&whole), "{end}");
    }
}

#[test]
fn a_deleted_range_is_cut_to_the_keys_of_its_table() {
    let table = |largest: &str| -> TableFile {
        let edit = Edit::parse(&encoded(&format!("add 0/1 d..{largest}"))).unwrap();
        edit.add_tables.into_iter().next().unwrap()
    };
    let range = |begin: &str, end: &[u8]| {
        let (begin, end) = (begin.as_bytes().to_vec(), end.to_vec());
        RangeDelete { begin, end, sequence: 5 }
    };
    let cases = [
        ("m", "a", &b"z"[..], Some(range("d", b"m\0"))),
        ("m!", "a", b"z", Some(range("d", b"m"))),
        ("m", "e", b"f", Some(range("e", b"f"))),
        ("m", "a", b"d", None),
        ("m!", "m", b"z", None),
    ];
    for (largest, begin, end, expected) in cases {
        assert_eq!(table(largest).cut(range(begin, end)), expected, "{largest} {begin}");
    }
}
