//! The moving parts: an arm over a platter that turns.
//!
//! Positions are bytes from the outer edge, times are in ns. Sectors lie so that the head meets
//! each in turn while it streams (track skew): the angle of a byte is the time that streaming from
//! the outer edge to it takes, modulo one turn. So streaming pays no rotation, and everything else
//! waits for its angle. The outer zone of tracks passes at the full rate, the inner one at a share
//! of it, linear between ([`ZONES`] steps).
//!
//! The seek curve is `track + a x + b sqrt(x)` over the distance x as a share of all bytes; from
//! the mean over two random positions (mean x = 1/3, mean sqrt x = 8/15) and the full stroke
//! follow `b = (15 mean - 10 track - 5 full) / 3` and `a = full - track - b`.
//!
//! Invariant: `free_ns` never falls; [`Mechanics::busy`] is the only place where it moves.

use base::{Error, Result};

/// Zones of tracks with one rate each.
const ZONES: u64 = 16;

/// What a drive with moving parts is like; rates in bytes/s, times in ns.
#[derive(Clone, Debug)]
pub struct Shape {
    pub capacity_bytes: u64,
    pub turn_ns: u64,
    pub seek_track_ns: f64,
    pub seek_mean_ns: f64,
    pub seek_full_ns: f64,
    pub read_rate: f64,
    pub write_rate: f64,
    /// Rate of the innermost zone over that of the outermost.
    pub inner_share: f64,
    /// Bytes that the drive reads ahead of a stream while the host thinks.
    pub ahead_bytes: f64,
}

/// What the head does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Reads.
    Read,
    /// Writes, which takes longer by the settling at each track.
    Write,
}

/// Arm, platter and the time when they are free.
#[derive(Clone, Debug)]
pub struct Mechanics {
    turn_ns: u64,
    /// Bytes that pass in one turn of the outermost track.
    track_bytes: u64,
    capacity: f64,
    seek_track_ns: f64,
    seek_a_ns: f64,
    seek_b_ns: f64,
    zone_bytes: u64,
    /// Layout time at the beginning of each zone, and ns per byte in it.
    zones: Vec<(f64, f64)>,
    /// Time of writing over time of reading.
    write_stretch: f64,
    ahead_ns: u64,
    /// The byte under the head when it became free, and what it did.
    head: u64,
    last: Pass,
    free_ns: u64,
    /// The angle of the platter at time 0, as the last transfer left it. Writes settle at each
    /// track, for which the skew leaves no time; the platter is turned back by what that takes.
    angle_at_zero: u64,
}

impl Mechanics {
    /// An idle drive, its head at the outer edge; an error if no seek curve fits.
    pub fn new(shape: &Shape) -> Result<Mechanics> {
        let Shape { seek_track_ns, seek_mean_ns, seek_full_ns, .. } = *shape;
        let seek_b_ns = (15.0 * seek_mean_ns - 10.0 * seek_track_ns - 5.0 * seek_full_ns) / 3.0;
        let seek_a_ns = seek_full_ns - seek_track_ns - seek_b_ns;
        if seek_a_ns < 0.0 || seek_b_ns < 0.0 {
            return Err(Error::invalid(
                "no seek curve has these times: it needs 5 seek-full + 10 seek-track <= 15 \
                 seek-mean <= 8 seek-full + 7 seek-track",
            ));
        }
        let zone_bytes = shape.capacity_bytes.div_ceil(ZONES).max(1);
        let ns_per_byte = 1e9 / shape.read_rate;
        let mut start_ns = 0.0;
        let mut zones = Vec::new();
        for zone in 0..ZONES {
            let slower = (1.0 - shape.inner_share) * zone as f64 / (ZONES - 1) as f64;
            let zone_ns_per_byte = ns_per_byte / (1.0 - slower);
            zones.push((start_ns, zone_ns_per_byte));
            start_ns += zone_ns_per_byte * zone_bytes as f64;
        }
        Ok(Mechanics {
            turn_ns: shape.turn_ns,
            track_bytes: (shape.turn_ns as f64 / ns_per_byte) as u64,
            capacity: shape.capacity_bytes as f64,
            seek_track_ns,
            seek_a_ns,
            seek_b_ns,
            zone_bytes,
            zones,
            write_stretch: (shape.read_rate / shape.write_rate).max(1.0),
            ahead_ns: (shape.ahead_bytes * ns_per_byte) as u64,
            head: 0,
            last: Pass::Read,
            free_ns: 0,
            angle_at_zero: 0,
        })
    }

    /// When the arm is free.
    pub fn free_ns(&self) -> u64 {
        self.free_ns
    }

    /// Whether the arm's last work was reading.
    pub fn was_reading(&self) -> bool {
        self.last == Pass::Read
    }

    /// The time of streaming from the outer edge to a byte.
    fn layout_ns(&self, offset: u64) -> u64 {
        let zone = (offset / self.zone_bytes).min(ZONES - 1);
        let (start_ns, ns_per_byte) = self.zones.get(zone as usize).copied().unwrap_or_default();
        (start_ns + (offset - zone * self.zone_bytes) as f64 * ns_per_byte) as u64
    }

    /// The angle at which a byte lies, in ns of a turn.
    pub fn angle(&self, offset: u64) -> u64 {
        self.layout_ns(offset) % self.turn_ns
    }

    /// How long the arm takes between two bytes, with the mean wait for the angle; 0 on a stream.
    pub fn reach_ns(&self, from: u64, to: u64) -> u64 {
        if from == to { 0 } else { self.seek_ns(from, to) + self.turn_ns / 2 }
    }

    fn seek_ns(&self, from: u64, to: u64) -> u64 {
        let distance = from.abs_diff(to);
        if distance <= self.track_bytes {
            return 0;
        }
        let x = distance as f64 / self.capacity;
        (self.seek_track_ns + self.seek_a_ns * x + self.seek_b_ns * x.sqrt()) as u64
    }

    /// How long the arm takes from `start_ns` until the byte, which lies at `angle`, is below it.
    pub fn position_ns(&self, offset: u64, angle: u64, start_ns: u64) -> u64 {
        let seek_ns = self.seek_ns(self.head, offset);
        let platter = (start_ns + seek_ns + self.angle_at_zero) % self.turn_ns;
        let wait = if angle >= platter { angle - platter } else { angle + self.turn_ns - platter };
        seek_ns + wait
    }

    /// Reads or writes; answers when it is done. Begins when the arm is free, not before `at_ns`.
    pub fn transfer(&mut self, pass: Pass, offset: u64, bytes: u64, at_ns: u64) -> u64 {
        let start_ns = self.free_ns.max(at_ns);
        let begin_layout = self.layout_ns(offset);
        let reach_ns = self.position_ns(offset, begin_layout % self.turn_ns, start_ns) + start_ns;
        self.busy(pass, offset, bytes, begin_layout, reach_ns)
    }

    /// Writes at a place that passes the head `wait_ns` after the seek to it.
    pub fn record(&mut self, offset: u64, bytes: u64, wait_ns: u64, at_ns: u64) -> u64 {
        let begin_ns = self.free_ns.max(at_ns) + self.seek_ns(self.head, offset) + wait_ns;
        self.busy(Pass::Write, offset, bytes, self.layout_ns(offset), begin_ns)
    }

    /// Reads what follows the last read: it was read ahead while the host was thinking, as far as
    /// the drive does that. `None` if the arm was elsewhere meanwhile.
    pub fn read_on(&mut self, offset: u64, bytes: u64, at_ns: u64) -> Option<u64> {
        let is_stream = offset == self.head && self.last == Pass::Read;
        let begin_ns = self.free_ns.max(at_ns.saturating_sub(self.ahead_ns));
        is_stream.then(|| self.busy(Pass::Read, offset, bytes, self.layout_ns(offset), begin_ns))
    }

    /// The head passes over the bytes from `begin_ns` on.
    fn busy(&mut self, pass: Pass, offset: u64, bytes: u64, layout: u64, begin_ns: u64) -> u64 {
        let end_layout = self.layout_ns(offset + bytes);
        let mut pass_ns = end_layout - layout;
        if pass == Pass::Write {
            pass_ns = (pass_ns as f64 * self.write_stretch) as u64;
        }
        self.head = offset + bytes;
        self.last = pass;
        self.free_ns = begin_ns + pass_ns;
        let turned = self.free_ns % self.turn_ns;
        self.angle_at_zero = (end_layout % self.turn_ns + self.turn_ns - turned) % self.turn_ns;
        self.free_ns
    }
}
