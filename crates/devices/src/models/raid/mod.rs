//! `raid`: RAID-0, -5 and -6 over members of any model that takes writes in place.
//!
//! Data lies in chunks over the members; with parity, the parity chunks of stripe s are on member
//! `n - 1 - s mod n` (and the one after it), data follows after them (left-symmetric). A write of
//! whole stripes writes their parity from memory. A smaller one reads the old data and the old
//! parity of the bytes that it changes, then writes both (read-modify-write). HashKV's experiment 3
//! runs on such arrays.
//!
//! Members work side by side: the array takes the next request as soon as one of them is free, and
//! a member begins with it when it is free itself.
//!
//! Not modelled: failed members and rebuilding, a cache of stripes, the write hole.

#[cfg(test)]
mod tests;

use super::parameter::{Kind, Parameter, Settings};
use super::{Descriptor, SECTOR_BYTES, check, make, without_zones};
use crate::model::{Access, Model, Request, Served};
use base::{Error, Result};
use media::block::{Geometry, Moved, Overwrite};
use std::ops::Range;

const OWN: &[Parameter] = &[
    Parameter {
        name: "level",
        kind: Kind::Choice(&["0", "5", "6"]),
        default: "5",
        help: "RAID level: no, one or two chunks of parity in a stripe",
    },
    Parameter { name: "members", kind: Kind::Count("2", "64"), default: "6", help: "devices" },
    Parameter {
        name: "chunk",
        kind: Kind::Bytes("4KiB", "64MiB"),
        default: "64KiB",
        help: "bytes on one member before the next, rounded up to sectors",
    },
    Parameter { name: "member", kind: Kind::Model, default: "hdd", help: "each member" },
];

/// The model in the registry.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "raid",
    summary: "RAID-0, -5 or -6 over members of another model",
    help: "An array with rotating parity. Whole stripes are written with their parity; smaller \
           writes read the old data and parity first. `member` is any model that takes writes in \
           place, with its parameters, and stands last: \
           `raid:level=5,members=6,member=hdd:capacity=1GiB`.",
    parameters: OWN,
    make: |settings| Ok(Box::new(Raid::new(settings)?)),
};

struct Member {
    model: Box<dyn Model>,
    free_ns: u64,
}

/// Where chunks lie.
#[derive(Clone, Copy, Debug)]
struct Layout {
    members: u64,
    parity: u64,
    chunk_bytes: u64,
}

impl Layout {
    fn data(&self) -> u64 {
        self.members - self.parity
    }

    fn stripe_bytes(&self) -> u64 {
        self.data() * self.chunk_bytes
    }

    /// The member of chunk `position` of a stripe; parity is at positions 0 to `parity`.
    fn member(&self, stripe: u64, position: u64) -> usize {
        let first = if self.parity == 0 { 0 } else { self.members - 1 - stripe % self.members };
        ((first + position) % self.members) as usize
    }

    /// The parts of `range` by chunk: member and its bytes.
    fn parts(self, range: Range<u64>) -> impl Iterator<Item = (usize, Range<u64>)> {
        let chunks = range.start / self.chunk_bytes..range.end.div_ceil(self.chunk_bytes);
        chunks.map(move |chunk| {
            let stripe = chunk / self.data();
            let member = self.member(stripe, self.parity + chunk % self.data());
            let start = chunk * self.chunk_bytes;
            let from = range.start.max(start) - start;
            let to = range.end.min(start + self.chunk_bytes) - start;
            (member, stripe * self.chunk_bytes + from..stripe * self.chunk_bytes + to)
        })
    }
}

/// An array.
pub struct Raid {
    geometry: Geometry,
    layout: Layout,
    members: Vec<Member>,
    full_stripes: u64,
    partial_stripes: u64,
}

impl Raid {
    /// An array with the parameters of [`DESCRIPTOR`].
    pub fn new(settings: &Settings) -> Result<Raid> {
        let parity = match settings.text("level") {
            "0" => 0,
            "5" => 1,
            _ => 2,
        };
        let count = settings.number("members");
        if count < parity + 2 {
            let message = format!("this level needs {} members at least", parity + 2);
            return Err(Error::invalid(message));
        }
        let members: Vec<Member> = (0..count)
            .map(|_| Ok(Member { model: make(settings.text("member"))?, free_ns: 0 }))
            .collect::<Result<_>>()?;
        let of = members.first().map(|member| member.model.geometry());
        let chunk_bytes = settings.number("chunk").next_multiple_of(u64::from(SECTOR_BYTES));
        let layout = Layout { members: count, parity, chunk_bytes };
        let of = of.filter(|of| {
            of.overwrite == Overwrite::InPlace
                && of.capacity_bytes >= chunk_bytes
                && chunk_bytes.is_multiple_of(u64::from(of.sector_bytes))
        });
        let of = of.ok_or_else(|| {
            Error::invalid("a member takes writes in place and holds a chunk of whole sectors")
        })?;
        Ok(Raid {
            geometry: Geometry {
                capacity_bytes: of.capacity_bytes / chunk_bytes * layout.stripe_bytes(),
                band_bytes: of.band_bytes * layout.data(),
                ..of
            },
            layout,
            members,
            full_stripes: 0,
            partial_stripes: 0,
        })
    }

    fn write(&mut self, range: Range<u64>, turn: &mut Turn) -> Result<()> {
        let stripe_bytes = self.layout.stripe_bytes();
        if self.layout.parity == 0 {
            return turn.send(&mut self.members, Access::Write, self.layout.parts(range));
        }
        let full =
            range.start.next_multiple_of(stripe_bytes)..range.end / stripe_bytes * stripe_bytes;
        if full.start >= full.end {
            // At most two stripes, neither of them whole.
            let border = full.start.min(range.end);
            self.write_part(range.start..border, turn)?;
            return self.write_part(border..range.end, turn);
        }
        self.write_part(range.start..full.start, turn)?;
        let stripes = full.start / stripe_bytes..full.end / stripe_bytes;
        self.full_stripes += stripes.end - stripes.start;
        let chunk = self.layout.chunk_bytes;
        let on_each = stripes.start * chunk..stripes.end * chunk;
        let all = (0..self.members.len()).map(|member| (member, on_each.clone()));
        turn.send(&mut self.members, Access::Write, all)?;
        self.write_part(full.end..range.end, turn)
    }

    /// Changes a part of one stripe.
    fn write_part(&mut self, range: Range<u64>, turn: &mut Turn) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        self.partial_stripes += 1;
        let stripe = range.start / self.layout.stripe_bytes();
        let mut parts: Vec<(usize, Range<u64>)> = self.layout.parts(range).collect();
        let from = parts.iter().map(|(_, part)| part.start).min().unwrap_or(0);
        let to = parts.iter().map(|(_, part)| part.end).max().unwrap_or(0);
        let layout = self.layout;
        parts.extend((0..layout.parity).map(|at| (layout.member(stripe, at), from..to)));
        let mut read = Turn { at_ns: turn.at_ns, ..Turn::default() };
        read.send(&mut self.members, Access::Read, parts.iter().cloned())?;
        let mut write = Turn { at_ns: read.done_ns, ..Turn::default() };
        write.send(&mut self.members, Access::Write, parts.into_iter())?;
        turn.add(&read);
        turn.add(&write);
        Ok(())
    }

    fn serve_all(&mut self, access: Access, turn: &mut Turn) -> Result<()> {
        let all = (0..self.members.len()).map(|member| (member, 0..0));
        turn.send(&mut self.members, access, all)
    }
}

/// Requests to members that begin at the same time.
#[derive(Default)]
struct Turn {
    at_ns: u64,
    done_ns: u64,
    moved: Moved,
}

impl Turn {
    /// Sends the parts, those that follow each other on a member as one.
    fn send(
        &mut self,
        members: &mut [Member],
        access: Access,
        parts: impl Iterator<Item = (usize, Range<u64>)>,
    ) -> Result<()> {
        let mut waiting: Vec<Option<Range<u64>>> = vec![None; members.len()];
        for (number, part) in parts {
            let Some(slot) = waiting.get_mut(number) else { continue };
            match slot {
                Some(range) if range.end == part.start => range.end = part.end,
                slot => {
                    if let Some(range) = slot.replace(part) {
                        self.send_one(members, access, number, range)?;
                    }
                }
            }
        }
        for (number, range) in waiting.into_iter().enumerate() {
            if let Some(range) = range {
                self.send_one(members, access, number, range)?;
            }
        }
        Ok(())
    }

    fn send_one(
        &mut self,
        members: &mut [Member],
        access: Access,
        number: usize,
        range: Range<u64>,
    ) -> Result<()> {
        let Some(member) = members.get_mut(number) else { return Ok(()) };
        let bytes = range.end - range.start;
        let at_ns = self.at_ns.max(member.free_ns);
        let served = member.model.serve(&Request { access, offset: range.start, bytes, at_ns })?;
        member.free_ns = served.free_ns;
        self.done_ns = self.done_ns.max(served.done_ns);
        self.moved.write_bytes += served.moved.write_bytes;
        self.moved.read_bytes += served.moved.read_bytes;
        Ok(())
    }

    fn add(&mut self, other: &Turn) {
        self.done_ns = self.done_ns.max(other.done_ns);
        self.moved.write_bytes += other.moved.write_bytes;
        self.moved.read_bytes += other.moved.read_bytes;
    }
}

impl Model for Raid {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn serve(&mut self, request: &Request) -> Result<Served> {
        check(request, &self.geometry)?;
        let Request { access, offset, bytes, at_ns } = *request;
        let range = offset..offset + bytes;
        let mut turn = Turn { at_ns, done_ns: at_ns, moved: Moved::default() };
        match access {
            Access::Read => turn.send(&mut self.members, access, self.layout.parts(range))?,
            Access::Write => self.write(range, &mut turn)?,
            Access::Flush => self.serve_all(access, &mut turn)?,
            Access::Discard => {
                let stripe = self.layout.stripe_bytes();
                let chunk = self.layout.chunk_bytes;
                let whole = range.start.div_ceil(stripe) * chunk..range.end / stripe * chunk;
                if whole.start < whole.end {
                    let all = (0..self.members.len()).map(|member| (member, whole.clone()));
                    turn.send(&mut self.members, access, all)?;
                }
            }
            Access::ResetZone | Access::FinishZone => return Err(without_zones()),
        }
        let free_ns = self.members.iter().map(|member| member.free_ns).min().unwrap_or(at_ns);
        let (done_ns, moved) = (turn.done_ns, turn.moved);
        Ok(Served { done_ns, free_ns: free_ns.max(at_ns), moved, destroyed: Vec::new() })
    }

    fn positioning_ns(&self, from: u64, to: u64) -> u64 {
        let data = self.layout.data();
        let first = self.members.first().filter(|_| from != to);
        first.map_or(0, |member| member.model.positioning_ns(from / data, to / data))
    }

    fn facts(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("members", self.members.len() as f64),
            ("stripes written whole", self.full_stripes as f64),
            ("stripes written in part", self.partial_stripes as f64),
        ]
    }
}
