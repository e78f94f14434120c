//! Torn tail or damage: the decision table row by row, and every small damage of a small log.

use super::*;
use base::ErrorKind;
use base::random::Random;

const KNOWS_NOTHING: u64 = 0;

fn is_corruption(end: &Result<End>) -> bool {
    end.as_ref().is_err_and(|error| error.kind() == ErrorKind::Corruption)
}

/// Reads `bytes` as a log that must end at `at` after `count` of `payloads`; without evidence it is
/// an ordinary end, and with `durable_bytes_min` beyond `at` it is corruption there.
fn check_row(bytes: &[u8], payloads: &[Vec<u8>], at: u64) {
    let ordinary = match bytes[at as usize..].iter().all(|&byte| byte == 0) {
        true => End::Clean,
        false => End::TornTail { at, bytes_dropped: bytes.len() as u64 - at },
    };
    for known in [KNOWS_NOTHING, at] {
        let (records, end) = read(bytes, known);
        assert_eq!(records, payloads);
        assert_eq!(end.unwrap(), ordinary);
    }
    let (records, end) = read(bytes, at + 1);
    assert_eq!(records, payloads);
    let error = end.unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(at)));
}

#[test]
fn row_the_file_ends() {
    let (bytes, offsets) = log_of(IDENTITY, &small_payloads(), &[]);
    for count in 0..=8 {
        let at = offsets[count + 1];
        check_row(&bytes[..at as usize], &small_payloads()[..count], at);
    }
}

#[test]
fn row_zeros() {
    let (mut bytes, offsets) = log_of(IDENTITY, &small_payloads(), &[]);
    let at = offsets[6];
    bytes[at as usize..].fill(0);
    check_row(&bytes, &small_payloads()[..5], at);
    bytes.resize(1 << 20, 0);
    check_row(&bytes, &small_payloads()[..5], at);
    *bytes.last_mut().expect("there are bytes") = 1;
    check_row(&bytes, &small_payloads()[..5], at);
}

#[test]
fn zeros_in_the_middle_hide_nothing_that_a_later_record_proves() {
    let (mut bytes, offsets) = log_of(IDENTITY, &small_payloads(), &[6]);
    bytes[offsets[3] as usize..offsets[7] as usize].fill(0);
    bytes.resize(1 << 20, 0);
    let (records, end) = read(&bytes, KNOWS_NOTHING);
    assert_eq!(records, small_payloads()[..2]);
    assert!(is_corruption(&end), "the record behind the zeros proves them durable: {end:?}");
    // Without that record, nothing tells the zeros from a length that was ahead.
    bytes[offsets[7] as usize..].fill(0);
    let (records, end) = read(&bytes, KNOWS_NOTHING);
    assert_eq!((records, end.unwrap()), (small_payloads()[..2].to_vec(), End::Clean));
}

#[test]
fn row_a_record_cut_short() {
    let (bytes, offsets) = log_of(IDENTITY, &small_payloads(), &[]);
    for cut in offsets[7] + 1..offsets[8] {
        check_row(&bytes[..cut as usize], &small_payloads()[..6], offsets[7]);
    }
}

#[test]
fn row_a_wrong_checksum() {
    let (mut bytes, offsets) = log_of(IDENTITY, &small_payloads(), &[]);
    bytes[offsets[8] as usize - 1] ^= 1;
    check_row(&bytes, &small_payloads()[..6], offsets[7]);
}

#[test]
fn row_a_valid_record_of_another_history() {
    let payloads = small_payloads();
    let (bytes, offsets) = log_of(IDENTITY, &payloads, &[]);
    let mut other = payloads.clone();
    other[0] = vec![];
    other[1] = vec![9; 3];
    let (stale, stale_offsets) = log_of(IDENTITY, &other, &[]);
    assert_eq!(stale_offsets, offsets, "the stale record stands where it once was valid");
    let at = offsets[4] as usize;
    let spliced = [&bytes[..at], &stale[at..]].concat();
    check_row(&spliced, &payloads[..3], offsets[4]);
}

#[test]
fn row_an_empty_file() {
    check_row(&[], &[], 0);
}

#[test]
fn row_no_header() {
    let (bytes, _) = log_of(IDENTITY, &small_payloads(), &[]);
    for length in 1..HEADER_BYTES {
        check_row(&bytes[..length], &[], 0);
    }
    let mut zeros = bytes.clone();
    zeros[..HEADER_BYTES].fill(0);
    check_row(&zeros, &[], 0);
    for elsewhere in [
        LogIdentity { file: FileId(8), ..IDENTITY },
        LogIdentity { kind: LogKind::Manifest, ..IDENTITY },
    ] {
        let (other, _) = log_of(elsewhere, &small_payloads(), &[3, 6]);
        check_row(&other, &[], 0);
    }
}

#[test]
fn a_damaged_header_of_a_synced_log_is_damage_and_not_an_empty_log() {
    let (mut bytes, _) = log_of(IDENTITY, &small_payloads(), &[1]);
    bytes[30] ^= 1;
    let (records, end) = read(&bytes, KNOWS_NOTHING);
    assert!(records.is_empty() && is_corruption(&end));
}

#[test]
fn a_log_of_another_database_is_incompatible() {
    let elsewhere = LogIdentity { database: DatabaseId(0xd2), ..IDENTITY };
    let (bytes, _) = log_of(elsewhere, &small_payloads(), &[]);
    assert_eq!(read(&bytes, KNOWS_NOTHING).1.unwrap_err().kind(), ErrorKind::Incompatible);
}

#[test]
fn a_newer_format_is_incompatible_and_named() {
    let (mut bytes, _) = log_of(IDENTITY, &[], &[]);
    bytes[8] = 3;
    let sum = IDENTITY.header_place().hash64(&bytes[..HEADER_BYTES - 8]);
    bytes[HEADER_BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
    let error = read(&bytes, KNOWS_NOTHING).1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible);
    assert!(error.message().contains("version 3"), "{error}");
}

/// Version 1 has a zero there, and later programs may give other numbers a meaning.
#[test]
fn only_a_log_of_version_2_restates_others() {
    let with_byte = |version: u8, restates: u8| {
        let (mut bytes, _) = log_of(IDENTITY, &[], &[]);
        (bytes[8], bytes[14]) = (version, restates);
        let sum = IDENTITY.header_place().hash64(&bytes[..HEADER_BYTES - 8]);
        bytes[HEADER_BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
        let header = named_log(&Stored(bytes), Cause::Check).unwrap();
        header.map(|header| (header.has_origins, header.restates))
    };
    assert_eq!(with_byte(1, 0), Some((false, false)));
    assert_eq!(with_byte(2, 0), Some((true, false)));
    assert_eq!(with_byte(2, 1), Some((true, true)));
    assert_eq!((with_byte(1, 1), with_byte(2, 2)), (None, None));
}

#[test]
fn damage_below_a_watermark_is_corruption_wherever_it_is() {
    let payloads = small_payloads();
    let (bytes, offsets) = log_of(IDENTITY, &payloads, &[6]);
    let durable = offsets[7];
    for at in 0..durable {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at as usize] ^= 1 << bit;
            let (records, end) = read(&damaged, KNOWS_NOTHING);
            assert!(payloads.starts_with(&records));
            assert!(is_corruption(&end), "byte {at} bit {bit}: {end:?}");
        }
    }
    for end in HEADER_BYTES..durable as usize {
        let holed = [&bytes[..end - 1], &[0; 2], &bytes[end + 1..]].concat();
        if holed != bytes {
            assert!(is_corruption(&read(&holed, KNOWS_NOTHING).1));
        }
    }
}

#[test]
fn damage_at_the_watermark_is_a_torn_tail_although_a_valid_record_follows() {
    let payloads = small_payloads();
    let (mut bytes, offsets) = log_of(IDENTITY, &payloads, &[6]);
    bytes[offsets[7] as usize + 3] ^= 1;
    check_row(&bytes, &payloads[..6], offsets[7]);
}

#[test]
fn every_flip_and_truncation_of_a_log_without_evidence_gives_a_prefix() {
    let payloads = small_payloads();
    let (bytes, offsets) = log_of(IDENTITY, &payloads, &[]);
    for at in 0..bytes.len() {
        let whole = offsets[1..].iter().take_while(|&&offset| offset <= at as u64).count();
        let whole = whole.saturating_sub(1);
        let (records, end) = read(&bytes[..at], KNOWS_NOTHING);
        assert_eq!(records, payloads[..whole]);
        assert!(end.is_ok());
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let (records, end) = read(&damaged, KNOWS_NOTHING);
            assert_eq!(records, payloads[..whole], "nothing behind a hole comes back");
            assert!(matches!(end, Ok(End::TornTail { .. })), "byte {at} bit {bit}: {end:?}");
        }
    }
}

#[test]
fn stale_bytes_of_another_log_are_never_records() {
    let payloads = small_payloads();
    let (bytes, offsets) = log_of(IDENTITY, &payloads, &[]);
    let elsewhere = LogIdentity { file: FileId(8), ..IDENTITY };
    let (stale, stale_offsets) = log_of(elsewhere, &payloads, &[]);
    assert_eq!(offsets, stale_offsets);
    for (count, &at) in offsets[1..].iter().enumerate() {
        let spliced = [&bytes[..at as usize], &stale[at as usize..]].concat();
        assert_eq!(read(&spliced, KNOWS_NOTHING).0, payloads[..count]);
    }
}

#[test]
fn a_log_stored_as_a_value_in_a_torn_tail_is_no_evidence() {
    let (inner, _) = log_of(IDENTITY, &small_payloads(), &[1, 2, 3, 4, 5, 6, 7]);
    let (mut bytes, offsets) = log_of(IDENTITY, &[vec![1; 300], inner], &[]);
    *bytes.last_mut().unwrap() ^= 1;
    check_row(&bytes, &[vec![1; 300]], offsets[2]);
}

#[test]
fn salvage_gives_every_whole_record_and_counts_the_rest() {
    let payloads = small_payloads();
    let (mut bytes, offsets) = log_of(IDENTITY, &payloads, &[6]);
    bytes[3] ^= 1;
    bytes[offsets[4] as usize + 2] ^= 1;
    bytes.extend_from_slice(&[0; 99]);
    bytes.push(1);
    let file = Stored(bytes);
    let mut salvage = Salvage::open(&file, IDENTITY, Cause::Check).unwrap();
    let mut found = Vec::new();
    while let Some(record) = salvage.next().unwrap() {
        found.push((record.offset, record.skipped_bytes, record.payload.to_vec()));
    }
    let expected: Vec<_> = [0, 1, 2, 4, 5, 6, 7]
        .map(|index| {
            let skipped = match index {
                0 => offsets[1],
                4 => offsets[5] - offsets[4],
                _ => 0,
            };
            (offsets[index + 1], skipped, payloads[index].clone())
        })
        .into();
    assert_eq!(found, expected);
    assert_eq!(salvage.rest_bytes().unwrap(), 100);
    assert_eq!(durable_bytes(&file, IDENTITY, Cause::Check).unwrap(), offsets[7]);
}

#[test]
fn a_length_longer_than_the_file_allocates_nothing() {
    let (mut bytes, offsets) = log_of(IDENTITY, &small_payloads(), &[]);
    let at = offsets[8] as usize;
    bytes[at + 8..at + 13].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0x0f]);
    check_row(&bytes, &small_payloads()[..7], offsets[8]);
}

#[test]
fn many_bytes_that_look_like_records_end_in_bounded_time() {
    let (mut bytes, offsets) = log_of(IDENTITY, &small_payloads()[..1], &[]);
    let marker = frame::Frame::new(IDENTITY).marker;
    let declared = 1_000_000;
    for _ in 0..declared / 5 {
        bytes.extend_from_slice(&marker);
        bytes.extend_from_slice(&[0; 6]);
        bytes.extend_from_slice(&[0xc0, 0x84, 0x3d, 0]);
    }
    let (records, end) = read(&bytes, KNOWS_NOTHING);
    assert_eq!(records.len(), 1);
    let error = end.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.offset().unwrap() >= offsets[2]);
}

#[test]
fn evidence_is_found_far_behind_the_damage_wherever_windows_meet() {
    let mut random = Random::new(3);
    for round in 0..40 {
        let mut noise = vec![0; 250_000 + random.below(20_000) as usize];
        random.fill(&mut noise);
        let payloads = [vec![1; 500], noise.clone(), noise, vec![2; 700], vec![3; 9]];
        let (mut bytes, offsets) = log_of(IDENTITY, &payloads, &[4]);
        bytes[offsets[2] as usize + 4] ^= 1;
        let (records, end) = read(&bytes, KNOWS_NOTHING);
        assert_eq!(records, payloads[..1]);
        assert!(is_corruption(&end), "round {round}");
        bytes.truncate(offsets[5] as usize);
        let bytes_dropped = offsets[5] - offsets[2];
        assert_eq!(
            read(&bytes, KNOWS_NOTHING).1.unwrap(),
            End::TornTail { at: offsets[2], bytes_dropped }
        );
    }
}

#[test]
fn a_marker_cut_by_the_end_of_a_window_is_found() {
    for payload_bytes in 262_000..262_200 {
        let (mut bytes, offsets) = log_of(IDENTITY, &[vec![0; payload_bytes], vec![]], &[1]);
        bytes[offsets[1] as usize + 4] ^= 1;
        assert!(is_corruption(&read(&bytes, KNOWS_NOTHING).1), "{payload_bytes} bytes");
    }
}

#[test]
fn random_mutations_give_a_prefix_or_corruption() {
    let payloads = small_payloads();
    let (bytes, offsets) = log_of(IDENTITY, &payloads, &[2, 4]);
    let durable = offsets[5] as usize;
    let mut random = Random::new(11);
    for _ in 0..100_000 {
        let mut damaged = bytes.clone();
        let mut first = bytes.len();
        for _ in 0..=random.below(4) {
            let at = random.below(damaged.len() as u64) as usize;
            let length = (1 + random.below(12) as usize).min(damaged.len() - at);
            let from = random.below((damaged.len() - length) as u64 + 1) as usize;
            match random.below(4) {
                0 => random.fill(&mut damaged[at..at + length]),
                1 => damaged[at..at + length].fill(0),
                2 => damaged.copy_within(from..from + length, at),
                _ => damaged[at] ^= 1 << random.below(8),
            }
        }
        first = damaged.iter().zip(&bytes).position(|(a, b)| a != b).unwrap_or(first);
        let whole = offsets[1..].iter().take_while(|&&offset| offset <= first as u64).count();
        let (records, end) = read(&damaged, KNOWS_NOTHING);
        assert_eq!(records, payloads[..whole.saturating_sub(1)]);
        assert!(end.is_ok() || is_corruption(&end));
        let evidence_is_whole = damaged[offsets[5] as usize..] == bytes[offsets[5] as usize..];
        assert!(first >= durable || !evidence_is_whole || is_corruption(&end));
    }
}
