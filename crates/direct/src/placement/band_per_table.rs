//! `band-per-table`: each file in bands of its own, as SMRDB places its tables.
//!
//! A band is written from its start on by one file and comes back whole when nothing of that file
//! is in it any more; so a drive-managed shingled disk never rewrites a band. A file that goes on
//! later does so behind itself, in the rest of its last band. What is left then is lost until the
//! band comes back: tables should be nearly as large as bands.

use super::{Descriptor, Ground, Placement, Request};
use crate::extent::Extent;
use media::Geometry;
use media::block::Overwrite;

/// Bytes of a band where the medium does not say: what the papers assume.
const BAND_BYTES: u64 = 40 << 20;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "band-per-table",
    summary: "each file in bands of its own, as SMRDB places tables",
    help: "Gives each file whole bands and takes them back whole, so that no band is ever written \
           in part while it holds live bytes. Space at the end of a band that its file leaves is \
           lost; choose tables of nearly a band. Not for zoned media.",
    refuses,
    make: |ground| Box::new(BandPerTable::new(ground)),
};

fn refuses(geometry: &Geometry) -> Option<&'static str> {
    (geometry.overwrite == Overwrite::AtWritePointer)
        .then_some("its bands are not aligned to zones; use the placement `zones`")
}

struct BandPerTable {
    first_band: u64,
    band_bytes: u64,
    /// Bytes at the end of a band that stay unwritten, for the sake of the next band.
    guard_bytes: u64,
    bands: Vec<Band>,
}

#[derive(Clone, Default)]
struct Band {
    used_bytes: u64,
    /// Where what was used of it ends.
    end: u64,
    is_open: bool,
}

impl Band {
    fn is_free(&self) -> bool {
        self.used_bytes == 0 && !self.is_open
    }

    fn open(&mut self, extent: Extent) {
        *self =
            Band { used_bytes: self.used_bytes + extent.bytes, end: extent.end(), is_open: true };
    }
}

impl BandPerTable {
    fn new(ground: &Ground) -> BandPerTable {
        let guard_bytes = ground.guard_bytes();
        let native = ground.geometry.band_bytes;
        let band_bytes = if native > 0 {
            native
        } else {
            ground.unit(BAND_BYTES).max(guard_bytes + ground.sector_bytes())
        };
        let first_band = ground.data.start.next_multiple_of(band_bytes);
        let count = ground.data.end().saturating_sub(first_band) / band_bytes;
        BandPerTable {
            first_band,
            band_bytes,
            guard_bytes,
            bands: vec![Band::default(); count as usize],
        }
    }

    fn usable(&self, band: usize) -> Extent {
        let start = self.first_band + band as u64 * self.band_bytes;
        Extent { start, bytes: self.band_bytes - self.guard_bytes }
    }

    /// The free space behind a closed file that ends at `end`, in its band.
    fn rest(&self, end: u64) -> Option<Extent> {
        let number = self.band_of(end.checked_sub(1)?)?;
        let band = &self.bands[number];
        let goes_on = !band.is_free() && !band.is_open && band.end == end;
        goes_on.then(|| Extent::between(end, self.usable(number).end()))
    }

    fn band_of(&self, at: u64) -> Option<usize> {
        let band = at.checked_sub(self.first_band)? / self.band_bytes;
        usize::try_from(band).ok().filter(|band| *band < self.bands.len())
    }
}

impl Placement for BandPerTable {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn allocate(&mut self, request: &Request) -> Option<Extent> {
        if let Some(rest) = request.goal.and_then(|goal| self.rest(goal))
            && rest.bytes >= request.least_bytes.max(1)
        {
            let band = self.band_of(rest.start)?;
            self.bands[band].open(rest);
            return Some(rest);
        }
        // Behind the file's last band if that is free, so that a large file stays in one piece.
        let next =
            request.goal.and_then(|goal| self.band_of(goal.saturating_sub(1))).map_or(0, |b| b + 1);
        let is_free = |band: &usize| self.bands[*band].is_free();
        let band = (next..self.bands.len()).find(is_free).or_else(|| (0..next).find(is_free))?;
        let extent = self.usable(band);
        self.bands[band].open(extent);
        Some(extent)
    }

    /// A file that does not go on in its band takes a whole one.
    fn spare_bytes_after(&self, request: &Request) -> u64 {
        let rest = request.goal.and_then(|goal| self.rest(goal));
        let goes_on = rest.is_some_and(|rest| rest.bytes >= request.least_bytes.max(1));
        let taken_bytes = if goes_on { 0 } else { self.band_bytes - self.guard_bytes };
        self.spare_bytes().saturating_sub(taken_bytes)
    }

    /// A log, a manifest and a table are written at a time.
    fn reserve_bytes_min(&self) -> u64 {
        3 * (self.band_bytes - self.guard_bytes)
    }

    fn close(&mut self, extent: Extent, used_bytes: u64) {
        if let Some(band) = self.band_of(extent.start) {
            let band = &mut self.bands[band];
            band.used_bytes = band.used_bytes.saturating_sub(extent.bytes - used_bytes);
            band.end = extent.start + used_bytes;
            band.is_open = false;
        }
    }

    fn free(&mut self, extent: Extent) {
        if let Some(band) = self.band_of(extent.start) {
            let used = &mut self.bands[band].used_bytes;
            *used = used.saturating_sub(extent.bytes);
        }
    }

    fn joins(&self, whole: Extent) -> bool {
        self.band_of(whole.start).is_some_and(|band| self.usable(band).contains(whole))
    }

    fn adopt(&mut self, extent: Extent) -> bool {
        let Some(band) = self.band_of(extent.start) else { return false };
        let fits = self.usable(band).contains(extent)
            && self.bands[band].used_bytes + extent.bytes <= self.usable(band).bytes;
        if fits {
            let band = &mut self.bands[band];
            band.used_bytes += extent.bytes;
            band.end = band.end.max(extent.end());
        }
        fits
    }

    fn free_extents(&self) -> Vec<Extent> {
        let free = (0..self.bands.len()).filter(|band| self.bands[*band].is_free());
        free.map(|band| self.usable(band)).collect()
    }

    fn free_bytes(&self) -> u64 {
        self.free_extents().iter().map(|extent| extent.bytes).sum()
    }
}
