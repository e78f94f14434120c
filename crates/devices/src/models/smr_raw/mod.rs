//! `smr-raw`: shingled tracks and nothing above them: a write destroys what lies downstream.
//!
//! Models the device of SEALDB, which has "only shingled tracks in disk platters
//! and no physically partitioned zones and bands". Tracks have `track` bytes; a write that ends in
//! track b destroys what was written after its end in b, and in the `overlap` tracks that follow.
//! What lies before a write is safe. Mechanics are those of [`super::hdd`].
//!
//! A write that destroys is served, says what it destroyed, and is counted as a violation; reading
//! what was destroyed is an error until it is written or discarded. Discarded sectors can be
//! destroyed without harm, so a host says what it does not need. The drive's write cache is taken
//! to keep the order of writes that are within reach of each other.
//!
//! Invariant: a sector is never both valid and destroyed.

mod bits;
#[cfg(test)]
mod tests;

use super::hdd::{self, Hdd};
use super::parameter::{Kind, Parameter, Settings, join};
use super::smr_banded::ST5000AS0011;
use super::{Descriptor, SECTOR_BYTES, check, without_zones};
use crate::model::{Access, Model, Request, Served};
use base::{Error, ErrorKind, Result};
use bits::Bits;
use media::block::{Geometry, Overwrite};
use std::ops::Range;

const SECTOR: u64 = SECTOR_BYTES as u64;

const OWN: &[Parameter] = &[
    Parameter {
        name: "track",
        kind: Kind::Bytes("4KiB", "64MiB"),
        default: "1MiB",
        help: "bytes of a track, rounded up to sectors",
    },
    Parameter {
        name: "overlap",
        kind: Kind::Count("1", "16"),
        default: "2",
        help: "tracks after its last one that a write destroys",
    },
];

/// The model in the registry.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "smr-raw",
    summary: "shingled tracks without bands: a write destroys what lies downstream",
    help: "A shingled disk that hides nothing. A write destroys what follows it in its last track \
           and in the tracks that this one overlaps, so a host leaves a guard before valid data \
           (SEALDB's dynamic bands). Destroyed ranges are reported and counted; reading them is \
           an error.",
    parameters: &join::<{ hdd::PARAMETERS + OWN.len() }>(&hdd::parameters(&ST5000AS0011), OWN),
    make: |settings| Ok(Box::new(SmrRaw::new(settings)?)),
};

/// Shingled tracks.
#[derive(Clone, Debug)]
pub struct SmrRaw {
    geometry: Geometry,
    hdd: Hdd,
    track_bytes: u64,
    overlap_bytes: u64,
    /// Sectors that hold what was written, and those that lost it.
    valid: Bits,
    destroyed: Bits,
    violations: u64,
    destroyed_bytes: u64,
}

impl SmrRaw {
    /// A drive with the parameters of [`DESCRIPTOR`].
    pub fn new(settings: &Settings) -> Result<SmrRaw> {
        let hdd = Hdd::new(settings)?;
        let track_bytes = settings.number("track").next_multiple_of(SECTOR);
        let overlap_bytes = settings.number("overlap") * track_bytes;
        // At most: a write may end behind the first sector of a track.
        let damage_bytes = track_bytes - SECTOR + overlap_bytes;
        let geometry = Geometry {
            overwrite: Overwrite::DestroysDownstream { damage_bytes },
            ..hdd.geometry()
        };
        let sectors = geometry.capacity_bytes / SECTOR;
        Ok(SmrRaw {
            geometry,
            hdd,
            track_bytes,
            overlap_bytes,
            valid: Bits::new(sectors),
            destroyed: Bits::new(sectors),
            violations: 0,
            destroyed_bytes: 0,
        })
    }

    /// The bytes that a write ending at `end` destroys.
    fn reach(&self, end: u64) -> Range<u64> {
        let last = end.next_multiple_of(self.track_bytes) + self.overlap_bytes;
        end..last.min(self.geometry.capacity_bytes)
    }

    /// What a write to `range` does to the tracks; answers what it destroyed, in bytes.
    fn shingle(&mut self, range: &Range<u64>) -> Vec<Range<u64>> {
        let lost = self.valid.runs(&sectors(&self.reach(range.end)));
        for run in &lost {
            self.valid.remove(run);
            self.destroyed.insert(run);
            self.destroyed_bytes += (run.end - run.start) * SECTOR;
        }
        self.violations += u64::from(!lost.is_empty());
        self.destroyed.remove(&sectors(range));
        self.valid.insert(&sectors(range));
        lost.into_iter().map(|run| run.start * SECTOR..run.end * SECTOR).collect()
    }

    fn check_readable(&self, range: &Range<u64>) -> Result<()> {
        match self.destroyed.runs(&sectors(range)).first() {
            None => Ok(()),
            Some(run) => Err(Error::new(
                ErrorKind::Corruption,
                format!(
                    "bytes {} to {} were destroyed by a write upstream",
                    run.start * SECTOR,
                    run.end * SECTOR
                ),
            )),
        }
    }
}

fn sectors(bytes: &Range<u64>) -> Range<u64> {
    bytes.start / SECTOR..bytes.end / SECTOR
}

impl Model for SmrRaw {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn serve(&mut self, request: &Request) -> Result<Served> {
        check(request, &self.geometry)?;
        let range = request.offset..request.offset + request.bytes;
        let mut destroyed = Vec::new();
        match request.access {
            Access::Read => self.check_readable(&range)?,
            Access::Write => destroyed = self.shingle(&range),
            Access::Flush => {}
            Access::Discard => {
                self.valid.remove(&sectors(&range));
                self.destroyed.remove(&sectors(&range));
            }
            Access::ResetZone | Access::FinishZone => return Err(without_zones()),
        }
        Ok(Served { destroyed, ..self.hdd.perform(request) })
    }

    fn positioning_ns(&self, from: u64, to: u64) -> u64 {
        self.hdd.positioning_ns(from, to)
    }

    fn facts(&self) -> Vec<(&'static str, f64)> {
        let mut facts = self.hdd.facts();
        facts.push(("violations", self.violations as f64));
        facts.push(("destroyed bytes", self.destroyed_bytes as f64));
        facts
    }
}
