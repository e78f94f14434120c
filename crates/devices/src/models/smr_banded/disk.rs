//! The banded disk below a media cache: where bands lie, how far each is written, and rewriting.
//!
//! The cache lies at the outer edge, the bands follow. A band takes writes in order at or after
//! its written end; anything before that end makes the drive rewrite the band. Writes to the band
//! that is being rewritten gather in memory until another band is written, a flush comes, or no
//! write for a while. One band is rewritten while the next gathers.
//!
//! Invariant: `written` of a band is the end of what was ever written in it, in sectors.

use super::super::SECTOR_BYTES;
use super::super::hdd::{Hdd, Pass, interface_ns};
use media::block::Moved;
use std::ops::Range;

const SECTOR: u64 = SECTOR_BYTES as u64;

/// A band whose rewriting has begun in memory: the hull of what was written to it.
#[derive(Clone, Debug)]
struct Open {
    band: u64,
    hull: Range<u64>,
    /// Whether the hull has no holes.
    is_whole: bool,
    since_ns: u64,
}

/// Bands on a hard disk.
#[derive(Clone, Debug)]
pub struct Disk {
    pub hdd: Hdd,
    /// What moved and was not yet answered.
    pub moved: Moved,
    pub band_bytes: u64,
    /// Bytes before the first band.
    cache_bytes: u64,
    written: Vec<u32>,
    open: Option<Open>,
    open_idle_ns: u64,
    bands_rewritten: u64,
}

impl Disk {
    /// Bands of which each is written up to its end, or none is.
    pub fn new(hdd: Hdd, cache_bytes: u64, bands: u64, band_bytes: u64, is_used: bool) -> Disk {
        let written = if is_used { (band_bytes / SECTOR) as u32 } else { 0 };
        Disk {
            hdd,
            moved: Moved::default(),
            band_bytes,
            cache_bytes,
            written: vec![written; bands as usize],
            open: None,
            open_idle_ns: 0,
            bands_rewritten: 0,
        }
    }

    /// How long an open band waits for the next write.
    pub fn close_after(mut self, idle_ns: u64) -> Disk {
        self.open_idle_ns = idle_ns;
        self
    }

    /// Bands that were rewritten since the beginning.
    pub fn bands_rewritten(&self) -> u64 {
        self.bands_rewritten
    }

    /// How many bands there are.
    pub fn bands(&self) -> u64 {
        self.written.len() as u64
    }

    /// The bytes of a band.
    pub fn range(&self, band: u64) -> Range<u64> {
        band * self.band_bytes..(band + 1) * self.band_bytes
    }

    fn written_end(&self, band: u64) -> u64 {
        let sectors = self.written.get(band as usize).copied().unwrap_or(0);
        band * self.band_bytes + u64::from(sectors) * SECTOR
    }

    fn write_to(&mut self, band: u64, end: u64) {
        let start = band * self.band_bytes;
        if let Some(written) = self.written.get_mut(band as usize) {
            *written = (*written).max(((end - start) / SECTOR) as u32);
        }
    }

    /// Writes within one band, past the cache; answers when the host hears of it.
    pub fn write(&mut self, range: Range<u64>, at_ns: u64) -> u64 {
        let band = range.start / self.band_bytes;
        let bytes = range.end - range.start;
        let sent_ns = at_ns + interface_ns(bytes);
        if let Some(open) = self.open.as_mut().filter(|open| open.band == band) {
            open.is_whole &= range.start <= open.hull.end && open.hull.start <= range.end;
            open.hull = open.hull.start.min(range.start)..open.hull.end.max(range.end);
            open.since_ns = at_ns;
            return sent_ns;
        }
        // Memory holds the open band and one that is being rewritten.
        let rewritten_ns = if self.open.is_some() { self.hdd.free_ns() } else { at_ns };
        self.close(at_ns);
        if range.start >= self.written_end(band) {
            self.write_to(band, range.end);
            let place = self.cache_bytes + range.start;
            return self.hdd.write(place, bytes, at_ns, &mut self.moved).max(rewritten_ns);
        }
        self.open = Some(Open { band, hull: range, is_whole: true, since_ns: at_ns });
        sent_ns.max(rewritten_ns)
    }

    /// Rewrites the open band; answers when that is done.
    pub fn close(&mut self, at_ns: u64) -> u64 {
        let Some(open) = self.open.take() else { return at_ns };
        let is_replaced = open.is_whole
            && open.hull.start == open.band * self.band_bytes
            && open.hull.end >= self.written_end(open.band);
        let read_ns = if is_replaced { at_ns } else { self.read_band(open.band, at_ns) };
        self.write_band(open.band, open.hull.end, read_ns)
    }

    /// Closes the open band if it has been waiting for long enough at `now_ns`.
    pub fn close_idle(&mut self, now_ns: u64) {
        let due_ns = self.open.as_ref().map(|open| open.since_ns + self.open_idle_ns);
        if let Some(due_ns) = due_ns.filter(|&due_ns| due_ns < now_ns) {
            self.close(due_ns);
        }
    }

    /// The bytes of a band once it is written to `end`.
    pub fn bytes_after(&self, band: u64, end: u64) -> u64 {
        self.written_end(band).max(end) - band * self.band_bytes
    }

    /// Reads what is written of a band.
    pub fn read_band(&mut self, band: u64, at_ns: u64) -> u64 {
        let start = band * self.band_bytes;
        let bytes = self.written_end(band) - start;
        if bytes == 0 {
            return at_ns;
        }
        self.moved.read_bytes += bytes;
        self.hdd.transfer(Pass::Read, self.cache_bytes + start, bytes, at_ns)
    }

    /// Writes a band from its beginning to `end`, or to its written end if that is later.
    pub fn write_band(&mut self, band: u64, end: u64, at_ns: u64) -> u64 {
        self.write_to(band, end);
        self.bands_rewritten += 1;
        let start = band * self.band_bytes;
        let bytes = self.written_end(band) - start;
        self.moved.write_bytes += bytes;
        self.hdd.transfer(Pass::Write, self.cache_bytes + start, bytes, at_ns)
    }

    /// Reads bytes at their place in their bands; answers when the host has them.
    pub fn read(&mut self, range: Range<u64>, at_ns: u64) -> u64 {
        let bytes = range.end - range.start;
        let is_gathered = self.open.as_ref().is_some_and(|open| {
            open.is_whole && open.hull.start <= range.start && range.end <= open.hull.end
        });
        if is_gathered {
            return at_ns + interface_ns(bytes);
        }
        self.hdd.read(self.cache_bytes + range.start, bytes, at_ns, &mut self.moved)
    }
}
