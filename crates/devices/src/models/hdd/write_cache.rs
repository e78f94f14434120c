//! Writes that the drive has taken and not yet put on the platter.
//!
//! Entries are ranges that neither overlap nor touch, each with the angle of its first byte. The
//! next one to go is the one that the arm reaches first, from where it is (shortest access time).

use super::mechanics::{Mechanics, Pass};

/// The most that goes to the platter at once. What is left of an entry follows without rotation, so
/// this only bounds how long a request waits for space.
const PIECE_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug)]
struct Entry {
    start: u64,
    end: u64,
    angle: u64,
}

/// The entries.
#[derive(Clone, Debug, Default)]
pub struct WriteCache {
    entries: Vec<Entry>,
    bytes: u64,
}

impl WriteCache {
    /// Entries, and bytes in them.
    pub fn size(&self) -> (usize, u64) {
        (self.entries.len(), self.bytes)
    }

    /// Takes a write. Answers how many of its bytes are new here, and so will be moved once more.
    pub fn insert(&mut self, start: u64, end: u64, mechanics: &Mechanics) -> u64 {
        let mut merged = Entry { start, end, angle: 0 };
        let mut new_bytes = end - start;
        let mut at = 0;
        while let Some(entry) = self.entries.get(at) {
            if entry.end < start || end < entry.start {
                at += 1;
                continue;
            }
            new_bytes -= entry.end.min(end) - entry.start.max(start);
            merged.start = merged.start.min(entry.start);
            merged.end = merged.end.max(entry.end);
            self.entries.swap_remove(at);
        }
        merged.angle = mechanics.angle(merged.start);
        self.entries.push(merged);
        self.bytes += new_bytes;
        new_bytes
    }

    /// Whether all these bytes are here.
    pub fn holds(&self, start: u64, end: u64) -> bool {
        self.entries.iter().any(|entry| entry.start <= start && end <= entry.end)
    }

    /// Puts a piece on the platter, not before `at_ns`; answers when that is done.
    pub fn destage(&mut self, mechanics: &mut Mechanics, at_ns: u64) -> u64 {
        let start_ns = mechanics.free_ns().max(at_ns);
        let cost = |entry: &Entry| mechanics.position_ns(entry.start, entry.angle, start_ns);
        let nearest = self.entries.iter().enumerate().min_by_key(|(_, entry)| cost(entry));
        let Some(nearest) = nearest.map(|(at, _)| at) else { return start_ns };
        let Some(entry) = self.entries.get_mut(nearest) else { return start_ns };
        let bytes = (entry.end - entry.start).min(PIECE_BYTES);
        let done_ns = mechanics.transfer(Pass::Write, entry.start, bytes, start_ns);
        self.bytes -= bytes;
        entry.start += bytes;
        entry.angle = mechanics.angle(entry.start);
        if entry.start == entry.end {
            self.entries.swap_remove(nearest);
        }
        done_ns
    }
}
