//! `zoned`: a host-managed shingled disk: zones that take writes at their write pointer.
//!
//! Follows the host-managed zone model of ZBC, with its words and errors: 256 MiB zones, 1 % of
//! them conventional, 128 open at a time, never more than half of the sequential ones. A zone opens
//! when it is written. What breaks a rule is an error that begins with the standard's name for it
//! and changes nothing. Mechanics are those of [`super::hdd`].
//!
//! A drive may close a zone of its own accord to open another (`at-limit=close`, what the standard
//! does with zones that were not opened by command). The default refuses instead, so that a test
//! notices a host that exceeds the limit.
//!
//! Invariant: the medium moves what the host moves and nothing else.

#[cfg(test)]
mod tests;

use super::hdd::{self, Hdd};
use super::parameter::{Kind, Parameter, Settings, join};
use super::smr_banded::ST5000AS0011;
use super::{Descriptor, SECTOR_BYTES, check};
use crate::model::{Access, Model, Request, Served};
use base::{Error, Result};
use media::block::{Geometry, Overwrite, Zone, ZoneGeometry, ZoneState};
use std::ops::Range;

const SECTOR: u64 = SECTOR_BYTES as u64;

const OWN: &[Parameter] = &[
    Parameter {
        name: "zone",
        kind: Kind::Bytes("64KiB", "4GiB"),
        default: "256MiB",
        help: "bytes of a zone, rounded up to sectors",
    },
    Parameter {
        name: "conventional",
        kind: Kind::Share("0%", "90%"),
        default: "1%",
        help: "zones that take writes anywhere; one at least, unless 0%",
    },
    Parameter {
        name: "open",
        kind: Kind::Count("1", "100000"),
        default: "128",
        help: "zones open at a time, at most half of the sequential ones",
    },
    Parameter {
        name: "at-limit",
        kind: Kind::Choice(&["refuse", "close"]),
        default: "refuse",
        help: "what a write does that would open one zone too many",
    },
];

/// The model in the registry.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "zoned",
    summary: "host-managed shingled disk: zones with write pointers",
    help: "A shingled disk whose host does the work. A zone takes writes at its write pointer and \
           is emptied as a whole; the first zones are conventional. Breaking a rule is an error \
           with the name that the standard gives it.",
    parameters: &join::<{ hdd::PARAMETERS + OWN.len() }>(&hdd::parameters(&ST5000AS0011), OWN),
    make: |settings| Ok(Box::new(Zoned::new(settings)?)),
};

/// A sequential zone: sectors written, and what it may be asked.
#[derive(Clone, Copy, Debug)]
struct Sequential {
    written: u32,
    state: ZoneState,
}

const EMPTY: Sequential = Sequential { written: 0, state: ZoneState::Empty };

/// A host-managed disk.
#[derive(Clone, Debug)]
pub struct Zoned {
    geometry: Geometry,
    zone_bytes: u64,
    /// Where the conventional zones end.
    conventional_end: u64,
    open_max: usize,
    closes_at_limit: bool,
    hdd: Hdd,
    zones: Vec<Sequential>,
    /// The open ones, the one written longest ago first.
    open: Vec<usize>,
}

impl Zoned {
    /// A drive with the parameters of [`DESCRIPTOR`].
    pub fn new(settings: &Settings) -> Result<Zoned> {
        let zone_bytes = settings.number("zone").next_multiple_of(SECTOR);
        let count = settings.number("capacity") / zone_bytes;
        let share = settings.share("conventional");
        let conventional = ((count as f64 * share) as u64).max(u64::from(share > 0.0));
        let sequential = count.saturating_sub(conventional);
        if sequential == 0 {
            return Err(Error::invalid("the capacity has no space for a sequential zone"));
        }
        let open_max = settings.number("open").min((sequential / 2).max(1));
        let capacity_bytes = count * zone_bytes;
        Ok(Zoned {
            geometry: Geometry {
                sector_bytes: SECTOR_BYTES,
                atomic_bytes: SECTOR_BYTES,
                capacity_bytes,
                overwrite: Overwrite::AtWritePointer,
                band_bytes: 0,
                zones: Some(ZoneGeometry {
                    zone_bytes,
                    conventional_zones: conventional as u32,
                    open_zones_max: open_max as u32,
                }),
            },
            zone_bytes,
            conventional_end: conventional * zone_bytes,
            open_max: open_max as usize,
            closes_at_limit: settings.text("at-limit") == "close",
            hdd: Hdd::with_capacity(settings, capacity_bytes)?,
            zones: vec![EMPTY; sequential as usize],
            open: Vec::new(),
        })
    }

    /// The sequential zone of a byte, by number; `None` in conventional zones.
    fn number(&self, offset: u64) -> Option<usize> {
        let after = offset.checked_sub(self.conventional_end)?;
        Some((after / self.zone_bytes) as usize)
    }

    fn get(&self, number: usize) -> Sequential {
        self.zones.get(number).copied().unwrap_or(EMPTY)
    }

    fn start(&self, number: usize) -> u64 {
        self.conventional_end + number as u64 * self.zone_bytes
    }

    /// The sequential zone that `range` lies in, `None` if in conventional ones; `error` if it
    /// leaves one or enters one on the way.
    fn within(&self, range: &Range<u64>, error: &str) -> Result<Option<usize>> {
        let (first, last) = (self.number(range.start), self.number(range.end - 1));
        if first != last {
            let zone_bytes = self.zone_bytes;
            let message = format!("crosses the border of a zone of {zone_bytes} bytes");
            return Err(refuse(error, range, &message));
        }
        Ok(first)
    }

    /// The end of what can be read of a zone, and the place of the next write.
    fn write_pointer(&self, number: usize) -> u64 {
        self.start(number) + u64::from(self.get(number).written) * SECTOR
    }

    fn check_read(&self, range: &Range<u64>) -> Result<()> {
        let Some(number) = self.within(range, "READ BOUNDARY VIOLATION")? else { return Ok(()) };
        let pointer = self.write_pointer(number);
        let is_full = self.get(number).state == ZoneState::Full;
        if !is_full && range.end > pointer {
            let message = format!("reads past the write pointer, {pointer}");
            return Err(refuse("ATTEMPT TO READ INVALID DATA", range, &message));
        }
        Ok(())
    }

    /// Moves the write pointer, or says which rule the write breaks.
    fn advance(&mut self, range: &Range<u64>) -> Result<()> {
        let Some(number) = self.within(range, "WRITE BOUNDARY VIOLATION")? else { return Ok(()) };
        let zone = self.get(number);
        if zone.state == ZoneState::Full {
            return Err(refuse("INVALID FIELD IN CDB", range, "writes to a full zone"));
        }
        let pointer = self.write_pointer(number);
        if range.start != pointer {
            let message = format!("does not begin at the write pointer, {pointer}");
            return Err(refuse("UNALIGNED WRITE COMMAND", range, &message));
        }
        if zone.state != ZoneState::Open && self.open.len() >= self.open_max {
            if !self.closes_at_limit {
                let message = format!("opens one zone more than {}", self.open_max);
                return Err(refuse("INSUFFICIENT ZONE RESOURCES", range, &message));
            }
            self.close_oldest();
        }
        let written = zone.written + ((range.end - range.start) / SECTOR) as u32;
        let is_full = u64::from(written) * SECTOR == self.zone_bytes;
        let state = if is_full { ZoneState::Full } else { ZoneState::Open };
        self.set(number, Sequential { written, state });
        Ok(())
    }

    fn close_oldest(&mut self) {
        if let Some(&oldest) = self.open.first() {
            let written = self.get(oldest).written;
            self.set(oldest, Sequential { written, state: ZoneState::Closed });
        }
    }

    /// The one place where a zone changes: the list of open ones follows.
    fn set(&mut self, number: usize, to: Sequential) {
        self.open.retain(|&open| open != number);
        if to.state == ZoneState::Open {
            self.open.push(number);
        }
        if let Some(zone) = self.zones.get_mut(number) {
            *zone = to;
        }
    }

    /// The sequential zone that begins at `offset`.
    fn named(&self, offset: u64) -> Result<usize> {
        let number = self
            .number(offset)
            .filter(|&number| self.start(number) == offset && number < self.zones.len());
        number.ok_or_else(|| {
            let message = "no sequential zone begins here";
            refuse("INVALID FIELD IN CDB", &(offset..offset), message)
        })
    }
}

fn refuse(name: &str, range: &Range<u64>, what: &str) -> Error {
    let (offset, bytes) = (range.start, range.end - range.start);
    Error::invalid(format!("{name}: a request of {bytes} bytes at byte {offset} {what}"))
}

impl Model for Zoned {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn serve(&mut self, request: &Request) -> Result<Served> {
        check(request, &self.geometry)?;
        let range = request.offset..request.offset + request.bytes;
        match request.access {
            Access::Read => self.check_read(&range)?,
            Access::Write => self.advance(&range)?,
            Access::Flush | Access::Discard => {}
            Access::ResetZone => self.set(self.named(request.offset)?, EMPTY),
            Access::FinishZone => {
                let number = self.named(request.offset)?;
                let written = self.get(number).written;
                self.set(number, Sequential { written, state: ZoneState::Full });
            }
        }
        Ok(self.hdd.perform(request))
    }

    fn zone(&self, offset: u64) -> Option<Zone> {
        if offset >= self.geometry.capacity_bytes {
            return None;
        }
        let start = offset / self.zone_bytes * self.zone_bytes;
        Some(match self.number(offset) {
            None => Zone { start, write_pointer: start, state: ZoneState::Conventional },
            Some(number) => {
                let state = self.get(number).state;
                let is_full = state == ZoneState::Full;
                let end = start + self.zone_bytes;
                let write_pointer = if is_full { end } else { self.write_pointer(number) };
                Zone { start, write_pointer, state }
            }
        })
    }

    fn positioning_ns(&self, from: u64, to: u64) -> u64 {
        self.hdd.positioning_ns(from, to)
    }

    fn facts(&self) -> Vec<(&'static str, f64)> {
        let mut facts = self.hdd.facts();
        facts.push(("open zones", self.open.len() as f64));
        facts
    }
}
