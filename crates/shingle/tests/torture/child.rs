//! The process that is killed. Two writers read back what they wrote. A tormentor makes calls and
//! syncs fail, fills the disk, and takes checkpoints. The process reports over its output.

use crate::medium::{Quota, Tell};
use crate::model::{Model, Op, Space, batch, is_file, last_key};
use crate::{Plan, Torment, WRITERS};
use base::random::Random;
use media::faulty::{Effect, Fault, FaultPlan, FaultyStore, Filter, Operation};
use media::{FileKind, FileStore};
use shingle::{
    Db, Durability, ErrorKind, Expiry, IngestOptions, Keyspace, KeyspaceOptions, Options,
    SortedFileOptions, SortedFileWriter, WriteBatch, WriteOptions,
};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// After the test.
const LATER: Expiry = Expiry::from_millis(4_000_000_000_000);

/// Small limits, so that everything happens often.
pub fn options(plan: &Plan) -> Options {
    let preset =
        if plan.scheme == "leveldb" { shingle::Preset::LevelDb } else { shingle::Preset::Modern };
    Options::new()
        .preset(preset)
        .scheme(&plan.scheme)
        .values(&plan.layout)
        .value_threshold_bytes(200)
        .write_buffer_bytes(64 << 10)
        .memory_bytes(4 << 20)
        .background_threads(2)
        .expert(|e| {
            e.memtable_bytes = Some(32 << 10);
            e.scheme.table_bytes_max = Some(16 << 10);
            e.scheme.level_bytes_base = Some(64 << 10);
            e.scheme.fan_out = Some(4.0);
            e.step_bytes = Some(4096);
            e.values.segment_bytes = Some(32 << 10);
            e.values.log_segment_bytes = Some(8 << 10);
        })
}

struct Shared {
    db: Db,
    appended: Keyspace,
    plan: Arc<FaultPlan>,
    quota: Quota,
    tell: Tell,
    acknowledged: [AtomicU64; WRITERS as usize],
    writers_left: AtomicU64,
    stop: AtomicBool,
}

/// Runs until it is killed, or until no writer can continue.
pub fn run(plan: &Plan, directory: &Path) {
    let tell: Tell = Arc::new(|line| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "~ {line}").and_then(|()| out.flush()).unwrap();
    });
    match open(plan, directory, &tell) {
        Ok(shared) => torment_and_write(plan, directory, Arc::new(shared)),
        Err(error) => tell(format!("unopened {error}")),
    }
}

fn open(plan: &Plan, directory: &Path, tell: &Tell) -> shingle::Result<Shared> {
    let store = options(plan).directory(directory, Arc::default())?;
    let quota = Quota::new(store, tell.clone())?;
    let faults = Arc::new(FaultPlan::default());
    let lost = quota.clone();
    let faulty = FaultyStore::new(Arc::new(quota.clone()), faults.clone())
        .on_failed_sync(Box::new(move |name| lost.lose_unsynced(name)));
    if plan.torment == Torment::Opening {
        let mut random = Random::new(plan.seed);
        faults.add(fault(&mut random, 60));
        if random.one_in(3) {
            quota.allow(Some(random.below(100_000)));
        }
    }
    let db = options(plan).open_store(Arc::new(faulty) as Arc<dyn FileStore>)?;
    let appended = match db.keyspace("appended") {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let merge_operator = Some("append".into());
            let options = KeyspaceOptions { merge_operator, ..KeyspaceOptions::default() };
            db.create_keyspace("appended", options)?
        }
        found => found?,
    };
    faults.clear();
    quota.allow(None);
    Ok(Shared {
        db,
        appended,
        plan: faults,
        quota,
        tell: tell.clone(),
        acknowledged: Default::default(),
        writers_left: AtomicU64::new(WRITERS),
        stop: AtomicBool::new(false),
    })
}

fn torment_and_write(plan: &Plan, directory: &Path, shared: Arc<Shared>) {
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let shared = &*shared;
            scope.spawn(move || {
                if let Err(error) = write(shared, writer, plan.seed, directory) {
                    (shared.tell)(format!("stopped {writer} {error}"));
                }
                shared.writers_left.fetch_sub(1, Ordering::Relaxed);
            });
        }
        torment(plan, directory, &shared);
        shared.stop.store(true, Ordering::Relaxed);
    });
}

fn to_batch(shared: &Shared, ops: &[Op]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for op in ops {
        let added = match op {
            Op::Put(Space::Default, key, value) => batch.put(key, value),
            Op::Put(Space::Appended, key, value) => batch.put_in(&shared.appended, key, value),
            Op::PutExpiring { space, key, value, is_over } => {
                let expiry = if *is_over { Expiry::from_millis(1) } else { LATER };
                match space {
                    Space::Default => batch.put_expiring(key, value, expiry),
                    Space::Appended => batch.put_expiring_in(&shared.appended, key, value, expiry),
                }
            }
            Op::Delete(Space::Default, key) => batch.delete(key),
            Op::Delete(Space::Appended, key) => batch.delete_in(&shared.appended, key),
            Op::DeleteRange(start, end) => batch.delete_range(start, end),
            Op::Append(key, operand) => batch.merge_in(&shared.appended, key, operand),
        };
        added.unwrap();
    }
    batch
}

/// Writes the operations to a sorted file beside the database, and ingests it.
fn ingest(shared: &Shared, writer: u64, ops: &[Op], directory: &Path) -> shingle::Result<()> {
    let path = directory.with_extension(format!("sorted-{writer}"));
    // A process that was killed may have left one.
    let _ = std::fs::remove_file(&path);
    let mut file = SortedFileWriter::create(&path, &SortedFileOptions::default())?;
    for op in ops {
        match op {
            Op::Put(_, key, value) => file.put(key, value)?,
            Op::PutExpiring { key, value, is_over, .. } => {
                let expiry = if *is_over { Expiry::from_millis(1) } else { LATER };
                file.put_expiring(key, value, expiry)?;
            }
            Op::Delete(_, key) => file.delete(key)?,
            Op::DeleteRange(start, end) => file.delete_range(start, end)?,
            Op::Append(..) => {}
        }
    }
    file.finish()?;
    let options = IngestOptions { move_files: true, ..IngestOptions::default() };
    let done = shared.db.ingest(&[&path], &options).map(drop);
    if done.is_ok() {
        (shared.tell)("ingested".to_string());
    }
    done
}

fn last(shared: &Shared, writer: u64) -> shingle::Result<u64> {
    let found = shared.db.get(last_key(writer))?;
    Ok(found.map_or(0, |bytes| u64::from_le_bytes(bytes[..].try_into().unwrap())))
}

/// Writes batch after batch, and reads keys at random in between. An error ends it, except for a
/// full medium: then it reports whether the batch is there, and tries again.
fn write(shared: &Shared, writer: u64, seed: u64, directory: &Path) -> shingle::Result<()> {
    let mut random = Random::new(seed ^ writer);
    let mut model = Model::default();
    model.advance(writer, last(shared, writer)?);
    while !shared.stop.load(Ordering::Relaxed) {
        let number = model.last + 1;
        let ops = batch(writer, number);
        // What is ingested is durable.
        let is_synced = number % 16 == 0 || is_file(number);
        let durability = is_synced.then_some(Durability::Synced);
        let options = WriteOptions { durability, wait: true };
        let written = match is_file(number) {
            true => ingest(shared, writer, &ops, directory),
            false => shared.db.write(to_batch(shared, &ops), &options),
        };
        match written {
            Ok(()) => acknowledge(shared, writer, number, is_synced),
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                (shared.tell)("full".to_string());
                std::thread::sleep(Duration::from_millis(2));
                if last(shared, writer)? != number {
                    continue;
                }
            }
            Err(error) => return Err(error),
        }
        model.advance(writer, number);
        for _ in 0..3 {
            let (space, key) = Model::some_key(writer, &mut random);
            compare(shared, &model, space, &key)?;
        }
    }
    Ok(())
}

fn acknowledge(shared: &Shared, writer: u64, number: u64, is_synced: bool) {
    shared.acknowledged[writer as usize].store(number, Ordering::SeqCst);
    let word = if is_synced { "synced" } else { "written" };
    (shared.tell)(format!("{word} {writer} {number}"));
}

/// A failed read says nothing about the key and is not a wrong answer.
fn compare(shared: &Shared, model: &Model, space: Space, key: &[u8]) -> shingle::Result<()> {
    let found = match space {
        Space::Default => shared.db.get(key),
        Space::Appended => shared.appended.get(key),
    };
    let Ok(found) = found else { return Ok(()) };
    let wanted = model.get(space, key);
    if found.as_deref() != wanted {
        let show = |value: Option<&[u8]>| value.map(|v| (v.len(), v[..v.len().min(16)].to_vec()));
        (shared.tell)(format!(
            "wrong after batch {}: {space:?} {} is {:?} instead of {:?}",
            model.last,
            base::key::display_key(key),
            show(found.as_deref()),
            show(wanted)
        ));
    }
    Ok(())
}

/// A failure of a later mutating call.
fn fault(random: &mut Random, after_max: u64) -> Fault {
    let operations = [
        Operation::Create,
        Operation::Append,
        Operation::Append,
        Operation::Sync,
        Operation::SyncNames,
        Operation::SetRoot,
        Operation::Remove,
        Operation::Extend,
        Operation::Open,
        Operation::Read,
    ];
    let kinds = [FileKind::Table, FileKind::Wal, FileKind::Manifest, FileKind::Value];
    let operation = operations[random.below(operations.len() as u64) as usize];
    let is_of_file = !matches!(operation, Operation::SyncNames | Operation::SetRoot);
    let kind =
        (is_of_file && random.one_in(2)).then(|| kinds[random.below(kinds.len() as u64) as usize]);
    let effects = [Effect::Io, Effect::NoSpace, Effect::IoHalfDone, Effect::IoDone];
    let effect = match operation {
        Operation::Open | Operation::Read => Effect::Io,
        _ => effects[random.below(effects.len() as u64) as usize],
    };
    Fault {
        filter: Filter { operation: Some(operation), kind },
        after: random.below(after_max),
        is_sticky: random.one_in(3),
        effect,
    }
}

fn failed_sync(random: &mut Random) -> Fault {
    let kinds = [FileKind::Table, FileKind::Wal, FileKind::Manifest, FileKind::Value];
    let kind = Some(kinds[random.below(kinds.len() as u64) as usize]);
    let filter = Filter { operation: Some(Operation::Sync), kind };
    Fault { filter, after: random.below(20), is_sticky: false, effect: Effect::Io }
}

/// Causes failures until the process is killed, or no writer is left.
fn torment(plan: &Plan, directory: &Path, shared: &Shared) {
    let mut random = Random::new(plan.seed ^ 0x7075);
    let mut checkpoints = 0;
    while shared.writers_left.load(Ordering::Relaxed) > 0 {
        std::thread::sleep(Duration::from_millis(5 + random.below(40)));
        match plan.torment {
            Torment::Kill => {}
            Torment::Calls => shared.plan.add(fault(&mut random, 100)),
            Torment::Syncs => shared.plan.add(failed_sync(&mut random)),
            Torment::Full => shared.quota.allow(Some(random.below(60_000))),
            Torment::Opening => {}
        }
        if random.one_in(6) && checkpoints < 2 {
            checkpoints += 1;
            checkpoint(directory, shared, checkpoints);
        }
        let _ = match random.below(12) {
            0 => shared.db.flush(),
            1 => shared.db.compact(),
            _ => Ok(()),
        };
        std::thread::sleep(Duration::from_millis(random.below(60)));
        shared.plan.clear();
        shared.quota.allow(None);
        (shared.tell)(format!("struck {}", shared.plan.failures()));
    }
}

/// A checkpoint, and what was acknowledged before it.
fn checkpoint(directory: &Path, shared: &Shared, number: u64) {
    let before: Vec<String> = shared
        .acknowledged
        .iter()
        .map(|number| number.load(Ordering::SeqCst).to_string())
        .collect();
    let target = directory.with_extension(format!("checkpoint-{number}"));
    if shared.db.checkpoint(&target).is_ok() {
        (shared.tell)(format!("checkpoint {number} {}", before.join(" ")));
    }
}
