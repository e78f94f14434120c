//! Each format's lines, sound and damaged.

use super::*;
use crate::trace::operation::Kind::{self, Delete, DeleteRange, Get, Put, Scan, Update};
use crate::trace::samples;
use base::random::Random;

/// What the lines hold: kind, key, bytes of key and value, records.
type Held = (Kind, String, u64, Option<u64>, u64);

fn read(format: Format, text: &str) -> Vec<Held> {
    let mut held = Vec::new();
    for line in text.lines() {
        let parsed = format.parse(line.as_bytes(), &mut |operation| {
            let key = crate::text::escape(operation.key);
            let sizes = (operation.key_bytes, operation.value_bytes, operation.records);
            held.push((operation.kind, key, sizes.0, sizes.1, sizes.2));
        });
        assert!(parsed.is_ok(), "{line}: {parsed:?}");
    }
    held
}

fn held(kind: Kind, key: &str, key_bytes: u64, value_bytes: Option<u64>, records: u64) -> Held {
    (kind, key.into(), key_bytes, value_bytes, records)
}

#[test]
fn twitters_traces_are_read() {
    let expected = [
        held(Get, "nz:u:eeW511W3dcH3de3d15ec", 22, Some(304), 1),
        held(Put, "nz:u:a,b", 8, Some(129), 1),
        held(Update, "nz:u:counter", 12, Some(8), 1),
        held(Delete, "nz:u:a,b", 8, Some(0), 1),
    ];
    assert_eq!(read(Format::Twitter, samples::TWITTER), expected);
}

#[test]
fn rocksdbs_traces_are_read_with_the_key_in_front_or_at_the_end() {
    let expected = [
        held(Put, "key1", 4, Some(100), 1),
        held(Get, "key1", 4, None, 1),
        held(Get, "\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02key1", 4, None, 1),
        held(Scan, "key", 3, None, 1),
        held(DeleteRange, "key", 3, None, 1),
        held(Delete, "key1", 4, Some(0), 1),
    ];
    assert_eq!(read(Format::RocksDb, samples::ROCKSDB), expected);
    let without_key = Format::RocksDb.parse(b"1 0 100 1573", &mut |_| {});
    assert!(without_key.is_err_and(|reason| reason.contains("-no_key")));
}

#[test]
fn ycsbs_lines_are_read_and_fields_add_up() {
    let expected = [
        held(Put, "user1", 5, Some(7 + 4), 1),
        held(Get, "user1", 5, None, 1),
        held(Update, "user1", 5, Some(3), 1),
        held(Scan, "user1", 5, None, 25),
        held(Delete, "user1", 5, None, 1),
    ];
    assert_eq!(read(Format::Ycsb, samples::YCSB), expected);
}

#[test]
fn redis_commands_are_read_and_others_are_nothing() {
    let expected = [
        held(Put, "key", 3, Some(5), 1),
        held(Put, "a\\n\\x01", 3, Some(1), 1),
        held(Put, "b", 1, Some(2), 1),
        held(Get, "key", 3, None, 1),
        held(Get, "b", 1, None, 1),
        held(Put, "user\\x00name", 9, Some(3), 1),
        held(Delete, "key", 3, None, 1),
        held(Delete, "b", 1, None, 1),
    ];
    assert_eq!(read(Format::Redis, samples::REDIS), expected);
}

#[test]
fn our_own_format_returns_what_was_written() {
    let operations = [
        Operation::new(Some(17), Put, b"a\tb\\").value(100),
        Operation::new(None, Get, b""),
        Operation::new(Some(u64::MAX), Scan, b"\xff\n").over(12),
        Operation::new(Some(0), Delete, "ü".as_bytes()),
    ];
    for operation in operations {
        let mut line = Vec::new();
        write(&operation, &mut line).unwrap();
        assert_eq!(line.pop(), Some(b'\n'));
        let mut count = 0;
        let parsed = Format::Shingle.parse(&line, &mut |read| {
            assert_eq!(*read, operation);
            count += 1;
        });
        assert_eq!((parsed, count), (Ok(Line::Operations), 1));
    }
}

#[test]
fn each_sample_is_recognised() {
    for (format, text) in samples::ALL {
        let lines = text.lines().map(str::as_bytes);
        assert_eq!(Format::recognise(lines), Some(format));
        assert_eq!(Format::by_name(format.name()).unwrap(), format);
    }
    assert_eq!(Format::recognise(["what", "is this"].map(str::as_bytes).into_iter()), None);
    assert!(Format::by_name("nothing").is_err());
}

#[test]
fn damaged_lines_never_panic() {
    let mut random = Random::new(1);
    for (format, text) in samples::ALL {
        for line in text.lines() {
            for _ in 0..500 {
                let mut line = line.as_bytes().to_vec();
                for _ in 0..=random.below(3) {
                    let at = random.below(line.len() as u64 + 1) as usize;
                    match random.below(3) {
                        0 => line.truncate(at),
                        1 => line.insert(at, random.next_u64() as u8),
                        _ if at < line.len() => {
                            line[at] = b" ,\t\"\\[]0x-"[random.below(10) as usize]
                        }
                        _ => {}
                    }
                }
                let _ = format.parse(&line, &mut |_| {});
            }
        }
    }
}

#[test]
fn numbers_beyond_all_bounds_are_refused() {
    let huge = "99999999999999999999";
    let lines = [
        (Format::Shingle, format!("{huge}\tget\tk\t-")),
        (Format::Twitter, format!("{huge},k,1,1,1,get,0")),
        (Format::Twitter, "18446744073709551615,k,1,1,1,get,0".into()),
        (Format::RocksDb, "0x00 1 0 1 18446744073709551615".into()),
        (Format::Ycsb, format!("SCAN t k {huge} [ ]")),
        (Format::Redis, format!("{huge}.1 [0 x] \"get\" \"k\"")),
    ];
    for (format, line) in lines {
        assert!(format.parse(line.as_bytes(), &mut |_| {}).is_err(), "{line}");
    }
}
