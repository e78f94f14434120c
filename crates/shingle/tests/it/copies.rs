//! What stands beside a database in a history: a directory of backups, and a follower.

use crate::archive::keep_last;
use crate::config::Config;
use crate::model::{Found, Model, SLOTS};
use crate::run::{Failure, Outcome, Runner, read_all, wrong};
use media::FileStore;
use shingle::{Backups, Follower};
use std::sync::Arc;

/// The backups and the follower of a database.
#[derive(Default)]
pub struct Copies {
    /// The directory of backups.
    pub backups: Option<Arc<dyn FileStore>>,
    /// The store to follow.
    pub followed: Option<Arc<dyn FileStore>>,
    follower: Option<Follower>,
    pub counts: CopyCounts,
}

/// What was done with copies.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyCounts {
    pub backups: u64,
    /// Generations that a pruning removed.
    pub pruned: u64,
    pub catch_ups: u64,
}

impl Copies {
    pub fn of(backups: Option<Arc<dyn FileStore>>, followed: Option<Arc<dyn FileStore>>) -> Copies {
        Copies { backups, followed, ..Copies::default() }
    }
}

impl Runner {
    /// Backups may be taken while others write: no value is missing that was committed before.
    pub fn back_up(&mut self) -> Outcome {
        let Some(store) = self.copies.backups.clone() else { return Ok(()) };
        let before = self.model.lock().now();
        self.model.lock().begin_backup();
        let backup = Backups::open_store(store)?.create(&self.db, &mut |_| ())?;
        let mut model = self.model.lock();
        model.end_backup(backup.number);
        model.flushed(before);
        self.copies.counts.backups += 1;
        Ok(())
    }

    pub fn prune(&mut self, count: usize) -> Outcome {
        let Some(store) = self.copies.backups.clone() else { return Ok(()) };
        let expected = self.model.lock().begin_prune(count);
        let pruned = Backups::open_store(store)?.prune(&keep_last(count))?;
        self.model.lock().end_prune();
        if pruned.backups != expected {
            return wrong(format!("{:?} were pruned, not {expected:?}", pruned.backups));
        }
        self.copies.counts.pruned += expected.len() as u64;
        Ok(())
    }

    /// The follower, which the first call opens, shows all that is in the log.
    pub fn catch_up(&mut self) -> Outcome {
        let Some(store) = self.copies.followed.clone() else { return Ok(()) };
        if self.copies.follower.is_none() {
            self.copies.follower = Some(follow(&self.config, store)?);
        }
        if let Some(follower) = &self.copies.follower {
            // A record that is read wrongly looks like one that is being written: the next call
            // reads it again.
            follower.catch_up()?;
            follower.catch_up()?;
            shown(&self.model.lock(), follower)?;
        }
        self.copies.counts.catch_ups += 1;
        Ok(())
    }
}

/// Follows the database in `store`.
pub fn follow(config: &Config, store: Arc<dyn FileStore>) -> shingle::Result<Follower> {
    config.options().follow_in(store, config.runtime())
}

/// The follower shows all that is in the log, and of the rest a prefix.
pub fn shown(model: &Model, follower: &Follower) -> Result<Found, Failure> {
    let found = read_all(&follower.db())?;
    model.recover(&found).map_err(Failure::Wrong)?;
    for (slot, contents) in found.iter().filter(|(slot, _)| !SLOTS[**slot].without_wal) {
        let current = model.living(*slot).map(|life| life.fingerprint(model.now()));
        if current != Some(contents.fingerprint) {
            return Err(Failure::Wrong(format!("{} lags behind", SLOTS[*slot].name)));
        }
    }
    Ok(found)
}
