//! Every operation of a store fails in turn, once and for good, in every way. What the caller is
//! told is true, reads go on, and the next opening finds a prefix.

use crate::archive::Depth;
use crate::config::Config;
use crate::copies::Copies;
use crate::history::{Generator, Profile, Step};
use crate::medium::{Direct, KINDS, Medium, Pair};
use crate::mirror;
use crate::model::{Found, Model, Op, Prefix};
use crate::run::{Failure, Outcome, Runner, read_all, replay, wrong};
use crate::volume::{ByCell, scaled, seeds_for_cells, seeds_for_schemes};
use base::random::Random;
use media::faulty::{Effect, Fault, FaultPlan, FaultyStore, Filter, Operation};
use media::mem::{MemStore, Personality};
use media::{FileName, FileStore};
use parking_lot::Mutex;
use shingle::{Durability, ErrorKind, WriteOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A medium that fails as planned, and then loses power.
pub trait Failing: Medium {
    fn new() -> Self;

    /// Drops the bytes that are not yet safe after a failed sync of `name`.
    fn drop_pending(&self, name: FileName);

    fn image(&self, random: &mut Random, personality: Personality) -> Self;
}

impl Failing for MemStore {
    fn new() -> MemStore {
        MemStore::new(Arc::default())
    }
    fn drop_pending(&self, name: FileName) {
        MemStore::drop_pending(self, name);
    }
    fn image(&self, random: &mut Random, personality: Personality) -> MemStore {
        self.crash_image(random, personality)
    }
}

impl Failing for Pair {
    fn new() -> Pair {
        Pair::new()
    }
    fn drop_pending(&self, name: FileName) {
        self.first.drop_pending(name);
        self.cold.drop_pending(name);
    }
    fn image(&self, random: &mut Random, personality: Personality) -> Pair {
        self.lose(random, personality, personality)
    }
}

pub fn faulty<M: Failing>(
    medium: &M,
    plan: &Arc<FaultPlan>,
) -> shingle::Result<Arc<dyn FileStore>> {
    let below = medium.clone();
    let store = FaultyStore::new(medium.store()?, plan.clone());
    Ok(Arc::new(store.on_failed_sync(Box::new(move |name| below.drop_pending(name)))))
}

pub fn tiny() -> Profile {
    Profile {
        steps: 60,
        keys: 40,
        value_bytes_max: 3000,
        move_odds: 9,
        range_odds: 0,
        expiry_odds: 0,
        ingest_odds: 15,
        copy_odds: 12,
        reopens: false,
        reads: false,
    }
}

/// The results of runs with one fault each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    runs: u64,
    pub struck: u64,
    refused: u64,
    poisoned: u64,
}

/// Runs the history over a store that fails as planned. Errors end it; wrong answers fail the test.
pub fn run_with<M: Failing>(
    config: &Config,
    steps: &[Step],
    plan: &Arc<FaultPlan>,
    seed: u64,
    counts: &mut Counts,
) -> Outcome {
    let (medium, backups) = (M::new(), <MemStore as Failing>::new());
    let model = Arc::new(Mutex::new(Model::new()));
    counts.runs += 1;
    let outcome = (|| -> Outcome {
        let store = faulty(&medium, plan)?;
        let mut runner = Runner::open(config, store.clone(), model.clone(), seed)?;
        runner.copies = Copies::of(Some(faulty(&backups, plan)?), Some(store));
        let outcome = runner.run(steps);
        if let Err(Failure::Error(error)) = &outcome {
            if plan.failures() == 0 {
                return wrong(format!("an error without a fault: {error}"));
            }
            plan.clear();
            after_error(&runner, counts)?;
        }
        outcome?;
        runner.close()
    })();
    counts.struck += u64::from(plan.failures() > 0);
    match outcome {
        Ok(()) => {}
        Err(Failure::Error(_)) if plan.failures() > 0 => counts.refused += 1,
        Err(Failure::Error(error)) => return wrong(format!("an error without a fault: {error}")),
        Err(failure) => return Err(failure),
    }
    // A backup stores what it reads.
    let depth = if plan.flips_bits() { Depth::Lists } else { Depth::Restores };
    plan.clear();
    let model = model.lock().clone();
    let config = &config.at(&model);
    let mut random = Random::new(seed);
    let all = [Personality::KeepAll, Personality::LoseUnsynced, Personality::Subset];
    for personality in all {
        let image = medium.image(&mut random, personality);
        let found = match config.open(image.store()?) {
            Ok(db) => read_all(&db)?,
            Err(error) => return wrong(format!("{personality:?} does not open: {error}")),
        };
        if let Err(problem) = model.recover(&found) {
            return wrong(format!("{personality:?}: {problem}"));
        }
        let again: Found = read_all(&config.open(image.store()?)?)?;
        if found.iter().any(|(slot, one)| again[slot].fingerprint != one.fingerprint) {
            return wrong("the second opening found another state");
        }
        let directory: Arc<dyn FileStore> = Arc::new(backups.image(&mut random, personality));
        model.clone().check_archive(config, directory, depth)?;
    }
    Ok(())
}

/// After an error reads go on, and writes are accepted, or refused for good.
fn after_error(runner: &Runner, counts: &mut Counts) -> Outcome {
    let found = read_all(&runner.db)?;
    let model = runner.model.lock().clone();
    let mut optional = model.clone();
    optional.safe(Prefix::Logged, model.now().saturating_sub(1));
    optional.safe(Prefix::Unlogged, model.now().saturating_sub(1));
    let is_applied = match optional.recover(&found) {
        Ok(recovered) => recovered.logged.min(recovered.unlogged) == model.now(),
        Err(problem) => return wrong(format!("reads after an error: {problem}")),
    };
    match runner.db.put("after", "the error") {
        Ok(()) => {
            // Neither poisoned nor visible: it was refused.
            if !is_applied {
                runner.model.lock().undo_commit();
            }
            let put = (0, Op::Put(b"after".to_vec(), b"the error".as_slice().into()));
            runner.model.lock().commit(&[put]);
        }
        Err(error) if error.kind() == ErrorKind::Poisoned => counts.poisoned += 1,
        Err(error) => return wrong(format!("a write after the fault went: {error}")),
    }
    Ok(())
}

#[test]
fn every_operation_fails_in_its_turn() {
    let (mut counts, mut faults) = (Counts::default(), ByCell::default());
    let seeds = seeds_for_cells(3);
    let faults_wanted = scaled(750 / seeds.len() as u64).max(1);
    for seed in seeds {
        let config = Config::draw(seed);
        let steps = Generator::new(seed, tiny().sometimes_expiring(seed)).steps();
        let clean = Arc::new(FaultPlan::default());
        let struck = counts.struck;
        run_with::<MemStore>(&config, &steps, &clean, seed, &mut counts)
            .unwrap_or_else(|failure| panic!("{}", replay("every_operation", seed, &failure)));
        for (effect, is_sticky) in [
            (Effect::Io, false),
            (Effect::Io, true),
            (Effect::NoSpace, false),
            (Effect::NoSpace, true),
            (Effect::IoHalfDone, false),
            (Effect::IoDone, false),
            (Effect::ShortRead, false),
            (Effect::FlippedBit, false),
        ] {
            let filter = match effect {
                Effect::ShortRead | Effect::FlippedBit => {
                    Filter { operation: Some(Operation::Read), kind: None }
                }
                _ => Filter::default(),
            };
            let total = clean.count(filter);
            let stride = (total / faults_wanted).max(1);
            for after in (seed % stride..total).step_by(stride as usize) {
                let plan = FaultPlan::with(Fault { filter, after, is_sticky, effect });
                let outcome = run_with::<MemStore>(&config, &steps, &plan, seed, &mut counts);
                outcome.unwrap_or_else(|failure| {
                    let fault = format!("{effect:?} sticky {is_sticky} after {after}");
                    panic!("{fault}: {} {config:?}", replay("every_operation", seed, &failure))
                });
            }
        }
        faults.add(&config, counts.struck - struck);
    }
    println!("{counts:?}");
    faults.finish("faults", 60);
    assert!(std::env::var("SHINGLE_TEST_SEED").is_ok() || counts.poisoned > 0);
}

/// A medium that can refuse a sync, and forget what it should have written.
trait Forgetting: Medium {
    fn empty(seed: u64) -> Self;

    /// The store on it, whose sync number `after` fails; and a count of the syncs.
    fn forgetting(&self, after: u64) -> shingle::Result<(Arc<dyn FileStore>, Count)>;
}

type Count = Box<dyn Fn() -> u64>;

/// A problem that was found while another thread observed.
type Problem = Arc<Mutex<Option<String>>>;

impl<M: Failing> Forgetting for M {
    fn empty(_seed: u64) -> M {
        M::new()
    }
    fn forgetting(&self, after: u64) -> shingle::Result<(Arc<dyn FileStore>, Count)> {
        let filter = Filter { operation: Some(Operation::Sync), kind: None };
        let fault = Fault { filter, after, is_sticky: false, effect: Effect::Io };
        let plan = FaultPlan::with(fault);
        let store = faulty(self, &plan)?;
        Ok((store, Box::new(move || plan.count(filter))))
    }
}

impl Forgetting for Direct {
    /// On a device without zones.
    fn empty(seed: u64) -> Direct {
        Direct::new(&KINDS[seed as usize % 3])
    }
    fn forgetting(&self, after: u64) -> shingle::Result<(Arc<dyn FileStore>, Count)> {
        let before = self.device.flushes();
        self.device.fail_flush_after(after);
        let device = self.device.clone();
        Ok((self.store()?, Box::new(move || device.flushes() - before)))
    }
}

/// One sync of a history fails, and the process dies. The next process finds what the system still
/// has in memory. Power loss does not take back what that process finds and promises.
fn forgets<M: Forgetting>(
    config: &Config,
    steps: &[Step],
    seed: u64,
    after: u64,
) -> Result<u64, Failure> {
    let medium = M::empty(seed);
    let (store, count) = medium.forgetting(after)?;
    let model = Arc::new(Mutex::new(Model::new()));
    let run = || -> Outcome {
        let mut runner = Runner::open(config, store, model.clone(), seed)?;
        runner.run(steps)?;
        runner.close()
    };
    match { run }() {
        Ok(()) => {}
        Err(Failure::Error(_)) if count() > after => {}
        Err(failure) => return Err(failure),
    }
    if count() <= after {
        return Ok(count());
    }
    // The page cache outlives the process.
    let config = &config.at(&model.lock());
    let (store, problem) = recovering(config, &medium, &model.lock().clone())?;
    let db = config.open(store)?;
    let found = read_all(&db)?;
    problem.lock().take().map_or(Ok(()), wrong)?;
    let recovered = model.lock().recover(&found).map_err(Failure::Wrong)?;
    let kept = medium.without_unsynced();
    let again = read_all(&config.open(kept.store()?)?)?;
    if found.iter().any(|(slot, one)| again[slot].fingerprint != one.fingerprint) {
        return Err(Failure::Wrong("what an opening found was lost with the power".into()));
    }
    drop(db);
    model.lock().go_on_from(recovered);
    let mut runner = Runner::open(config, medium.store()?, model.clone(), seed)?;
    let profile = Profile { steps: 12, ..tiny() }.sometimes_expiring(seed);
    let more = Generator::new(seed + 1, profile).steps();
    runner.run(&more)?;
    match after % 2 {
        0 => runner.step(&Step::Sync)?,
        _ => runner.close()?,
    }
    let db = runner.config.open(medium.without_unsynced().store()?)?;
    let found = read_all(&db)?;
    model.lock().recover(&found).map_err(Failure::Wrong)?;
    mirror::check(&runner.config, &db, &found, 0)?;
    let report = db.check(&mut |_| {})?;
    if !report.is_clean() {
        return Err(Failure::Wrong(format!("the check found {:?}", report.problems)));
    }
    Ok(count())
}

/// The store that the next process opens. Power is lost at many operations of its recovery: at the
/// first ones, and at one in five. Reports problems found then.
fn recovering<M: Medium>(
    config: &Config,
    medium: &M,
    model: &Model,
) -> shingle::Result<(Arc<dyn FileStore>, Problem)> {
    let problem = Arc::new(Mutex::new(None));
    let (told, config, operations) = (problem.clone(), config.clone(), AtomicU64::new(0));
    let model = model.clone();
    let hook = move |medium: &M| {
        let at = operations.fetch_add(1, Relaxed);
        if told.lock().is_some() || (at > 8 && !at.is_multiple_of(5)) {
            return;
        }
        let look = || -> Outcome {
            let image = medium.without_unsynced();
            let db = config.open(image.store()?)?;
            let found = read_all(&db)?;
            model.clone().recover(&found).map_err(Failure::Wrong)?;
            mirror::check(&config, &db, &found, 0)
        };
        if let Err(failure) = look() {
            *told.lock() = Some(format!("power lost in the recovery, at {at}: {failure:?}"));
        }
    };
    Ok((medium.store_calling(Arc::new(hook))?, problem))
}

fn forget_in_turn<M: Forgetting>(seeds: impl Iterator<Item = u64>, wanted: u64, store: &str) {
    let mut runs = 0;
    for seed in seeds {
        let config = Config::draw(seed);
        let profile = Profile { steps: 40, ..tiny() }.sometimes_expiring(seed);
        let steps = Generator::new(seed, profile).steps();
        let told = |after: u64, failure: Failure| -> u64 {
            let line = replay("what_a_failed_sync", seed, &failure);
            panic!("{store}, sync {after}: {line} {config:?}")
        };
        let total = forgets::<M>(&config, &steps, seed, u64::MAX / 2)
            .unwrap_or_else(|failure| told(0, failure));
        let stride = (total / wanted).max(1);
        // The first ones are those of opening: metadata that nothing older stands in for.
        let later = (4 + seed % stride..total).step_by(stride as usize);
        for after in (0..4.min(total)).chain(later) {
            forgets::<M>(&config, &steps, seed, after)
                .unwrap_or_else(|failure| told(after, failure));
            runs += 1;
        }
    }
    println!("{runs} failed syncs on {store}");
}

#[test]
fn what_a_failed_sync_dropped_is_written_anew_by_the_next_process() {
    let seeds = seeds_for_cells(1);
    let wanted = scaled(8).max(1);
    forget_in_turn::<MemStore>(seeds.clone().into_iter(), wanted, "files");
    let wanted = scaled(3).max(1);
    forget_in_turn::<Pair>(seeds.clone().into_iter(), wanted, "a pair");
    forget_in_turn::<Direct>(seeds.into_iter().step_by(2), wanted, "direct storage");
}

#[test]
fn a_full_medium_goes_on_when_space_returns() {
    for seed in seeds_for_schemes(12) {
        let config = Config::draw(seed);
        let profile = Profile { steps: 150, ..tiny() }.sometimes_expiring(seed);
        let steps = Generator::new(seed, profile).steps();
        let store = MemStore::new(Arc::default());
        let model = Arc::new(Mutex::new(Model::new()));
        let outcome = (|| -> Outcome {
            let mut runner = Runner::open(&config, Arc::new(store.clone()), model.clone(), seed)?;
            runner.run(&steps[..100])?;
            store.set_capacity_bytes(Some(store.raw_write_bytes() / 3 + 200));
            let full = runner.run(&steps[100..]);
            store.set_capacity_bytes(None);
            match full {
                Err(Failure::Error(error)) if error.kind() == ErrorKind::NoSpace => {}
                Err(Failure::Error(error)) if error.kind() == ErrorKind::Poisoned => {}
                // The medium took the logs that were kept for feeds.
                Err(Failure::Error(error))
                    if config.keeps_changes && error.kind() == ErrorKind::TooLate => {}
                other => other?,
            }
            let found = read_all(&runner.db)?;
            let recovered = model.lock().recover(&found).map_err(Failure::Wrong)?;
            match runner.db.put("room", "again") {
                Ok(()) => {
                    if recovered.logged.min(recovered.unlogged) < model.lock().now() {
                        model.lock().undo_commit();
                    }
                    let put = (0, Op::Put(b"room".to_vec(), b"again".as_slice().into()));
                    model.lock().commit(&[put]);
                    runner.db.flush()?;
                }
                Err(error) if error.kind() == ErrorKind::Poisoned => {}
                Err(error) => return Err(error.into()),
            }
            let _ = runner.close();
            let found = read_all(&runner.config.open(Arc::new(store.clone()))?)?;
            model.lock().recover(&found).map(drop).map_err(Failure::Wrong)
        })();
        outcome.unwrap_or_else(|failure| {
            panic!("{} {config:?}", replay("a_full_medium", seed, &failure))
        });
    }
}

#[test]
fn a_failed_log_or_manifest_poisons_and_reads_go_on() {
    use media::FileKind::{Manifest, Wal};
    for (operation, kind) in [
        (Operation::Append, Wal),
        (Operation::Sync, Wal),
        (Operation::Append, Manifest),
        (Operation::Sync, Manifest),
    ] {
        let config = Config::draw(3);
        let store = MemStore::new(Arc::default());
        let plan = Arc::new(FaultPlan::default());
        let db = config.open(faulty(&store, &plan).unwrap()).unwrap();
        db.put("safe", "1").unwrap();
        db.flush().unwrap();
        let filter = Filter { operation: Some(operation), kind: Some(kind) };
        plan.add(Fault { filter, after: 0, is_sticky: false, effect: Effect::Io });
        let synced = WriteOptions { durability: Some(Durability::Synced), wait: true };
        let mut batch = shingle::WriteBatch::new();
        batch.put("lost", "2").unwrap();
        let written = db.write(batch, &synced).and_then(|()| db.flush());
        assert!(written.is_err(), "{operation:?} of {kind:?} failed in silence");
        assert_eq!(db.put("later", "3").unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(db.sync().unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(db.get("safe").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(db.iter().filter(|pair| pair.is_err()).count(), 0);
        drop(db);
        let db = config.open(Arc::new(store)).unwrap();
        assert_eq!(db.get("safe").unwrap().as_deref(), Some(&b"1"[..]));
        db.put("later", "3").unwrap();
    }
}
