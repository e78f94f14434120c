//! What happened to the files of a scenario.
//!
//! A file is `manifest N`, `log N`, `table N` or `segment N`. A record of a log is `record K`,
//! from 1, and so is an edit of a manifest, the first one included.
//!
//! | line | does |
//! |---|---|
//! | `cut FILE to BYTES`, `cut FILE by BYTES` | the file ends earlier |
//! | `cut FILE before record K`, `cut FILE in record K` | the same, by records |
//! | `flip FILE at BYTE`, `flip FILE in record K` | a byte is another one |
//! | `zero FILE record K` | the bytes of a record are zeros |
//! | `zeros FILE BYTES`, `noise FILE BYTES` | bytes that no program wrote are at the end |
//! | `append FILE record K of FILE` | a record of another file is at the end |
//! | `empty FILE` | the file exists and has no bytes |
//! | `remove FILE`, `swap FILE with FILE`, `copy FILE to FILE` | names change |
//! | `no root`, `zero root`, `cut root to BYTES` | the root is gone or damaged |

use super::Image;
use super::medium::{Records, number};
use base::FileId;
use base::random::Random;
use media::FileName;
use std::ops::Range;

fn file(kind: &str, id: &str) -> FileName {
    let id = FileId(number(id));
    match kind {
        "manifest" => FileName::manifest(id),
        "log" => FileName::wal(id),
        "table" => FileName::table(id),
        "segment" => FileName::value(id),
        _ => panic!("no such kind of file: {kind}"),
    }
}

/// Does to `image` what `line` says.
pub fn damaged(image: &mut Image, records: &Records, line: &str) {
    let record = |name: FileName, k: &str| -> Range<usize> {
        let found = &records[&name][number(k) as usize - 1];
        found.start as usize..found.end as usize
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let whole = |image: &mut Image, name: FileName| image.files[&name].clone();
    match words[..] {
        ["cut", "root", "to", bytes] => {
            image.root.as_mut().unwrap().truncate(number(bytes) as usize);
        }
        ["no", "root"] => image.root = None,
        ["zero", "root"] => image.root.as_mut().unwrap().fill(0),
        ["cut", kind, id, ref to @ ..] => {
            let name = file(kind, id);
            let bytes = image.files.get_mut(&name).unwrap();
            let end = match *to {
                ["to", end] => number(end) as usize,
                ["by", less] => bytes.len() - number(less) as usize,
                ["before", "record", k] => record(name, k).start,
                ["in", "record", k] => record(name, k).end - 1,
                _ => panic!("no such cut: {line}"),
            };
            assert!(end < bytes.len(), "{line}: the file has {} bytes", bytes.len());
            bytes.truncate(end);
        }
        ["flip", kind, id, ref place @ ..] => {
            let name = file(kind, id);
            let at = match *place {
                ["at", at] => number(at) as usize,
                ["in", "record", k] => record(name, k).end - 1,
                _ => panic!("no such place: {line}"),
            };
            image.files.get_mut(&name).unwrap()[at] ^= 1;
        }
        ["zero", kind, id, "record", k] => {
            let name = file(kind, id);
            image.files.get_mut(&name).unwrap()[record(name, k)].fill(0);
        }
        [what @ ("zeros" | "noise"), kind, id, count] => {
            let mut random = Random::new(1);
            let is_noise = what == "noise";
            let mut byte = || if is_noise { random.next_u64() as u8 } else { 0 };
            let bytes = image.files.get_mut(&file(kind, id)).unwrap();
            bytes.extend((0..number(count)).map(|_| byte()));
        }
        ["append", kind, id, "record", k, "of", from_kind, from_id] => {
            let from = file(from_kind, from_id);
            let bytes = whole(image, from)[record(from, k)].to_vec();
            image.files.get_mut(&file(kind, id)).unwrap().extend(bytes);
        }
        ["empty", kind, id] => drop(image.files.insert(file(kind, id), Vec::new())),
        ["remove", kind, id] => drop(image.files.remove(&file(kind, id)).unwrap()),
        ["swap", kind, id, "with", other_kind, other_id] => {
            let (one, other) = (file(kind, id), file(other_kind, other_id));
            let (of_one, of_other) = (whole(image, one), whole(image, other));
            image.files.extend([(one, of_other), (other, of_one)]);
        }
        ["copy", kind, id, "to", other_kind, other_id] => {
            let bytes = whole(image, file(kind, id));
            image.files.insert(file(other_kind, other_id), bytes);
        }
        _ => panic!("no such damage: {line}"),
    }
}
