//! Power lost at every mutating I/O of a history, and again in the recoveries: every image must
//! open, be a prefix of the commit order that holds what was safe, open again to the same, and go
//! on.
//!
//! [`CrashPoints`] wraps the memory store. Before each mutating operation it takes images of the
//! store as it stands, so that one run of a history sees every crash point, with the model as it
//! was.

use crate::history::{Generator, Profile, Step};
use crate::model::{Found, Model};
use crate::run::{
    ByScheme, Config, Failure, Outcome, Runner, SharedModel, hold, read_all, replay,
    seeds_for_schemes, wrong,
};
use base::Result;
use base::random::Random;
use base::{Cause, Ledger};
use media::mem::{MemStore, Personality};
use media::{
    AppendFile, FileHint, FileName, FileStore, FileSummary, ReadFile, Space, StoreLock, SyncFile,
};
use shingle::{Durability, WriteBatch, WriteOptions};
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What is called before each mutating operation.
pub type Hook = Arc<dyn Fn(&MemStore) + Send + Sync>;

/// A memory store that shows itself before each mutating operation.
pub struct CrashPoints {
    inner: MemStore,
    hook: Hook,
}

impl CrashPoints {
    pub fn new(inner: MemStore, hook: Hook) -> Arc<CrashPoints> {
        Arc::new(CrashPoints { inner, hook })
    }

    fn point(&self) {
        (self.hook)(&self.inner);
    }

    fn wrap(&self, inner: Box<dyn AppendFile>) -> Box<dyn AppendFile> {
        Box::new(PointFile { store: self.inner.clone(), hook: self.hook.clone(), inner })
    }
}

struct PointFile {
    store: MemStore,
    hook: Hook,
    inner: Box<dyn AppendFile>,
}

impl AppendFile for PointFile {
    fn append(&mut self, bytes: &[u8], cause: Cause) -> Result<()> {
        (self.hook)(&self.store);
        self.inner.append(bytes, cause)
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
    hook: Hook,
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
        // A process that died has let go of its lock.
        Ok(Box::new(()))
    }
    fn space(&self) -> Option<Space> {
        self.inner.space()
    }
    fn note(&self, name: &str, bytes: &[u8], append: bool) -> Result<()> {
        self.inner.note(name, bytes, append)
    }
    fn read_note(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.inner.read_note(name)
    }
    fn describe(&self) -> String {
        self.inner.describe()
    }
    fn share(&self, name: FileName, target: &Path, bytes: Option<u64>) -> Result<()> {
        self.inner.share(name, target, bytes)
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    histories: u64,
    points: u64,
    images: u64,
    nested: u64,
    gone_on: u64,
}

/// A sweep over one history.
struct Sweep {
    config: Config,
    model: SharedModel,
    random: Mutex<Random>,
    seen: Mutex<HashSet<u64>>,
    counts: Mutex<Counts>,
    failure: Mutex<Option<String>>,
    images_per_point: usize,
}

fn text(failure: Failure) -> String {
    match failure {
        Failure::Error(error) => format!("{error}"),
        Failure::Wrong(what) => what,
    }
}

impl Sweep {
    fn new(config: &Config, seed: u64, images_per_point: usize) -> Arc<Sweep> {
        Arc::new(Sweep {
            config: config.clone(),
            model: Arc::new(Mutex::new(Model::new())),
            random: Mutex::new(Random::new(seed)),
            seen: Mutex::default(),
            counts: Mutex::default(),
            failure: Mutex::default(),
            images_per_point,
        })
    }

    fn has_failed(&self) -> bool {
        hold(&self.failure).is_some()
    }

    fn fail(&self, what: String) {
        hold(&self.failure).get_or_insert(what);
    }

    /// Every personality, and every subset where there are few pieces.
    fn images(&self, store: &MemStore, limit: usize) -> Vec<MemStore> {
        let mut random = Random::new(hold(&self.random).next_u64());
        let mut images = Vec::new();
        for personality in Personality::ALL {
            images.push(store.crash_image(&mut random, personality));
        }
        images.extend(store.crash_images(limit, random.next_u64()));
        images
    }

    /// Power is lost now.
    fn point(self: &Arc<Self>, store: &MemStore) {
        if self.has_failed() {
            return;
        }
        hold(&self.counts).points += 1;
        let model = hold(&self.model).clone();
        for (at, image) in self.images(store, self.images_per_point).into_iter().enumerate() {
            // The same bytes with a newer model are another question, but only sometimes asked.
            let key = image.content_hash() ^ (model.now() / 8);
            if !hold(&self.seen).insert(key) {
                continue;
            }
            hold(&self.counts).images += 1;
            let title = image.describe();
            if let Err(failure) = self.verify(image, model.clone(), 0) {
                let point = hold(&self.counts).points;
                self.fail(format!("point {point}, image {at} ({title}): {}", text(failure)));
                return;
            }
        }
    }

    /// Opens, reads all, and stops the machine: nothing is closed in order.
    fn find(&self, store: MemStore) -> std::result::Result<Found, Failure> {
        let db = self.config.open(Arc::new(store.clone()))?;
        let found = read_all(&db)?;
        store.stop_after(0);
        Ok(found)
    }

    /// An image opens, is a prefix, and is the same prefix again; then history goes on from it.
    fn verify(self: &Arc<Self>, image: MemStore, mut model: Model, depth: usize) -> Outcome {
        let (goes_on, nests) = {
            let mut random = hold(&self.random);
            if depth == 0 {
                (random.one_in(20), random.one_in(40))
            } else {
                (random.one_in(200), depth < 2 && random.one_in(300))
            }
        };
        let untouched = image.crash_image(&mut Random::new(0), Personality::KeepAll);
        let store = self.recovery_store(image.clone(), &model, depth, nests);
        let db = self.config.open(store)?;
        let found = read_all(&db)?;
        let recovered = model.recover(&found).map_err(Failure::Wrong)?;
        let report = db.check(&mut |_| {})?;
        if !report.is_clean() {
            return wrong(format!("after recovery the check found {:?}", report.problems));
        }
        db.close()?;
        if self.has_failed() {
            return Ok(());
        }
        // A read-only opening of the same image agrees and leaves no trace.
        if goes_on {
            let before = untouched.content_hash();
            let options = self.config.options().read_only(true);
            // A machine that lost power before the first root holds no database yet.
            match options.open_in(Arc::new(untouched.clone()), self.config.runtime()) {
                Ok(db) => same(&found, &read_all(&db)?, "read-only")?,
                Err(error) if error.kind() == shingle::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
            if untouched.content_hash() != before {
                return wrong("a read-only opening changed the store");
            }
        }
        let again = self.find(image.crash_image(&mut Random::new(1), Personality::LoseUnsynced))?;
        same(&found, &again, "the second opening")?;
        if goes_on {
            model.go_on_from(recovered);
            self.go_on(&image, model, depth)?;
        }
        Ok(())
    }

    /// The store for a recovery: plain, or one that loses power at every operation of it.
    fn recovery_store(
        self: &Arc<Self>,
        image: MemStore,
        model: &Model,
        depth: usize,
        nests: bool,
    ) -> Arc<dyn FileStore> {
        if !nests {
            return Arc::new(image);
        }
        let (sweep, model) = (self.clone(), model.clone());
        CrashPoints::new(
            image,
            Arc::new(move |store| {
                if sweep.has_failed() {
                    return;
                }
                for image in sweep.images(store, 2).into_iter().take(4) {
                    hold(&sweep.counts).nested += 1;
                    let title = image.describe();
                    if let Err(failure) = sweep.verify(image, model.clone(), depth + 1) {
                        let what = text(failure);
                        sweep.fail(format!("in recovery, depth {}, {title}: {what}", depth + 1));
                        return;
                    }
                }
            }),
        )
    }

    /// Writes more, loses power again, and looks again.
    fn go_on(self: &Arc<Self>, image: &MemStore, model: Model, depth: usize) -> Outcome {
        if depth > 1 {
            return Ok(());
        }
        hold(&self.counts).gone_on += 1;
        let model = Arc::new(Mutex::new(model));
        let image = image.crash_image(&mut Random::new(2), Personality::KeepAll);
        let seed = hold(&self.random).next_u64();
        let mut runner = Runner::open(&self.config, Arc::new(image.clone()), model.clone(), seed)?;
        runner.compare_all()?;
        let steps = Generator::new(seed, Profile { reopens: false, ..short(25) }).steps();
        runner.run(&steps)?;
        runner.step(&Step::Sync)?;
        runner.run(&steps[..5])?;
        let model = hold(&model).clone();
        for image in self.images(&image, 2).into_iter().take(5) {
            hold(&self.counts).nested += 1;
            self.verify(image, model.clone(), depth + 1)?;
        }
        image.stop_after(0);
        drop(runner);
        Ok(())
    }

    /// Runs the history with power lost at every operation.
    fn run(self: &Arc<Self>, steps: &[Step], seed: u64) -> std::result::Result<Counts, String> {
        let store = MemStore::new(Arc::default());
        let sweep = self.clone();
        let points = CrashPoints::new(store, Arc::new(move |store| sweep.point(store)));
        let run = || -> Outcome {
            let mut runner = Runner::open(&self.config, points, self.model.clone(), seed)?;
            runner.run(steps)?;
            runner.finish()
        };
        let outcome = run();
        if let Some(failure) = hold(&self.failure).take() {
            return Err(failure);
        }
        outcome.map_err(text)?;
        let mut counts = *hold(&self.counts);
        counts.histories = 1;
        Ok(counts)
    }
}

fn same(one: &Found, other: &Found, title: &str) -> Outcome {
    let prints = |found: &Found| -> Vec<(usize, u64)> {
        found.iter().map(|(slot, contents)| (*slot, contents.fingerprint)).collect()
    };
    if prints(one) != prints(other) {
        return wrong(format!("{title} found another state"));
    }
    Ok(())
}

fn short(steps: usize) -> Profile {
    Profile {
        steps,
        keys: 60,
        value_bytes_max: 5000,
        relocate_odds: 8,
        reopens: true,
        reads: false,
    }
}

#[test]
fn power_lost_at_any_operation_leaves_a_prefix() {
    let (mut sum, mut points) = (Counts::default(), ByScheme::default());
    for seed in seeds_for_schemes(20) {
        let config = Config::draw(seed).sometimes_bounded(seed);
        let steps = Generator::new(seed, short(150)).steps();
        let counts = Sweep::new(&config, seed, 4).run(&steps, seed).unwrap_or_else(|what| {
            let line = replay("power_lost_at_any", seed, &Failure::Wrong(what));
            panic!("{line} {config:?}")
        });
        sum.histories += 1;
        sum.points += counts.points;
        points.add(&config, counts.points);
        sum.images += counts.images;
        sum.nested += counts.nested;
        sum.gone_on += counts.gone_on;
    }
    println!("{sum:?}");
    points.finish("crash points", 500);
}

#[test]
fn a_process_that_dies_and_then_power_lost_in_recovery_leave_a_prefix() {
    // The page cache outlives the process, so a recovery may read what is not durable yet.
    for seed in seeds_for_schemes(30) {
        let config = Config::draw(seed);
        let steps = Generator::new(seed, Profile { reopens: false, ..short(60) }).steps();
        let store = MemStore::new(Arc::default());
        let sweep = Sweep::new(&config, seed, 2);
        let outcome = (|| -> Outcome {
            let model = sweep.model.clone();
            let mut runner = Runner::open(&config, Arc::new(store.clone()), model.clone(), seed)?;
            runner.run(&steps)?;
            let model = hold(&model).clone();
            // The lock goes with the process.
            std::mem::forget(runner);
            let orphan = store.clone();
            let inner = sweep.clone();
            let points = CrashPoints::new(
                orphan,
                Arc::new(move |store| {
                    for image in inner.images(store, 6) {
                        if inner.has_failed() {
                            return;
                        }
                        let title = image.describe();
                        if let Err(failure) = inner.verify(image, model.clone(), 2) {
                            inner.fail(format!("{title}: {}", text(failure)));
                        }
                    }
                }),
            );
            config.open(points)?;
            Ok(())
        })();
        let failed = hold(&sweep.failure).take().map(Failure::Wrong);
        if let Some(failure) = failed.or(outcome.err()) {
            panic!("{} {config:?}", replay("a_process_that_dies", seed, &failure));
        }
    }
}

#[test]
fn a_synced_write_holds_everything_before_it() {
    // The smallest case of the rule, spelled out: one log, two keyspaces, three fates.
    let config = Config::draw(1);
    let store = MemStore::new(Arc::default());
    let model = Arc::new(Mutex::new(Model::new()));
    let runner = Runner::open(&config, Arc::new(store.clone()), model, 1)
        .unwrap_or_else(|failure| panic!("{}", text(failure)));
    let sums = runner.db.keyspace("sums").unwrap();
    runner.db.put("a", "1").unwrap();
    let mut batch = WriteBatch::new();
    batch.put_in(&sums, "b", 2u64.to_le_bytes()).unwrap();
    batch.put("c", "3").unwrap();
    let durability = Some(Durability::Synced);
    runner.db.write(batch, &WriteOptions { durability, wait: true }).unwrap();
    runner.db.put("d", "4").unwrap();
    let image = store.crash_image(&mut Random::new(0), Personality::LoseUnsynced);
    let db = config.open(Arc::new(image)).unwrap();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert!(db.keyspace("sums").unwrap().get("b").unwrap().is_some());
    assert!(db.get("c").unwrap().is_some());
    assert!(db.get("d").unwrap().is_none());
}
