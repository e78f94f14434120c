//! `hdd`: a hard disk: seek, rotation, zoned transfer rate, and a write cache that reorders.
//!
//! Calibrated to Table 2 of the LWC-tree paper, which is Table II of
//! SEALDB (Seagate ST1000DM003). The seek times there are effective ones: 64 random reads in a
//! second are 15.6 ms each, of which half a turn explains 4.2 ms.
//!
//! A write is answered when the cache has taken it. The cache goes to the platter whenever the arm
//! is free, shortest access first; after a read the arm waits for another one first, for `idle`. A
//! full cache makes writes wait. A flush waits for everything. A read that follows the last one
//! was read ahead; a read of what the cache holds does not move the arm.
//!
//! What the medium moved is counted when the cache takes a write; what it held before of the same
//! bytes goes to the platter once.
//!
//! Not modelled: heads and their switches, spare sectors, vibration, power states, more than one
//! read-ahead stream.

mod mechanics;
#[cfg(test)]
mod tests;
mod write_cache;

use super::parameter::{Kind, Parameter, Settings};
use super::{Descriptor, SECTOR_BYTES, check, without_zones};
use crate::model::{Access, Model, Request, Served};
use base::Result;
pub use mechanics::Pass;
use mechanics::{Mechanics, Shape};
use media::block::{Geometry, Moved, Overwrite};
use write_cache::WriteCache;

/// Bytes/s and ns per request between host and drive (SATA, 6 Gbit/s).
const INTERFACE_RATE: f64 = 550e6;
const COMMAND_NS: u64 = 20_000;

/// Bytes that the drive reads ahead.
const AHEAD_BYTES: f64 = 8e6;

/// How many parameters the mechanics have.
pub(super) const PARAMETERS: usize = 11;

/// Defaults of the mechanics, by parameter.
pub(super) struct Drive {
    pub(super) capacity: &'static str,
    pub(super) rpm: &'static str,
    pub(super) seek_track: &'static str,
    pub(super) seek_mean: &'static str,
    pub(super) seek_full: &'static str,
    pub(super) read_rate: &'static str,
    pub(super) write_rate: &'static str,
    pub(super) queue: &'static str,
    pub(super) buffer: &'static str,
}

const ST1000DM003: Drive = Drive {
    capacity: "1TB",
    rpm: "7200",
    seek_track: "1ms",
    seek_mean: "11.4ms",
    seek_full: "22ms",
    read_rate: "169MB",
    write_rate: "155MB",
    queue: "19",
    buffer: "64MiB",
};

/// The parameters of the mechanics, with the defaults of one drive.
pub(super) const fn parameters(drive: &Drive) -> [Parameter; PARAMETERS] {
    const RATE: Kind = Kind::Bytes("1MB", "10GB");
    const SEEK: Kind = Kind::Time("1us", "1s");
    const fn of(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        help: &'static str,
    ) -> Parameter {
        Parameter { name, kind, default, help }
    }
    [
        of("capacity", Kind::Bytes("1MiB", "100TB"), drive.capacity, "bytes of the device"),
        of("rpm", Kind::Count("1000", "20000"), drive.rpm, "turns in a minute"),
        of("seek-track", SEEK, drive.seek_track, "seek to the next track"),
        of("seek-mean", SEEK, drive.seek_mean, "mean seek between two random places"),
        of("seek-full", SEEK, drive.seek_full, "seek from edge to edge"),
        of("read-rate", RATE, drive.read_rate, "bytes/s of a read stream at the outer edge"),
        of("write-rate", RATE, drive.write_rate, "the same for writes; at most the read rate"),
        of("inner", Kind::Share("10%", "100%"), "50%", "rate at the inner edge over the outer"),
        of("queue", Kind::Count("0", "256"), drive.queue, "writes that the cache reorders"),
        of("buffer", Kind::Bytes("0", "1GiB"), drive.buffer, "bytes of the write cache"),
        of("idle", Kind::Time("0ns", "10s"), "10ms", "wait for the next read before destaging"),
    ]
}

/// The model in the registry.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "hdd",
    summary: "hard disk: seek, rotation, zoned rate, write cache with reordering",
    help: "A disk that takes writes in place. Seeks follow the square root of the distance, \
           sectors wait for their angle, streams pay neither; outer tracks are faster. Writes are \
           answered from a cache that is destaged by shortest access time. Defaults are those of \
           a desktop drive of 1 TB and 7200 turns, calibrated to the papers' table.",
    parameters: &parameters(&ST1000DM003),
    make: |settings| Ok(Box::new(Hdd::new(settings)?)),
};

/// A hard disk; also the mechanics below the shingled models.
#[derive(Clone, Debug)]
pub struct Hdd {
    geometry: Geometry,
    mechanics: Mechanics,
    cache: WriteCache,
    queue_max: usize,
    buffer_bytes_max: u64,
    idle_ns: u64,
    /// When the oldest entry of the cache came: destaging cannot have begun before.
    cached_since_ns: u64,
}

impl Hdd {
    /// A drive with the parameters of [`DESCRIPTOR`].
    pub fn new(settings: &Settings) -> Result<Hdd> {
        Hdd::with_capacity(settings, settings.number("capacity"))
    }

    /// The same with other bytes on the platter than the host is told of.
    pub(super) fn with_capacity(settings: &Settings, capacity_bytes: u64) -> Result<Hdd> {
        let sector = u64::from(SECTOR_BYTES);
        let capacity_bytes = capacity_bytes / sector * sector;
        let mechanics = Mechanics::new(&Shape {
            capacity_bytes,
            turn_ns: 60_000_000_000 / settings.number("rpm"),
            seek_track_ns: settings.number("seek-track") as f64,
            seek_mean_ns: settings.number("seek-mean") as f64,
            seek_full_ns: settings.number("seek-full") as f64,
            read_rate: settings.number("read-rate") as f64,
            write_rate: settings.number("write-rate") as f64,
            inner_share: settings.share("inner"),
            ahead_bytes: AHEAD_BYTES,
        })?;
        Ok(Hdd {
            geometry: Geometry {
                sector_bytes: SECTOR_BYTES,
                atomic_bytes: SECTOR_BYTES,
                capacity_bytes,
                overwrite: Overwrite::InPlace,
                band_bytes: 0,
                zones: None,
            },
            mechanics,
            cache: WriteCache::default(),
            queue_max: settings.number("queue") as usize,
            buffer_bytes_max: settings.number("buffer"),
            idle_ns: settings.number("idle"),
            cached_since_ns: 0,
        })
    }

    /// Serves a request that was checked. What tells the drive something moves nothing.
    pub fn perform(&mut self, request: &Request) -> Served {
        let Request { access, offset, bytes, at_ns } = *request;
        let mut moved = Moved::default();
        let done_ns = match access {
            Access::Read => self.read(offset, bytes, at_ns, &mut moved),
            Access::Write => self.write(offset, bytes, at_ns, &mut moved),
            Access::Flush => self.flush(at_ns),
            Access::Discard | Access::ResetZone | Access::FinishZone => at_ns + interface_ns(0),
        };
        Served { done_ns, free_ns: done_ns, moved, destroyed: Vec::new() }
    }

    /// Reads; answers when the host has it. What the medium moved is added to `moved`.
    pub fn read(&mut self, offset: u64, bytes: u64, at_ns: u64, moved: &mut Moved) -> u64 {
        self.use_idle_time(at_ns);
        let sent_ns = at_ns + interface_ns(bytes);
        if self.cache.holds(offset, offset + bytes) {
            return sent_ns;
        }
        moved.read_bytes += bytes;
        let streamed = self.mechanics.read_on(offset, bytes, at_ns);
        let read_ns =
            streamed.unwrap_or_else(|| self.mechanics.transfer(Pass::Read, offset, bytes, at_ns));
        read_ns.max(sent_ns)
    }

    /// Takes a write; answers when the host hears of it.
    pub fn write(&mut self, offset: u64, bytes: u64, at_ns: u64, moved: &mut Moved) -> u64 {
        self.use_idle_time(at_ns);
        if self.cache.size().0 == 0 {
            self.cached_since_ns = at_ns;
        }
        moved.write_bytes += self.cache.insert(offset, offset + bytes, &self.mechanics);
        let mut done_ns = at_ns + interface_ns(bytes);
        while self.cache.size().0 > self.queue_max || self.cache.size().1 > self.buffer_bytes_max {
            done_ns = done_ns.max(self.cache.destage(&mut self.mechanics, at_ns));
        }
        done_ns
    }

    /// Puts everything on the platter; answers when it is there.
    pub fn flush(&mut self, at_ns: u64) -> u64 {
        self.use_idle_time(at_ns);
        while self.cache.size().0 > 0 {
            self.cache.destage(&mut self.mechanics, at_ns);
        }
        let is_writing = !self.mechanics.was_reading();
        let written_ns = if is_writing { self.mechanics.free_ns() } else { 0 };
        written_ns.max(at_ns + COMMAND_NS)
    }

    /// Work of the drive's own, past the cache: answers when the arm is free again.
    pub fn transfer(&mut self, pass: Pass, offset: u64, bytes: u64, at_ns: u64) -> u64 {
        self.mechanics.transfer(pass, offset, bytes, at_ns)
    }

    /// Writes a record where the head will be `wait_ns` after it has come near; answers when it is
    /// on the platter.
    pub fn record(&mut self, offset: u64, bytes: u64, wait_ns: u64, at_ns: u64) -> u64 {
        let written_ns = self.mechanics.record(offset, bytes, wait_ns, at_ns);
        written_ns.max(at_ns + interface_ns(bytes))
    }

    /// Destages from when the arm became free until `until_ns`.
    pub fn use_idle_time(&mut self, until_ns: u64) {
        while self.cache.size().0 > 0 {
            let wait_ns = if self.mechanics.was_reading() { self.idle_ns } else { 0 };
            let start_ns = (self.mechanics.free_ns() + wait_ns).max(self.cached_since_ns);
            if start_ns >= until_ns {
                break;
            }
            self.cache.destage(&mut self.mechanics, start_ns);
        }
    }

    /// When the arm is free.
    pub fn free_ns(&self) -> u64 {
        self.mechanics.free_ns()
    }
}

/// What a request costs that moves nothing, and the least that any costs.
pub(super) fn interface_ns(bytes: u64) -> u64 {
    COMMAND_NS + (bytes as f64 * (1e9 / INTERFACE_RATE)) as u64
}

impl Model for Hdd {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn serve(&mut self, request: &Request) -> Result<Served> {
        check(request, &self.geometry)?;
        match request.access {
            Access::ResetZone | Access::FinishZone => Err(without_zones()),
            _ => Ok(self.perform(request)),
        }
    }

    fn positioning_ns(&self, from: u64, to: u64) -> u64 {
        self.mechanics.reach_ns(from, to)
    }

    fn facts(&self) -> Vec<(&'static str, f64)> {
        let (entries, bytes) = self.cache.size();
        vec![("cached writes", entries as f64), ("cached bytes", bytes as f64)]
    }
}
