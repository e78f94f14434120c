//! Every rule of zones is kept, and breaking it changes nothing.

use super::*;
use crate::calibration::Bench;
use crate::models::make;
use base::random::Random;
use media::block::Moved;

const ZONE: u64 = 1 << 20;

/// 32 zones of 1 MiB, the first two conventional, four open at a time.
fn zoned(more: &str) -> Box<dyn Model> {
    make(&format!("zoned:capacity=32MiB,zone=1MiB,conventional=7%,open=4{more}")).unwrap()
}

fn send(model: &mut dyn Model, access: Access, offset: u64, bytes: u64) -> Result<Served> {
    model.serve(&Request { access, offset, bytes, at_ns: 0 })
}

fn zones(model: &dyn Model) -> Vec<Zone> {
    (0..32).map(|number| model.zone(number * ZONE).unwrap()).collect()
}

/// The request is refused under this name, and no zone changes.
fn refused(model: &mut dyn Model, access: Access, offset: u64, bytes: u64, name: &str) {
    let before = zones(model);
    let error = send(model, access, offset, bytes).unwrap_err();
    assert!(error.message().starts_with(name), "{error}");
    assert_eq!(zones(model), before);
}

#[test]
fn zones_have_the_states_of_the_standard() {
    let model = &mut *zoned("");
    let state = |model: &dyn Model, number: u64| model.zone(number * ZONE + 4096).unwrap().state;
    assert_eq!(state(model, 1), ZoneState::Conventional);
    assert_eq!(state(model, 2), ZoneState::Empty);
    send(model, Access::Write, 2 * ZONE, 8192).unwrap();
    let zone = model.zone(2 * ZONE).unwrap();
    assert_eq!((zone.write_pointer, zone.state), (2 * ZONE + 8192, ZoneState::Open));
    send(model, Access::Write, 2 * ZONE + 8192, ZONE - 8192).unwrap();
    assert_eq!(state(model, 2), ZoneState::Full);
    send(model, Access::ResetZone, 2 * ZONE, 0).unwrap();
    assert_eq!(state(model, 2), ZoneState::Empty);
    send(model, Access::FinishZone, 2 * ZONE, 0).unwrap();
    assert_eq!(model.zone(2 * ZONE).unwrap().write_pointer, 3 * ZONE);
    assert!(send(model, Access::Read, 2 * ZONE, ZONE).is_ok());
    assert!(model.zone(32 * ZONE).is_none());
}

#[test]
fn every_rule_is_an_error_with_its_name() {
    let model = &mut *zoned("");
    send(model, Access::Write, 2 * ZONE, 8192).unwrap();
    refused(model, Access::Write, 2 * ZONE, 4096, "UNALIGNED WRITE COMMAND");
    refused(model, Access::Write, 2 * ZONE + 12_288, 4096, "UNALIGNED WRITE COMMAND");
    refused(model, Access::Write, 2 * ZONE + 8192, ZONE, "WRITE BOUNDARY VIOLATION");
    refused(model, Access::Write, 2 * ZONE - 4096, 8192, "WRITE BOUNDARY VIOLATION");
    refused(model, Access::Read, 2 * ZONE + 4096, 8192, "ATTEMPT TO READ INVALID DATA");
    refused(model, Access::Read, 2 * ZONE - 4096, 8192, "READ BOUNDARY VIOLATION");
    refused(model, Access::ResetZone, 0, 0, "INVALID FIELD IN CDB");
    refused(model, Access::ResetZone, 2 * ZONE + 4096, 0, "INVALID FIELD IN CDB");
    refused(model, Access::FinishZone, ZONE, 0, "INVALID FIELD IN CDB");
    send(model, Access::FinishZone, 2 * ZONE, 0).unwrap();
    refused(model, Access::Write, 2 * ZONE + 8192, 4096, "INVALID FIELD IN CDB");
}

#[test]
fn one_zone_too_many_is_refused_or_closes_the_oldest() {
    let model = &mut *zoned("");
    for number in 2..6 {
        send(model, Access::Write, number * ZONE, 4096).unwrap();
    }
    refused(model, Access::Write, 6 * ZONE, 4096, "INSUFFICIENT ZONE RESOURCES");
    send(model, Access::FinishZone, 4 * ZONE, 0).unwrap();
    send(model, Access::Write, 6 * ZONE, 4096).unwrap();

    let model = &mut *zoned(",at-limit=close");
    for number in [2, 3, 4, 5, 2, 6] {
        let at = model.zone(number * ZONE).unwrap().write_pointer;
        send(model, Access::Write, at, 4096).unwrap();
    }
    let states: Vec<ZoneState> = zones(model).iter().map(|zone| zone.state).collect();
    assert_eq!(states.iter().filter(|&&state| state == ZoneState::Open).count(), 4);
    assert_eq!(states[3], ZoneState::Closed);
    send(model, Access::Write, 3 * ZONE + 4096, 4096).unwrap();
    assert_eq!(model.zone(4 * ZONE).unwrap().state, ZoneState::Closed);
}

#[test]
fn the_medium_moves_what_the_host_moves() {
    let model = &mut *zoned("");
    let mut random = Random::new(1);
    let (mut host, mut medium) = (Moved::default(), Moved::default());
    let mut at_ns = 0;
    for _ in 0..5000 {
        let number = 2 + random.below(4);
        let zone = model.zone(number * ZONE).unwrap();
        let bytes = 4096 * (1 + random.below(20));
        let written = zone.write_pointer - zone.start;
        let (access, offset) = match random.below(3) {
            0 if written >= bytes => (Access::Read, zone.start),
            _ if zone.state == ZoneState::Full => (Access::ResetZone, zone.start),
            _ if written + bytes <= ZONE => (Access::Write, zone.write_pointer),
            _ => (Access::FinishZone, zone.start),
        };
        let served = model.serve(&Request { access, offset, bytes, at_ns }).unwrap();
        // Rest empties the write cache, so that every read reaches the platter.
        at_ns = served.done_ns + 1_000_000_000;
        host.write_bytes += if access == Access::Write { bytes } else { 0 };
        host.read_bytes += if access == Access::Read { bytes } else { 0 };
        medium.write_bytes += served.moved.write_bytes;
        medium.read_bytes += served.moved.read_bytes;
    }
    assert_eq!(host, medium);
}

#[test]
fn figures_are_those_of_the_table() {
    let within = |figure: f64, table: f64| {
        assert!((figure / table - 1.0).abs() < 0.02, "{figure} is not {table}");
    };
    let mut bench = Bench::new(make("zoned").unwrap());
    within(bench.sequential(Access::Write).unwrap().megabytes, 148.0);
    within(bench.sequential(Access::Read).unwrap().megabytes, 165.0);
}
