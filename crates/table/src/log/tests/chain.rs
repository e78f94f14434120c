//! From one log to the next.

use super::*;

#[test]
fn every_row_of_the_verdict() {
    let found = PreviousLog { file: FileId(9), bytes: 100, digest: 5, last_sequence: 7 };
    let next = |previous| {
        let identity = LogIdentity { file: FileId(10), ..IDENTITY };
        header(identity, previous)
    };
    let verdict = |expected, durable| check_chain(&found, &next(expected), durable);
    let damage = |verdict| matches!(verdict, ChainVerdict::Damage(_));

    assert_eq!(verdict(Some(found), 0), ChainVerdict::Matches);
    assert_eq!(verdict(Some(found), 80), ChainVerdict::Matches);
    let longer = PreviousLog { bytes: 130, digest: 6, ..found };
    assert_eq!(verdict(Some(longer), 0), ChainVerdict::LostTail { bytes_missing: 30 });
    assert!(damage(verdict(Some(longer), 1)));
    for unlike in [
        PreviousLog { bytes: 90, ..found },
        PreviousLog { digest: 6, ..found },
        PreviousLog { last_sequence: 8, ..found },
        PreviousLog { file: FileId(8), ..found },
    ] {
        assert!(damage(verdict(Some(unlike), 0)));
    }
    assert!(damage(verdict(None, 0)));
}

#[test]
fn a_log_cut_after_rotation_is_found_out_by_the_next() {
    let (mut first, bytes) = writer(IDENTITY);
    first.append(&[b"one"]).unwrap();
    let kept = first.bytes() as usize;
    first.append(&[b"two"]).unwrap();
    let identity = LogIdentity { file: FileId(10), ..IDENTITY };
    let next = header(identity, Some(first.as_previous(2)));

    let file = Stored(bytes.take()[..kept].to_vec());
    let mut reader = LogReader::open(&file, IDENTITY, 0, Cause::Recovery).unwrap();
    while reader.next().unwrap().is_some() {}
    assert_eq!(reader.end(), Some(End::Clean), "by itself the log looks whole");
    let found = reader.as_previous(FileId(9), 1);
    assert!(matches!(check_chain(&found, &next, 0), ChainVerdict::LostTail { .. }));
    assert!(matches!(check_chain(&found, &next, 80), ChainVerdict::Damage(_)));
}
