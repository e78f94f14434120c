//! The log-structured media cache of Seagate's drives.
//!
//! Writes are appended to one log at the outer edge, each as a record that is durable when the
//! host hears of it. When the log or its map is nearly full, or the drive is idle, the band of the
//! oldest live record is cleaned: its band and all its records are read, merged into a temporary
//! band, and written to the band itself. So a clean writes the band twice.
//!
//! Invariant: log positions only grow; a record is live as long as the map points to its place.

use super::super::hdd::Pass;
use super::disk::Disk;
use super::extents::Extents;
use std::collections::VecDeque;
use std::ops::Range;

/// Parts of the log nearer than this are read in one go.
const GAP_BYTES: u64 = 1 << 20;

/// What a record wrote, and its position.
#[derive(Clone, Debug)]
struct Record {
    range: Range<u64>,
    position: u64,
}

/// The log.
#[derive(Clone, Debug)]
pub struct Log {
    /// Bytes of the log; the temporary band lies behind it.
    bytes: u64,
    /// Bytes and ranges that it keeps free.
    reserve_bytes: u64,
    map_max: usize,
    record_ns: u64,
    idle_ns: u64,
    /// Bytes ever appended.
    head: u64,
    /// Oldest first.
    records: VecDeque<Record>,
    active_ns: u64,
}

impl Log {
    /// An empty log of `bytes`, for bands of `band_bytes`.
    pub fn new(bytes: u64, band_bytes: u64, map_max: u64, record_ns: u64, idle_ns: u64) -> Log {
        Log {
            bytes,
            reserve_bytes: band_bytes.min(bytes / 4),
            map_max: map_max as usize,
            record_ns,
            idle_ns,
            head: 0,
            records: VecDeque::new(),
            active_ns: 0,
        }
    }

    /// The largest write that it takes.
    pub fn write_bytes_max(&self) -> u64 {
        self.reserve_bytes
    }

    /// The drive did something for the host at this time.
    pub fn is_active(&mut self, now_ns: u64) {
        self.active_ns = self.active_ns.max(now_ns);
    }

    /// Admits a write within one band; answers when the host hears of it.
    pub fn write(
        &mut self,
        disk: &mut Disk,
        extents: &mut Extents,
        range: Range<u64>,
        at_ns: u64,
    ) -> u64 {
        let mut now_ns = at_ns;
        while self.is_full(extents) {
            now_ns = self.clean(disk, extents, now_ns);
        }
        let bytes = range.end - range.start;
        // A record lies in one piece.
        if self.head % self.bytes + bytes > self.bytes {
            self.head = self.head.next_multiple_of(self.bytes);
        }
        let place = self.head % self.bytes;
        self.records.push_back(Record { range: range.clone(), position: self.head });
        extents.insert(range, place);
        self.head += bytes;
        disk.moved.write_bytes += bytes;
        disk.hdd.record(place, bytes, self.record_ns, now_ns)
    }

    /// Cleans while nothing came from the host, from `idle` after its last request on.
    pub fn use_idle_time(&mut self, disk: &mut Disk, extents: &mut Extents, until_ns: u64) {
        let idle_ns = self.active_ns + self.idle_ns;
        while extents.len() > 0 && disk.hdd.free_ns().max(idle_ns) < until_ns {
            self.clean(disk, extents, disk.hdd.free_ns().max(idle_ns));
        }
    }

    fn is_full(&mut self, extents: &Extents) -> bool {
        while self.records.front().is_some_and(|record| !self.is_live(record, extents)) {
            self.records.pop_front();
        }
        let tail = self.records.front().map_or(self.head, |record| record.position);
        let is_map_full = extents.len() >= self.map_max && !self.records.is_empty();
        is_map_full || self.head - tail + 2 * self.reserve_bytes > self.bytes
    }

    /// Whether the map points to any part of the record.
    fn is_live(&self, record: &Record, extents: &Extents) -> bool {
        let place = record.position % self.bytes;
        let mut parts = extents.parts(record.range.clone());
        parts.any(|(part, at)| at == place + (part.start - record.range.start))
    }

    /// Cleans the band of the oldest record.
    fn clean(&mut self, disk: &mut Disk, extents: &mut Extents, at_ns: u64) -> u64 {
        while let Some(record) = self.records.pop_front() {
            if !self.is_live(&record, extents) {
                continue;
            }
            let band = record.range.start / disk.band_bytes;
            let range = disk.range(band);
            let mut parts: Vec<(u64, u64)> = Vec::new();
            let mut end = range.start;
            for (part, place) in extents.parts(range.clone()) {
                parts.push((place, part.end - part.start));
                end = end.max(part.end);
            }
            extents.remove(range);
            let mut now_ns = read_parts(disk, parts, at_ns);
            now_ns = disk.read_band(band, now_ns);
            now_ns = self.write_temporary(disk, band, end, now_ns);
            return disk.write_band(band, end, now_ns);
        }
        at_ns
    }

    fn write_temporary(&self, disk: &mut Disk, band: u64, end: u64, at_ns: u64) -> u64 {
        let bytes = disk.bytes_after(band, end);
        disk.moved.write_bytes += bytes;
        disk.hdd.transfer(Pass::Write, self.bytes, bytes, at_ns)
    }
}

/// Reads parts of the log in the order of their places, through small gaps.
fn read_parts(disk: &mut Disk, mut parts: Vec<(u64, u64)>, at_ns: u64) -> u64 {
    parts.sort_unstable();
    let mut now_ns = at_ns;
    let mut run: Option<Range<u64>> = None;
    let mut read = |run: Range<u64>, now_ns: u64| {
        let bytes = run.end - run.start;
        disk.moved.read_bytes += bytes;
        disk.hdd.transfer(Pass::Read, run.start, bytes, now_ns)
    };
    for (place, bytes) in parts {
        run = match run {
            Some(run) if place <= run.end + GAP_BYTES => Some(run.start..place + bytes),
            Some(run) => {
                now_ns = read(run, now_ns);
                Some(place..place + bytes)
            }
            None => Some(place..place + bytes),
        };
    }
    run.map_or(now_ns, |run| read(run, now_ns))
}

#[cfg(test)]
mod tests {
    use super::super::super::hdd::{self, Hdd};
    use super::super::super::parameter::Settings;
    use super::*;

    #[test]
    fn a_record_lives_while_any_part_of_it_does() {
        const MIB: u64 = 1 << 20;
        let settings = Settings::parse(hdd::DESCRIPTOR.parameters, "capacity=1GiB").unwrap();
        let hdd = Hdd::new(&settings).unwrap();
        let mut disk = Disk::new(hdd, 8 * MIB, 4, 4 * MIB, true);
        let (mut log, mut extents) = (Log::new(4 * MIB, 4 * MIB, 100, 0, 0), Extents::default());
        log.write(&mut disk, &mut extents, 0..8192, 0);
        log.write(&mut disk, &mut extents, 0..4096, 0);
        assert!(!log.is_full(&extents));
        assert_eq!(log.records.len(), 2);
        log.write(&mut disk, &mut extents, 4096..8192, 0);
        assert!(!log.is_full(&extents));
        assert_eq!(log.records.len(), 2);
    }
}
