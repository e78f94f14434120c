//! Value segments: the files of separated values, and what is known of them.
//!
//! A *segment* is an append-only file of records. Segments form *groups*: all records whose key
//! hash begins with the group's bits, so that every version of a key lies in one group (HashKV
//! 3.2). A group without bits holds every key: a plain log. What a version says of its segments is
//! exact: an edit adds them, lets them grow, counts what died in them, and removes them.
//!
//! Invariants:
//! - Dead bytes never exceed a segment's bytes; they grow until the segment goes.
//! - A *retired* segment takes no more records. Its live records were written elsewhere; it stays
//!   for reads at an older sequence number, and for a log that still names it.
//! - A segment's file lives as long as a version that lists it.

use crate::file_ref::FileRef;
use base::{FileId, SequenceNumber};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the records of a group are to the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Tier {
    /// Where new values go.
    Main = 0,
    /// Values that garbage collection found unchanged since their group was last collected, and
    /// values that came from elsewhere (HashKV 3.4).
    Cold = 1,
}

impl Tier {
    /// The tier stored as `byte`, if there is one.
    pub fn from_byte(byte: u8) -> Option<Tier> {
        match byte {
            0 => Some(Tier::Main),
            1 => Some(Tier::Cold),
            _ => None,
        }
    }
}

/// The most hash bits that tell groups apart.
pub const GROUP_DEPTH_MAX: u8 = 24;

/// The keys whose hash begins with the first `depth` bits of `prefix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    /// Which tier.
    pub tier: Tier,
    /// The bits, from the most significant one; those beyond `depth` are zero.
    pub prefix: u64,
    /// How many bits count, at most [`GROUP_DEPTH_MAX`].
    pub depth: u8,
}

impl Group {
    /// The group of every key.
    pub const fn all(tier: Tier) -> Group {
        Group { tier, prefix: 0, depth: 0 }
    }

    /// The group of `depth` bits that a key of this hash belongs to.
    pub fn of(tier: Tier, hash: u64, depth: u8) -> Group {
        let depth = depth.min(GROUP_DEPTH_MAX);
        Group { tier, prefix: hash & mask(depth), depth }
    }

    /// A key of this hash belongs to the group.
    pub fn holds(&self, hash: u64) -> bool {
        hash & mask(self.depth) == self.prefix
    }

    /// Bits beyond the depth are zero and the depth is within its limit.
    pub fn is_valid(&self) -> bool {
        self.depth <= GROUP_DEPTH_MAX && self.prefix & !mask(self.depth) == 0
    }
}

fn mask(depth: u8) -> u64 {
    if depth == 0 { 0 } else { u64::MAX << (64 - u32::from(depth)) }
}

/// A segment at one moment.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Its file.
    pub file: Arc<FileRef>,
    /// Whose records it holds.
    pub group: Group,
    /// Bytes that the manifest vouches for; what lies beyond was never committed.
    pub bytes: u64,
    /// Bytes of records that no entry of the tree refers to any more, as far as merges dropped
    /// the entries.
    pub dead_bytes: u64,
    /// Since this sequence number, readers find its live records elsewhere.
    pub retired: Option<SequenceNumber>,
    /// Garbage collection wrote it and has not confirmed yet that the tree points into it. After a
    /// crash it stays unconfirmed: then its records are looked up one by one.
    pub is_provisional: bool,
    /// Its file is in the cold store.
    pub is_in_cold_store: bool,
}

impl Segment {
    /// A segment of `bytes` live bytes in the store that all files are in.
    pub fn new(file: Arc<FileRef>, group: Group, bytes: u64) -> Segment {
        Segment {
            file,
            group,
            bytes,
            dead_bytes: 0,
            retired: None,
            is_provisional: false,
            is_in_cold_store: false,
        }
    }

    /// Bytes that are not known to be dead.
    pub fn live_bytes(&self) -> u64 {
        if self.retired.is_some() { 0 } else { self.bytes - self.dead_bytes }
    }
}

/// The segments of a keyspace at one moment.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    by_file: Arc<BTreeMap<FileId, Segment>>,
    /// Always the sum over `by_file`.
    usage: Usage,
}

/// Bytes of some segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All bytes on the medium.
    pub total_bytes: u64,
    /// Bytes known to be dead in segments that are not retired.
    pub dead_bytes: u64,
    /// Bytes of retired segments.
    pub retired_bytes: u64,
    /// Bytes of the cold tier that are not known to be dead.
    pub cold_live_bytes: u64,
    /// Bytes known to be dead in segments of the cold tier that are not retired.
    pub cold_dead_bytes: u64,
}

impl Segments {
    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.by_file.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_file.len()
    }

    /// The segment in this file.
    pub fn get(&self, file: FileId) -> Option<&Segment> {
        self.by_file.get(&file)
    }

    /// Every segment, in the order in which they were begun.
    pub fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.by_file.values()
    }

    /// The files of the segments that the manifest vouches for no byte of.
    pub fn empty_ones(&self) -> impl Iterator<Item = FileId> {
        self.by_file.iter().filter(|(_, segment)| segment.bytes == 0).map(|(&file, _)| file)
    }

    /// The segments that hold live records, by group, each group's in the order of its writes.
    pub fn groups(&self) -> BTreeMap<Group, Vec<&Segment>> {
        let mut groups: BTreeMap<Group, Vec<&Segment>> = BTreeMap::new();
        for segment in self.iter().filter(|segment| segment.retired.is_none()) {
            groups.entry(segment.group).or_default().push(segment);
        }
        groups
    }

    /// Bytes of all segments. Costs nothing.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// [`Segments::usage`] counted anew, to verify it.
    pub fn recount(&self) -> Usage {
        let mut usage = Usage::default();
        self.iter().for_each(|segment| usage.add(segment));
        usage
    }

    /// Adds a segment.
    pub fn add(&mut self, segment: Segment) -> Fit {
        if !segment.group.is_valid() {
            return Err("its group has bits beyond its depth".to_string());
        }
        if self.get(segment.file.id).is_some() {
            return Err("there is a segment in this file".to_string());
        }
        self.usage.add(&segment);
        Arc::make_mut(&mut self.by_file).insert(segment.file.id, segment);
        Ok(())
    }

    /// A segment has more bytes.
    pub fn grow(&mut self, file: FileId, bytes: u64) -> Fit {
        self.change(file, |segment| {
            if segment.retired.is_some() || bytes < segment.bytes {
                return Err(format!("it has {} bytes, or takes no more", segment.bytes));
            }
            segment.bytes = bytes;
            Ok(())
        })
    }

    /// Records died. More than there are is what two merges of one entry would say; it is cut off,
    /// because a replay of the log may well say it again. Nothing happens to a segment that is
    /// gone.
    pub fn bury(&mut self, file: FileId, bytes: u64) {
        let gone = self.change(file, |segment| {
            segment.dead_bytes = segment.dead_bytes.saturating_add(bytes).min(segment.bytes);
            Ok(())
        });
        drop(gone);
    }

    /// A segment takes no more records and holds none that a reader at `sequence` needs.
    pub fn retire(&mut self, file: FileId, sequence: SequenceNumber) -> Fit {
        self.change(file, |segment| {
            segment.retired = Some(sequence);
            Ok(())
        })
    }

    /// The tree points into a segment, as far as its records are not buried.
    pub fn confirm(&mut self, file: FileId) -> Fit {
        self.change(file, |segment| {
            segment.is_provisional = false;
            Ok(())
        })
    }

    /// A segment goes.
    pub fn remove(&mut self, file: FileId) -> Fit {
        let removed = Arc::make_mut(&mut self.by_file).remove(&file).ok_or_else(unknown)?;
        self.usage.subtract(&removed);
        Ok(())
    }

    fn change(&mut self, file: FileId, change: impl FnOnce(&mut Segment) -> Fit) -> Fit {
        let segment = Arc::make_mut(&mut self.by_file).get_mut(&file).ok_or_else(unknown)?;
        self.usage.subtract(segment);
        let changed = change(segment);
        self.usage.add(segment);
        changed
    }
}

impl Usage {
    fn of(segment: &Segment) -> Usage {
        let is_retired = segment.retired.is_some();
        let dead_bytes = if is_retired { 0 } else { segment.dead_bytes };
        let is_cold = segment.group.tier == Tier::Cold;
        Usage {
            total_bytes: segment.bytes,
            dead_bytes,
            retired_bytes: if is_retired { segment.bytes } else { 0 },
            cold_live_bytes: if is_cold { segment.live_bytes() } else { 0 },
            cold_dead_bytes: if is_cold { dead_bytes } else { 0 },
        }
    }

    fn add(&mut self, segment: &Segment) {
        let of = Usage::of(segment);
        self.total_bytes += of.total_bytes;
        self.dead_bytes += of.dead_bytes;
        self.retired_bytes += of.retired_bytes;
        self.cold_live_bytes += of.cold_live_bytes;
        self.cold_dead_bytes += of.cold_dead_bytes;
    }

    fn subtract(&mut self, segment: &Segment) {
        let of = Usage::of(segment);
        self.total_bytes -= of.total_bytes;
        self.dead_bytes -= of.dead_bytes;
        self.retired_bytes -= of.retired_bytes;
        self.cold_live_bytes -= of.cold_live_bytes;
        self.cold_dead_bytes -= of.cold_dead_bytes;
    }
}

/// A change fits, or why it does not, in words.
pub type Fit = Result<(), String>;

fn unknown() -> String {
    "there is no segment in this file".to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_ref::ObsoleteFiles;

    fn file(id: u64) -> Arc<FileRef> {
        FileRef::new_values(FileId(id), 0, Arc::new(ObsoleteFiles::default()))
    }

    #[test]
    fn a_group_holds_the_hashes_that_begin_with_its_bits() {
        let group = Group::of(Tier::Main, 0b101 << 61, 3);
        assert!(group.holds((0b101 << 61) | 12345));
        assert!(!group.holds(0b100 << 61));
        assert!(Group::all(Tier::Cold).holds(u64::MAX));
        assert!(group.is_valid());
        assert!(!Group { tier: Tier::Main, prefix: 1, depth: 3 }.is_valid());
    }

    #[test]
    fn dead_bytes_stay_within_the_segment_and_retired_ones_do_not_count_as_live() {
        let mut segments = Segments::default();
        let group = Group::all(Tier::Main);
        segments.add(Segment::new(file(7), group, 100)).unwrap();
        let provisional = Segment { is_provisional: true, ..Segment::new(file(9), group, 50) };
        segments.add(provisional).unwrap();
        let before = segments.clone();
        segments.bury(FileId(7), 30);
        segments.bury(FileId(7), 90);
        segments.bury(FileId(8), 1);
        segments.retire(FileId(9), 3).unwrap();
        let usage = segments.usage();
        assert_eq!((usage.total_bytes, usage.dead_bytes, usage.retired_bytes), (150, 100, 50));
        assert_eq!(segments.get(FileId(7)).unwrap().live_bytes(), 0);
        assert_eq!(segments.groups()[&group].len(), 1);
        assert_eq!(before.usage().dead_bytes, 0, "an older version is not touched");
        assert!(segments.grow(FileId(9), 60).is_err());
        assert!(segments.add(Segment::new(file(7), group, 1)).is_err());
        assert!(segments.remove(FileId(8)).is_err());
        segments.remove(FileId(9)).unwrap();
        assert_eq!(segments.len(), 1);
    }
}
