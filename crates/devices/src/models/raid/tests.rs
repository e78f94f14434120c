//! Arrays: what parity costs to the byte, where chunks lie, and that members work side by side.

use super::*;
use crate::calibration::Bench;

const CHUNK: u64 = 64 * 1024;

fn raid(level: u32, members: u64) -> Box<dyn Model> {
    make(&format!("raid:level={level},members={members},member=hdd:capacity=1GiB")).unwrap()
}

fn moved(model: &mut dyn Model, access: Access, offset: u64, bytes: u64) -> (u64, u64) {
    // Rest before each request: nothing is in the members' write caches.
    let at_ns = offset * 1000 + 1_000_000_000;
    let served = model.serve(&Request { access, offset, bytes, at_ns }).unwrap();
    (served.moved.read_bytes, served.moved.write_bytes)
}

#[test]
fn capacity_is_that_of_the_data() {
    for (level, data) in [(0, 6), (5, 5), (6, 4)] {
        assert_eq!(raid(level, 6).geometry().capacity_bytes, data << 30);
    }
}

#[test]
fn a_whole_stripe_costs_its_parity() {
    for (level, data, parity) in [(0, 6, 0), (5, 5, 1), (6, 4, 2)] {
        let model = &mut *raid(level, 6);
        let stripe = data * CHUNK;
        assert_eq!(moved(model, Access::Write, 3 * stripe, stripe), (0, (data + parity) * CHUNK));
        let many = moved(model, Access::Write, 10 * stripe, 8 * stripe);
        assert_eq!(many, (0, 8 * (data + parity) * CHUNK));
    }
}

#[test]
fn a_small_write_reads_and_writes_data_and_parity() {
    for (level, times) in [(0, 1), (5, 2), (6, 3)] {
        let model = &mut *raid(level, 6);
        let read = if level == 0 { 0 } else { times * 4096 };
        assert_eq!(moved(model, Access::Write, 1 << 20, 4096), (read, times * 4096));
    }
}

#[test]
fn the_ends_of_a_long_write_are_read_first() {
    let model = &mut *raid(5, 6);
    let stripe = 5 * CHUNK;
    // Half a chunk, two stripes, one chunk and a sector of the next.
    let (read, write) =
        moved(model, Access::Write, stripe - CHUNK / 2, CHUNK / 2 + 2 * stripe + CHUNK + 4096);
    let parts = (CHUNK / 2) * 2 + (CHUNK + 4096) + CHUNK;
    assert_eq!(read, parts);
    assert_eq!(write, parts + 2 * 6 * CHUNK);
    // Across a border, neither stripe whole.
    let (read, write) = moved(model, Access::Write, 9 * stripe - 4096, 8192);
    assert_eq!((read, write), (4 * 4096, 4 * 4096));
}

#[test]
fn chunks_lie_on_different_members_and_never_on_parity() {
    for parity in 0..3 {
        let layout = Layout { members: 7, parity, chunk_bytes: CHUNK };
        let mut taken = std::collections::BTreeSet::new();
        for stripe in 0..21 {
            for at in 0..parity {
                taken.insert((layout.member(stripe, at), stripe * CHUNK));
            }
        }
        for (member, bytes) in layout.parts(0..21 * layout.stripe_bytes()) {
            assert!(taken.insert((member, bytes.start)), "{member} {bytes:?}");
        }
        assert_eq!(taken.len(), 7 * 21);
    }
}

#[test]
fn reads_move_what_was_asked_for() {
    for level in [0, 5, 6] {
        let model = &mut *raid(level, 6);
        assert_eq!(moved(model, Access::Read, 20_480, 3 << 20), (3 << 20, 0));
    }
}

#[test]
fn members_stream_side_by_side() {
    let mut bench = Bench::new(raid(0, 4));
    let rate = bench.sequential(Access::Write).unwrap().megabytes;
    // Four disks of 155 MB/s at the outer edge, slower toward the end of the phase: 25 % of each 1
    // GiB disk is written, whose rate falls linearly to 5/6 of its range.
    assert!((450.0..620.0).contains(&rate), "{rate}");
}

#[test]
fn a_member_must_take_writes_in_place() {
    let error = make("raid:member=zoned").err().unwrap();
    assert!(error.message().contains("in place"), "{error}");
    assert!(make("raid:level=6,members=3").is_err());
    assert!(make("raid:member=raid:level=0,members=2,member=hdd:capacity=1GiB").is_ok());
}
