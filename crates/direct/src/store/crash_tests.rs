//! Power lost at every request to the device: what was synced is there, with its bytes, the root is
//! one that was set, no two files share a sector, and the store goes on.

use super::tests::{
    LOG, PLACEMENTS, TABLE, TEARING, content, device, format_in_units, formatted, open, put,
};
use super::*;
use base::FileId;
use base::random::Random;
use media::mem::{MemDevice, PowerLoss, RecordedDevice};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

/// What the history was told.
#[derive(Clone, Default)]
struct Model {
    /// Bytes that a sync returned for, of files whose names are durable.
    safe: BTreeMap<u64, Vec<u8>>,
    /// All bytes appended, of all files.
    all: BTreeMap<u64, Vec<u8>>,
    synced: BTreeMap<u64, usize>,
    /// Files whose removal is durable.
    gone: Vec<u64>,
    removed: Vec<u64>,
    /// The root that is durable, and the one that may be.
    root: Option<u8>,
    next_root: Option<u8>,
}

impl Model {
    fn names_are_durable(&mut self) {
        for (id, bytes) in &self.all {
            let len = self.synced.get(id).copied().unwrap_or(0);
            self.safe.insert(*id, bytes[..len].to_vec());
        }
        self.gone.append(&mut self.removed);
    }

    fn is_synced(&mut self, id: u64) {
        self.synced.insert(id, self.all[&id].len());
        if let Some(safe) = self.safe.get_mut(&id) {
            *safe = self.all[&id].clone();
        }
    }

    fn check(&self, store: &DirectStore, what: &str) {
        let root = store.root().unwrap().map(|root| root[0]);
        assert!(root == self.root || root == self.next_root, "{what}: root {root:?}");
        for (id, safe) in &self.safe {
            // What no sync returned for may be there in length alone, and be unreadable.
            let mut found = vec![0; safe.len()];
            let file = FileStore::open(store, name(*id), false);
            let result = file.and_then(|file| file.read_at(0, &mut found, Cause::Get));
            assert!(result.is_ok(), "{what}: file {id}: {result:?}");
            assert!(found == *safe, "{what}: file {id} has lost synced bytes");
        }
        let files = store.layout().files;
        let mut held: Vec<Extent> = files.into_iter().flat_map(|file| file.extents).collect();
        held.sort_unstable();
        let shared = held.windows(2).find(|pair| pair[0].overlaps(pair[1]));
        assert!(shared.is_none(), "{what}: two files at {shared:?}");
        for file in store.list().unwrap() {
            assert!(!self.gone.contains(&file.name.id.0), "{what}: {} is back", file.name);
        }
    }
}

fn name(id: u64) -> FileName {
    FileName::table(FileId(id))
}

fn read(store: &DirectStore, id: u64) -> Result<Vec<u8>> {
    let file = FileStore::open(store, name(id), false)?;
    let mut bytes = vec![0; file.len()? as usize];
    file.read_at(0, &mut bytes, Cause::Get)?;
    Ok(bytes)
}

/// A short history, until the machine stops.
fn run(store: &DirectStore, seed: u64, model: &mut Model) -> Result<()> {
    let mut random = Random::new(seed);
    let mut writers: BTreeMap<u64, Box<dyn AppendFile>> = BTreeMap::new();
    for step in 0..60u64 {
        let id = random.below(6);
        match random.below(10) {
            0..=1
                if !model.all.contains_key(&id)
                    && !model.gone.contains(&id)
                    && !model.removed.contains(&id) =>
            {
                let hint = FileHint { background: id.is_multiple_of(2), ..FileHint::default() };
                writers.insert(id, store.create(name(id), &hint)?);
                model.all.insert(id, Vec::new());
            }
            2 if model.all.contains_key(&id) && random.one_in(3) => {
                writers.remove(&id);
                model.all.remove(&id);
                model.synced.remove(&id);
                model.safe.remove(&id);
                store.remove(name(id))?;
                model.removed.push(id);
            }
            3 => {
                model.next_root = Some(step as u8);
                store.set_root(&[step as u8])?;
                model.root = model.next_root;
                model.names_are_durable();
            }
            4 => {
                store.sync_names()?;
                model.names_are_durable();
            }
            5 => drop(writers.remove(&id)),
            6 => {
                if let Some(writer) = writers.get_mut(&id) {
                    writer.sync(Cause::Wal)?;
                    model.is_synced(id);
                }
            }
            7 => {
                writers.values_mut().try_for_each(|writer| writer.begin_sync())?;
                // Some of them, so that others have begun when they are removed or appended to.
                for (id, writer) in writers.range_mut(id..) {
                    writer.sync(Cause::Wal)?;
                    model.is_synced(*id);
                }
            }
            _ => {
                if let Some(writer) = writers.get_mut(&id) {
                    let mut bytes = vec![0; random.below(3000) as usize];
                    random.fill(&mut bytes);
                    writer.append(&bytes, Cause::Wal)?;
                    model.all.get_mut(&id).unwrap().extend(bytes);
                }
            }
        }
    }
    Ok(())
}

/// The image opens, holds what is safe, goes on, and loses nothing of it in a second crash.
fn check_image(image: MemDevice, model: &Model, what: &str) {
    let image = Arc::new(image);
    let store = open(&image);
    model.check(&store, what);
    let mut random = Random::new(1);
    let mut bytes = vec![0; 40_000];
    for (id, background) in [(2000, true), (2001, false)] {
        random.fill(&mut bytes);
        let hint = FileHint { background, ..FileHint::default() };
        put(&store, id, &hint, &bytes).unwrap();
    }
    store.sync_names().unwrap();
    model.check(&store, what);
    let again = Arc::new(image.crash_image(&mut random, PowerLoss::LoseUnflushed));
    let again = open(&again);
    model.check(&again, what);
    assert!(read(&again, 2001).unwrap() == bytes, "{what}");
}

/// Whole files come, and most of them go, until the store moves some that stayed: from between
/// fragments, or out of a zone.
fn run_collection(store: &DirectStore, seed: u64, model: &mut Model) -> Result<()> {
    let mut random = Random::new(seed);
    for id in 0.. {
        let mut bytes = vec![0; 10_000 + random.below(300_000) as usize];
        random.fill(&mut bytes);
        let hint = FileHint { background: true, ..FileHint::default() };
        let mut writer = store.create(name(id), &hint)?;
        writer.append(&bytes, Cause::Flush)?;
        writer.sync(Cause::Flush)?;
        model.synced.insert(id, bytes.len());
        model.all.insert(id, bytes);
        store.sync_names()?;
        model.names_are_durable();
        if store.ledger().snapshot().cause(Cause::Reclaim).write_bytes > 0 {
            break;
        }
        if let Some(gone) = id.checked_sub(8).filter(|gone| !gone.is_multiple_of(4)) {
            model.all.remove(&gone);
            model.safe.remove(&gone);
            store.remove(name(gone))?;
            model.removed.push(gone);
        }
    }
    Ok(())
}

/// Two files lie between holes, and only the first fits elsewhere: the search for a place for the
/// second one commits what is queued.
fn run_half_a_move(store: &DirectStore, _seed: u64, model: &mut Model) -> Result<()> {
    let write = |model: &mut Model, id: u64, kilobytes: usize| {
        let bytes = content(id, kilobytes << 10);
        put(store, id, &TABLE, &bytes)?;
        model.synced.insert(id, bytes.len());
        model.all.insert(id, bytes);
        model.names_are_durable();
        Ok(())
    };
    for (id, kilobytes) in (0..).zip([300, 100, 50, 200, 100, 300, 80]) {
        write(model, id, kilobytes)?;
    }
    let full = (7..).find_map(|id| write(model, id, 300).err());
    if let Some(error) = full.filter(|error| error.kind() != ErrorKind::NoSpace) {
        return Err(error);
    }
    for gone in [1, 4, 6] {
        model.all.remove(&gone);
        model.safe.remove(&gone);
        store.remove(name(gone))?;
        model.removed.push(gone);
    }
    store.sync_names()?;
    model.names_are_durable();
    let moved = || store.ledger().snapshot().cause(Cause::Reclaim).write_bytes;
    assert_eq!(moved(), 0);
    write(model, 1000, 10)?;
    assert_eq!(moved(), 50 << 10, "not the first file alone");
    Ok(())
}

type History = fn(&DirectStore, u64, &mut Model) -> Result<()>;

/// Loses power at every request of `history`, or at the last ones. How many images there were.
fn lose_power(placement: &str, history: History, seed: u64, last: Option<u64>) -> u64 {
    let run = |stop: Option<u64>| {
        let device = formatted(placement, 12 << 20);
        let begun = device.requests();
        stop.inspect(|stop| device.stop_after(begun + stop));
        let mut model = Model::default();
        let is_finished = history(&open(&device), seed, &mut model).is_ok();
        assert!(is_finished || stop.is_some(), "{placement}: the history fails");
        (device, model, begun)
    };
    let (device, _, begun) = run(None);
    let requests = device.requests() - begun;
    assert!(requests > 20, "{placement}: the history is too short");
    let first = last.map_or(0, |last| requests.saturating_sub(last));
    let mut images = 0;
    for stop in first..=requests {
        let (device, model, _) = run(Some(stop));
        for (index, image) in device.crash_images(5, stop).into_iter().enumerate() {
            check_image(image, &model, &format!("{placement} {seed} {stop} {index}"));
            images += 1;
        }
    }
    images
}

#[test]
fn synced_files_survive_power_loss_at_every_request() {
    let placements = PLACEMENTS.into_iter().chain([TEARING]);
    let cells = placements.flat_map(|placement| [(placement, 0), (placement, 1)]);
    let images: u64 = cells.map(|(at, seed)| lose_power(at, run, seed, None)).sum();
    assert!(images > 1000, "{images} images");
}

/// Metadata could survive that named the new place, without the bytes there.
#[test]
fn synced_files_survive_power_loss_while_they_are_moved() {
    for placement in ["dynamic-bands:fragments=0", "zones", "zones-only"] {
        let images = lose_power(placement, run_collection, 1, Some(40));
        assert!(images > 100, "{images} images");
    }
}

/// The search for a place wrote the metadata of what had been moved already, before its flush.
#[test]
fn synced_files_survive_power_loss_while_some_find_no_place_to_be_moved_to() {
    let images = lose_power("dynamic-bands:fragments=0", run_half_a_move, 0, Some(16));
    assert!(images > 30, "{images} images");
}

fn set_root(device: &RecordedDevice, root: u8) -> Result<()> {
    let device = Arc::new(device.clone());
    DirectStore::open(device, Arc::default(), DirectOptions::default())?.set_root(&[root])
}

fn root_of(device: RecordedDevice) -> Result<Option<u8>> {
    let options = DirectOptions { read_only: true, ..DirectOptions::default() };
    let store = DirectStore::open(Arc::new(device), Arc::default(), options)?;
    Ok(store.root()?.map(|root| root[0]))
}

/// The next process read the snapshot from a cache and put its own over the older one. Power lost
/// then left no complete snapshot.
#[test]
fn a_snapshot_whose_flush_failed_is_not_relied_on() {
    // A failed flush is not simulated on devices with zones.
    let placements = PLACEMENTS.into_iter().filter(|at| !at.starts_with("zones"));
    for (placement, failing) in placements.flat_map(|at| (0..4).map(move |failing| (at, failing))) {
        let device = RecordedDevice::new(Arc::new(move || device(placement, 12 << 20)));
        format_in_units(&Arc::new(device.clone()), placement, 0);
        set_root(&device, 1).unwrap();
        device.fail_flush_after(failing);
        let oldest = if set_root(&device, 2).is_ok() { 2 } else { 1 };
        let look = move |device: &RecordedDevice| {
            for (loss, seed) in PowerLoss::ALL.into_iter().flat_map(|loss| [(loss, 1), (loss, 2)]) {
                let found = root_of(device.crash_image(&mut Random::new(seed), loss));
                let is_fine = matches!(found, Ok(Some(root)) if (oldest..=3).contains(&root));
                assert!(is_fine, "{placement}, flush {failing} failed, {loss:?}: {found:?}");
            }
        };
        let _ = set_root(&device.calling(Arc::new(look)), 3);
        let is_set = set_root(&device, 3).is_ok();
        let left = device.crash_image(&mut Random::new(0), PowerLoss::LoseUnflushed);
        assert!(is_set && root_of(left).unwrap() == Some(3), "{placement} {failing}");
    }
}

/// The first change of an opening wrote a snapshot whose confirmation no flush followed. Space that
/// the older one needs was given out all the same: a removal that a failed flush had dropped was
/// undone by power loss, and the file had the bytes of others.
#[test]
fn a_snapshot_whose_confirmation_is_not_durable_is_not_relied_on() {
    let placements = PLACEMENTS.into_iter().filter(|at| !at.starts_with("zones"));
    for placement in placements {
        let device = RecordedDevice::new(Arc::new(move || device(placement, 12 << 20)));
        format_in_units(&Arc::new(device.clone()), placement, 0);
        let opened = |device: &RecordedDevice| {
            DirectStore::open(Arc::new(device.clone()), Arc::default(), DirectOptions::default())
        };
        let store = opened(&device).unwrap();
        put(&store, 1, &TABLE, &content(1, 300_000)).unwrap();
        put(&store, 2, &LOG, b"log").unwrap();
        drop(store);
        let store = opened(&device).unwrap();
        store.set_root(&[1]).unwrap();
        store.remove(name(1)).unwrap();
        device.fail_flush_after(0);
        store.sync_names().unwrap_err();
        drop(store);
        let looks = Arc::new(AtomicU64::new(0));
        let counted = looks.clone();
        let look = move |device: &RecordedDevice| {
            for (loss, seed) in PowerLoss::ALL.into_iter().flat_map(|loss| [(loss, 1), (loss, 2)]) {
                let image = device.crash_image(&mut Random::new(seed), loss);
                match read(&opened(&image).unwrap(), 1) {
                    Ok(bytes) => assert!(bytes == content(1, 300_000), "{placement}, {loss:?}"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
                }
                counted.fetch_add(1, Ordering::Relaxed);
            }
        };
        let store = opened(&device.calling(Arc::new(look))).unwrap();
        drop(store.extend(name(2), 3, &LOG).unwrap());
        for id in 10..40 {
            let mut file = store.create(name(id), &TABLE).unwrap();
            let appended = file.append(&content(id, 250_000), Cause::Flush);
            let full = appended.and_then(|()| file.begin_sync());
            if let Err(error) = full {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{placement}: {error}");
                break;
            }
        }
        assert!(looks.load(Ordering::Relaxed) > 100, "{placement}");
    }
}

/// Metadata with the generation of a log was lost, its frames were not. The next log had the same
/// generation and the same place, and went on with bytes of the first.
#[test]
fn a_generation_is_not_given_out_again_after_power_loss() {
    for placement in PLACEMENTS {
        let device = formatted(placement, 12 << 20);
        let store = open(&device);
        store.sync_names().unwrap();
        let mut log = store.create(name(1), &LOG).unwrap();
        log.append(&content(1, 10_000), Cause::Wal).unwrap();
        for (index, image) in device.crash_images(60, 3).into_iter().enumerate() {
            let image = Arc::new(image);
            let store = open(&image);
            let mut log = store.create(name(2), &LOG).unwrap();
            log.append(&content(2, 1000), Cause::Wal).unwrap();
            log.sync(Cause::Wal).unwrap();
            store.sync_names().unwrap();
            let again = image.crash_image(&mut Random::new(0), PowerLoss::LoseUnflushed);
            let found = read(&open(&Arc::new(again)), 2).unwrap();
            assert_eq!(found.len(), 1000, "{placement} {index}");
            assert!(found == content(2, 1000), "{placement} {index}");
        }
    }
}
