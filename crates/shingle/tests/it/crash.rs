//! Power is lost at every mutating I/O of a history, and again in the recoveries. Every image must
//! open, be a prefix of the commit order that holds what was safe, open again to the same state,
//! and go on. On files, and on direct storage over every kind of device.

use crate::archive::Depth;
use crate::config::Config;
use crate::copies::{Copies, CopyCounts, follow};
use crate::history::{Generator, Profile, Step};
use crate::medium::{Beside, Direct, KINDS, Kind, Medium};
use crate::mirror;
use crate::model::{Found, Model};
use crate::run::{Failure, Outcome, Runner, SharedModel, read_all, replay, wrong};
use crate::volume::{ByCell, Cells, is_left_out, scaled, seeds_for_cells, seeds_for_schemes};
use base::random::Random;
use media::mem::{MemStore, Personality};
use media::{FileKind, FileStore, FileSummary};
use parking_lot::Mutex;
use shingle::{Db, Durability, ErrorKind, Follower, WriteBatch, WriteOptions};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    histories: u64,
    pub points: u64,
    pub images: u64,
    nested: u64,
    gone_on: u64,
    /// Images with a value segment that was begun and has no value.
    begun: u64,
    /// Images that a follower read.
    pub followed: u64,
    /// Directories of backups that were restored from.
    pub restored: u64,
    pub copies: CopyCounts,
}

/// A sweep over one history.
pub struct Sweep {
    config: Config,
    model: SharedModel,
    random: Mutex<Random>,
    seen: Mutex<HashSet<u64>>,
    seen_backups: Mutex<HashSet<u64>>,
    counts: Mutex<Counts>,
    failure: Mutex<Option<String>>,
    images_per_point: usize,
    /// Power is lost at one point in this many: those with this remainder.
    stride: u64,
    turn: u64,
}

fn text(failure: Failure) -> String {
    match failure {
        Failure::Error(error) => format!("{error}"),
        Failure::Wrong(what) => what,
    }
}

impl Sweep {
    pub fn new(config: &Config, seed: u64, images_per_point: usize) -> Arc<Sweep> {
        Arc::new(Sweep {
            config: config.clone(),
            model: Arc::new(Mutex::new(Model::new())),
            random: Mutex::new(Random::new(seed)),
            seen: Mutex::default(),
            seen_backups: Mutex::default(),
            counts: Mutex::default(),
            failure: Mutex::default(),
            images_per_point,
            stride: 1,
            turn: 0,
        })
    }

    /// A sweep that stops at one point in `stride`.
    pub fn strided(config: &Config, seed: u64, images_per_point: usize, stride: u64) -> Arc<Sweep> {
        let mut sweep = Sweep::new(config, seed, images_per_point);
        if let Some(sweep) = Arc::get_mut(&mut sweep) {
            (sweep.stride, sweep.turn) = (stride, seed % stride);
        }
        sweep
    }

    fn has_failed(&self) -> bool {
        self.failure.lock().is_some()
    }

    fn fail(&self, what: String) {
        self.failure.lock().get_or_insert(what);
    }

    fn images<M: Medium>(&self, medium: &M, limit: usize) -> Vec<(String, M)> {
        let mut random = Random::new(self.random.lock().next_u64());
        medium.images(&mut random, limit)
    }

    /// Power is lost now.
    fn point<M: Medium>(self: &Arc<Self>, medium: &M) {
        let point = {
            let mut counts = self.counts.lock();
            counts.points += 1;
            counts.points
        };
        if self.has_failed() || point % self.stride != self.turn {
            return;
        }
        let model = self.model.lock().clone();
        for (title, image) in self.images(medium, self.images_per_point) {
            // The same bytes with a newer model are another case, but only some of these are tried.
            let key = image.content_hash() ^ (model.now() / 8);
            let is_new = self.seen.lock().insert(key);
            let verified = if is_new {
                self.counts.lock().images += 1;
                self.verify(image, model.clone(), 0)
            } else {
                // Beside the same database the backups may be others.
                self.check_archive(&self.config.at(&model), &image, &mut model.clone())
            };
            if let Err(failure) = verified {
                self.fail(format!("point {point}, image {title}: {}", text(failure)));
                return;
            }
        }
    }

    /// Opens, reads everything, and stops the machine: nothing is closed in order.
    fn find<M: Medium>(config: &Config, medium: &M) -> Result<Found, Failure> {
        let db = config.open(medium.store()?)?;
        let found = read_all(&db)?;
        medium.stop();
        Ok(found)
    }

    /// An image opens, is a prefix, and is the same prefix again; then the history goes on from it.
    fn verify<M: Medium>(self: &Arc<Self>, image: M, mut model: Model, depth: usize) -> Outcome {
        let (goes_on, nests) = {
            let mut random = self.random.lock();
            if depth == 0 {
                (random.one_in(20), random.one_in(80))
            } else {
                (random.one_in(200), depth < 2 && random.one_in(300))
            }
        };
        let untouched = goes_on.then(|| image.with_all());
        self.counts.lock().begun += u64::from(has_empty_segment(&*image.store()?)?);
        let config = self.config.at(&model);
        let follower = self.follower(&config, &image, depth)?;
        let db = config.open(self.recovery_store(&image, &model, depth, nests)?)?;
        let found = read_all(&db)?;
        let recovered = model.recover(&found).map_err(Failure::Wrong)?;
        let report = db.check(&mut |_| {})?;
        if !report.is_clean() {
            return wrong(format!("after recovery the check found {:?}", report.problems));
        }
        check_no_empty_segment(&db)?;
        mirror::check(&config, &db, &found, model.shown_sequence)?;
        db.close()?;
        if self.has_failed() {
            return Ok(());
        }
        if let Some((follower, followed)) = follower {
            same(&found, &followed, "a follower")?;
            follower.catch_up()?;
            same(&found, &read_all(&follower.db())?, "a follower after the recovery")?;
        }
        self.check_archive(&config, &image, &mut model)?;
        if has_empty_segment(&*image.store()?)? {
            return wrong("an empty value segment is left after a close");
        }
        // A read-only opening of the same image gives the same and leaves no trace.
        if let Some(untouched) = untouched {
            let before = untouched.content_hash();
            let options = config.options().read_only(true);
            // If power was lost before the first root, there is no database yet.
            match options.open_in(untouched.store()?, config.runtime()) {
                Ok(db) => same(&found, &read_all(&db)?, "read-only")?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
            if untouched.content_hash() != before {
                return wrong("a read-only opening changed the store");
            }
        }
        let again = Sweep::find(&config, &image.without_unsynced())?;
        same(&found, &again, "the second opening")?;
        if goes_on {
            model.go_on_from(recovered);
            self.go_on(&image, model, depth)?;
        }
        Ok(())
    }

    /// A follower of one image in a few, and what it shows before the recovery.
    fn follower<M: Medium>(
        &self,
        config: &Config,
        image: &M,
        depth: usize,
    ) -> Result<Option<(Follower, Found)>, Failure> {
        // A second handle of a medium in memory needs no process of its own.
        let odds = if depth == 0 { 4 } else { 30 };
        if !image.can_be_followed() || !self.random.lock().one_in(odds) {
            return Ok(None);
        }
        match follow(config, image.store()?) {
            Ok(follower) => {
                self.counts.lock().followed += 1;
                let found = read_all(&follower.db())?;
                Ok(Some((follower, found)))
            }
            // If power was lost before the first root, there is no database yet.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::Wrong(format!("a follower: {error}"))),
        }
    }

    /// The directory of backups is whole. Those that no image had verify, and one in a few of them
    /// is restored from.
    fn check_archive<M: Medium>(&self, config: &Config, image: &M, model: &mut Model) -> Outcome {
        let Some(backups) = image.backups() else { return Ok(()) };
        let is_new = self.seen_backups.lock().insert(image.backups_hash());
        let depth = match is_new {
            false => Depth::Lists,
            true if self.random.lock().one_in(6) => Depth::Restores,
            true => Depth::Verifies,
        };
        self.counts.lock().restored += u64::from(depth == Depth::Restores);
        model.check_archive(config, backups, depth)
    }

    /// The store for a recovery: plain, or one that loses power at every operation of it.
    fn recovery_store<M: Medium>(
        self: &Arc<Self>,
        image: &M,
        model: &Model,
        depth: usize,
        nests: bool,
    ) -> shingle::Result<Arc<dyn FileStore>> {
        if !nests {
            return image.store();
        }
        let (sweep, model) = (self.clone(), model.clone());
        image.store_calling(Arc::new(move |medium| sweep.nested(medium, &model, 4, depth + 1)))
    }

    /// Power is lost in a recovery: checks up to `count` images.
    fn nested<M: Medium>(self: &Arc<Self>, medium: &M, model: &Model, count: usize, depth: usize) {
        if self.has_failed() {
            return;
        }
        for (title, image) in self.images(medium, count / 2).into_iter().take(count) {
            self.counts.lock().nested += 1;
            if let Err(failure) = self.verify(image, model.clone(), depth) {
                let what = text(failure);
                self.fail(format!("in recovery, depth {depth}, {title}: {what}"));
                return;
            }
        }
    }

    /// Writes more, loses power again, and checks again.
    fn go_on<M: Medium>(self: &Arc<Self>, image: &M, model: Model, depth: usize) -> Outcome {
        if depth > 1 {
            return Ok(());
        }
        self.counts.lock().gone_on += 1;
        let model = Arc::new(Mutex::new(model));
        let image = image.with_all();
        let seed = self.random.lock().next_u64();
        let mut runner = Runner::open(&self.config, image.store()?, model.clone(), seed)?;
        runner.copies = Copies::of(image.backups(), followed(&image)?);
        runner.compare_all()?;
        let profile = Profile { reopens: false, ..short(30) }.sometimes_expiring(seed);
        let steps = Generator::new(seed, profile).steps();
        runner.run(&steps[..25])?;
        runner.step(&Step::Sync)?;
        // Other values than before: equal ones that expire at another time would look alike.
        runner.run(&steps[25..])?;
        let model = model.lock().clone();
        for (_, image) in self.images(&image, 2).into_iter().take(5) {
            self.counts.lock().nested += 1;
            self.verify(image, model.clone(), depth + 1)?;
        }
        image.stop();
        drop(runner);
        Ok(())
    }

    /// Runs the history with power lost at every operation.
    pub fn run<M: Medium>(
        self: &Arc<Self>,
        medium: &M,
        steps: &[Step],
        seed: u64,
    ) -> Result<Counts, String> {
        let sweep = self.clone();
        let run = || -> Outcome {
            let store = medium.store_calling(Arc::new(move |medium| sweep.point(medium)))?;
            let mut runner = Runner::open(&self.config, store, self.model.clone(), seed)?;
            let sweep = self.clone();
            let backups = medium.backups_calling(Arc::new(move |medium| sweep.point(medium)));
            runner.copies = Copies::of(backups, followed(medium)?);
            runner.run(steps)?;
            runner.finish()?;
            self.counts.lock().copies = runner.copies.counts;
            Ok(())
        };
        let outcome = run();
        if let Some(failure) = self.failure.lock().take() {
            return Err(failure);
        }
        outcome.map_err(text)?;
        let mut counts = *self.counts.lock();
        counts.histories = 1;
        Ok(counts)
    }
}

/// The store that a follower reads.
fn followed<M: Medium>(medium: &M) -> shingle::Result<Option<Arc<dyn FileStore>>> {
    medium.can_be_followed().then(|| medium.store()).transpose()
}

fn has_empty_segment(store: &dyn FileStore) -> shingle::Result<bool> {
    let is_empty = |file: &FileSummary| file.name.kind == FileKind::Value && file.bytes == 0;
    Ok(store.list()?.iter().any(is_empty))
}

/// An opening removes the segments that were begun for commits which never came.
fn check_no_empty_segment(db: &Db) -> Outcome {
    for name in db.keyspaces() {
        let version = db.keyspace(&name)?.tree_for_test()?;
        if let Some(file) = version.segments.empty_ones().next() {
            return wrong(format!("an opening kept the empty segment {file} of {name}"));
        }
    }
    Ok(())
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

pub fn short(steps: usize) -> Profile {
    Profile {
        steps,
        keys: 60,
        value_bytes_max: 5000,
        move_odds: 8,
        range_odds: 0,
        expiry_odds: 0,
        ingest_odds: 25,
        copy_odds: 12,
        reopens: true,
        reads: false,
    }
}

#[test]
fn power_lost_at_any_operation_leaves_a_prefix() {
    let seeds = Mutex::new(seeds_for_cells(24).into_iter());
    let sums = Mutex::new((Counts::default(), ByCell::default(), ByCell::default()));
    let sweep = |seed| {
        let config = Config::draw(seed).sometimes_bounded(seed);
        let steps = Generator::new(seed, short(125).sometimes_expiring(seed)).steps();
        let medium = Beside::new(MemStore::new(Arc::default()));
        let swept = Sweep::new(&config, seed, 4).run(&medium, &steps, seed);
        let counts = swept.unwrap_or_else(|what| {
            let line = replay("power_lost_at_any", seed, &Failure::Wrong(what));
            panic!("{line} {config:?}")
        });
        let (sum, points, backups) = &mut *sums.lock();
        sum.histories += 1;
        sum.points += counts.points;
        points.add(&config, counts.points);
        sum.images += counts.images;
        sum.nested += counts.nested;
        sum.gone_on += counts.gone_on;
        sum.begun += counts.begun;
        sum.followed += counts.followed;
        sum.restored += counts.restored;
        sum.copies.catch_ups += counts.copies.catch_ups;
        sum.copies.pruned += counts.copies.pruned;
        sum.copies.backups += counts.copies.backups;
        backups.add(&config, counts.copies.backups);
    };
    // It takes longer than all other tests, so it has threads of its own.
    let next = || seeds.lock().next();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| std::iter::from_fn(next).for_each(sweep));
        }
    });
    let (sum, points, backups) = sums.into_inner();
    println!("{sum:?}");
    points.finish("crash points", 150);
    backups.finish("backups", 1);
    let is_whole = std::env::var("SHINGLE_TEST_SEED").is_err();
    assert!(sum.begun > 0 || !is_whole, "power was never lost between a segment and its values");
    let copies = [sum.followed, sum.restored, sum.copies.catch_ups, sum.copies.pruned];
    assert!(copies.iter().all(|&count| count > 0) || !is_whole, "{sum:?}");
}

/// The history of a process that dies. Then power is lost at every operation of the recovery: at
/// one in `stride` of them, with up to `images` each.
fn orphaned<M: Medium>(
    medium: &M,
    config: &Config,
    seed: u64,
    (steps, stride, images): (usize, u64, usize),
) -> Outcome {
    // The page cache outlives the process, so a recovery may read what is not durable yet.
    // Every other history is full of range deletions.
    let range_odds = 4 * (seed % 2);
    let profile = Profile { reopens: false, range_odds, ..short(steps) };
    let steps = Generator::new(seed, profile.sometimes_expiring(seed)).steps();
    let sweep = Sweep::new(config, seed, 2);
    let model = sweep.model.clone();
    let mut runner = Runner::open(config, medium.store()?, model.clone(), seed)?;
    runner.run(&steps)?;
    let model = model.lock().clone();
    // The lock goes with the process.
    std::mem::forget(runner);
    let (inner, config) = (sweep.clone(), config.at(&model));
    let operations = AtomicU64::new(seed);
    let hook = move |medium: &M| {
        if operations.fetch_add(1, Relaxed).is_multiple_of(stride) {
            inner.nested(medium, &model, images, 2);
        }
    };
    let opened = config.open(medium.orphan().store_calling(Arc::new(hook))?);
    drop(opened?);
    // The result of closing is checked too.
    let failed = sweep.failure.lock().take();
    failed.map_or(Ok(()), wrong)
}

#[test]
fn a_process_that_dies_and_then_power_lost_in_recovery_leave_a_prefix() {
    for seed in seeds_for_schemes(30) {
        let config = Config::draw(seed);
        let store = MemStore::new(Arc::default());
        orphaned(&store, &config, seed, (60, 1, 12)).unwrap_or_else(|failure| {
            panic!("{} {config:?}", replay("a_process_that_dies", seed, &failure))
        });
    }
}

/// One point in this many, at the usual volume, of the history of each scheme on each device.
const DEVICE_STRIDE: u64 = 24;

/// The history of `seed` on a device of `kind`, with power lost at one request in `stride`.
fn sweep_device(kind: &Kind, config: &Config, seed: u64, stride: u64, steps: usize) -> Counts {
    let steps = Generator::new(seed, short(steps).sometimes_expiring(seed)).steps();
    let sweep = Sweep::strided(config, seed, 1, stride);
    sweep.run(&Direct::new(kind), &steps, seed).unwrap_or_else(|what| {
        let line = replay("power_lost_at", seed, &Failure::Wrong(what));
        panic!("{}: {line} {config:?}", kind.name)
    })
}

#[test]
fn power_lost_at_any_request_to_any_device_leaves_a_prefix_under_every_scheme() {
    let (mut sum, mut images) = (Counts::default(), Cells::default());
    let schemes = tree::policy::registry().len() as u64;
    let stride = (DEVICE_STRIDE / scaled(1)).max(1);
    for (index, kind) in (0..).zip(&KINDS) {
        for scheme in 0..schemes {
            // Each scheme stops at other requests, and on each device at others again.
            let seed = (index * schemes + scheme) * (schemes + 1);
            if is_left_out(seed) {
                continue;
            }
            let config = Config::draw(seed);
            let counts = sweep_device(kind, &config, seed, stride, 50);
            images.add(config.scheme, kind.name, counts.images);
            sum.points += counts.points;
            sum.images += counts.images;
            sum.nested += counts.nested;
            sum.gone_on += counts.gone_on;
        }
    }
    println!("{sum:?}");
    images.finish("images", KINDS.iter().map(|kind| kind.name), 4);
}

#[test]
fn power_lost_at_every_single_request_of_a_short_history_on_each_device() {
    for (seed, kind) in (1000..).zip(&KINDS) {
        if is_left_out(seed) {
            continue;
        }
        let config = Config::draw(seed);
        let counts = sweep_device(kind, &config, seed, 1, 8);
        println!("{}, {}: {counts:?}", kind.name, config.scheme);
        assert!(counts.images >= counts.points, "{}: {counts:?}", kind.name);
    }
}

#[test]
fn a_process_dies_on_each_device_and_then_power_is_lost_in_recovery() {
    for (seed, kind) in (100..).zip(&KINDS) {
        if is_left_out(seed) {
            continue;
        }
        let config = Config::draw(seed);
        println!("{}, {}", kind.name, config.scheme);
        orphaned(&Direct::new(kind), &config, seed, (12, 8, 3)).unwrap_or_else(|failure| {
            panic!("{}: {} {config:?}", kind.name, replay("a_process_dies", seed, &failure))
        });
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
