//! The hard disk against its table, and single requests against times computed by hand.

use super::*;
use crate::calibration::Bench;
use crate::models::make;

/// One turn of 7200 in a minute.
const TURN_NS: u64 = 8_333_333;

fn hdd(text: &str) -> Hdd {
    Hdd::new(&Settings::parse(DESCRIPTOR.parameters, text).unwrap()).unwrap()
}

fn within(figure: f64, table: f64, percent: f64) {
    assert!((figure / table - 1.0).abs() <= percent / 100.0, "{figure} is not {table}");
}

#[test]
fn figures_are_those_of_the_table() {
    let mut bench = Bench::new(make("hdd").unwrap());
    within(bench.sequential(Access::Read).unwrap().megabytes, 169.0, 1.0);
    within(bench.sequential(Access::Write).unwrap().megabytes, 155.0, 1.0);
    within(bench.random(Access::Read, 10_000).unwrap().requests, 64.0, 2.0);
    bench.random(Access::Write, 500).unwrap();
    within(bench.random(Access::Write, 10_000).unwrap().requests, 143.0, 2.0);
}

#[test]
fn random_seeks_have_the_mean_that_was_asked_for() {
    // Without rotation to speak of, a random read is a seek: 11.4 ms and the interface.
    let mut bench = Bench::new(make("hdd:rpm=20000,seek-mean=8.5ms,seek-full=18ms").unwrap());
    let mean_ms = 1e3 / bench.random(Access::Read, 20_000).unwrap().requests;
    within(mean_ms, 8.5 + 1.5, 1.0);
}

#[test]
fn a_seek_curve_that_does_not_exist_is_refused() {
    let error = make("hdd:seek-mean=2ms").err().unwrap();
    assert!(error.message().contains("seek-mean"), "{error}");
}

#[test]
fn the_inner_edge_is_half_as_fast() {
    let mut disk = hdd("");
    let end = disk.geometry.capacity_bytes;
    let mut moved = Moved::default();
    let ns = |disk: &mut Hdd, offset: u64, at: u64, moved: &mut Moved| {
        let begun = disk.read(offset, 1 << 20, at, moved);
        disk.read(offset + (1 << 20), 1 << 20, begun, moved) - begun
    };
    let outer = ns(&mut disk, 0, 0, &mut moved);
    let inner = ns(&mut disk, end - (2 << 20), 1_000_000_000, &mut moved);
    within(inner as f64 / outer as f64, 2.0, 0.1);
}

#[test]
fn what_comes_just_too_late_waits_for_a_turn() {
    let mut disk = hdd("queue=0");
    let mut moved = Moved::default();
    disk.write(0, 4096, 0, &mut moved);
    let free_ns = disk.free_ns();
    let late_ns = 100_000;
    let pass_ns = disk.write(4096, 4096, free_ns + late_ns, &mut moved) - (free_ns + late_ns);
    // 4 KiB at 155 MB/s take 26,425 ns.
    assert!(pass_ns.abs_diff(TURN_NS - late_ns + 26_425) < 10, "{pass_ns}");
}

#[test]
fn a_stream_is_read_ahead_while_the_host_thinks() {
    let mut disk = hdd("");
    let mut moved = Moved::default();
    let first = disk.read(0, 1 << 20, 0, &mut moved);
    let thinking_ns = 20_000_000;
    let second = disk.read(1 << 20, 1 << 20, first + thinking_ns, &mut moved);
    assert_eq!(second, first + thinking_ns + interface_ns(1 << 20));
}

#[test]
fn writes_are_answered_early_and_a_flush_waits_for_them() {
    let mut disk = hdd("");
    let mut moved = Moved::default();
    let taken = disk.write(1 << 30, 4096, 0, &mut moved);
    assert_eq!(taken, interface_ns(4096));
    let flushed = disk.flush(taken);
    assert!(flushed > 1_000_000, "{flushed}");
    assert_eq!(disk.flush(flushed), flushed + COMMAND_NS);
}

#[test]
fn idle_time_empties_the_cache() {
    let mut disk = hdd("");
    let mut moved = Moved::default();
    for number in 0..10 {
        disk.write(number << 30, 4096, number * 50_000, &mut moved);
    }
    disk.use_idle_time(1_000_000_000);
    assert_eq!(disk.cache.size(), (0, 0));
    assert_eq!(disk.flush(1_000_000_000), 1_000_000_000 + COMMAND_NS);
}

#[test]
fn after_a_read_the_arm_waits_for_another() {
    let mut disk = hdd("idle=10ms");
    let mut moved = Moved::default();
    let read = disk.read(0, 4096, 0, &mut moved);
    let taken = disk.write(1 << 30, 4096, read, &mut moved);
    disk.use_idle_time(taken + 5_000_000);
    assert_eq!(disk.cache.size().0, 1);
    disk.use_idle_time(taken + 11_000_000);
    assert_eq!(disk.cache.size().0, 0);
}

#[test]
fn what_is_written_twice_in_the_cache_moves_once() {
    let mut disk = hdd("");
    let mut moved = Moved::default();
    disk.read(1 << 30, 4096, 0, &mut moved);
    disk.write(0, 8192, 16_000_000, &mut moved);
    disk.write(4096, 8192, 16_000_000, &mut moved);
    disk.read(4096, 8192, 16_000_000, &mut moved);
    assert_eq!(moved, Moved { write_bytes: 12_288, read_bytes: 4096 });
}
