//! Media that lose power: files as an operating system keeps them, and direct storage on devices.
//!
//! A store can call a hook before each mutating operation, so that one run of a history sees every
//! crash point, with the model at that moment.

use base::random::Random;
use base::{Cause, Error, ErrorKind, Ledger, Result};
use devices::{Simulation, SimulationOptions, models};
use direct::{DirectOptions, DirectStore, FormatOptions, format};
use media::block::{Geometry, Overwrite, SharedDevice, ZoneGeometry};
use media::mem::{MakeDevice, MemDevice, MemStore, Personality, PowerLoss, RecordedDevice};
use media::{
    AppendFile, Capacity, FileHint, FileName, FileStore, FileSummary, Notes, PairStore, ReadFile,
    StoreLock, SyncFile,
};
use std::path::Path;
use std::sync::Arc;

/// Called before each mutating operation.
pub type Hook<M> = Arc<dyn Fn(&M) + Send + Sync>;

/// A medium that holds a database and can lose power. A clone is a second handle.
pub trait Medium: Clone + Send + Sync + 'static {
    /// The store on it.
    fn store(&self) -> Result<Arc<dyn FileStore>>;

    /// The store on it; `hook` is called before each mutating operation. A process that died before
    /// has released its locks.
    fn store_calling(&self, hook: Hook<Self>) -> Result<Arc<dyn FileStore>>;

    /// The states that power loss may leave, with titles: the extremes, and at least `limit` random
    /// ones.
    fn images(&self, random: &mut Random, limit: usize) -> Vec<(String, Self)>;

    /// A copy after the death of the process: nothing is lost.
    fn with_all(&self) -> Self;

    /// The image in which everything is lost that can be lost.
    fn without_unsynced(&self) -> Self;

    /// After the death of the process: what is not durable can still be lost.
    fn orphan(&self) -> Self;

    /// A fingerprint of what is on it, without the backups.
    fn content_hash(&self) -> u64;

    /// Every later operation fails.
    fn stop(&self);

    /// A follower can read it.
    fn can_be_followed(&self) -> bool {
        true
    }

    /// The directory of backups beside it.
    fn backups(&self) -> Option<Arc<dyn FileStore>> {
        None
    }

    /// The same; `hook` is called before each mutating operation.
    fn backups_calling(&self, _hook: Hook<Self>) -> Option<Arc<dyn FileStore>> {
        None
    }

    /// A fingerprint of the backups.
    fn backups_hash(&self) -> u64 {
        0
    }
}

impl Medium for MemStore {
    fn store(&self) -> Result<Arc<dyn FileStore>> {
        Ok(Arc::new(self.clone()))
    }
    fn store_calling(&self, hook: Hook<MemStore>) -> Result<Arc<dyn FileStore>> {
        Ok(Arc::new(CrashPoints { inner: self.clone(), hook }))
    }

    /// Every personality, and every subset where there are few pieces.
    fn images(&self, random: &mut Random, limit: usize) -> Vec<(String, MemStore)> {
        let personalities = Personality::ALL.into_iter();
        let mut images: Vec<MemStore> =
            personalities.map(|each| self.crash_image(random, each)).collect();
        images.extend(self.crash_images(limit, random.next_u64()));
        images.into_iter().map(|image| (image.describe(), image)).collect()
    }
    fn with_all(&self) -> MemStore {
        self.crash_image(&mut Random::new(0), Personality::KeepAll)
    }
    fn without_unsynced(&self) -> MemStore {
        self.crash_image(&mut Random::new(1), Personality::LoseUnsynced)
    }
    fn orphan(&self) -> MemStore {
        self.clone()
    }
    fn content_hash(&self) -> u64 {
        MemStore::content_hash(self)
    }
    fn stop(&self) {
        self.stop_after(0);
    }
}

/// A memory store that shows itself before each mutating operation.
struct CrashPoints {
    inner: MemStore,
    hook: Hook<MemStore>,
}

impl CrashPoints {
    fn point(&self) {
        (self.hook)(&self.inner);
    }

    fn wrap(&self, inner: Box<dyn AppendFile>) -> Box<dyn AppendFile> {
        Box::new(PointFile { store: self.inner.clone(), hook: self.hook.clone(), inner })
    }
}

struct PointFile {
    store: MemStore,
    hook: Hook<MemStore>,
    inner: Box<dyn AppendFile>,
}

impl AppendFile for PointFile {
    fn append(&mut self, bytes: &[u8], cause: Cause) -> Result<()> {
        (self.hook)(&self.store);
        self.inner.append(bytes, cause)
    }
    fn begin_sync(&mut self) -> Result<()> {
        (self.hook)(&self.store);
        self.inner.begin_sync()
    }
    fn sync(&mut self, cause: Cause) -> Result<()> {
        (self.hook)(&self.store);
        self.inner.sync(cause)
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        let inner = self.inner.syncer()?;
        Some(Box::new(PointSyncer { store: self.store.clone(), hook: self.hook.clone(), inner }))
    }
}

struct PointSyncer {
    store: MemStore,
    hook: Hook<MemStore>,
    inner: Box<dyn SyncFile>,
}

impl SyncFile for PointSyncer {
    fn sync(&self, cause: Cause) -> Result<()> {
        (self.hook)(&self.store);
        self.inner.sync(cause)
    }
}

impl FileStore for CrashPoints {
    fn ledger(&self) -> &Arc<Ledger> {
        self.inner.ledger()
    }
    fn create(&self, name: FileName, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.point();
        Ok(self.wrap(self.inner.create(name, hint)?))
    }
    fn extend(&self, name: FileName, at: u64, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.point();
        Ok(self.wrap(self.inner.extend(name, at, hint)?))
    }
    fn open(&self, name: FileName, background: bool) -> Result<Arc<dyn ReadFile>> {
        self.inner.open(name, background)
    }
    fn recalls_writes(&self) -> bool {
        self.inner.recalls_writes()
    }
    fn remove(&self, name: FileName) -> Result<()> {
        self.point();
        self.inner.remove(name)
    }
    fn list(&self) -> Result<Vec<FileSummary>> {
        self.inner.list()
    }
    fn sync_names(&self) -> Result<()> {
        self.point();
        self.inner.sync_names()
    }
    fn root(&self) -> Result<Option<Vec<u8>>> {
        self.inner.root()
    }
    fn set_root(&self, root: &[u8]) -> Result<()> {
        self.point();
        self.inner.set_root(root)
    }
    fn lock(&self) -> Result<StoreLock> {
        // A process that died has released its lock.
        Ok(Box::new(()))
    }
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn notes(&self) -> Option<&dyn Notes> {
        self.inner.notes()
    }

    fn capacity(&self) -> Option<&dyn Capacity> {
        self.inner.capacity()
    }
}

/// A store and its cold store, in memory. They lose power at one moment, each with its own outcome.
#[derive(Clone)]
pub struct Pair {
    pub first: MemStore,
    pub cold: MemStore,
}

impl Pair {
    pub fn new() -> Pair {
        let ledger = Arc::new(Ledger::default());
        Pair { first: MemStore::new(ledger.clone()), cold: MemStore::new(ledger) }
    }

    /// After a restart: one ledger again.
    fn of(first: &MemStore, cold: &MemStore) -> Pair {
        let ledger = Arc::new(Ledger::default());
        Pair { first: first.with_ledger(ledger.clone()), cold: cold.with_ledger(ledger) }
    }

    pub fn ledger(&self) -> Arc<Ledger> {
        self.first.ledger().clone()
    }

    pub fn lose(&self, random: &mut Random, first: Personality, cold: Personality) -> Pair {
        Pair::of(&self.first.crash_image(random, first), &self.cold.crash_image(random, cold))
    }
}

fn paired(
    first: impl FileStore + 'static,
    cold: impl FileStore + 'static,
) -> Result<Arc<dyn FileStore>> {
    Ok(Arc::new(PairStore::new(Arc::new(first), Arc::new(cold))?))
}

impl Medium for Pair {
    fn store(&self) -> Result<Arc<dyn FileStore>> {
        paired(self.first.clone(), self.cold.clone())
    }
    fn store_calling(&self, hook: Hook<Pair>) -> Result<Arc<dyn FileStore>> {
        let pair = self.clone();
        let hook: Hook<MemStore> = Arc::new(move |_| hook(&pair));
        let points = |store: &MemStore| CrashPoints { inner: store.clone(), hook: hook.clone() };
        paired(points(&self.first), points(&self.cold))
    }

    /// Every personality of each, beside one that is drawn for the other.
    fn images(&self, random: &mut Random, limit: usize) -> Vec<(String, Pair)> {
        use Personality::{KeepAll, LoseUnsynced};
        let all = Personality::ALL;
        let mut drawn = || all[random.below(all.len() as u64) as usize];
        let mut losses = vec![(KeepAll, LoseUnsynced), (LoseUnsynced, KeepAll)];
        losses.extend(all.map(|each| (each, drawn())));
        losses.extend(all.map(|each| (drawn(), each)));
        losses.extend((0..limit).map(|_| (drawn(), drawn())));
        let image =
            |(first, cold)| (format!("{first:?}, {cold:?}"), self.lose(random, first, cold));
        losses.into_iter().map(image).collect()
    }
    fn with_all(&self) -> Pair {
        Pair::of(&self.first.with_all(), &self.cold.with_all())
    }
    fn without_unsynced(&self) -> Pair {
        Pair::of(&self.first.without_unsynced(), &self.cold.without_unsynced())
    }
    fn orphan(&self) -> Pair {
        self.clone()
    }
    fn content_hash(&self) -> u64 {
        self.first.content_hash() ^ self.cold.content_hash().rotate_left(1)
    }
    fn stop(&self) {
        self.first.stop();
        self.cold.stop();
    }
}

/// A medium, and a directory of backups beside it, in memory. They lose power at one moment, each
/// with its own outcome.
#[derive(Clone)]
pub struct Beside<M> {
    first: M,
    backups: MemStore,
}

impl<M: Medium> Beside<M> {
    pub fn new(first: M) -> Beside<M> {
        Beside { first, backups: MemStore::new(Arc::default()) }
    }
}

impl<M: Medium> Medium for Beside<M> {
    fn store(&self) -> Result<Arc<dyn FileStore>> {
        self.first.store()
    }
    fn store_calling(&self, hook: Hook<Beside<M>>) -> Result<Arc<dyn FileStore>> {
        let backups = self.backups.clone();
        self.first.store_calling(Arc::new(move |first: &M| {
            hook(&Beside { first: first.clone(), backups: backups.clone() });
        }))
    }

    /// Those of the medium, each beside an outcome that is drawn for the backups.
    fn images(&self, random: &mut Random, limit: usize) -> Vec<(String, Beside<M>)> {
        let all = Personality::ALL;
        let firsts = self.first.images(random, limit).into_iter();
        let mut image = |(title, first)| {
            let drawn = all[random.below(all.len() as u64) as usize];
            let backups = self.backups.crash_image(random, drawn);
            (format!("{title}, backups {drawn:?}"), Beside { first, backups })
        };
        firsts.map(&mut image).collect()
    }
    fn with_all(&self) -> Beside<M> {
        Beside { first: self.first.with_all(), backups: self.backups.with_all() }
    }
    fn without_unsynced(&self) -> Beside<M> {
        let backups = self.backups.without_unsynced();
        Beside { first: self.first.without_unsynced(), backups }
    }
    fn orphan(&self) -> Beside<M> {
        Beside { first: self.first.orphan(), backups: self.backups.clone() }
    }
    fn content_hash(&self) -> u64 {
        self.first.content_hash()
    }
    fn stop(&self) {
        self.first.stop();
        self.backups.stop();
    }
    fn can_be_followed(&self) -> bool {
        self.first.can_be_followed()
    }
    fn backups(&self) -> Option<Arc<dyn FileStore>> {
        Some(Arc::new(self.backups.clone()))
    }
    fn backups_calling(&self, hook: Hook<Beside<M>>) -> Option<Arc<dyn FileStore>> {
        let first = self.first.clone();
        let hook: Hook<MemStore> = Arc::new(move |backups: &MemStore| {
            hook(&Beside { first: first.clone(), backups: backups.clone() });
        });
        Some(Arc::new(CrashPoints { inner: self.backups.clone(), hook }))
    }
    fn backups_hash(&self) -> u64 {
        MemStore::content_hash(&self.backups)
    }
}

/// A device, and how files are placed on it.
pub struct Kind {
    /// Its usual name.
    pub name: &'static str,
    placement: &'static str,
    unit_bytes: u64,
    make: fn() -> SharedDevice,
}

const UNIT_BYTES: u64 = 64 << 10;

/// A device in memory with the worst behaviour that such a medium allows.
fn worst(overwrite: Overwrite, conventional_zones: u32) -> SharedDevice {
    let zones = ZoneGeometry { zone_bytes: 1 << 20, conventional_zones, open_zones_max: 14 };
    let zones = (overwrite == Overwrite::AtWritePointer).then_some(zones);
    let capacity_bytes = if zones.is_some() { 64 << 20 } else { 32 << 20 };
    Arc::new(MemDevice::new(Geometry {
        sector_bytes: 512,
        atomic_bytes: 512,
        capacity_bytes,
        overwrite,
        band_bytes: 0,
        zones,
    }))
}

/// The model that `text` describes, with a clock of its own.
fn model(text: &str) -> SharedDevice {
    let simulation = Simulation::new(SimulationOptions::default());
    Arc::new(simulation.device(models::make(text).unwrap()))
}

const fn kind(
    name: &'static str,
    placement: &'static str,
    unit_bytes: u64,
    make: fn() -> SharedDevice,
) -> Kind {
    Kind { name, placement, unit_bytes, make }
}

const SHINGLED: Overwrite = Overwrite::DestroysDownstream { damage_bytes: 16 << 10 };

/// Every placement on devices of the worst behaviour, and on every model that it suits.
pub const KINDS: [Kind; 14] = [
    kind("memory, ext4-like", "ext4-like", 0, || worst(Overwrite::InPlace, 0)),
    kind("memory, band-per-table", "band-per-table", UNIT_BYTES, || worst(Overwrite::InPlace, 0)),
    kind("memory, dynamic-bands", "dynamic-bands", UNIT_BYTES, || worst(SHINGLED, 0)),
    kind("memory, zones", "zones", 0, || worst(Overwrite::AtWritePointer, 1)),
    kind("memory, zones alone", "zones", 0, || worst(Overwrite::AtWritePointer, 0)),
    kind("hdd, ext4-like", "ext4-like", 0, || model("hdd:capacity=32MiB")),
    kind("ssd, ext4-like", "ext4-like", 0, || {
        model("ssd:capacity=32MiB,superblock=1MiB,op=15%,wear=steady")
    }),
    kind("raid, ext4-like", "ext4-like", 0, || model("raid:members=3,member=hdd:capacity=16MiB")),
    kind("smr-banded, ext4-like", "ext4-like", 0, || model("smr-banded:capacity=32MiB,band=1MiB")),
    kind("smr-banded, band-per-table", "band-per-table", 0, || {
        model("smr-banded:capacity=32MiB,band=64KiB")
    }),
    kind("smr-raw, band-per-table", "band-per-table", UNIT_BYTES, || {
        model("smr-raw:capacity=32MiB,track=8KiB,overlap=1")
    }),
    kind("smr-raw, dynamic-bands", "dynamic-bands", UNIT_BYTES, || {
        model("smr-raw:capacity=32MiB,track=16KiB")
    }),
    kind("zoned, zones", "zones", 0, || model("zoned:capacity=64MiB,zone=1MiB")),
    kind("zoned, zones alone", "zones", 0, || {
        model("zoned:capacity=64MiB,zone=1MiB,conventional=0%")
    }),
];

/// Direct storage on a device.
#[derive(Clone)]
pub struct Direct {
    pub device: RecordedDevice,
}

impl Direct {
    /// An empty store on a new device.
    pub fn new(kind: &Kind) -> Direct {
        let make: MakeDevice = Arc::new(kind.make);
        let device = RecordedDevice::new(make);
        let (placement, unit_bytes) = (kind.placement.to_string(), kind.unit_bytes);
        let options = FormatOptions { placement, unit_bytes, store: 5, force: false };
        format(Arc::new(device.clone()), Arc::default(), &options).unwrap();
        Direct { device }
    }

    fn lose(&self, random: &mut Random, loss: PowerLoss) -> Direct {
        Direct { device: self.device.crash_image(random, loss) }
    }
}

fn opened(device: RecordedDevice) -> Result<Arc<dyn FileStore>> {
    let ledger = Arc::new(Ledger::default());
    let store = DirectStore::open(Arc::new(device), ledger, DirectOptions::default())?;
    Ok(Arc::new(store))
}

impl Medium for Direct {
    fn store(&self) -> Result<Arc<dyn FileStore>> {
        opened(self.device.clone())
    }
    fn store_calling(&self, hook: Hook<Direct>) -> Result<Arc<dyn FileStore>> {
        let before = move |device: &RecordedDevice| hook(&Direct { device: device.clone() });
        opened(self.device.calling(Arc::new(before)))
    }
    fn images(&self, random: &mut Random, limit: usize) -> Vec<(String, Direct)> {
        let draws = [PowerLoss::Torn, PowerLoss::Subset, PowerLoss::Prefix].into_iter().cycle();
        let draws = draws.skip(random.below(3) as usize);
        let losses = [PowerLoss::LoseUnflushed, PowerLoss::KeepAll].into_iter();
        let losses = losses.chain(draws.take(limit));
        losses.map(|loss| (format!("{loss:?}"), self.lose(random, loss))).collect()
    }
    fn with_all(&self) -> Direct {
        self.lose(&mut Random::new(0), PowerLoss::KeepAll)
    }
    fn without_unsynced(&self) -> Direct {
        self.lose(&mut Random::new(1), PowerLoss::LoseUnflushed)
    }
    fn orphan(&self) -> Direct {
        self.with_all()
    }
    fn content_hash(&self) -> u64 {
        self.device.content_hash()
    }
    fn stop(&self) {
        self.device.stop();
    }
    fn can_be_followed(&self) -> bool {
        false
    }
}

/// A directory in memory where the system has one: files there cost no sync of a disk.
pub fn memory_dir() -> Result<tempfile::TempDir> {
    let dir = match Path::new("/dev/shm").is_dir() {
        true => tempfile::tempdir_in("/dev/shm"),
        false => tempfile::tempdir(),
    };
    dir.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))
}
