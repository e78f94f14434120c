//! The shingled tracks against a plain model of one state for each sector.

use super::*;
use crate::calibration::Bench;
use crate::models::make;
use proptest::prelude::*;

const TRACK: u64 = 64 * 1024;
/// Sectors of a track, and of the device.
const PER_TRACK: u64 = TRACK / SECTOR;
const SECTORS: u64 = 40 * PER_TRACK;

fn raw(overlap: u64) -> Box<dyn Model> {
    let bytes = SECTORS * SECTOR;
    make(&format!("smr-raw:capacity={bytes},track={TRACK},overlap={overlap}")).unwrap()
}

fn request(access: Access, sectors: Range<u64>) -> Request {
    let bytes = (sectors.end - sectors.start) * SECTOR;
    Request { access, offset: sectors.start * SECTOR, bytes, at_ns: 0 }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Free,
    Valid,
    Destroyed,
}

proptest! {
    #[test]
    fn it_agrees_with_one_state_for_each_sector(
        overlap in 1u64..5,
        steps in prop::collection::vec((0u8..4, 0..SECTORS, 1..3 * PER_TRACK), 1..50),
    ) {
        let mut model = raw(overlap);
        let mut states = vec![State::Free; SECTORS as usize];
        for (kind, start, count) in steps {
            let range = start..(start + count).min(SECTORS);
            let here = range.start as usize..range.end as usize;
            match kind {
                0 => {
                    let served = model.serve(&request(Access::Read, range));
                    let is_whole = !states[here].contains(&State::Destroyed);
                    prop_assert_eq!(served.is_ok(), is_whole);
                }
                1 => {
                    model.serve(&request(Access::Discard, range)).unwrap();
                    states[here].fill(State::Free);
                }
                _ => {
                    let served = model.serve(&request(Access::Write, range.clone())).unwrap();
                    let last_track = (range.end - 1) / PER_TRACK;
                    let mut lost = Vec::new();
                    for sector in range.end..SECTORS {
                        let is_reached = sector / PER_TRACK <= last_track + overlap;
                        let state = &mut states[sector as usize];
                        if is_reached && *state == State::Valid {
                            *state = State::Destroyed;
                            lost.push(sector);
                        }
                    }
                    states[here].fill(State::Valid);
                    let said = served.destroyed.iter().flat_map(sectors);
                    prop_assert_eq!(said.collect::<Vec<_>>(), lost);
                }
            }
        }
    }

    #[test]
    fn appending_before_a_guard_destroys_nothing(
        overlap in 1u64..5,
        guarded in 10u64..30,
        sizes in prop::collection::vec(1u64..40, 1..40),
    ) {
        let mut model = raw(overlap);
        let valid = guarded * PER_TRACK..SECTORS;
        model.serve(&request(Access::Write, valid)).unwrap();
        let free_end = (guarded - overlap) * PER_TRACK;
        let mut at = 0;
        for size in sizes {
            let range = at..(at + size).min(free_end);
            if range.is_empty() {
                break;
            }
            at = range.end;
            prop_assert!(model.serve(&request(Access::Write, range)).unwrap().destroyed.is_empty());
        }
        prop_assert!(model.facts().contains(&("violations", 0.0)));
    }
}

#[test]
fn one_sector_past_the_guard_destroys_a_track() {
    let mut model = raw(2);
    model.serve(&request(Access::Write, 3 * PER_TRACK..10 * PER_TRACK)).unwrap();
    let served = model.serve(&request(Access::Write, PER_TRACK..PER_TRACK + 1)).unwrap();
    assert_eq!(served.destroyed, vec![3 * TRACK..4 * TRACK]);
    let read = model.serve(&request(Access::Read, 3 * PER_TRACK..5 * PER_TRACK));
    let error = read.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.message().contains("bytes 196608 to 262144"), "{error}");
}

#[test]
fn figures_are_those_of_the_table() {
    let mut bench = Bench::new(make("smr-raw").unwrap());
    let write = bench.sequential(Access::Write).unwrap().megabytes;
    assert!((write / 148.0 - 1.0).abs() < 0.01, "{write}");
    let read = bench.sequential(Access::Read).unwrap().megabytes;
    assert!((read / 165.0 - 1.0).abs() < 0.01, "{read}");
    let random = bench.random(Access::Read, 10_000).unwrap().requests;
    assert!((random / 70.0 - 1.0).abs() < 0.02, "{random}");
}

/// The geometry said two tracks, and the rest of the track that a write ends in came on top: guards
/// of that size lost data.
#[test]
fn no_write_reaches_further_than_the_geometry_says() {
    let Overwrite::DestroysDownstream { damage_bytes } = raw(2).geometry().overwrite else {
        panic!("a raw shingled disk")
    };
    let guard = damage_bytes / SECTOR;
    let destroyed = |end: u64, distance: u64| {
        let mut model = raw(2);
        let valid = end + distance;
        model.serve(&request(Access::Write, valid..valid + 1)).unwrap();
        !model.serve(&request(Access::Write, end - 1..end)).unwrap().destroyed.is_empty()
    };
    let ends = || PER_TRACK + 1..=2 * PER_TRACK;
    assert!(ends().all(|end| !destroyed(end, guard)));
    assert!(ends().any(|end| destroyed(end, guard - 1)), "and some write reaches so far");
}
