//! The drive against closed forms, against published simulations of the same policies, and against
//! the figures that it is calibrated to.

use super::*;

/// Pages in a superblock of the limit tests: `PAGES * 4096` bytes.
const LOGICAL_SUPERBLOCKS: u32 = 2048;

/// A drive whose superblocks, without the spare one, hold `1 + rho` times its pages.
fn small(victim: Victim, rho: f64, pages_per_superblock: u32) -> SsdOptions {
    let superblock_bytes = u64::from(pages_per_superblock) * 4096;
    let spare = 1.01 / f64::from(LOGICAL_SUPERBLOCKS);
    SsdOptions {
        superblock_bytes,
        over_provisioning: rho + spare,
        victim,
        ..SsdOptions::new(u64::from(LOGICAL_SUPERBLOCKS) * superblock_bytes)
    }
}

/// Physical over logical pages when a victim is needed: the spare superblock is empty then.
fn spread(options: &SsdOptions) -> f64 {
    f64::from(options.main_superblocks() - 1) / f64::from(LOGICAL_SUPERBLOCKS)
}

/// The limit of FIFO and greedy for uniform writes (Xiang and Kurkoski; Desnoyers): the valid share
/// `u` of a victim solves `u = e^(-a (1 - u))`.
fn limit(a: f64) -> f64 {
    let mut u = 0.5_f64;
    for _ in 0..10_000 {
        u = (-a * (1.0 - u)).exp();
    }
    1.0 / (1.0 - u)
}

/// WA2 of random single-page writes, after seven drive writes, over five.
fn amplification(options: &SsdOptions, mut next: impl FnMut(&mut Random, u64) -> u64) -> f64 {
    let mut ssd = Ssd::new(&SsdOptions { wear: Wear::Filled, ..options.clone() }).unwrap();
    let mut random = Random::new(3);
    let pages = u64::from(options.logical_pages());
    let mut overwrite = |ssd: &mut Ssd, times: u64| {
        (0..times * pages).for_each(|_| ssd.flash.write(next(&mut random, pages) as u32));
    };
    overwrite(&mut ssd, 7);
    ssd.flash.forget();
    overwrite(&mut ssd, 5);
    ssd.write_amplification()
}

fn uniform(random: &mut Random, pages: u64) -> u64 {
    random.below(pages)
}

/// 80 % of writes go to 20 % of the pages.
fn hot_cold(random: &mut Random, pages: u64) -> u64 {
    let hot = pages / 5;
    if random.one_in(5) { hot + random.below(pages - hot) } else { random.below(hot) }
}

fn assert_near(found: f64, expected: f64, share: f64, what: &str) {
    let off = found / expected - 1.0;
    assert!(off.abs() <= share, "{what}: {found:.4}, expected {expected:.4}: {:.1} %", off * 100.0);
}

#[test]
fn the_limit_is_the_published_one() {
    for (rho, expected) in [(0.07, 7.82), (0.28, 2.48), (0.5, 1.72), (1.0, 1.26)] {
        assert_near(limit(1.0 + rho), expected, 0.004, "limit");
    }
}

#[test]
fn fifo_meets_the_closed_form() {
    for rho in [0.05, 0.07, 0.1, 0.2, 0.5, 1.0] {
        let options = small(Victim::Fifo, rho, 64);
        let found = amplification(&options, uniform);
        assert_near(found, limit(spread(&options)), 0.02, &format!("FIFO at {rho}"));
    }
}

#[test]
fn greedy_lies_between_small_superblocks_and_the_limit() {
    for (rho, at_64_pages) in [(0.07, 6.99), (0.15, 3.80), (0.28, 2.40), (0.5, 1.68)] {
        let options = small(Victim::Greedy, rho, 128);
        let found = amplification(&options, uniform);
        let limit = limit(spread(&options));
        assert!(at_64_pages < found && found < limit, "{rho}: {at_64_pages} {found} {limit}");
    }
}

#[test]
fn ten_choices_are_nearly_greedy() {
    for (rho, expected) in [(0.15, 3.93), (0.28, 2.47)] {
        let found = amplification(&small(Victim::Choice(10), rho, 64), uniform);
        assert_near(found, expected, 0.02, &format!("10 choices at {rho}"));
    }
}

#[test]
fn hot_pages_cost_as_simulated_elsewhere() {
    let published = [(Victim::Greedy, 2.75), (Victim::Fifo, 2.81), (Victim::CostBenefit, 2.74)];
    for (victim, expected) in published {
        let found = amplification(&small(victim, 0.28, 64), hot_cold);
        assert_near(found, expected, 0.02, &format!("{victim:?}"));
    }
}

#[test]
fn a_stream_for_moved_pages_parts_hot_from_cold() {
    let one = small(Victim::CostBenefit, 0.28, 64);
    let two = SsdOptions { gc_stream: true, ..one.clone() };
    let (one, two) = (amplification(&one, hot_cold), amplification(&two, hot_cold));
    assert!(two < 0.95 * one, "{two} of {one}");
}

fn request(access: Access, offset: u64, bytes: u64, at_ns: u64) -> Request {
    Request { access, offset, bytes, at_ns }
}

#[test]
fn overwriting_the_whole_drive_in_order_moves_nothing() {
    for victim in [Victim::Greedy, Victim::Fifo] {
        // Not a multiple of the superblock, and the least over-provisioning there is.
        let options = SsdOptions {
            capacity_bytes: 1000 * 4096,
            superblock_bytes: 64 * 4096,
            over_provisioning: 0.0,
            victim,
            ..SsdOptions::new(0)
        };
        let mut ssd = Ssd::new(&options).unwrap();
        let mut moved = Moved::default();
        for round in 0..10 {
            for page in 0..1000 {
                let write = request(Access::Write, page * 4096, 4096, round);
                let served = ssd.serve(&write).unwrap();
                moved.write_bytes += served.moved.write_bytes;
                moved.read_bytes += served.moved.read_bytes;
            }
        }
        assert_eq!(moved, Moved { write_bytes: 10_000 * 4096, read_bytes: 0 }, "{victim:?}");
        assert_eq!(ssd.write_amplification(), 1.0);
    }
}

#[test]
fn slc_first_writes_everything_twice_before_garbage_collection() {
    let options = SsdOptions {
        capacity_bytes: 4096 * 4096,
        superblock_bytes: 64 * 4096,
        slc_bytes: 4 * 64 * 4096,
        ..SsdOptions::new(0)
    };
    let mut ssd = Ssd::new(&options).unwrap();
    let mut written = 0;
    for page in 0..1024 {
        let served = ssd.serve(&request(Access::Write, page * 4096, 4096, 0)).unwrap();
        written += served.moved.write_bytes;
    }
    // All but what the cache still holds was folded. Then an hour without requests.
    assert_eq!(written, (2 * 1024 - 4 * 64) * 4096);
    let flush = ssd.serve(&request(Access::Flush, 0, 0, 3_600_000_000_000)).unwrap();
    assert_eq!(flush.moved, Moved { write_bytes: 4 * 64 * 4096, read_bytes: 4 * 64 * 4096 });
    assert_eq!(ssd.write_amplification(), 2.0);
}

#[test]
fn pages_overwritten_in_the_slc_cache_are_not_folded() {
    let options = SsdOptions {
        capacity_bytes: 4096 * 4096,
        superblock_bytes: 64 * 4096,
        slc_bytes: 4 * 64 * 4096,
        ..SsdOptions::new(0)
    };
    let mut ssd = Ssd::new(&options).unwrap();
    (0..10_000).for_each(|round| ssd.flash.write(round % 64));
    assert_eq!(ssd.write_amplification(), 1.0);
}

#[test]
fn discarded_pages_are_not_moved_if_trim_is_on() {
    for (trim, expected) in [(true, 0..1), (false, 1000..u64::MAX)] {
        let options = SsdOptions { trim, wear: Wear::Filled, ..small(Victim::Greedy, 0.07, 32) };
        let mut ssd = Ssd::new(&options).unwrap();
        let half = options.capacity_bytes / 2;
        ssd.serve(&request(Access::Discard, half, half, 0)).unwrap();
        let read = ssd.serve(&request(Access::Read, half, 4096, 0)).unwrap();
        assert_eq!(read.moved.read_bytes, if trim { 0 } else { 4096 });
        let mut random = Random::new(1);
        let pages = u64::from(options.logical_pages()) / 2;
        // What was discarded is as good as over-provisioning of 100 %, until it is written over.
        (0..pages / 2).for_each(|_| ssd.flash.write(random.below(pages) as u32));
        assert!(expected.contains(&ssd.flash.counts.moved_pages), "{trim}");
    }
}

#[test]
fn compression_in_the_controller_is_room_won() {
    let plain = small(Victim::Greedy, 0.07, 128);
    let half = SsdOptions { compression: 0.5, ..plain.clone() };
    let found = amplification(&half, uniform);
    // Half the bytes, and space for twice the pages.
    let expected = 0.5 * limit(2.0 * spread(&plain));
    assert_near(found, expected, 0.02, "compressed");
}

#[test]
fn a_steady_drive_amplifies_from_the_first_write() {
    let options = SsdOptions { wear: Wear::Steady, ..small(Victim::Greedy, 0.28, 64) };
    let mut ssd = Ssd::new(&options).unwrap();
    let mut random = Random::new(9);
    let pages = u64::from(options.logical_pages());
    (0..pages / 4).for_each(|_| ssd.flash.write(random.below(pages) as u32));
    assert_near(ssd.write_amplification(), 2.40, 0.03, "steady");
    let facts = ssd.facts();
    let fact = |name: &str| facts.iter().find(|fact| fact.0 == name).unwrap().1;
    assert_eq!(fact("valid share"), 1.0);
    // What it endures is what its superblocks endure, divided by the amplification.
    let raw = f64::from(options.main_superblocks()) * 64.0 * 4096.0 * 3000.0;
    assert_near(fact("lifetime host bytes"), raw / fact("write amplification"), 1e-9, "life");
    let programmed = 0.25 * fact("write amplification") * f64::from(LOGICAL_SUPERBLOCKS);
    let expected = programmed / f64::from(options.main_superblocks());
    assert_near(fact("erases mean"), expected, 0.01, "erases");
    assert!(fact("erases max") >= fact("erases mean"));
}

/// Bytes in a second, one request at a time.
fn bytes_per_second(
    ssd: &mut Ssd,
    access: Access,
    bytes: u64,
    offset: impl Fn(u64, &mut Random) -> u64,
) -> f64 {
    let (mut now_ns, mut random) = (0, Random::new(5));
    for index in 0..4000 {
        let served =
            ssd.serve(&request(access, offset(index, &mut random), bytes, now_ns)).unwrap();
        assert!(served.done_ns >= now_ns && served.free_ns >= now_ns);
        now_ns = served.done_ns.max(served.free_ns);
    }
    (4000 * bytes) as f64 * 1e9 / now_ns as f64
}

#[test]
fn a_fresh_drive_is_as_fast_as_the_papers_measured() {
    let options = SsdOptions::new(8 << 30);
    let in_order = |index: u64, _: &mut Random| index << 20;
    let anywhere = |_: u64, random: &mut Random| random.below((8 << 30) / 4096) * 4096;
    let mut ssd = Ssd::new(&options).unwrap();
    let written = bytes_per_second(&mut ssd, Access::Write, 1 << 20, in_order);
    assert_near(written, 901e6, 0.05, "sequential writes");
    let read = bytes_per_second(&mut Ssd::new(&options).unwrap(), Access::Read, 1 << 20, in_order);
    assert_near(read, 1200e6, 0.05, "sequential reads");
    let mut ssd = Ssd::new(&SsdOptions { wear: Wear::Filled, ..options.clone() }).unwrap();
    let read = bytes_per_second(&mut ssd, Access::Read, 4096, anywhere);
    assert_near(read / 4096.0, 8647.0, 0.05, "random reads");
    let mut ssd = Ssd::new(&options).unwrap();
    let written = bytes_per_second(&mut ssd, Access::Write, 4096, anywhere);
    assert_near(written / 4096.0, 19712.0, 0.05, "random writes");
}

#[test]
fn a_steady_drive_is_slower_by_what_it_moves_and_never_stops() {
    let options = SsdOptions {
        wear: Wear::Steady,
        superblock_bytes: 8 << 20,
        over_provisioning: 0.28,
        ..SsdOptions::new(2 << 30)
    };
    let mut ssd = Ssd::new(&options).unwrap();
    let (mut now_ns, mut random) = (0, Random::new(5));
    let pages = u64::from(options.logical_pages());
    let mut wait_ns_max = 0;
    let (rounds, full) = (100_000, 20_000);
    let (mut begin_ns, mut before) = (0, ssd.flash.counts);
    for round in 0..rounds {
        let write = request(Access::Write, random.below(pages) * 4096, 4096, now_ns);
        let served = ssd.serve(&write).unwrap();
        wait_ns_max = wait_ns_max.max(served.done_ns - now_ns);
        now_ns = served.free_ns; // many requests at a time
        if round == full {
            (begin_ns, before) = (now_ns, ssd.flash.counts);
        }
    }
    let work_ns = ssd.medium_ns(&ssd.flash.counts.since(&before));
    assert_near((now_ns - begin_ns) as f64, work_ns as f64, 0.05, "time");
    let victim_ns = ssd.clock.medium_ns(8 << 20, 0, 8 << 20, 1);
    assert!(wait_ns_max < victim_ns / 10, "{wait_ns_max} of {victim_ns}");
}

#[test]
fn requests_that_break_the_rules_change_nothing() {
    let mut ssd = Ssd::new(&SsdOptions::new(1 << 20)).unwrap();
    for (access, offset, bytes) in [
        (Access::Write, 1 << 20, 4096),
        (Access::Write, u64::MAX - 4095, 4096),
        (Access::Read, 512, 4096),
        (Access::Read, 0, 100),
        (Access::ResetZone, 0, 4096),
    ] {
        assert!(ssd.serve(&request(access, offset, bytes, 0)).is_err());
    }
    assert_eq!(ssd.flash.counts, Counts::default());
    for options in [
        SsdOptions { superblock_bytes: 4096, ..SsdOptions::new(1 << 20) },
        SsdOptions { over_provisioning: -0.1, ..SsdOptions::new(1 << 20) },
        SsdOptions { compression: f64::NAN, ..SsdOptions::new(1 << 20) },
        SsdOptions::new(1 << 50),
        SsdOptions::new(0),
    ] {
        assert!(Ssd::new(&options).is_err(), "{options:?}");
    }
}

/// Every combination of choices under writes and discards: the maps agree, nothing is lost, and
/// what the answers say was moved is what the counts say.
#[test]
fn the_maps_agree_whatever_the_options() {
    let victims = [Victim::Greedy, Victim::Fifo, Victim::CostBenefit, Victim::Choice(3)];
    for case in 0..32_u32 {
        let options = SsdOptions {
            capacity_bytes: 500 * 4096,
            superblock_bytes: 16 * 4096,
            over_provisioning: 0.0,
            victim: victims[case as usize % 4],
            gc_stream: case & 4 > 0,
            slc_bytes: u64::from(case & 8) * 8 * 4096,
            compression: if case & 16 > 0 { 0.7 } else { 1.0 },
            ..SsdOptions::new(0)
        };
        let mut ssd = Ssd::new(&options).unwrap();
        let (mut random, mut mapped) = (Random::new(u64::from(case)), vec![false; 500]);
        let mut written = 0;
        for round in 0..5000 {
            let (page, pages) = (random.below(490), 1 + random.below(10));
            let is_discard = random.one_in(10);
            let access = if is_discard { Access::Discard } else { Access::Write };
            let at_ns = round * random.below(100_000);
            let served = ssd.serve(&request(access, page * 4096, pages * 4096, at_ns)).unwrap();
            written += served.moved.write_bytes;
            mapped[page as usize..(page + pages) as usize].fill(!is_discard);
        }
        ssd.flash.check(&mapped);
        let counted = ssd.medium_bytes(ssd.flash.counts.programmed_pages());
        assert!(written.abs_diff(counted) <= 5000, "{written} {counted}");
        assert!(options.compression < 1.0 || written == counted);
    }
}
