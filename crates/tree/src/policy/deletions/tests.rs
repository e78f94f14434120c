//! What deletions cost after they were made, under every scheme, by simulation.

use super::{Unflushed, are_worth_flush, next_move, pick};
use crate::plan::{Move, Plan, Reason};
use crate::policy::{Descriptor, View, Wanted, leveled, registry};
use crate::simulate::{Entry, Store, spread};
use base::KeyRange;

/// Keys of a load, and entries of a memtable.
const KEYS: u32 = 20_000;
const MEMTABLE: u32 = 500;
const ENTRY_BYTES: u64 = 100;

/// A store, and the order of its writes.
struct Scene {
    store: Store,
    sequence: u64,
}

impl Scene {
    fn new(scheme: &Descriptor) -> Scene {
        let mut limits = (scheme.limits)(u64::from(MEMTABLE) * ENTRY_BYTES);
        limits.table_bytes_max = limits.memtable_bytes;
        Scene { store: Store::new((scheme.make)(), limits, ENTRY_BYTES), sequence: 0 }
    }

    /// A store with every key, loaded in random order, settled.
    fn loaded(scheme: &Descriptor) -> Scene {
        let mut scene = Scene::new(scheme);
        scene.write((0..KEYS).map(shuffled), false);
        scene
    }

    /// Writes keys in memtables, each followed by the moves that it makes due.
    fn write(&mut self, keys: impl Iterator<Item = u32>, is_delete: bool) {
        let keys: Vec<u32> = keys.collect();
        for memtable in keys.chunks(MEMTABLE as usize) {
            self.flush(memtable, is_delete);
            while self.store.step().unwrap() {}
        }
    }

    fn flush(&mut self, keys: &[u32], is_delete: bool) {
        let mut keys: Vec<u32> = keys.iter().map(|&key| spread(key, 2 * u64::from(KEYS))).collect();
        keys.sort_unstable();
        keys.dedup();
        let entry = |key| {
            self.sequence += 1;
            Entry { key, sequence: self.sequence, is_delete }
        };
        let entries: Vec<Entry> = keys.into_iter().map(entry).collect();
        self.store.flush(&entries).unwrap();
    }

    /// Brings everything to one level.
    fn compact(&mut self) {
        let all = Wanted::all();
        while let Some(plan) = self.store.policy().pick_manual(&self.store.view(), &all, None) {
            let work = self.store.begin(plan);
            self.store.finish(work).unwrap();
        }
    }

    fn pick(&self) -> Option<Plan> {
        pick(&self.store.view(), self.store.policy().has_steps())
    }

    fn written(&self) -> u64 {
        self.store.written_bytes.iter().sum()
    }

    fn deletes(&self) -> u64 {
        self.store.version.slices().map(|slice| slice.run.deletes).sum()
    }

    /// Entries that lie before the first live key: a seek to the first key steps over them.
    fn before_first(&self) -> usize {
        let key = |number| spread(number, 2 * u64::from(KEYS));
        let get = |number: &u32| self.store.get(key(*number));
        let first = (0..KEYS).find(|number| get(number).is_some_and(|entry| !entry.is_delete));
        (0..first.unwrap_or(KEYS)).map(|number| self.store.entries_of(key(number))).sum()
    }
}

/// Every number once, in an order of no use.
fn shuffled(number: u32) -> u32 {
    (u64::from(number) * 7_919 % u64::from(KEYS)) as u32
}

/// A half of the keys, in no order.
fn half() -> impl Iterator<Item = u32> {
    (0..KEYS).map(shuffled).filter(|key| key % 2 == 0)
}

#[test]
fn what_was_deleted_takes_no_space_and_no_reader_steps_over_it() {
    for scheme in registry() {
        let mut scene = Scene::loaded(scheme);
        let before = scene.store.version.bytes();
        scene.write(half(), true);
        scene.write(0..KEYS / 10 * 9, true);
        let live = u64::from(KEYS / 20) * ENTRY_BYTES;
        let bytes = scene.store.version.bytes();
        assert!(before > 19 * live, "{}", scheme.name);
        assert!(bytes <= 4 * live, "{}: {bytes} bytes for {live}", scheme.name);
        let passed = scene.before_first();
        assert!(passed <= 4 * MEMTABLE as usize, "{}: {passed} entries", scheme.name);
    }
}

/// The bound that all these moves keep: what they write was freed, once.
#[test]
fn moves_for_deletions_write_at_most_what_they_free() {
    for scheme in registry() {
        let mut scene = Scene::loaded(scheme);
        let (mut written, mut freed) = (0, 0);
        let keys: Vec<u32> = half().chain(0..KEYS / 2).collect();
        for memtable in keys.chunks(MEMTABLE as usize) {
            scene.flush(memtable, true);
            while let Some(plan) = next_move(scene.store.policy(), &scene.store.view()) {
                let is_ours = scene.store.policy().pick(&scene.store.view()).is_none();
                let (bytes, before) = (scene.store.version.bytes(), scene.written());
                let work = scene.store.begin(plan);
                scene.store.finish(work).unwrap();
                if is_ours {
                    written += scene.written() - before;
                    freed += bytes - scene.store.version.bytes();
                }
            }
        }
        assert!(freed > 0, "{}", scheme.name);
        assert!(written <= freed, "{}: {written} for {freed}", scheme.name);
    }
}

#[test]
fn tombstones_of_keys_that_never_were_are_found_out() {
    for scheme in registry() {
        let mut scene = Scene::new(scheme);
        scene.write((0..KEYS).map(|key| 2 * shuffled(key)), false);
        let bytes = scene.store.version.bytes();
        let mut written = 0;
        for memtable in (0..5 * KEYS).collect::<Vec<u32>>().chunks(MEMTABLE as usize) {
            let absent = memtable.iter().map(|key| 2 * shuffled(key % KEYS) + 1);
            scene.flush(&absent.collect::<Vec<u32>>(), true);
            loop {
                let is_ours = scene.store.policy().pick(&scene.store.view()).is_none();
                let before = scene.written();
                if !scene.store.step().unwrap() {
                    break;
                }
                written += if is_ours { scene.written() - before } else { 0 };
            }
        }
        // Tombstones are garbage too, and here they have as many bytes as values.
        let tombstones = u64::from(5 * KEYS) * ENTRY_BYTES;
        assert!(written <= tombstones + 3 * bytes, "{}: {written} of {bytes}", scheme.name);
    }
}

#[test]
fn tombstones_that_a_snapshot_needs_wait_for_it() {
    let mut scene = Scene::loaded(&leveled::MODERN);
    // Level 0 as it is would go down with them.
    scene.compact();
    let before = scene.sequence;
    scene.flush(&(0..MEMTABLE).collect::<Vec<u32>>(), true);
    let view = View { oldest_snapshot: before, ..scene.store.view() };
    assert_eq!(pick(&view, true), None);
    let plan = scene.pick().expect("a narrow range of tombstones");
    assert_eq!((plan.reason, plan.score < 1.0), (Reason::Garbage, true));
}

/// Nothing is below them, so nothing must be read to drop them.
#[test]
fn tombstones_alone_on_the_last_level_go_by_an_edit() {
    let mut scene = Scene::new(&leveled::MODERN);
    scene.flush(&(0..MEMTABLE).collect::<Vec<u32>>(), true);
    while let Some(plan) = scene.pick() {
        assert!(matches!(plan.action, Move::Push { .. } | Move::Drop { .. }), "{plan:?}");
        let work = scene.store.begin(plan);
        scene.store.finish(work).unwrap();
    }
    assert_eq!((scene.deletes(), scene.written()), (0, 0));
}

/// A memtable of tombstones for `keys` and as many entries of its own as `puts`.
fn is_worth_flush(scene: &Scene, keys: &[u32], puts: u64, oldest_snapshot: u64) -> bool {
    let keys: Vec<u32> = keys.iter().map(|&key| spread(key, 2 * u64::from(KEYS))).collect();
    let (first, last) = (keys.iter().min().unwrap(), keys.iter().max().unwrap());
    let deletes = keys.len() as u64;
    let memtable = Unflushed {
        range: &KeyRange::closed(&first.to_be_bytes(), &last.to_be_bytes()),
        entries: deletes + puts,
        deletes,
        sequence_max: scene.sequence + deletes + puts,
    };
    are_worth_flush(&View { oldest_snapshot, ..scene.store.view() }, memtable)
}

/// What is in memory is flushed if that makes a merge due.
#[test]
fn tombstones_in_memory_are_worth_a_flush_where_a_merge_follows() {
    for scheme in registry() {
        let mut scene = Scene::loaded(scheme);
        scene.compact();
        let in_order: Vec<u32> = (0..KEYS / 4 * 3).collect();
        let spread_out: Vec<u32> = (0..KEYS).filter(|key| key % 16 == 0).collect();
        assert!(is_worth_flush(&scene, &in_order, 0, u64::MAX), "{}", scheme.name);
        assert!(!is_worth_flush(&scene, &spread_out, 0, u64::MAX), "{}", scheme.name);
        // A snapshot reads what they hide, or they hide entries of the same memtable.
        assert!(!is_worth_flush(&scene, &in_order, 0, scene.sequence), "{}", scheme.name);
        let as_many = u64::from(KEYS / 4 * 3);
        assert!(!is_worth_flush(&scene, &in_order, as_many, u64::MAX), "{}", scheme.name);
        // What is worth a flush is merged after it.
        scene.flush(&in_order[..MEMTABLE as usize], true);
        let is_worth = is_worth_flush(&scene, &in_order[MEMTABLE as usize..], 0, u64::MAX);
        in_order[MEMTABLE as usize..]
            .chunks(MEMTABLE as usize)
            .for_each(|keys| scene.flush(keys, true));
        assert!(is_worth && next_move(scene.store.policy(), &scene.store.view()).is_some());
    }
}
