//! Costs of single bands to the byte, the formula of the set-associative cache, and the table.

use super::*;
use crate::calibration::Bench;
use crate::models::make;
use base::random::Random;
use media::block::Moved;

const MIB: u64 = 1 << 20;
const BAND: u64 = 40 * MIB;

/// A device, its time, and what it moved.
struct Host {
    model: Box<dyn Model>,
    now_ns: u64,
    moved: Moved,
}

impl Host {
    fn new(text: &str) -> Host {
        let model = make(&format!("smr-banded:{text}")).unwrap();
        Host { model, now_ns: 0, moved: Moved::default() }
    }

    fn send(&mut self, access: Access, offset: u64, bytes: u64) -> u64 {
        let request = Request { access, offset, bytes, at_ns: self.now_ns };
        let served = self.model.serve(&request).unwrap();
        let took_ns = served.done_ns - self.now_ns;
        self.now_ns = served.done_ns;
        self.moved.write_bytes += served.moved.write_bytes;
        self.moved.read_bytes += served.moved.read_bytes;
        took_ns
    }

    /// What the medium moved since the last call: read, written.
    fn moved(&mut self) -> (u64, u64) {
        let moved = std::mem::take(&mut self.moved);
        (moved.read_bytes, moved.write_bytes)
    }

    fn write_all(&mut self, offset: u64, bytes: u64) {
        for at in (offset..offset + bytes).step_by(MIB as usize) {
            self.send(Access::Write, at, MIB);
        }
        self.send(Access::Flush, 0, 0);
    }
}

fn within(figure: f64, table: f64, percent: f64) {
    assert!((figure / table - 1.0).abs() <= percent / 100.0, "{figure} is not {table}");
}

#[test]
fn figures_are_those_of_the_table() {
    let mut bench = Bench::new(make("smr-banded").unwrap());
    within(bench.sequential(Access::Write).unwrap().megabytes, 148.0, 1.0);
    within(bench.sequential(Access::Read).unwrap().megabytes, 165.0, 1.0);
    within(bench.random(Access::Read, 10_000).unwrap().requests, 70.0, 2.0);
}

#[test]
fn random_writes_are_fast_until_the_map_is_full_and_slow_then() {
    // 10 % of the drive, with 10 % of its map.
    let drive = make("smr-banded:used=yes,capacity=500GB,map=34500").unwrap();
    let mut bench = Bench::new(drive);
    within(bench.random(Access::Write, 10_000).unwrap().requests, 140.0, 2.0);
    bench.random(Access::Write, 120_000).unwrap();
    within(bench.random(Access::Write, 20_000).unwrap().requests, 5.0, 5.0);
}

#[test]
fn overwriting_everything_in_order_streams() {
    for cache in ["none", "log", "set-associative"] {
        let mut host = Host::new(&format!("used=yes,media-cache={cache}"));
        host.write_all(0, 25 * BAND);
        assert_eq!(host.moved(), (0, 25 * BAND), "{cache}");
        let rate = (25 * BAND) as f64 * 1e3 / host.now_ns as f64;
        within(rate, 148.0, 2.0);
    }
}

#[test]
fn an_append_in_order_is_written_once() {
    for cache in ["none", "log", "set-associative"] {
        let mut host = Host::new(&format!("capacity=1GiB,media-cache={cache}"));
        host.write_all(0, 100 * MIB);
        assert_eq!(host.moved(), (0, 100 * MIB), "{cache}");
    }
}

#[test]
fn one_overwritten_sector_costs_the_band() {
    let mut host = Host::new("capacity=1GiB,media-cache=none,used=yes");
    host.send(Access::Write, 3 * BAND + 8192, 4096);
    assert_eq!(host.moved(), (0, 0));
    let took_ns = host.send(Access::Flush, 0, 0);
    assert_eq!(host.moved(), (BAND, BAND));
    // 0.25 s to read, 0.28 s to write, at 14 % of the way to half the rate, and two positionings.
    assert!((500_000_000..700_000_000).contains(&took_ns), "{took_ns}");
}

#[test]
fn a_band_is_rewritten_as_far_as_it_holds_data() {
    let mut host = Host::new("capacity=1GiB,media-cache=none");
    host.write_all(0, 10 * MIB);
    host.moved();
    host.write_all(4 * MIB, 4 * MIB);
    assert_eq!(host.moved(), (10 * MIB, 10 * MIB));
    host.write_all(8 * MIB, 4 * MIB);
    assert_eq!(host.moved(), (10 * MIB, 12 * MIB));
    host.write_all(12 * MIB, 4 * MIB);
    assert_eq!(host.moved(), (0, 4 * MIB));
}

#[test]
fn a_band_that_is_replaced_is_not_read() {
    let mut host = Host::new("capacity=1GiB,media-cache=none,used=yes");
    host.write_all(BAND, 2 * BAND);
    assert_eq!(host.moved(), (0, 2 * BAND));
    host.write_all(BAND, BAND / 2);
    assert_eq!(host.moved(), (BAND, BAND));
}

#[test]
fn overwrites_of_a_band_gather_until_another_band_or_rest() {
    let mut host = Host::new("capacity=1GiB,media-cache=none,used=yes");
    for sector in [5, 900, 7, 2000] {
        host.send(Access::Write, sector * 4096, 4096);
    }
    host.send(Access::Write, BAND, 4096);
    assert_eq!(host.moved(), (BAND, BAND));
    host.now_ns += 1_000_000_000;
    host.send(Access::Read, 5 * BAND, 4096);
    assert_eq!(host.moved(), (BAND + 4096, BAND));
}

#[test]
fn the_set_associative_cache_costs_its_formula() {
    // 25 bands, one cache band: random sectors of `bands` bands, until it is cleaned once.
    for bands in [1, 7, 25] {
        let mut host = Host::new("capacity=1GiB,media-cache=set-associative,used=yes");
        let mut random = Random::new(bands);
        let (mut admitted, mut band) = (0, 0);
        while host.moved.read_bytes == 0 {
            let sector = random.below(BAND / 4096 / 2) * 2;
            host.send(Access::Write, band * BAND + sector * 4096, 4096);
            admitted += 4096;
            band = (band + 1) % bands;
        }
        // The write that found the cache full is admitted after the cleaning.
        admitted -= 4096;
        assert_eq!(admitted, BAND);
        let awa = (host.moved.write_bytes - 4096) as f64 / admitted as f64;
        // What was overwritten in the memory of the drive was not written twice.
        let formula = 1.0 + (bands * BAND) as f64 / admitted as f64;
        within(awa, formula, 0.1);
        assert_eq!(host.moved.read_bytes, BAND + bands * BAND);
    }
}

#[test]
fn cleaning_one_band_of_the_log_writes_it_twice() {
    let mut host = Host::new("capacity=1GiB,used=yes,map=3");
    for (band, sector) in [(2, 1), (3, 1), (2, 9)] {
        host.send(Access::Write, band * BAND + sector * 4096, 4096);
    }
    host.send(Access::Write, 9 * BAND, 4096);
    host.send(Access::Write, 10 * BAND, 4096);
    let (read, written) = host.moved();
    assert_eq!(written, 5 * 4096 + 2 * BAND);
    assert!(read >= BAND + 4096, "{read}");
}

#[test]
fn an_idle_drive_empties_its_log() {
    let mut host = Host::new("capacity=1GiB,used=yes");
    for band in 0..5 {
        host.send(Access::Write, band * BAND, 4096);
    }
    host.moved();
    host.now_ns += 1_400_000_000;
    host.send(Access::Flush, 0, 0);
    assert_eq!(host.moved(), (0, 0));
    host.now_ns += 60_000_000_000;
    host.send(Access::Flush, 0, 0);
    assert_eq!(host.moved().1, 2 * 5 * BAND);
    assert_eq!(host.model.facts().last().unwrap().1, 0.0);
}

#[test]
fn reads_find_the_newest_place() {
    let mut host = Host::new("capacity=1GiB,used=yes");
    host.send(Access::Write, 4096, 4096);
    host.send(Access::Read, 0, 12_288);
    let (read, _) = host.moved();
    assert_eq!(read, 12_288 + 4096);
    host.send(Access::Read, 4096, 4096);
    assert_eq!(host.moved().0, 4096);
}

#[test]
fn small_synced_appends_stay_in_the_cache() {
    let mut host = Host::new("capacity=1GiB,used=yes");
    for number in 0..400 {
        host.send(Access::Write, number * 4096, 4096);
        host.send(Access::Flush, 0, 0);
    }
    assert_eq!(host.moved(), (0, 400 * 4096));
}
