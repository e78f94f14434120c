//! A trace as a phase: `do = "replay"`, and `trace` names a file in any format that `lab trace`
//! reads, in the working directory.
//!
//! - `load = true` puts the keys that were there before the trace began, in the order of hashes.
//!   Otherwise the operations of the trace are done one after another, at `rate` where it is set.
//! - A scale that shrinks data takes a share of the keys, with all operations on them: a key takes
//!   part by its hash (Waldspurger et al., SHARDS, FAST 2015). Values shrink as all others do.
//! - `count` ends it after this number of operations of the whole trace.
//!
//! A line that is no operation is an error: what is measured has to be the whole trace.

use super::machine::Machine;
use crate::experiment::Phase;
use crate::settings::Settings;
use base::checksum::hash64;
use base::{Error, Result};
use std::collections::HashSet;
use std::path::Path;
use workloads::trace::{Kind, Operation, Player, Replay, TraceFile};
use workloads::{Record, WriteOptions};

/// Runs the phase.
pub fn replay(machine: &Machine, settings: &Settings, seed: u64) -> Result<Record> {
    let write_options = WriteOptions { sync: false, disable_wal: settings.is_on("no_wal") };
    let clock = machine.clock();
    let replay = Replay { seed, rate: settings.rate()?, write_options };
    let mut player = Player::new(machine.watched(), &clock, replay)?;
    let value_bytes = |operation: &Operation<'_>| match operation.value_bytes {
        Some(bytes) => Ok(settings.scale().value_bytes(bytes as f64)),
        None => settings.value_bytes(),
    };
    if settings.is_on("load") {
        for (key, key_bytes, bytes) in old_keys(settings, &value_bytes)? {
            let put = Operation::new(None, Kind::Put, &key);
            player.apply(&Operation { key_bytes, ..put }, bytes)?;
        }
    } else {
        each(settings, &mut |operation| player.apply(operation, value_bytes(operation)?))?;
    }
    player.finish()
}

/// Keys that were there before the trace began, in the order of their hashes, with the bytes that
/// they and their values have.
fn old_keys(
    settings: &Settings,
    value_bytes: &dyn Fn(&Operation<'_>) -> Result<usize>,
) -> Result<Vec<(Vec<u8>, u64, usize)>> {
    let (mut seen, mut old) = (HashSet::new(), Vec::new());
    each(settings, &mut |operation| {
        let hash = hash64(operation.key);
        let is_of_key = !matches!(operation.kind, Kind::Scan | Kind::DeleteRange);
        if is_of_key && seen.insert(hash) && operation.is_of_old_key() {
            let bytes = value_bytes(operation)?;
            old.push((hash, (operation.key.to_vec(), operation.key_bytes, bytes)));
        }
        Ok(())
    })?;
    old.sort_unstable();
    Ok(old.into_iter().map(|(_, entry)| entry).collect())
}

/// Gives `visit` the operations of the trace that take part, until it fails.
fn each(settings: &Settings, visit: &mut dyn FnMut(&Operation<'_>) -> Result<()>) -> Result<()> {
    let count = settings.get("count").map(|_| settings.number("count", 0.0)).transpose()?;
    let mut left = count.unwrap_or(f64::INFINITY);
    // Of all hashes, those up to here take part.
    let hash_max = (settings.scale().data.clamp(0.0, 1.0) * u64::MAX as f64) as u64;
    let mut done = Ok(());
    let mut take = |operation: &Operation<'_>| {
        if left < 1.0 || done.is_err() {
            return;
        }
        left -= 1.0;
        if hash64(operation.key) <= hash_max {
            done = visit(operation);
        }
    };
    let read = file(settings)?.each(&mut take);
    done.and(read)
}

fn file(settings: &Settings) -> Result<TraceFile<'_>> {
    let path = settings.get("trace").map(Path::new).map(TraceFile::new);
    path.ok_or_else(|| Error::invalid("a phase that replays names no `trace`"))
}

/// What tells one state of a phase's trace from another.
pub fn identity(settings: &Settings, phase: &Phase) -> Option<String> {
    let settings = settings.with(&phase.settings).ok()?;
    settings.get("trace")?;
    Some(format!(" {}", file(&settings).ok()?.state()))
}

/// About the operations that the phase does: as many as its `count`, or as fit in its file.
pub fn operations(settings: &Settings) -> Result<u64> {
    const LINE_BYTES: u64 = 50;
    let all = match settings.get("count") {
        Some(_) => settings.number("count", 0.0)?,
        None => (file(settings)?.bytes() / LINE_BYTES) as f64,
    };
    Ok((all * settings.scale().data) as u64)
}
