//! A solid-state drive: a page-mapped translation layer over superblocks that are erased whole.
//!
//! Writes of the host and moved pages fill superblocks one after another; when few are free, a
//! victim's valid pages are moved and it is erased. So the medium writes more than the host: WA2
//! of the cascaded write amplification paper (sections 2.2 and 7).
//!
//! Invariants:
//! - The unit is the page, which is the sector: no request writes part of one.
//! - Bytes moved are counted in the request that caused them, whole; their time is spread over the
//!   writes that follow (see [`timing`]).
//! - Time has no influence on what lies where, but for the SLC cache, which is emptied in idle
//!   time.

mod flash;
mod parameters;
#[cfg(test)]
mod tests;
pub mod timing;
mod victim;

pub use parameters::DESCRIPTOR;
pub use timing::{Figures, Timing};
pub use victim::Victim;

use super::{SECTOR_BYTES, check, without_zones};
use crate::model::{Access, Model, Request, Served};
use base::random::Random;
use base::{Error, Result};
use flash::{Counts, Flash};
use media::block::{Geometry, Moved, Overwrite};
use timing::{Clock, Work};

/// The unit of mapping.
const PAGE_BYTES: u64 = SECTOR_BYTES as u64;

/// What was done to a drive before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wear {
    /// Nothing was ever written, or all was erased: the initial state.
    Fresh,
    /// Every page was written once, in order.
    Filled,
    /// Filled, and then twice the capacity overwritten in random pages: the steady state.
    Steady,
}

/// A drive.
#[derive(Clone, Debug, PartialEq)]
pub struct SsdOptions {
    /// Bytes that the host sees.
    pub capacity_bytes: u64,
    /// The unit of erasure: blocks of all dies together.
    pub superblock_bytes: u64,
    /// Flash beyond the capacity, as a share of the capacity. Raised to what the drive needs to
    /// work at all: two superblocks, or three with a stream of its own.
    pub over_provisioning: f64,
    /// Which superblock is emptied next.
    pub victim: Victim,
    /// Moved pages go to a superblock of their own, apart from the host's.
    pub gc_stream: bool,
    /// Discarded pages are forgotten. Off: discards are accepted and do nothing.
    pub trim: bool,
    /// Bytes that are first written to SLC superblocks and folded into the main ones later.
    /// 0: none.
    pub slc_bytes: u64,
    /// Bytes on the medium for a byte of the host, by compression in the controller.
    pub compression: f64,
    /// What was done before.
    pub wear: Wear,
    /// Erases that a superblock endures.
    pub endurance: u32,
    /// Times.
    pub timing: Timing,
    /// Of the random choices: victims, and the wear.
    pub seed: u64,
}

impl SsdOptions {
    /// A drive of `capacity_bytes` with 7 % over-provisioning, TRIM, greedy choice, freshly erased.
    pub fn new(capacity_bytes: u64) -> SsdOptions {
        SsdOptions {
            capacity_bytes,
            superblock_bytes: 64 << 20,
            over_provisioning: 0.07,
            victim: Victim::Greedy,
            gc_stream: false,
            trim: true,
            slc_bytes: 0,
            compression: 1.0,
            wear: Wear::Fresh,
            endurance: 3000,
            timing: Timing::default(),
            seed: 0,
        }
    }

    pub(crate) fn logical_pages(&self) -> u32 {
        (self.capacity_bytes / PAGE_BYTES) as u32
    }

    /// Pages that fit into a superblock, compressed.
    pub(crate) fn pages_per_superblock(&self) -> u32 {
        let pages = self.superblock_bytes as f64 / (PAGE_BYTES as f64 * self.compression);
        pages as u32
    }

    pub(crate) fn main_superblocks(&self) -> u32 {
        let bytes = self.capacity_bytes as f64 * (1.0 + self.over_provisioning);
        let wanted = (bytes / self.superblock_bytes as f64) as u32;
        let needed = self.logical_pages().div_ceil(self.pages_per_superblock());
        wanted.max(needed + 2 + u32::from(self.gc_stream))
    }

    pub(crate) fn slc_superblocks(&self) -> u32 {
        let count = self.slc_bytes.div_ceil(self.superblock_bytes) as u32;
        // One is written while another is emptied.
        if count > 0 { count.max(2) } else { 0 }
    }

    fn check(&self) -> Result<()> {
        let refuse = |what: &str| Err(Error::invalid(format!("solid-state drive: {what}")));
        if self.capacity_bytes == 0 || !self.capacity_bytes.is_multiple_of(PAGE_BYTES) {
            return refuse("the capacity must be a multiple of the page, and not 0");
        }
        if !(0.0..=100.0).contains(&self.over_provisioning) {
            return refuse("over-provisioning must lie between 0 and 100");
        }
        if !(0.01..=1.0).contains(&self.compression) {
            return refuse("compression must lie between 0.01 and 1");
        }
        if self.superblock_bytes < 2 * PAGE_BYTES || self.superblock_bytes > 1 << 40 {
            return refuse("a superblock must hold at least two pages, and at most 1 TiB");
        }
        let bytes = self.capacity_bytes as f64 * (1.0 + self.over_provisioning)
            + self.slc_bytes as f64
            + 5.0 * self.superblock_bytes as f64;
        if bytes / (PAGE_BYTES as f64 * self.compression) >= f64::from(u32::MAX) {
            return refuse("more than 2^32 pages");
        }
        let Figures { sequential_read_mbps, sequential_write_mbps, .. } = self.timing.figures;
        let Figures { random_read_iops, random_write_iops, .. } = self.timing.figures;
        let is_slower = |mbps: f64, iops: f64| iops > 0.0 && iops * 4096.0 < mbps * 1e6;
        if !is_slower(sequential_read_mbps, random_read_iops)
            || !is_slower(sequential_write_mbps, random_write_iops)
        {
            return refuse("random requests must be slower, byte for byte, than sequential ones");
        }
        Ok(())
    }
}

/// A solid-state drive.
pub struct Ssd {
    options: SsdOptions,
    flash: Flash,
    clock: Clock,
}

impl Ssd {
    /// A drive in the state that the options ask for; `InvalidArgument` if they are out of bounds.
    pub fn new(options: &SsdOptions) -> Result<Ssd> {
        options.check()?;
        let mut ssd = Ssd {
            options: options.clone(),
            flash: Flash::new(options),
            clock: Clock::new(&options.timing),
        };
        ssd.wear(options.wear);
        Ok(ssd)
    }

    /// Brings the drive into a state; takes no time, and counts begin anew.
    pub fn wear(&mut self, wear: Wear) {
        let pages = self.options.logical_pages();
        let mut random = Random::new(self.options.seed);
        let overwrites = match wear {
            Wear::Fresh => {
                self.flash = Flash::new(&self.options);
                return;
            }
            Wear::Filled => 0,
            Wear::Steady => 2 * u64::from(pages),
        };
        (0..pages).for_each(|page| self.flash.write(page));
        for _ in 0..overwrites {
            self.flash.write(random.below(u64::from(pages)) as u32);
        }
        self.flash.forget();
    }

    /// Bytes programmed for each byte that the host wrote.
    pub fn write_amplification(&self) -> f64 {
        let counts = &self.flash.counts;
        counts.programmed_pages() as f64 * self.options.compression
            / counts.host_pages.max(1) as f64
    }

    fn medium_bytes(&self, pages: u64) -> u64 {
        let bytes = pages * PAGE_BYTES;
        // Exact without compression.
        if self.options.compression == 1.0 {
            return bytes;
        }
        (bytes as f64 * self.options.compression) as u64
    }

    fn pages(request: &Request) -> std::ops::Range<u32> {
        let first = (request.offset / PAGE_BYTES) as u32;
        first..first + (request.bytes / PAGE_BYTES) as u32
    }

    fn medium_ns(&self, counts: &Counts) -> u64 {
        self.clock.medium_ns(
            self.medium_bytes(counts.main_pages),
            self.medium_bytes(counts.slc_pages),
            self.medium_bytes(counts.moved_pages),
            counts.erases,
        )
    }

    /// Empties the SLC cache as far as there was time until `at_ns`.
    fn fold_idle(&mut self, at_ns: u64) {
        while let Some(pages) = self.flash.next_fold_pages() {
            let bytes = self.medium_bytes(u64::from(pages));
            let fold_ns = self.clock.medium_ns(bytes, 0, bytes, 1);
            if self.clock.medium_free_ns() + fold_ns > at_ns {
                return;
            }
            let before = self.flash.counts;
            self.flash.fold();
            let done = self.flash.counts.since(&before);
            self.clock.work_idle(self.medium_ns(&done));
        }
    }

    fn write(&mut self, request: &Request, pages: std::ops::Range<u32>) -> (u64, u64) {
        let before = self.flash.counts;
        let count = pages.len() as u64;
        pages.for_each(|page| self.flash.write(page));
        let done = self.flash.counts.since(&before);
        let own = match self.options.slc_bytes {
            0 => Counts { main_pages: count, ..Counts::default() },
            _ => Counts { slc_pages: count, ..Counts::default() },
        };
        let own_ns = self.medium_ns(&own);
        let work = Work {
            own_ns,
            owed_ns: self.medium_ns(&done).saturating_sub(own_ns),
            pages: count,
            room_pages: self.flash.room_pages(),
        };
        self.clock.write(request.at_ns, request.bytes, &work)
    }
}

impl Model for Ssd {
    fn name(&self) -> &'static str {
        "ssd"
    }

    fn geometry(&self) -> Geometry {
        Geometry {
            sector_bytes: SECTOR_BYTES,
            atomic_bytes: SECTOR_BYTES,
            capacity_bytes: self.options.capacity_bytes,
            overwrite: Overwrite::InPlace,
            band_bytes: 0,
            zones: None,
        }
    }

    fn serve(&mut self, request: &Request) -> Result<Served> {
        check(request, &self.geometry())?;
        if matches!(request.access, Access::ResetZone | Access::FinishZone) {
            return Err(without_zones());
        }
        let pages = Self::pages(request);
        let before = self.flash.counts;
        let at_ns = request.at_ns;
        self.clock.advance(at_ns);
        self.fold_idle(at_ns);
        let mut read_pages = 0;
        let (done_ns, free_ns) = match request.access {
            Access::Read => {
                read_pages =
                    pages.clone().filter(|&page| self.flash.is_mapped(page)).count() as u64;
                self.clock.read(at_ns, request.bytes, self.medium_bytes(read_pages))
            }
            Access::Write => self.write(request, pages),
            Access::Discard => {
                if self.options.trim {
                    pages.for_each(|page| self.flash.unmap(page));
                }
                let done_ns = self.clock.discard(at_ns);
                (done_ns, done_ns)
            }
            _ => (self.clock.flush(at_ns), at_ns),
        };
        let done = self.flash.counts.since(&before);
        let moved = Moved {
            write_bytes: self.medium_bytes(done.programmed_pages()),
            read_bytes: self.medium_bytes(read_pages + done.moved_pages),
        };
        Ok(Served { done_ns, free_ns, moved, destroyed: Vec::new() })
    }

    fn facts(&self) -> Vec<(&'static str, f64)> {
        let counts = &self.flash.counts;
        let erases = self.flash.main_erases();
        let sum: u64 = erases.iter().copied().map(u64::from).sum();
        let mean = sum as f64 / erases.len() as f64;
        let endured = self.options.superblock_bytes as f64
            * erases.len() as f64
            * f64::from(self.options.endurance);
        // What the main superblocks endure, by what they were written for each byte of the host.
        let main_pages = counts.main_pages.max(1) as f64 * self.options.compression;
        let lifetime = endured * counts.host_pages as f64 / main_pages;
        vec![
            ("host write bytes", (counts.host_pages * PAGE_BYTES) as f64),
            ("medium write bytes", self.medium_bytes(counts.programmed_pages()) as f64),
            ("write amplification", self.write_amplification()),
            ("collected bytes", self.medium_bytes(counts.moved_pages - counts.folded_pages) as f64),
            ("folded bytes", self.medium_bytes(counts.folded_pages) as f64),
            (
                "valid share",
                self.flash.valid_pages() as f64 / f64::from(self.options.logical_pages()),
            ),
            ("free superblocks", self.flash.free_superblocks() as f64),
            ("erases mean", mean),
            ("erases max", f64::from(erases.iter().copied().max().unwrap_or(0))),
            (
                "slc erases max",
                f64::from(self.flash.slc_erases().iter().copied().max().unwrap_or(0)),
            ),
            ("life used", mean / f64::from(self.options.endurance)),
            ("lifetime host bytes", lifetime),
        ]
    }
}
