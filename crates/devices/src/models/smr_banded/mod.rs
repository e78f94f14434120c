//! `smr-banded`: a drive-managed shingled disk: fixed bands, rewritten as a whole, behind a cache.
//!
//! Three drives: the emulator that LWC-tree and SEALDB name (`set-associative`),
//! the Seagate drive of their Table 2 (`log`, the default), and bands without a cache (`none`).
//! Mechanics are those of [`super::hdd`].
//!
//! A write at or after the end of what its band holds goes through. An overwrite makes the drive
//! rewrite the band: it reads what is written of the band and writes it, all of it. Overwrites of
//! one band gather in memory (`disk`). With a media cache, small writes go there, and streams
//! (sequential writes of `stream` bytes and more, without a flush between) past it.
//!
//! What moved is counted when it moves or, for writes that go through, when they are taken; what
//! the drive did while idle, in the next answer.
//!
//! Not modelled: bands that shrink toward the inner edge, TRIM, checkpoints of the map, interrupted
//! cleaning, reading ahead across the cache.

mod disk;
mod extents;
mod log;
mod set_associative;
mod streams;
#[cfg(test)]
mod tests;

use super::hdd::{self, Drive, Hdd, interface_ns};
use super::parameter::{Kind, Parameter, Settings, join};
use super::{Descriptor, SECTOR_BYTES, check, without_zones};
use crate::model::{Access, Model, Request, Served};
use base::{Error, Result};
use disk::Disk;
use extents::Extents;
use log::Log;
use media::block::{Geometry, Overwrite};
use set_associative::SetAssociative;
use std::ops::Range;
use streams::Streams;

/// The drive of the papers' table.
pub(super) const ST5000AS0011: Drive = Drive {
    capacity: "5TB",
    rpm: "5900",
    seek_track: "1.2ms",
    seek_mean: "9.1ms",
    seek_full: "17ms",
    read_rate: "165MB",
    write_rate: "148MB",
    queue: "19",
    buffer: "64MiB",
};

const OWN: &[Parameter] = &[
    Parameter {
        name: "band",
        kind: Kind::Bytes("64KiB", "1GiB"),
        default: "40MiB",
        help: "bytes of a band, rounded up to sectors",
    },
    Parameter {
        name: "media-cache",
        kind: Kind::Choice(&["log", "set-associative", "none"]),
        default: "log",
        help: "what takes small writes",
    },
    Parameter {
        name: "cache",
        kind: Kind::Share("0.01%", "50%"),
        default: "1%",
        help: "bytes of the media cache over the capacity; at least one band",
    },
    Parameter {
        name: "map",
        kind: Kind::Count("1", "100000000"),
        default: "345000",
        help: "maximum number of ranges in the map of the log",
    },
    Parameter {
        name: "record",
        kind: Kind::Time("0ns", "100ms"),
        default: "7.1ms",
        help: "how long a record of the log waits for its place under the head",
    },
    Parameter {
        name: "clean-idle",
        kind: Kind::Time("0ns", "1000s"),
        default: "1500ms",
        help: "idle time after which the log is cleaned",
    },
    Parameter {
        name: "stream",
        kind: Kind::Bytes("4KiB", "1GiB"),
        default: "512KiB",
        help: "bytes of sequential writes from which on they pass the media cache",
    },
    Parameter {
        name: "band-idle",
        kind: Kind::Time("0ns", "1000s"),
        default: "500ms",
        help: "how long an overwritten band gathers further writes",
    },
    Parameter {
        name: "used",
        kind: Kind::Choice(&["no", "yes"]),
        default: "no",
        help: "whether all bands are full at the beginning, as on a drive long in use",
    },
];

/// The model in the registry.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "smr-banded",
    summary: "drive-managed shingled disk: bands, rewritten as a whole, behind a media cache",
    help: "A shingled disk that hides it. Writes within what a band holds make the drive read and \
           write the band. The media cache takes small writes: `log` appends them and cleans the \
           band of the oldest when full or idle; `set-associative` gives each data band one cache \
           band, cleaned while the writer waits; `none` rewrites at once. Random writes are fast \
           until the cache is full, then slow: 140 and 5 in a second with the defaults.",
    parameters: &join::<{ hdd::PARAMETERS + OWN.len() }>(&hdd::parameters(&ST5000AS0011), OWN),
    make: |settings| Ok(Box::new(SmrBanded::new(settings)?)),
};

#[derive(Clone, Debug)]
enum MediaCache {
    None,
    SetAssociative(SetAssociative),
    Log(Log),
}

/// A drive-managed shingled disk.
#[derive(Clone, Debug)]
pub struct SmrBanded {
    geometry: Geometry,
    disk: Disk,
    media_cache: MediaCache,
    /// What is in the media cache.
    extents: Extents,
    streams: Streams,
    stream_bytes: u64,
}

impl SmrBanded {
    /// A drive with the parameters of [`DESCRIPTOR`].
    pub fn new(settings: &Settings) -> Result<SmrBanded> {
        let sector = u64::from(SECTOR_BYTES);
        let band_bytes = settings.number("band").next_multiple_of(sector);
        let bands = settings.number("capacity") / band_bytes;
        if bands == 0 {
            return Err(Error::invalid("the capacity is less than one band"));
        }
        let cache_bands = ((bands as f64 * settings.share("cache")) as u64).max(1);
        let log_bytes = cache_bands * band_bytes;
        let idle_ns = settings.number("clean-idle");
        let (map, record_ns) = (settings.number("map"), settings.number("record"));
        let (media_cache, cache_bytes) = match settings.text("media-cache") {
            "none" => (MediaCache::None, 0),
            "log" => {
                let log = Log::new(log_bytes, band_bytes, map, record_ns, idle_ns);
                (MediaCache::Log(log), log_bytes + band_bytes)
            }
            _ => (MediaCache::SetAssociative(SetAssociative::new(cache_bands)), log_bytes),
        };
        let capacity_bytes = bands * band_bytes;
        let hdd = Hdd::with_capacity(settings, cache_bytes + capacity_bytes)?;
        let is_used = settings.text("used") == "yes";
        let disk = Disk::new(hdd, cache_bytes, bands, band_bytes, is_used)
            .close_after(settings.number("band-idle"));
        Ok(SmrBanded {
            geometry: Geometry {
                sector_bytes: SECTOR_BYTES,
                atomic_bytes: SECTOR_BYTES,
                capacity_bytes,
                overwrite: Overwrite::InPlace,
                band_bytes,
                zones: None,
            },
            disk,
            media_cache,
            extents: Extents::default(),
            streams: Streams::default(),
            stream_bytes: settings.number("stream"),
        })
    }

    fn use_idle_time(&mut self, until_ns: u64) {
        self.disk.close_idle(until_ns);
        self.disk.hdd.use_idle_time(until_ns);
        if let MediaCache::Log(log) = &mut self.media_cache {
            log.use_idle_time(&mut self.disk, &mut self.extents, until_ns);
        }
    }

    fn write(&mut self, range: Range<u64>, at_ns: u64) -> u64 {
        let stream_bytes = self.streams.follow(range.start, range.end - range.start);
        let is_stream = stream_bytes >= self.stream_bytes;
        let mut done_ns = at_ns;
        let mut start = range.start;
        while start < range.end {
            let band = start / self.disk.band_bytes;
            let end = range.end.min(self.disk.range(band).end);
            done_ns = self.write_in_band(start..end, is_stream, done_ns);
            start = end;
        }
        done_ns
    }

    fn write_in_band(&mut self, range: Range<u64>, is_stream: bool, at_ns: u64) -> u64 {
        let bytes = range.end - range.start;
        match &mut self.media_cache {
            MediaCache::SetAssociative(cache) if !is_stream => {
                cache.write(&mut self.disk, &mut self.extents, range, at_ns)
            }
            MediaCache::Log(log) if !is_stream && bytes <= log.write_bytes_max() => {
                log.write(&mut self.disk, &mut self.extents, range, at_ns)
            }
            _ => {
                self.extents.remove(range.clone());
                self.disk.write(range, at_ns)
            }
        }
    }

    /// Reads the cached parts from the cache, and the range at its place if that is not all.
    fn read(&mut self, range: Range<u64>, at_ns: u64) -> u64 {
        let parts: Vec<(Range<u64>, u64)> = self.extents.parts(range.clone()).collect();
        let cached: u64 = parts.iter().map(|(part, _)| part.end - part.start).sum();
        let mut done_ns = at_ns;
        if cached < range.end - range.start {
            done_ns = self.disk.read(range, at_ns);
        }
        for (part, place) in parts {
            let bytes = part.end - part.start;
            done_ns = self.disk.hdd.read(place, bytes, done_ns, &mut self.disk.moved);
        }
        done_ns
    }

    fn flush(&mut self, at_ns: u64) -> u64 {
        self.streams.end();
        let closed_ns = self.disk.close(at_ns);
        self.disk.hdd.flush(at_ns).max(closed_ns)
    }
}

impl Model for SmrBanded {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn serve(&mut self, request: &Request) -> Result<Served> {
        check(request, &self.geometry)?;
        let Request { access, offset, bytes, at_ns } = *request;
        if matches!(access, Access::ResetZone | Access::FinishZone) {
            return Err(without_zones());
        }
        self.use_idle_time(at_ns);
        let done_ns = match access {
            Access::Read => self.read(offset..offset + bytes, at_ns),
            Access::Write => self.write(offset..offset + bytes, at_ns),
            Access::Flush => self.flush(at_ns),
            _ => at_ns + interface_ns(0),
        };
        if let MediaCache::Log(log) = &mut self.media_cache {
            log.is_active(done_ns);
        }
        let moved = std::mem::take(&mut self.disk.moved);
        Ok(Served { done_ns, free_ns: done_ns, moved, destroyed: Vec::new() })
    }

    fn positioning_ns(&self, from: u64, to: u64) -> u64 {
        self.disk.hdd.positioning_ns(from, to)
    }

    fn facts(&self) -> Vec<(&'static str, f64)> {
        let mut facts = self.disk.hdd.facts();
        facts.push(("bands rewritten", self.disk.bands_rewritten() as f64));
        facts.push(("ranges in the media cache", self.extents.len() as f64));
        facts
    }
}
