//! The model of a directory of backups: which generations a crash must, may and must not leave, and
//! what each holds.

use crate::config::Config;
use crate::model::{Incarnation, Model, SLOTS};
use crate::run::{Failure, Outcome, read_all, wrong};
use media::FileStore;
use media::mem::MemStore;
use shingle::{Backups, Keep};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A state of the model: a commit, and the living keyspace of each slot.
#[derive(Clone)]
struct Moment {
    commit: u64,
    /// What came in below since is not in it.
    lives: Arc<[Option<Incarnation>; SLOTS.len()]>,
}

/// What was done with a directory of backups. A backup flushes first, so the database never loses
/// the commits that a generation holds.
#[derive(Clone, Default)]
pub struct Archive {
    /// The generations that a crash must leave, by number.
    kept: BTreeMap<u64, Moment>,
    /// The generation that is being taken: a crash may leave it.
    begun: Option<Moment>,
    /// The generations that are being pruned: a crash may leave them.
    leaving: BTreeMap<u64, Moment>,
    /// The number of the last generation.
    last: u64,
}

/// How much of a directory of backups is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    Lists,
    Verifies,
    Restores,
}

impl Model {
    /// A backup is being taken.
    pub fn begin_backup(&mut self) {
        let lives = Arc::new(std::array::from_fn(|slot| self.living(slot).cloned()));
        self.archive.begun = Some(Moment { commit: self.now(), lives });
    }

    /// The backup returned with this number.
    pub fn end_backup(&mut self, number: u64) {
        if let Some(moment) = self.archive.begun.take() {
            self.archive.kept.insert(number, moment);
        }
        self.archive.last = number;
    }

    /// All but the last `count` generations are being removed. Gives their numbers.
    pub fn begin_prune(&mut self, count: usize) -> Vec<u64> {
        let archive = &mut self.archive;
        while archive.kept.len() > count {
            archive.leaving.extend(archive.kept.pop_first());
        }
        archive.leaving.keys().copied().collect()
    }

    /// The pruning returned.
    pub fn end_prune(&mut self) {
        self.archive.leaving.clear();
    }

    /// The directory in `store` holds what a crash must leave in it, and nothing else. What a crash
    /// may leave or not is settled then. By `depth`, each generation verifies too, and the newest
    /// one restores to its moment.
    pub fn check_archive(
        &mut self,
        config: &Config,
        store: Arc<dyn FileStore>,
        depth: Depth,
    ) -> Outcome {
        let backups = Backups::open_store(store)?;
        let found: BTreeSet<u64> = backups.list()?.iter().map(|backup| backup.number).collect();
        self.settle(&found)?;
        if depth == Depth::Lists {
            return Ok(());
        }
        for &number in &found {
            let problems = backups.verify(number, &mut |_| ())?;
            if !problems.is_empty() {
                return wrong(format!("backup {number}: {problems:?}"));
            }
        }
        if depth == Depth::Verifies {
            return Ok(());
        }
        let newest = self.archive.kept.last_key_value();
        newest.map_or(Ok(()), |(&number, moment)| self.restore(config, &backups, number, moment))
    }

    /// What a crash may have left or not is there or is not.
    fn settle(&mut self, found: &BTreeSet<u64>) -> Outcome {
        let archive = &mut self.archive;
        archive.kept.extend(
            std::mem::take(&mut archive.leaving)
                .into_iter()
                .filter(|(number, _)| found.contains(number)),
        );
        let begun = archive.last + 1;
        if let Some(moment) = archive.begun.take()
            && found.contains(&begun)
        {
            archive.kept.insert(begun, moment);
            archive.last = begun;
        }
        let kept: BTreeSet<u64> = archive.kept.keys().copied().collect();
        if kept != *found {
            return wrong(format!("the backups are {found:?}, not {kept:?}"));
        }
        Ok(())
    }

    fn restore(&self, config: &Config, backups: &Backups, number: u64, moment: &Moment) -> Outcome {
        let target = MemStore::new(Arc::default());
        backups.restore_to(number, &target, &mut |_| ())?;
        let config = config.at(self);
        let db = config.open(Arc::new(target))?;
        let found = read_all(&db)?;
        for (slot, place) in SLOTS.iter().enumerate() {
            let expected = moment.lives[slot].clone().map(|mut life| {
                life.expire(self.now_ms());
                life.fingerprint(moment.commit)
            });
            let restored = found.get(&slot).map(|contents| contents.fingerprint);
            if expected != restored {
                return wrong(format!("{} of backup {number} is not its moment", place.name));
            }
        }
        let report = db.check(&mut |_| {})?;
        if !report.is_clean() {
            return wrong(format!("backup {number}: the check found {:?}", report.problems));
        }
        db.close().map_err(Failure::Error)
    }
}

/// Keeps the last `count` backups.
pub fn keep_last(count: usize) -> Keep {
    Keep { last: count, ..Keep::default() }
}
