//! What goes in comes out, at its cost.

use super::*;
use base::ErrorKind;
use proptest::prelude::*;

#[test]
fn records_come_back_in_order() {
    let payloads = small_payloads();
    let (bytes, offsets) = log_of(IDENTITY, &payloads, &[2, 5]);
    assert_eq!(bytes.len() as u64, *offsets.last().unwrap());
    let (records, end) = read(&bytes, bytes.len() as u64);
    assert_eq!(records, payloads);
    assert_eq!(end.unwrap(), End::Clean);
}

#[test]
fn a_small_record_costs_ten_bytes_and_a_long_unsynced_tail_two_more() {
    let (mut writer, _) = writer(IDENTITY);
    writer.sync().unwrap();
    let before = writer.bytes();
    writer.append(&[&[7; 100]]).unwrap();
    assert_eq!(writer.bytes() - before, 110);
    writer.append(&[&[7; 10_000]]).unwrap();
    writer.append(&[&[7; 10_000]]).unwrap();
    let before = writer.bytes();
    writer.append(&[&[7; 100]]).unwrap();
    assert_eq!(writer.bytes() - before, 112);
}

#[test]
fn a_record_that_is_written_in_place_has_the_bytes_of_a_copied_one() {
    let (mut copied, copied_bytes) = writer(IDENTITY);
    let (mut in_place, in_place_bytes) = writer(IDENTITY);
    for (n, payload) in small_payloads().into_iter().enumerate() {
        copied.append(&[&payload]).unwrap();
        let mut record = vec![0xee; RECORD_HEAD_BYTES_MAX];
        record.extend_from_slice(&payload);
        in_place.append_in_place(&mut record).unwrap();
        if n % 3 == 0 {
            copied.sync().unwrap();
            in_place.sync().unwrap();
        }
    }
    assert_eq!(copied_bytes.take(), in_place_bytes.take());
    assert_eq!((copied.digest(), copied.bytes()), (in_place.digest(), in_place.bytes()));
    let refused = in_place.append_in_place(&mut [0; RECORD_HEAD_BYTES_MAX - 1]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    in_place.append(&[b"goes on"]).unwrap();
}

#[test]
fn reader_and_writer_agree_on_bytes_and_digest() {
    let (mut writer, bytes) = writer(IDENTITY);
    for payload in small_payloads() {
        writer.append(&[&payload]).unwrap();
        writer.sync().unwrap();
    }
    let file = Stored(bytes.take());
    let mut reader = LogReader::open(&file, IDENTITY, 0, Cause::Recovery).unwrap();
    while reader.next().unwrap().is_some() {}
    assert_eq!(reader.as_previous(FileId(9), 7), writer.as_previous(7));
    assert_eq!(reader.records(), 8);
    assert!(reader.durable_bytes() > 0 && reader.durable_bytes() < reader.bytes());
    assert_eq!(reader.header().unwrap().salt, 0x5a17);
}

#[test]
fn the_watermark_never_moves_back() {
    let (mut writer, _) = writer(IDENTITY);
    writer.append(&[b"x"]).unwrap();
    writer.mark_synced(90);
    writer.mark_synced(10);
    assert_eq!(writer.synced_bytes(), 90);
}

#[test]
fn a_failed_append_refuses_what_follows() {
    let file = Appended { bytes: Bytes::default(), bytes_max: 100, appends: 0 };
    let header = header(IDENTITY, None);
    let mut writer = LogWriter::create(Box::new(file), header, Cause::Wal).unwrap();
    assert_eq!(writer.append(&[&[0; 50]]).unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(writer.append(&[b""]).unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(writer.sync().unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(writer.bytes(), HEADER_BYTES as u64);
}

#[test]
fn a_log_begins_in_an_empty_file() {
    let bytes = Bytes::default();
    bytes.0.lock().push(1);
    let file = Appended { bytes, bytes_max: 1000, appends: 0 };
    let header = header(IDENTITY, None);
    let error = LogWriter::create(Box::new(file), header, Cause::Wal).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn records_of_any_size_come_back(
        sizes in prop::collection::vec(prop_oneof![0..200usize, 0..100_000usize], 0..30),
        synced in prop::collection::vec(0..30usize, 0..5),
        cut in 0.0..1.0f64,
    ) {
        let payloads: Vec<Vec<u8>> =
            sizes.iter().enumerate().map(|(i, &size)| vec![i as u8; size]).collect();
        let (bytes, offsets) = log_of(IDENTITY, &payloads, &synced);
        let (records, end) = read(&bytes, 0);
        prop_assert!(records == payloads);
        prop_assert_eq!(end.unwrap(), End::Clean);

        let cut = (bytes.len() as f64 * cut) as usize;
        let whole = offsets[1..].iter().take_while(|&&offset| offset <= cut as u64).count();
        let (records, end) = read(&bytes[..cut], 0);
        prop_assert!(records == payloads[..whole.saturating_sub(1)]);
        prop_assert!(end.is_ok());
    }
}

/// A file that takes everything and keeps nothing.
struct Sink(u64);

impl AppendFile for Sink {
    fn append(&mut self, bytes: &[u8], _: Cause) -> Result<()> {
        self.0 += bytes.len() as u64;
        Ok(())
    }
    fn sync(&mut self, _: Cause) -> Result<()> {
        Ok(())
    }
    fn len(&self) -> u64 {
        self.0
    }
    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        None
    }
}

#[test]
#[ignore = "a measurement: run it with --release and --nocapture"]
fn append_ns() {
    for payload_bytes in [0, 16, 130, 1000, 4000] {
        let payload = vec![7u8; payload_bytes];
        let (begin_part, end_part) = payload.split_at(payload_bytes / 2);
        let header = header(IDENTITY, None);
        let mut writer = LogWriter::create(Box::new(Sink(0)), header, Cause::Wal).unwrap();
        let mut best = f64::MAX;
        for _ in 0..20 {
            let begin = std::time::Instant::now();
            for _ in 0..10_000 {
                writer.append(&[begin_part, end_part]).unwrap();
            }
            best = best.min(begin.elapsed().as_nanos() as f64 / 10_000.0);
            writer.sync().unwrap();
        }
        println!("{payload_bytes} bytes: {best:.0} ns per append");
    }
}

#[test]
fn the_bytes_of_a_log_are_fixed() {
    let (bytes, _) = log_of(IDENTITY, &[b"one".to_vec(), vec![]], &[1]);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = [
        "5348494e474c4f47", // magic
        "01000000",         // version
        "01000000",         // kind, no previous log
        "d100000000000000", // database
        "0900000000000000", // file
        "175a000000000000", // salt
        &"00".repeat(32),   // no previous log
        "a39bca4e63ad992d", // checksum, the root of the digest
        "7d1f",             // marker
        "3cb5061c",         // checksum
        "a39b",             // link
        "0350",             // three bytes, 80 bytes behind the watermark
        "6f6e65",           // payload
        "7d1fee75fb8702820000",
    ];
    assert_eq!(hex, expected.concat());
}

#[test]
#[ignore = "a measurement: run it with --release and --nocapture"]
fn read_ns() {
    let records = 200_000;
    let (mut writer, bytes) = writer(IDENTITY);
    for _ in 0..records {
        writer.append(&[&[7; 130]]).unwrap();
    }
    let file = Stored(bytes.take());
    let begin = std::time::Instant::now();
    let mut reader = LogReader::open(&file, IDENTITY, 0, Cause::Recovery).unwrap();
    while reader.next().unwrap().is_some() {}
    let read_ns = begin.elapsed().as_nanos() as f64 / records as f64;
    assert_eq!(reader.records(), records);
    println!("130 bytes: {read_ns:.0} ns per record read");

    let mut noise = file.0[..HEADER_BYTES].to_vec();
    noise.resize(64 << 20, 0);
    base::random::Random::new(1).fill(&mut noise[HEADER_BYTES..]);
    let begin = std::time::Instant::now();
    let (_, end) = read(&noise, 0);
    println!("64 MB of noise behind the header: {end:?} after {:?}", begin.elapsed());
}
