//! One client thread of a YCSB phase.

use super::chooser::Chooser;
use super::properties::{Flavour, Workload};
use super::shared::{Phase, Shared};
use crate::keys::{fnv64, fnv64_java};
use crate::latency::Latency;
use crate::pace::Pacer;
use crate::store::Direction;
use crate::values::{ValueSize, Values};
use crate::zipf::{THETA, Zipfian};
use base::Result;
use base::random::Random;
use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;

/// What YCSB measures apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] =
        [Kind::Read, Kind::Update, Kind::Insert, Kind::Scan, Kind::ReadModifyWrite];

    /// The name of the section in the output.
    pub(super) fn label(self) -> &'static str {
        match self {
            Kind::Read => "READ",
            Kind::Update => "UPDATE",
            Kind::Insert => "INSERT",
            Kind::Scan => "SCAN",
            Kind::ReadModifyWrite => "READ-MODIFY-WRITE",
        }
    }
}

/// What a client did, and, merged, what all did.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    pub(super) ops: u64,
    pub(super) read_bytes: u64,
    pub(super) write_bytes: u64,
    /// Reads that found no record.
    pub(super) missing: u64,
    latencies: [Latency; 5],
}

impl Measured {
    pub(super) fn merge(&mut self, other: &Measured) {
        self.ops += other.ops;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        self.missing += other.missing;
        for (latency, other) in self.latencies.iter_mut().zip(&other.latencies) {
            latency.merge(other);
        }
    }

    pub(super) fn latency(&self, kind: Kind) -> &Latency {
        &self.latencies[kind as usize]
    }

    pub(super) fn reads(&self) -> Latency {
        self.sum(Kind::Read, Kind::Scan)
    }

    pub(super) fn writes(&self) -> Latency {
        self.sum(Kind::Update, Kind::Insert)
    }

    fn sum(&self, one: Kind, other: Kind) -> Latency {
        let mut sum = self.latency(one).clone();
        sum.merge(self.latency(other));
        sum
    }
}

/// The values that every client writes. To be made before the clock starts.
pub(super) fn values(workload: &Workload) -> Values {
    let size = ValueSize::Fixed(workload.value_bytes);
    Values::new(size, workload.compression_ratio, !workload.seed)
}

/// A client of a phase.
pub(super) struct Client<'a> {
    shared: &'a Shared<'a>,
    index: usize,
    random: Random,
    chooser: Chooser,
    scan_lengths: Option<Zipfian>,
    values: Values,
    pacer: Option<Pacer>,
    measured: Measured,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'a> Client<'a> {
    pub(super) fn new(shared: &'a Shared<'a>, values: &Values, index: usize) -> Result<Client<'a>> {
        let workload = shared.workload;
        let pacer = (workload.target > 0.0)
            .then(|| Pacer::new(shared.start_ns, workload.target, workload.threads, index));
        let lengths = (workload.scan_length_max - workload.scan_length_min).saturating_add(1);
        let scan_lengths =
            workload.scan_length_zipfian.then(|| Zipfian::new(lengths, THETA)).transpose()?;
        Ok(Client {
            shared,
            index,
            chooser: Chooser::new(workload)?,
            scan_lengths,
            values: values.clone(),
            random: Random::new(workload.seed.wrapping_add(index as u64)),
            pacer,
            measured: Measured::default(),
            key: Vec::new(),
            value: Vec::new(),
        })
    }

    /// Does this client's share of the operations.
    pub(super) fn run(mut self) -> Result<Measured> {
        let (all, threads) = (self.shared.operations(), self.shared.workload.threads as u64);
        let share = all / threads + u64::from((self.index as u64) < all % threads);
        for done in 1..=share {
            if self.shared.stop.load(Relaxed) || self.time_is_over() {
                break;
            }
            if let Err(error) = self.operate() {
                self.shared.fail();
                return Err(error);
            }
            self.measured.ops = done;
            self.shared.done[self.index].set(done);
        }
        Ok(self.measured)
    }

    fn time_is_over(&self) -> bool {
        let seconds = self.shared.workload.seconds_max;
        seconds > 0
            && self.shared.phase == Phase::Run
            && self.now_ns()
                >= self.shared.start_ns.saturating_add(seconds.saturating_mul(1_000_000_000))
    }

    fn operate(&mut self) -> Result<()> {
        let kind = match self.shared.phase {
            Phase::Load => Kind::Insert,
            Phase::Run => self.draw_kind(),
        };
        let start_ns = match &mut self.pacer {
            Some(pacer) => pacer.wait(self.shared.clock),
            None => self.now_ns(),
        };
        match kind {
            Kind::Read => {
                self.choose();
                self.read(start_ns)
            }
            Kind::Update => {
                self.choose();
                self.write(Kind::Update, start_ns)
            }
            Kind::Insert => {
                let number = self.shared.inserts.next();
                self.set_key(number);
                self.write(Kind::Insert, start_ns)?;
                self.shared.inserts.acknowledge(number);
                Ok(())
            }
            Kind::Scan => self.scan(start_ns),
            Kind::ReadModifyWrite => {
                self.choose();
                self.read(start_ns)?;
                let write_start_ns = self.now_ns();
                self.write(Kind::Update, write_start_ns)?;
                self.end(Kind::ReadModifyWrite, start_ns);
                Ok(())
            }
        }
    }

    fn draw_kind(&mut self) -> Kind {
        let proportions = self.shared.workload.proportions;
        let mut point = self.random.unit() * proportions.iter().sum::<f64>();
        for (kind, share) in Kind::ALL.into_iter().zip(proportions) {
            if point < share {
                return kind;
            }
            point -= share;
        }
        // The rest of a rounding goes to the last kind that occurs.
        let last = proportions.iter().rposition(|&share| share > 0.0);
        Kind::ALL[last.expect("a workload has at least one kind of operation")]
    }

    /// Sets the key to that of a record chosen by the workload's distribution.
    fn choose(&mut self) {
        let workload = self.shared.workload;
        let readable = match workload.flavour {
            Flavour::Java => self.shared.inserts.readable() - workload.insert_start,
            Flavour::C => workload.record_count,
        };
        let number = self.chooser.draw(&mut self.random, readable);
        self.set_key(workload.insert_start + number);
    }

    fn set_key(&mut self, number: u64) {
        let workload = self.shared.workload;
        let number = match (workload.insert_ordered, workload.flavour) {
            (true, _) => number,
            (false, Flavour::Java) => fnv64_java(number),
            (false, Flavour::C) => fnv64(number),
        };
        let width = workload.zero_padding;
        self.key.clear();
        write!(self.key, "user{number:0width$}").expect("a vector takes every write");
    }

    fn read(&mut self, start_ns: u64) -> Result<()> {
        let found = self.shared.store.get(&self.key, &mut self.value)?;
        self.end(Kind::Read, start_ns);
        if found {
            self.measured.read_bytes += (self.key.len() + self.value.len()) as u64;
        } else {
            self.measured.missing += 1;
        }
        Ok(())
    }

    fn write(&mut self, kind: Kind, start_ns: u64) -> Result<()> {
        let value = self.values.draw(&self.key);
        self.measured.write_bytes += (self.key.len() + value.len()) as u64;
        self.shared.store.put(&self.key, value, self.shared.workload.write_options)?;
        self.end(kind, start_ns);
        Ok(())
    }

    fn scan(&mut self, start_ns: u64) -> Result<()> {
        self.choose();
        let workload = self.shared.workload;
        let lengths = (workload.scan_length_max - workload.scan_length_min).saturating_add(1);
        let more = match &self.scan_lengths {
            Some(zipfian) => zipfian.draw(&mut self.random),
            None => self.random.below(lengths),
        };
        let count =
            usize::try_from(workload.scan_length_min.saturating_add(more)).unwrap_or(usize::MAX);
        let bytes = &mut self.measured.read_bytes;
        let start = Some(self.key.as_slice());
        self.shared.store.scan(start, count, Direction::Forward, &mut |key, value| {
            *bytes += (key.len() + value.len()) as u64;
        })?;
        self.end(Kind::Scan, start_ns);
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.shared.clock.now_ns()
    }

    fn end(&mut self, kind: Kind, start_ns: u64) {
        let latency_ns = self.now_ns().saturating_sub(start_ns);
        self.measured.latencies[kind as usize].record(latency_ns);
    }
}
