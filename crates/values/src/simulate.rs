//! A layout under a workload, without bytes: the place of each value, and what garbage collection
//! writes.
//!
//! The oracle of the closed forms (HashKV's cost is `1 + 1/(2 r)`, a circular log's that of a FIFO
//! device), and what-if answers about value layouts. The layout is the engine's own; records are of
//! one size, and what the tree says of a key is an array. Superseded values are known to be dead at
//! once, as the closed forms have it, or when a merge finds them, as in the engine.

use crate::layout::{Collection, ValueLayout};
use crate::limits::ValueLimits;
use base::FileId;
use base::checksum::hash64;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tree::segments::Usage;
use tree::{FileRef, Group, ObsoleteFiles, Segment, Segments, Tier};

/// The layout is asked for a GC after this many writes.
const WRITES_PER_PICK: u64 = 32;

/// Where the tree says that a key's value lies: segment, position in it, and which write it was.
#[derive(Clone, Copy)]
struct Location {
    file: FileId,
    index: u32,
    version: u64,
}

/// A record: the key, and whether it is a tag.
#[derive(Clone, Copy)]
struct Slot {
    key: u32,
    version: u64,
    is_tag: bool,
}

/// The segment that a group appends to.
#[derive(Clone, Copy)]
struct ActiveSegment {
    file: FileId,
    /// Segments of the group before it.
    segments_before: usize,
}

/// A value store without bytes.
pub struct Simulation {
    layout: Box<dyn ValueLayout>,
    limits: ValueLimits,
    record_bytes: u64,
    tag_bytes: u64,
    segments: Segments,
    slots: HashMap<FileId, Vec<Slot>>,
    /// The segment that each group appends to.
    active: BTreeMap<Group, ActiveSegment>,
    locations: Vec<Option<Location>>,
    /// Superseded values that no merge has found yet, by key and version: the segment.
    unfound: HashMap<(u32, u64), FileId>,
    obsolete_files: Arc<ObsoleteFiles>,
    next_file: u64,
    writes: u64,
    /// The depth of new values, as of the last look.
    depth: u8,
    /// Bytes that users wrote.
    pub user_bytes: u64,
    /// Bytes that went to segments, garbage collection included.
    pub written_bytes: u64,
    /// Look-ups in the index that garbage collection made.
    pub lookups: u64,
}

impl Simulation {
    /// An empty store for `keys` keys with values of `record_bytes`, and tags of `tag_bytes`.
    pub fn new(
        layout: Box<dyn ValueLayout>,
        limits: ValueLimits,
        keys: u32,
        record_bytes: u64,
        tag_bytes: u64,
    ) -> Simulation {
        Simulation {
            layout,
            limits,
            record_bytes,
            tag_bytes,
            segments: Segments::default(),
            slots: HashMap::new(),
            active: BTreeMap::new(),
            locations: vec![None; keys as usize],
            unfound: HashMap::new(),
            obsolete_files: Arc::default(),
            next_file: 1,
            writes: 0,
            depth: 0,
            user_bytes: 0,
            written_bytes: 0,
            lookups: 0,
        }
    }

    /// The user writes `key`; what it supersedes is known to be dead at once.
    pub fn put(&mut self, key: u32) {
        self.bury(key);
        self.write(key, 0);
    }

    /// The user deletes `key`; its value is known to be dead at once.
    pub fn delete(&mut self, key: u32) {
        self.bury(key);
        self.locations[key as usize] = None;
    }

    /// The user writes `key`, for the `version`th time or so: what it supersedes is dead, and not
    /// known to be until it is [`found`](Self::found).
    pub fn put_version(&mut self, key: u32, version: u64) {
        self.supersede(key);
        self.write(key, version);
    }

    /// The user deletes `key`, and its value is to be found as a superseded one is.
    pub fn delete_version(&mut self, key: u32) {
        self.supersede(key);
    }

    /// The user wrote a value of `key` that was superseded before the tree heard of it.
    pub fn put_dead(&mut self, key: u32) {
        let group = Group::of(Tier::Main, hash64(&key.to_le_bytes()), self.depth);
        let slot = Slot { key, version: u64::MAX, is_tag: false };
        let file = self.push(group, slot, self.record_bytes);
        self.segments.bury(file, self.record_bytes);
        self.count_write();
    }

    /// A merge dropped the entry of this write: its value is known to be dead, if it still lies
    /// somewhere.
    pub fn found(&mut self, key: u32, version: u64) {
        if let Some(file) = self.unfound.remove(&(key, version)) {
            self.segments.bury(file, self.record_bytes);
        }
    }

    /// Collects until nothing is due.
    pub fn collect_what_is_due(&mut self) {
        // Commits write to the newest segment at any time; what flushes write ends with them.
        let is_busy = self.layout.writes_at_commit();
        let newest = self.active.values().map(|segment| segment.file).filter(|_| is_busy);
        let busy: BTreeSet<FileId> = newest.collect();
        while let Some(collection) = self.layout.pick(&self.segments, &self.limits, &busy) {
            self.collect(&collection);
        }
    }

    /// Bytes of all segments.
    pub fn usage(&self) -> Usage {
        self.segments.usage()
    }

    fn write(&mut self, key: u32, version: u64) {
        if self.writes.is_multiple_of(WRITES_PER_PICK) {
            self.depth = self.layout.depth(&self.segments, &self.limits);
        }
        self.append(Tier::Main, self.depth, key, version);
        self.count_write();
    }

    fn count_write(&mut self) {
        self.user_bytes += self.record_bytes;
        self.writes += 1;
        if self.writes.is_multiple_of(WRITES_PER_PICK) {
            self.collect_what_is_due();
        }
    }

    fn bury(&mut self, key: u32) {
        if let Some(Location { file, .. }) = self.locations[key as usize] {
            self.segments.bury(file, self.record_bytes);
        }
    }

    fn supersede(&mut self, key: u32) {
        if let Some(Location { file, version, .. }) = self.locations[key as usize].take() {
            self.unfound.insert((key, version), file);
        }
    }

    fn append(&mut self, tier: Tier, depth: u8, key: u32, version: u64) {
        let group = Group::of(tier, hash64(&key.to_le_bytes()), depth);
        let file = self.push(group, Slot { key, version, is_tag: false }, self.record_bytes);
        let index = self.slots[&file].len() as u32 - 1;
        self.locations[key as usize] = Some(Location { file, index, version });
    }

    /// Appends a slot to a group; gives the segment.
    fn push(&mut self, group: Group, slot: Slot, bytes: u64) -> FileId {
        let segment = self.active.get(&group).filter(|segment| {
            let used = self.segments.get(segment.file).map_or(0, |segment| segment.bytes);
            used + bytes <= self.layout.segment_bytes_max(&self.limits, segment.segments_before)
        });
        let file = segment.map(|segment| segment.file).unwrap_or_else(|| self.begin_segment(group));
        let now = self.segments.get(file).map_or(0, |segment| segment.bytes);
        let grown = self.segments.grow(file, now + bytes);
        debug_assert!(grown.is_ok());
        self.slots.entry(file).or_default().push(slot);
        self.written_bytes += bytes;
        file
    }

    fn begin_segment(&mut self, group: Group) -> FileId {
        let file = FileId(self.next_file);
        self.next_file += 1;
        let held = FileRef::new_values(file, 0, self.obsolete_files.clone());
        let added = self.segments.add(Segment::new(held, group, 0));
        debug_assert!(added.is_ok());
        self.slots.insert(file, Vec::new());
        let segments_before =
            self.active.get(&group).map_or(0, |segment| segment.segments_before + 1);
        self.active.insert(group, ActiveSegment { file, segments_before });
        file
    }

    /// What the engine's garbage collection does, record by record.
    fn collect(&mut self, collection: &Collection) {
        let mut versions: HashMap<u32, u32> = HashMap::new();
        let mut old = Vec::new();
        for file in &collection.files {
            let slots = self.slots.remove(file).unwrap_or_default();
            for slot in &slots {
                *versions.entry(slot.key).or_default() += 1;
            }
            old.push((*file, slots));
            let removed = self.segments.remove(*file);
            debug_assert!(removed.is_ok());
        }
        self.active.retain(|_, segment| !collection.files.contains(&segment.file));
        // What new values go to takes no survivors.
        let unread = self.active.clone();
        self.active.retain(|group, _| group.tier == Tier::Cold);
        let mut tagged = Vec::new();
        for (file, slots) in old {
            for (index, slot) in (0u32..).zip(slots) {
                if slot.is_tag {
                    if versions[&slot.key] == 1 {
                        tagged.push(slot.key);
                    }
                    continue;
                }
                self.lookups += 1;
                let newest = self.locations[slot.key as usize];
                if newest.is_none_or(|at| (at.file, at.index) != (file, index)) {
                    self.unfound.remove(&(slot.key, slot.version));
                    continue;
                }
                if collection.tags_cold && versions[&slot.key] == 1 {
                    self.append(Tier::Cold, 0, slot.key, slot.version);
                    tagged.push(slot.key);
                } else {
                    let Collection { group, to_depth, .. } = collection;
                    self.append(group.tier, *to_depth, slot.key, slot.version);
                }
            }
        }
        if self.tag_bytes == 0 {
            tagged.clear();
        }
        for key in tagged {
            let hash = hash64(&key.to_le_bytes());
            let group = Group::of(Tier::Main, hash, collection.to_depth);
            self.push(group, Slot { key, version: 0, is_tag: true }, self.tag_bytes);
        }
        let unread = unread.into_iter().filter(|(group, _)| group.tier == Tier::Main);
        self.active.extend(unread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_name;
    use base::random::Random;

    const KEYS: u32 = 64 * 1024;
    const RECORD_BYTES: u64 = 1000;

    /// Draws keys: uniform, or by Zipf's law of exponent 0.99, exactly, by its sums.
    enum Draw {
        Uniform,
        Zipf(Vec<f64>),
    }

    impl Draw {
        fn zipf() -> Draw {
            let mut sum = 0.0;
            let sums = (1..=KEYS).map(|rank| {
                sum += f64::from(rank).powf(-0.99);
                sum
            });
            Draw::Zipf(sums.collect())
        }

        /// The probability of each key.
        fn shares(&self) -> Vec<f64> {
            match self {
                Draw::Uniform => vec![1.0 / f64::from(KEYS); KEYS as usize],
                Draw::Zipf(sums) => {
                    let before = std::iter::once(&0.0).chain(sums);
                    let total = sums[sums.len() - 1];
                    sums.iter().zip(before).map(|(sum, before)| (sum - before) / total).collect()
                }
            }
        }

        fn next(&self, random: &mut Random) -> u32 {
            match self {
                Draw::Uniform => random.below(KEYS.into()) as u32,
                Draw::Zipf(sums) => {
                    let at = random.unit() * sums[sums.len() - 1];
                    sums.partition_point(|&sum| sum <= at) as u32
                }
            }
        }
    }

    /// Write amplification of updates, after the store became steady.
    fn write_amplification(layout: &str, limits: ValueLimits, draw: &Draw, rounds: u32) -> f64 {
        let made = (by_name(layout).unwrap().make)();
        let mut store = Simulation::new(made, limits, KEYS, RECORD_BYTES, 0);
        let mut random = Random::new(1);
        (0..KEYS).for_each(|key| store.put(key));
        for _ in 0..rounds * KEYS {
            store.put(draw.next(&mut random));
        }
        let (user, written) = (store.user_bytes, store.written_bytes);
        for _ in 0..rounds * KEYS {
            store.put(draw.next(&mut random));
        }
        (store.written_bytes - written) as f64 / (store.user_bytes - user) as f64
    }

    fn limits(reserved_ratio: f64) -> ValueLimits {
        let main = u64::from(KEYS) / 64 * RECORD_BYTES;
        ValueLimits {
            segment_bytes: main,
            log_segment_bytes: main / 64,
            reserved_ratio,
            ..ValueLimits::default()
        }
    }

    /// `1 / (1 - u)`, where `u = exp(-a (1 - u))` is the live share of the oldest segment.
    fn fifo(reserved_ratio: f64) -> f64 {
        let a = 1.0 + reserved_ratio;
        let mut u = 0.5f64;
        for _ in 0..10_000 {
            u = (-a * (1.0 - u)).exp();
        }
        1.0 / (1.0 - u)
    }

    /// What a circular log writes for each update of keys with these shares of the updates. A live
    /// record is written anew by an update, after an exponential time, or when the log has gone
    /// round, after `u` updates: at the rate `p / (1 - exp(-p u))`. In `u` updates as much is
    /// written as the log is long.
    fn circular(shares: &[f64], reserved_ratio: f64) -> f64 {
        let written = |u: f64| shares.iter().map(|p| p / -(-p * u).exp_m1()).sum::<f64>();
        let bytes = shares.len() as f64 * (1.0 + reserved_ratio);
        let (mut low, mut high) = (0.0, bytes);
        for _ in 0..60 {
            let u = (low + high) / 2.0;
            if u * written(u) > bytes { high = u } else { low = u }
        }
        written(low)
    }

    fn assert_near(what: &str, found: f64, expected: f64, tolerance: f64) {
        let off = found / expected - 1.0;
        assert!(off.abs() <= tolerance, "{what}: {found:.3}, expected {expected:.3}, off {off:.3}");
    }

    #[test]
    fn segment_groups_cost_what_the_closed_form_says_whatever_the_skew() {
        let zipf = Draw::zipf();
        for (r, rounds) in [(0.1, 2), (0.2, 2), (0.3, 2), (0.5, 2), (0.9, 3)] {
            let form = 1.0 + 1.0 / (2.0 * r);
            for (name, draw) in [("uniform", &Draw::Uniform), ("zipf", &zipf)] {
                let found = write_amplification("hashed", limits(r), draw, rounds);
                assert_near(&format!("hashed, {name}, r {r}"), found, form, 0.05);
            }
        }
    }

    #[test]
    fn a_circular_log_costs_what_a_fifo_device_does_and_more_under_skew() {
        for r in [0.1, 0.2, 0.3, 0.5, 0.9] {
            let small =
                ValueLimits { segment_bytes: 128 * RECORD_BYTES, oldest_first: true, ..limits(r) };
            let found = write_amplification("log", small.clone(), &Draw::Uniform, 3);
            assert_near(&format!("log, uniform, r {r}"), found, fifo(r), 0.05);
            let uniform = circular(&Draw::Uniform.shares(), r);
            assert_near(&format!("both forms, r {r}"), uniform, fifo(r), 0.001);
            let draw = Draw::zipf();
            let form = circular(&draw.shares(), r);
            let skewed = write_amplification("log", small, &draw, 3);
            assert_near(&format!("log, zipf, r {r}"), skewed, form, 0.05);
            let worst = (1.0 + r) / r;
            assert!(skewed > found && skewed < worst * 1.02, "r {r}: {found} {skewed} {worst}");
        }
    }

    #[test]
    fn a_log_whose_worthiest_segment_is_collected_gains_by_skew() {
        let zipf = Draw::zipf();
        for (r, share) in [(0.2, 0.66), (0.3, 0.7), (0.5, 0.75)] {
            let uniform = write_amplification("log", limits(r), &Draw::Uniform, 3);
            assert_near(&format!("log, uniform, r {r}"), uniform, fifo(r), 0.08);
            let skewed = write_amplification("log", limits(r), &zipf, 3);
            let form = circular(&zipf.shares(), r);
            assert!(skewed < share * form, "r {r}: {skewed}, a circular log {form}");
        }
    }

    #[test]
    fn what_is_left_of_segments_is_joined() {
        let made = (by_name("log").unwrap().make)();
        let mut store = Simulation::new(made, limits(0.3), KEYS, RECORD_BYTES, 0);
        let (zipf, mut random) = (Draw::zipf(), Random::new(1));
        (0..KEYS).for_each(|key| store.put(key));
        for _ in 0..12 * KEYS {
            store.put(zipf.next(&mut random));
        }
        let full = store.usage().total_bytes / limits(0.3).segment_bytes;
        let count = store.segments.len() as u64;
        assert!(count <= 2 * full + 8, "{count} segments, {full} would hold all");
    }

    #[test]
    fn garbage_that_no_merge_found_stays_until_one_does() {
        for layout in ["log", "hashed"] {
            let made = (by_name(layout).unwrap().make)();
            let mut store = Simulation::new(made, limits(0.3), KEYS, RECORD_BYTES, 0);
            for version in 0..2 {
                (0..KEYS).for_each(|key| store.put_version(key, version));
            }
            store.collect_what_is_due();
            assert_eq!(store.written_bytes, store.user_bytes, "{layout}: nothing is known");
            let (live, all) = (u64::from(KEYS) * RECORD_BYTES, store.usage().total_bytes);
            assert_eq!(all, 2 * live, "{layout}");
            (0..KEYS).for_each(|key| store.found(key, 0));
            assert_eq!(store.usage().dead_bytes, live, "{layout}");
            store.collect_what_is_due();
            let bound = live * 13 / 10 + 2 * limits(0.3).segment_bytes;
            assert!(store.usage().total_bytes <= bound, "{layout}: {:?}", store.usage());
            // Finding a record of a removed segment changes nothing; what is live is not
            // superseded.
            let usage = store.usage();
            (0..KEYS).for_each(|key| (0..2).for_each(|version| store.found(key, version)));
            assert_eq!(store.usage(), usage, "{layout}");
        }
    }

    #[test]
    fn what_no_tree_heard_of_is_garbage_at_once() {
        let made = (by_name("log").unwrap().make)();
        let mut store = Simulation::new(made, limits(0.3), KEYS, RECORD_BYTES, 0);
        (0..KEYS).for_each(|key| store.put(key));
        let dead = KEYS / 8;
        (0..dead).for_each(|key| store.put_dead(key));
        let usage = store.usage();
        assert_eq!(usage.dead_bytes, u64::from(dead) * RECORD_BYTES);
        assert_eq!(usage.total_bytes, u64::from(KEYS + dead) * RECORD_BYTES);
    }

    #[test]
    fn deleting_makes_room_and_an_emptied_store_is_collected_away() {
        for layout in ["log", "hashed"] {
            let made = (by_name(layout).unwrap().make)();
            let mut store = Simulation::new(made, limits(0.3), KEYS, RECORD_BYTES, 0);
            (0..KEYS).for_each(|key| store.put(key));
            (1..KEYS).for_each(|key| store.delete(key));
            store.collect_what_is_due();
            let left = store.usage().total_bytes;
            assert!(left <= 2 * limits(0.3).segment_bytes, "{layout}: {left} bytes");
        }
    }
}
