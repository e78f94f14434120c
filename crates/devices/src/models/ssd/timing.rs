//! What requests cost, from four measured figures, and the work that the medium has yet to do.
//!
//! A request costs a latency and its bytes at the rate of the interface; only the bytes keep the
//! interface busy, so that several requests in flight overlap in their latencies. Writes are
//! acknowledged from a buffer: the medium programs them later, together with what garbage
//! collection moves, and a write waits only while the buffer is full. Garbage collection is not
//! done in one piece: the cost of emptying a victim is paid along with the pages that fit into the
//! space that it gave back.

/// Bytes of a random request in [`Figures`].
const RANDOM_BYTES: u64 = 4096;
/// Bytes of a sequential request in [`Figures`].
const SEQUENTIAL_BYTES: u64 = 1 << 20;

/// What a drive was measured to do, one request at a time, freshly erased.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Megabytes (10^6) read in a second, in order, by requests of 1 MiB.
    pub sequential_read_mbps: f64,
    /// Megabytes (10^6) written in a second, in order, by requests of 1 MiB.
    pub sequential_write_mbps: f64,
    /// Random reads of 4 KiB in a second.
    pub random_read_iops: f64,
    /// Random writes of 4 KiB in a second.
    pub random_write_iops: f64,
}

/// Times of a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// The measured figures.
    pub figures: Figures,
    /// Erasing a superblock, all dies at once.
    pub erase_ns: u64,
    /// A read waits at most this long for programs in progress.
    pub read_delay_ns_max: u64,
    /// A flush, after the buffer was programmed.
    pub flush_ns: u64,
    /// A discard.
    pub discard_ns: u64,
    /// Bytes that are acknowledged before they are programmed.
    pub buffer_bytes: u64,
    /// Time to program a page of the SLC cache, as a share of that of a main page.
    pub slc_program_share: f64,
}

impl Default for Timing {
    /// The drive of the SEALDB and LWC-tree papers (their table of device speeds); erase and read
    /// delay as of common TLC parts.
    fn default() -> Timing {
        Timing {
            figures: Figures {
                sequential_read_mbps: 1200.0,
                sequential_write_mbps: 901.0,
                random_read_iops: 8647.0,
                random_write_iops: 19712.0,
            },
            erase_ns: 3_000_000,
            read_delay_ns_max: 200_000,
            flush_ns: 20_000,
            discard_ns: 20_000,
            buffer_bytes: 32 << 20,
            slc_program_share: 1.0 / 3.0,
        }
    }
}

/// A latency and a rate that together give two measured figures.
#[derive(Clone, Copy, Debug)]
struct Cost {
    latency_ns: u64,
    ps_per_byte: u64,
}

impl Cost {
    fn fit(mbps: f64, iops: f64) -> Cost {
        let random_ns = 1e9 / iops;
        let sequential_ns = SEQUENTIAL_BYTES as f64 * 1e3 / mbps;
        let ns_per_byte = (sequential_ns - random_ns) / (SEQUENTIAL_BYTES - RANDOM_BYTES) as f64;
        let latency_ns = random_ns - RANDOM_BYTES as f64 * ns_per_byte;
        Cost { latency_ns: latency_ns as u64, ps_per_byte: (ns_per_byte * 1e3) as u64 }
    }

    fn bytes_ns(self, bytes: u64) -> u64 {
        bytes * self.ps_per_byte / 1000
    }
}

/// Work for the medium.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    /// Bytes that the host's request programs or reads itself.
    pub own_ns: u64,
    /// Newly owed for space that was reclaimed.
    pub owed_ns: u64,
    /// Host pages of this request, and those that fit until space has to be reclaimed again.
    pub pages: u64,
    /// See `pages`.
    pub room_pages: u64,
}

/// The medium's queue.
pub(super) struct Clock {
    read: Cost,
    write: Cost,
    timing: Timing,
    /// When everything accepted so far is programmed.
    medium_free_ns: u64,
    /// Work for space that is already in use, and not yet paid for.
    debt_ns: u64,
}

impl Clock {
    pub(super) fn new(timing: &Timing) -> Clock {
        let figures = &timing.figures;
        Clock {
            read: Cost::fit(figures.sequential_read_mbps, figures.random_read_iops),
            write: Cost::fit(figures.sequential_write_mbps, figures.random_write_iops),
            timing: *timing,
            medium_free_ns: 0,
            debt_ns: 0,
        }
    }

    pub(super) fn medium_free_ns(&self) -> u64 {
        self.medium_free_ns
    }

    /// Programming `main` and `slc` bytes, reading `moved` bytes, erasing `erases` superblocks.
    pub(super) fn medium_ns(&self, main: u64, slc: u64, moved: u64, erases: u64) -> u64 {
        let slc_ns = self.write.bytes_ns(slc) as f64 * self.timing.slc_program_share;
        self.write.bytes_ns(main)
            + slc_ns as u64
            + self.read.bytes_ns(moved)
            + erases * self.timing.erase_ns
    }

    /// Idle time until `at_ns` pays debts.
    pub(super) fn advance(&mut self, at_ns: u64) {
        let idle_ns = at_ns.saturating_sub(self.medium_free_ns).min(self.debt_ns);
        self.debt_ns -= idle_ns;
        self.medium_free_ns += idle_ns;
    }

    /// The drive's own work, done while there is no request.
    pub(super) fn work_idle(&mut self, ns: u64) {
        self.medium_free_ns += ns;
    }

    /// A read of `bytes`, of which `mapped` lie on the medium: when it is done, and the interface
    /// free.
    pub(super) fn read(&mut self, at_ns: u64, bytes: u64, mapped: u64) -> (u64, u64) {
        let wait_ns = match mapped {
            0 => 0,
            _ => self.medium_free_ns.saturating_sub(at_ns).min(self.timing.read_delay_ns_max),
        };
        let free_ns = at_ns + wait_ns + self.read.bytes_ns(bytes);
        self.medium_free_ns = self.medium_free_ns.max(at_ns) + self.read.bytes_ns(mapped);
        (free_ns + self.read.latency_ns, free_ns)
    }

    /// A write of `bytes`: when it is done, and the interface free.
    pub(super) fn write(&mut self, at_ns: u64, bytes: u64, work: &Work) -> (u64, u64) {
        self.debt_ns += work.owed_ns;
        let paid = u128::from(self.debt_ns) * u128::from(work.pages)
            / u128::from((work.pages + work.room_pages).max(1));
        self.debt_ns -= paid as u64;
        self.medium_free_ns = self.medium_free_ns.max(at_ns) + work.own_ns + paid as u64;
        let sent_ns = at_ns + self.write.bytes_ns(bytes);
        let buffer_ns = self.write.bytes_ns(self.timing.buffer_bytes);
        let free_ns = sent_ns.max(self.medium_free_ns.saturating_sub(buffer_ns));
        (free_ns + self.write.latency_ns, free_ns)
    }

    /// When everything acknowledged is on the medium.
    pub(super) fn flush(&self, at_ns: u64) -> u64 {
        self.medium_free_ns.max(at_ns) + self.timing.flush_ns
    }

    pub(super) fn discard(&self, at_ns: u64) -> u64 {
        at_ns + self.timing.discard_ns
    }
}
