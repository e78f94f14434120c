//! The set-associative media cache of the emulator that the SMR papers use.
//!
//! Data band b belongs to cache band b mod n. Writes are appended to their cache band. When it is
//! full, it is read, and every data band with bytes in it is read and written, while the writer
//! waits. So `AWA = 1 + (bands in the cache band * band) / (bytes that the cache band admitted)`
//! on a disk whose bands are full.

use super::super::hdd::Pass;
use super::disk::Disk;
use super::extents::Extents;
use std::ops::Range;

/// How full each cache band is.
#[derive(Clone, Debug)]
pub struct SetAssociative {
    used_bytes: Vec<u64>,
}

impl SetAssociative {
    /// Empty cache bands.
    pub fn new(cache_bands: u64) -> SetAssociative {
        SetAssociative { used_bytes: vec![0; cache_bands as usize] }
    }

    /// Admits a write within one band; answers when the host hears of it.
    pub fn write(
        &mut self,
        disk: &mut Disk,
        extents: &mut Extents,
        range: Range<u64>,
        at_ns: u64,
    ) -> u64 {
        let bytes = range.end - range.start;
        let set = range.start / disk.band_bytes % self.used_bytes.len() as u64;
        let mut begin_ns = at_ns;
        if self.used(set) + bytes > disk.band_bytes {
            begin_ns = self.clean(disk, extents, set, at_ns);
        }
        let place = set * disk.band_bytes + self.used(set);
        if let Some(used) = self.used_bytes.get_mut(set as usize) {
            *used += bytes;
        }
        extents.insert(range, place);
        disk.hdd.write(place, bytes, begin_ns, &mut disk.moved)
    }

    fn used(&self, set: u64) -> u64 {
        self.used_bytes.get(set as usize).copied().unwrap_or(0)
    }

    fn clean(&mut self, disk: &mut Disk, extents: &mut Extents, set: u64, at_ns: u64) -> u64 {
        let written_ns = disk.hdd.flush(at_ns);
        let used = self.used(set);
        disk.moved.read_bytes += used;
        let mut now_ns = disk.hdd.transfer(Pass::Read, set * disk.band_bytes, used, written_ns);
        for band in (set..disk.bands()).step_by(self.used_bytes.len()) {
            let range = disk.range(band);
            let Some(end) = extents.parts(range.clone()).next().map(|(part, _)| part.end) else {
                continue;
            };
            extents.remove(range);
            now_ns = disk.read_band(band, now_ns);
            now_ns = disk.write_band(band, end, now_ns);
        }
        if let Some(used) = self.used_bytes.get_mut(set as usize) {
            *used = 0;
        }
        now_ns
    }
}
