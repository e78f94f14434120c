//! The order of service, on a device that takes a fixed time for everything.

use super::*;
use crate::model::{Access, Request, Served};
use base::{Cause, ErrorKind, Result};
use media::block::{BlockDevice, Geometry, Moved, Overwrite};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const SECTOR: u64 = 4096;

/// Takes 100 ns for a request, is free after 60 of them, and needs 1000 ns more for a read that
/// does not follow the read before. Sector 7 destroys sectors 8 and 9.
struct Fixed {
    head: u64,
}

impl Model for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn geometry(&self) -> Geometry {
        Geometry {
            sector_bytes: SECTOR as u32,
            atomic_bytes: SECTOR as u32,
            capacity_bytes: 1 << 30,
            overwrite: Overwrite::DestroysDownstream { damage_bytes: 2 * SECTOR },
            band_bytes: 0,
            zones: None,
        }
    }

    fn serve(&mut self, request: &Request) -> Result<Served> {
        crate::models::check(request, &self.geometry())?;
        let end = request.offset + request.bytes;
        let mut reach_ns = 0;
        if request.access == Access::Read {
            reach_ns = self.positioning_ns(self.head, request.offset);
            self.head = end;
        }
        let is_seventh = request.access == Access::Write && request.offset == 7 * SECTOR;
        Ok(Served {
            done_ns: request.at_ns + reach_ns + 100,
            free_ns: request.at_ns + reach_ns + 60,
            moved: Moved { write_bytes: 2 * request.bytes, read_bytes: 0 },
            destroyed: is_seventh.then_some(end..end + 2 * SECTOR).into_iter().collect(),
        })
    }

    fn positioning_ns(&self, from: u64, to: u64) -> u64 {
        if from == to { 0 } else { 1000 }
    }
}

/// Without processor time, so that all time is the device's.
fn simulation(seed: u64) -> Simulation {
    Simulation::new(SimulationOptions {
        seed,
        operation_ns: 0,
        operation_spread: 0.0,
        step_ns: 1,
        background_ns_per_byte: 0.0,
        writes_behind: false,
        page_cache_bytes: 0,
    })
}

fn device(simulation: &Simulation) -> Arc<SimulatedDevice> {
    Arc::new(simulation.device(Box::new(Fixed { head: 0 })))
}

fn write(device: &SimulatedDevice, sector: u64) {
    device.write(sector * SECTOR, &[1; SECTOR as usize], Cause::Check).unwrap();
}

fn read(device: &SimulatedDevice, sector: u64) {
    device.read(sector * SECTOR, &mut [0; SECTOR as usize], Cause::Check).unwrap();
}

/// Steps until there are no more of them.
struct Steps<F: Fn(u64) + Send + Sync> {
    left: AtomicU64,
    step: F,
}

impl<F: Fn(u64) + Send + Sync> Worker for Steps<F> {
    fn step(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.left.store(left - 1, Ordering::Relaxed);
            (self.step)(left);
        }
        left > 0
    }
}

fn start(
    simulation: &Simulation,
    workers: usize,
    steps: u64,
    step: impl Fn(u64) + Send + Sync + 'static,
) {
    simulation.start(Arc::new(Steps { left: AtomicU64::new(steps), step }), workers);
}

#[test]
fn what_the_page_cache_has_is_read_without_the_device() {
    let options = simulation(1).shared.options;
    let simulation = Simulation::new(SimulationOptions { page_cache_bytes: 3 * SECTOR, ..options });
    let device = device(&simulation);
    let time_of = |call: &mut dyn FnMut()| {
        let before_ns = simulation.now_ns();
        call();
        simulation.now_ns() - before_ns
    };
    write(&device, 1);
    assert_eq!(time_of(&mut || read(&device, 1)), 0, "it was written");
    assert_eq!(time_of(&mut || read(&device, 5)), 1100);
    assert_eq!(time_of(&mut || read(&device, 5)), 0, "it was read");
    // Of three sectors the first is there, and the other two follow each other.
    let mut three = [0; 3 * SECTOR as usize];
    let mut read_three = || {
        device.read(SECTOR, &mut three, Cause::Check).unwrap();
    };
    assert_eq!(time_of(&mut read_three), 1100);
    assert_eq!(device.counts().read_bytes, 3 * SECTOR);
    assert_eq!(three[..SECTOR as usize], [1; SECTOR as usize]);
    assert_eq!(time_of(&mut || read(&device, 5)), 1100, "three others came after it");
    device.prefetch(5 * SECTOR, SECTOR);
    assert_eq!(device.counts().reads, 3, "a prefetch of what is there reads nothing");
    device.discard(5 * SECTOR, SECTOR).unwrap();
    assert!(time_of(&mut || read(&device, 5)) > 0, "it was discarded");
}

#[test]
fn a_page_cache_takes_what_the_foreground_logs_and_a_flush_waits_for_it() {
    let options = SimulationOptions { writes_behind: true, ..simulation(1).shared.options };
    let simulation = Simulation::new(options);
    let device = device(&simulation);
    let log = |sector: u64| device.write(sector * SECTOR, &[1; SECTOR as usize], Cause::Wal);
    log(0).unwrap();
    log(1).unwrap();
    assert_eq!(simulation.now_ns(), 0);
    // The device was busy with them for 60 ns each.
    write(&device, 2);
    assert_eq!(simulation.now_ns(), 60 + 60 + 100);
    log(3).unwrap();
    device.flush(Cause::Wal).unwrap();
    assert_eq!(simulation.now_ns(), 220 + 60 + 100);
}

#[test]
fn the_foreground_goes_on_when_its_request_is_done() {
    let simulation = simulation(1);
    let device = device(&simulation);
    write(&device, 0);
    assert_eq!(simulation.now_ns(), 100);
    write(&device, 1);
    assert_eq!(simulation.now_ns(), 200);
}

#[test]
fn reads_that_began_ahead_overlap_and_are_sent_once() {
    let simulation = simulation(1);
    let device = device(&simulation);
    write(&device, 4);
    let start_ns = simulation.now_ns();
    let since = || simulation.now_ns() - start_ns;
    for sector in 0..4 {
        device.prefetch(sector * SECTOR, SECTOR);
    }
    device.prefetch(0, SECTOR);
    assert_eq!((since(), device.counts().reads), (0, 4), "nobody waits, and none twice");
    // They begin at 0, 60, 120 and 180, and take 100.
    for (sector, done_ns) in [(0, 100), (1, 160), (2, 220), (3, 280)] {
        read(&device, sector);
        assert_eq!(since(), done_ns);
    }
    assert_eq!(device.counts().reads, 4);
    read(&device, 0);
    assert_eq!((since(), device.counts().reads), (280 + 1100, 5), "it was asked for already");
    // A read of a part leaves the rest; what was written since is read anew.
    device.prefetch(SECTOR, 3 * SECTOR);
    read(&device, 1);
    read(&device, 3);
    assert_eq!(device.counts().reads, 6);
    device.prefetch(10 * SECTOR, SECTOR);
    write(&device, 10);
    read(&device, 10);
    assert_eq!(device.counts().reads, 8);
}

/// The device here writes two bytes for each byte of a request, reads included.
#[test]
fn what_a_prefetch_moved_is_in_the_next_answer_even_if_its_bytes_are_never_read() {
    let simulation = simulation(1);
    let device = device(&simulation);
    let mut told = 0;
    let mut read = |first: u64, sectors: u64| {
        let mut bytes = vec![0; (sectors * SECTOR) as usize];
        let moved = device.read(first * SECTOR, &mut bytes, Cause::Get).unwrap();
        told += moved.write_bytes / SECTOR;
        (moved.write_bytes / SECTOR, device.counts().moved.write_bytes / SECTOR)
    };
    device.prefetch(0, SECTOR);
    assert_eq!(read(0, 1), (2, 2), "the read that it was for");
    device.prefetch(0, 4 * SECTOR);
    assert_eq!(read(0, 1), (8, 10), "a part of it");
    assert_eq!(read(3, 1), (0, 10), "the rest");
    device.prefetch(10 * SECTOR, SECTOR);
    assert_eq!(read(20, 1), (4, 14), "another read");
    device.prefetch(30 * SECTOR, SECTOR);
    let moved = device.write(30 * SECTOR, &[1; SECTOR as usize], Cause::Wal).unwrap();
    assert_eq!(moved.write_bytes, 4 * SECTOR, "a write over it");
    for sector in 100..500 {
        device.prefetch(sector * SECTOR, SECTOR);
    }
    assert_eq!(read(100, 1).0, 802, "more than the host remembers, and a read anew");
    assert_eq!(told * SECTOR + moved.write_bytes, device.counts().moved.write_bytes);
}

#[test]
fn a_foreground_request_is_served_between_the_requests_of_a_step() {
    let simulation = simulation(1);
    let device = device(&simulation);
    let end_ns = Arc::new(AtomicU64::new(0));
    let (in_step, clock, end) = (device.clone(), simulation.clone(), end_ns.clone());
    start(&simulation, 1, 2, move |left| {
        if left == 2 {
            (0..3).for_each(|sector| write(&in_step, sector));
        }
        end.store(clock.now_ns(), Ordering::Relaxed);
    });
    // The step is executed: its writes arrive at 1, 101 and 201. None of them is over at 0.
    simulation.turn();
    assert_eq!(end_ns.load(Ordering::Relaxed), 301);
    // It arrives at 0, before all of them, though it was executed after them.
    write(&device, 10);
    assert_eq!(simulation.now_ns(), 100);
    // The first of the step waited until 60 and is done at 160; the second arrives then. This one
    // arrives at 100 and is served at 120: the step's second follows it.
    write(&device, 11);
    assert_eq!(simulation.now_ns(), 220);
    // At 220 the second (180 to 240) is in progress.
    write(&device, 12);
    assert_eq!(simulation.now_ns(), 340);
    simulation.wait(&Event::default(), 0, Some(1000));
    // 60, 180 and 300 were the begins; the second step begins at 400 and takes no time.
    assert_eq!(end_ns.load(Ordering::Relaxed), 401);
    assert_eq!((simulation.now_ns(), simulation.requests()), (1000, 6));
}

#[test]
fn a_worker_does_not_run_ahead_of_the_foreground() {
    let simulation = simulation(1);
    let device = device(&simulation);
    let (in_step, count) = (device.clone(), Arc::new(AtomicU64::new(0)));
    let counted = count.clone();
    start(&simulation, 1, 100, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        write(&in_step, 0);
    });
    simulation.turn();
    simulation.turn();
    assert_eq!(count.load(Ordering::Relaxed), 1);
    // Until 1000 there is time for steps of 101 ns that begin at 0, 101 ... 909.
    simulation.wait(&Event::default(), 0, Some(1000));
    assert_eq!(count.load(Ordering::Relaxed), 10);
}

#[test]
fn two_workers_share_the_device() {
    let run = |workers| {
        let simulation = simulation(1);
        let device = device(&simulation);
        let in_step = device.clone();
        start(&simulation, workers, 100, move |_| write(&in_step, 0));
        simulation.wait(&Event::default(), 0, Some(1_000_000));
        assert_eq!(simulation.requests(), 100);
        let end = simulation.shared.lock();
        (1..=workers).map(|worker| end.timeline.now_ns(worker)).max().unwrap()
    };
    // One waits for each of its requests; two keep the device as busy as it can be.
    let (alone, together) = (run(1), run(2));
    assert_eq!(alone, 100 * 101 + 1);
    assert!((100 * 60..100 * 60 + 200).contains(&together), "{together}");
}

#[test]
fn a_waiting_thread_goes_on_when_the_signal_was_given() {
    let simulation = simulation(1);
    let device = device(&simulation);
    let event = Arc::new(Event::default());
    let (in_step, signal) = (device.clone(), event.clone());
    start(&simulation, 1, 5, move |left| {
        write(&in_step, 0);
        if left == 3 {
            signal.signal();
        }
    });
    simulation.wait(&event, event.count(), None);
    assert_eq!(simulation.now_ns(), 3 * 101);
    // An event that never comes: the last steps run, and then nothing can happen any more.
    simulation.wait(&Event::default(), 0, None);
    assert_eq!(simulation.requests(), 5);
    // A deadline comes before a signal.
    let late = Event::default();
    simulation.wait(&late, 0, Some(10_000));
    assert_eq!(simulation.now_ns(), 10_000);
}

#[test]
fn a_worker_that_sleeps_is_woken_at_the_time_of_the_waker() {
    let simulation = simulation(1);
    let device = device(&simulation);
    let (has_work, begin_ns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    struct Sleeper(Simulation, Arc<AtomicBool>, Arc<AtomicU64>);
    impl Worker for Sleeper {
        fn step(&self) -> bool {
            let did = self.1.swap(false, Ordering::Relaxed);
            if did {
                self.2.store(self.0.now_ns(), Ordering::Relaxed);
            }
            did
        }
    }
    simulation.start(Arc::new(Sleeper(simulation.clone(), has_work.clone(), begin_ns.clone())), 1);
    simulation.turn();
    write(&device, 0);
    has_work.store(true, Ordering::Relaxed);
    simulation.turn();
    assert!(has_work.load(Ordering::Relaxed), "nobody woke it");
    simulation.wake();
    simulation.turn();
    assert_eq!(begin_ns.load(Ordering::Relaxed), 101);
}

#[test]
fn a_worker_that_waits_lets_time_pass() {
    let simulation = simulation(1);
    let (clock, seen) = (simulation.clone(), Arc::new(AtomicU64::new(0)));
    let end = seen.clone();
    start(&simulation, 1, 1, move |_| {
        clock.wait(&Event::default(), 0, Some(5000));
        end.store(clock.now_ns(), Ordering::Relaxed);
    });
    simulation.turn();
    assert_eq!((simulation.now_ns(), seen.load(Ordering::Relaxed)), (0, 5000));
}

#[test]
fn interleaved_streams_pay_for_the_way_between_them() {
    let simulation = simulation(1);
    let device = device(&simulation);
    let in_step = device.clone();
    start(&simulation, 1, 1, move |_| (0..4).for_each(|sector| read(&in_step, sector)));
    simulation.turn();
    // Executed after a stream of four, it comes in time before the first: the way there is from
    // the beginning, and the stream pays for the way back.
    read(&device, 1000);
    assert_eq!(simulation.now_ns(), 1100);
    read(&device, 1001);
    // It met the stream's first read, which came back from sector 1001 (1060 to 2120).
    assert_eq!(simulation.now_ns(), 2120 + 1000 + 100);
    simulation.wait(&Event::default(), 0, Some(100_000));
    let worker_ns = simulation.shared.lock().timeline.now_ns(1);
    // Back once more, and then in order: 3180 to 4240, done at 4280, and two reads of 100.
    assert_eq!(worker_ns, 4280 + 2 * 100 + 1);
}

#[test]
fn stopping_waits_for_what_is_under_way() {
    let simulation = simulation(1);
    let device = device(&simulation);
    let in_step = device.clone();
    start(&simulation, 1, 1, move |_| (0..5).for_each(|sector| write(&in_step, sector)));
    simulation.turn();
    assert_eq!((simulation.now_ns(), simulation.requests()), (0, 0));
    simulation.stop();
    assert_eq!((simulation.now_ns(), simulation.requests()), (501, 5));
}

/// Foreground and workers with random loads. The trace, and every clock as it was read.
fn history(seed: u64) -> (u64, Vec<u64>) {
    let simulation = Simulation::new(SimulationOptions { seed, ..SimulationOptions::default() });
    let options = crate::models::ssd::SsdOptions::new(64 << 20);
    let ssd = crate::models::ssd::Ssd::new(&options).unwrap();
    let device = Arc::new(simulation.device(Box::new(ssd)));
    let clocks = Arc::new(Mutex::new(Vec::new()));
    let (in_step, clock, noted) = (device.clone(), simulation.clone(), clocks.clone());
    start(&simulation, 3, 500, move |_| {
        let begin_ns = clock.now_ns();
        for _ in 0..clock.random_u64() % 5 {
            write(&in_step, clock.random_u64() % 10_000);
            read(&in_step, clock.random_u64() % 10_000);
        }
        assert!(begin_ns <= clock.now_ns());
        noted.lock().push(clock.now_ns());
    });
    for round in 0..2000 {
        let begin_ns = simulation.now_ns();
        match simulation.random_u64() % 3 {
            0 => write(&device, simulation.random_u64() % 10_000),
            1 => read(&device, simulation.random_u64() % 10_000),
            _ => simulation.wait(&Event::default(), 0, Some(begin_ns + 50_000)),
        }
        if round % 100 == 0 {
            device.flush(Cause::Check).unwrap();
        }
        simulation.turn();
        assert!(begin_ns <= simulation.now_ns());
        clocks.lock().push(simulation.now_ns());
    }
    simulation.stop();
    let clocks = clocks.lock().clone();
    (simulation.trace_hash(), clocks)
}

#[test]
fn the_seed_fixes_everything() {
    let first = history(1);
    assert!(first.1.len() > 2400);
    assert_eq!(first, history(1));
    assert_ne!(first.0, history(2).0);
}

/// On every machine and with every optimization. The figure changes with the drive's model and
/// with the rules of the timeline, and with nothing else.
#[test]
fn the_trace_is_the_same_everywhere() {
    assert_eq!(history(1).0, 5_062_080_545_102_795_097);
}

#[test]
fn destroyed_bytes_are_an_error_until_they_are_written() {
    let simulation = simulation(1);
    let device = device(&simulation);
    write(&device, 8);
    write(&device, 7);
    let error = device.read(0, &mut vec![0; 16 * SECTOR as usize], Cause::Check).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(8 * SECTOR)));
    write(&device, 8);
    read(&device, 8);
    assert!(device.read(9 * SECTOR, &mut [0; SECTOR as usize], Cause::Check).is_err());
    device.discard(9 * SECTOR, SECTOR).unwrap();
    read(&device, 9);
}

#[test]
fn counts_sum_up_and_what_the_medium_moved_is_passed_on() {
    let simulation = simulation(1);
    let device = device(&simulation);
    let moved = device.write(0, &[3; 2 * SECTOR as usize], Cause::Check).unwrap();
    assert_eq!(moved.write_bytes, 4 * SECTOR);
    let mut bytes = [0; 3 * SECTOR as usize];
    let moved = device.read(0, &mut bytes, Cause::Check).unwrap();
    assert_eq!(moved.write_bytes, 6 * SECTOR);
    assert_eq!(bytes.iter().filter(|&&byte| byte == 3).count() as u64, 2 * SECTOR);
    device.flush(Cause::Check).unwrap();
    let expected = Counts {
        reads: 1,
        writes: 1,
        flushes: 1,
        hints: 0,
        read_bytes: 3 * SECTOR,
        write_bytes: 2 * SECTOR,
        moved: Moved { write_bytes: 10 * SECTOR, read_bytes: 0 },
    };
    assert_eq!(device.counts(), expected);
    // What breaks the rules is refused, takes no time and is not counted.
    let now_ns = simulation.now_ns();
    assert!(device.write(1, &[0; 4096], Cause::Check).is_err());
    assert!(device.read(1 << 30, &mut [0; 4096], Cause::Check).is_err());
    assert_eq!(device.reset_zone(0).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!((simulation.now_ns(), device.counts()), (now_ns, expected));
}

#[test]
fn a_device_has_one_opener() {
    let device = device(&simulation(1));
    let lock = device.lock().unwrap();
    assert_eq!(device.lock().err().map(|error| error.kind()), Some(ErrorKind::Locked));
    drop(lock);
    assert!(device.lock().is_ok());
}
