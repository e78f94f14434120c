//! Random histories: steps drawn from a seed alone, so that one history runs on any configuration.

use crate::model::{Key, Op, Operator, SLOTS, Value};
use base::random::Random;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One step of a history. Numbers of snapshots and iterators are taken modulo the number of open
/// ones.
#[derive(Clone, Debug)]
pub enum Step {
    Write {
        batch: Vec<(usize, Op)>,
        synced: bool,
        single: bool,
    },
    Get(usize, Key),
    MultiGet(usize, Vec<Key>),
    Scan {
        slot: usize,
        start: Key,
        end: Option<Key>,
        reverse: bool,
        limit: usize,
    },
    PrefixScan(usize, Key),
    /// Moves a cursor: seek, seek for previous, next, previous, first, last.
    Walk(usize, Vec<(u8, Key)>),
    SnapshotTake,
    SnapshotRead(usize, usize, Key),
    SnapshotScan(usize, usize),
    SnapshotDrop(usize),
    IteratorOpen(usize, Key),
    IteratorAdvance(usize, usize),
    IteratorDrop(usize),
    Flush,
    CompactRange(Option<Key>, Option<Key>),
    Sync,
    /// Creates the keyspace of a slot, or drops it.
    Turn(usize),
    Reopen,
    ReadOnly,
    Checkpoint,
    Check,
    /// A random move of the tree.
    RandomMove(usize),
    /// A sorted file with these operations: range deletions, then puts and deletions of ascending
    /// keys.
    Ingest(usize, Vec<Op>),
    /// A sorted file with these puts and deletions, below what is there.
    IngestBelow(usize, Vec<Op>),
    /// A backup is taken.
    Backup,
    /// The backups but this many of the last ones are removed.
    Prune(usize),
    /// The follower catches up.
    CatchUp,
    WaitIdle,
    /// The wall clock moves on by this number of milliseconds.
    Advance(u64),
}

/// The kinds and the number of steps in a history.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    pub steps: usize,
    pub keys: u64,
    pub value_bytes_max: u64,
    /// One step in this many is a move of the tree; 0: none.
    pub move_odds: u64,
    /// One operation in this many is a range deletion of any shape, beside the usual ones, with
    /// snapshots between; 0: none.
    pub range_odds: u64,
    /// One value in this many expires, and the clock moves at times; 0: none.
    pub expiry_odds: u64,
    /// One step in this many is an ingestion; 0: none.
    pub ingest_odds: u64,
    /// One step in this many is a backup, a pruning of them, or a follower's; 0: none.
    pub copy_odds: u64,
    /// Closings and openings of every kind, and checks, whose report a planned failure would spoil.
    pub reopens: bool,
    pub reads: bool,
}

impl Profile {
    /// The same; in one of two histories values expire.
    pub fn sometimes_expiring(self, seed: u64) -> Profile {
        let is_expiring = Random::new(seed ^ 0xe4_91).one_in(2);
        Profile { expiry_odds: if is_expiring { 5 } else { 0 }, ..self }
    }
}

/// The default shape of histories.
pub fn profile(steps: usize) -> Profile {
    Profile {
        steps,
        keys: 300,
        value_bytes_max: 20_000,
        move_odds: 8,
        range_odds: 0,
        expiry_odds: 0,
        ingest_odds: 60,
        copy_odds: 0,
        reopens: true,
        reads: true,
    }
}

pub struct Generator {
    random: Random,
    profile: Profile,
    /// Makes values unlike each other, also those of a history that goes on from another: equal
    /// values with another expiry would make two prefixes look alike.
    serial: u64,
}

impl Generator {
    pub fn new(seed: u64, profile: Profile) -> Generator {
        let serial = Random::new(seed ^ 0x5e_41a1).below(999) * 1000;
        Generator { random: Random::new(seed), profile, serial }
    }

    pub fn steps(mut self) -> Vec<Step> {
        (0..self.profile.steps).map(|_| self.step()).collect()
    }

    /// Keys cluster: shared prefixes of several lengths, the empty key, zero bytes, long keys.
    pub fn key(&mut self) -> Key {
        let n = self.random.below(self.profile.keys);
        match n % 16 {
            0 if n == 0 => Vec::new(),
            0 => vec![0; (n / 16 % 12) as usize],
            1 => vec![0xff; 1 + (n / 16 % 6) as usize],
            2..=4 => format!("k{:03}", n / 4).into_bytes(),
            5..=8 => format!("key/shared/prefix/{:04}", n).into_bytes(),
            9 => [&b"key/shared/prefix/"[..], &[n as u8]].concat(),
            10 => [&vec![b'l'; 90][..], &n.to_be_bytes()].concat(),
            11 | 12 => n.to_be_bytes().to_vec(),
            _ => format!("t{}/{:02}", n % 5, n / 8).into_bytes(),
        }
    }

    fn value(&mut self) -> Value {
        self.serial += 1;
        let bytes = match self.random.below(20) {
            0 => 0,
            1 => self.random.below(self.profile.value_bytes_max),
            2..=4 => self.random.below(600),
            _ => self.random.below(60),
        };
        let mut value = format!("{:06}:", self.serial).into_bytes();
        if bytes == 0 {
            value.clear();
        } else if bytes > 40 && self.random.one_in(2) {
            let mut noise = vec![0; bytes as usize];
            self.random.fill(&mut noise);
            value.extend(noise);
        } else {
            value.resize(value.len() + bytes as usize, b'v');
        }
        value.into()
    }

    fn op(&mut self, slot: usize) -> Op {
        let odds = self.profile.range_odds;
        if odds > 0 && self.random.one_in(odds) {
            return self.delete_any_range();
        }
        let key = self.key();
        let number = |random: &mut Random| -> Value { Arc::from(random.below(99).to_le_bytes()) };
        let odds = self.profile.expiry_odds;
        if odds > 0 && self.random.one_in(odds) {
            return self.put_expiring(key, SLOTS[slot].operator);
        }
        match (self.random.below(20), SLOTS[slot].operator) {
            (0..=3, _) => Op::Delete(key),
            (4, _) => self.delete_range(),
            (5..=12, Operator::Add) => Op::Merge(key, number(&mut self.random)),
            (_, Operator::Add) => Op::Put(key, number(&mut self.random)),
            (5..=10, Operator::Append) => {
                self.serial += 1;
                Op::Merge(key, format!("+{}", self.serial).into_bytes().into())
            }
            _ => Op::Put(key, self.value()),
        }
    }

    /// Over at once, soon, or not within the history.
    fn put_expiring(&mut self, key: Key, operator: Operator) -> Op {
        let value = match operator {
            Operator::Add => {
                self.serial += 1;
                Arc::from(self.serial.to_le_bytes())
            }
            _ => self.value(),
        };
        let ttl_ms = match self.random.below(8) {
            0 => 0,
            1 => 1_000_000_000,
            _ => self.random.below(200),
        };
        Op::PutExpiring(key, value, ttl_ms)
    }

    fn delete_range(&mut self) -> Op {
        let (a, b) = (self.key(), self.key());
        let (a, mut b) = if a <= b { (a, b) } else { (b, a) };
        if self.random.one_in(2) || a == b {
            b = [&a[..], b"0"].concat();
        }
        Op::DeleteRange(a, b)
    }

    /// Rolling, to the last key, wide, or around a few keys.
    fn delete_any_range(&mut self) -> Op {
        let key = self.key();
        match self.random.below(20) {
            0..=2 => Op::DeleteRange(Vec::new(), key),
            3 => Op::DeleteRange(key, vec![0xff; 12]),
            4..=7 => {
                let other = self.key();
                Op::DeleteRange(key.clone().min(other.clone()), key.max(other))
            }
            8..=12 => Op::DeleteRange(key.clone(), [&key[..], b"\0"].concat()),
            _ => {
                let mut end = key.clone();
                end.last_mut().into_iter().for_each(|last| *last = last.saturating_add(4));
                Op::DeleteRange(key, end)
            }
        }
    }

    /// A file of any number of keys, close to each other or far apart, in some cases behind all
    /// others.
    fn ingest(&mut self) -> Step {
        let slot = self.slot();
        if SLOTS[slot].ingests_below && self.random.one_in(2) {
            return self.ingest_below(slot);
        }
        let mut ops: Vec<Op> =
            (0..self.random.below(3)).map(|_| self.delete_any_range()).filter(is_range).collect();
        let prefix: &[u8] = if self.random.one_in(3) { b"z/ingested/" } else { b"" };
        let count = self.random.below(self.profile.keys / 3 + 1);
        let keys: BTreeSet<Key> = (0..count).map(|_| [prefix, &self.key()].concat()).collect();
        for key in keys {
            let number = || -> Value { Arc::from(7u64.to_le_bytes()) };
            let odds = self.profile.expiry_odds;
            if odds > 0 && self.random.one_in(odds) {
                ops.push(self.put_expiring(key, SLOTS[slot].operator));
                continue;
            }
            ops.push(match (self.random.below(8), SLOTS[slot].operator) {
                (0, _) => Op::Delete(key),
                (_, Operator::Add) => Op::Put(key, number()),
                _ => Op::Put(key, self.value()),
            });
        }
        Step::Ingest(slot, ops)
    }

    /// A few keys that lie together, so that a later file finds keys that this one does not cover.
    fn ingest_below(&mut self, slot: usize) -> Step {
        let keys: BTreeSet<Key> = (0..self.profile.keys / 2).map(|_| self.key()).collect();
        let skip = self.random.below(keys.len() as u64 + 1) as usize;
        let count = 1 + self.random.below(5) as usize;
        let odds = self.profile.expiry_odds;
        let ops = keys.into_iter().skip(skip).take(count).map(|key| {
            if odds > 0 && self.random.one_in(odds) {
                self.put_expiring(key, SLOTS[slot].operator)
            } else if self.random.one_in(8) {
                Op::Delete(key)
            } else {
                Op::Put(key, self.value())
            }
        });
        let ops = ops.collect();
        Step::IngestBelow(slot, ops)
    }

    fn slot(&mut self) -> usize {
        [0, 0, 0, 0, 0, 1, 2, 2, 3, 4, 5][self.random.below(11) as usize]
    }

    fn write(&mut self) -> Step {
        let slot = self.slot();
        let synced = self.random.one_in(12);
        if self.random.one_in(5) {
            let unlogged = SLOTS[slot].without_wal;
            let count = 1 + self.random.below(12);
            let mut batch = Vec::new();
            while (batch.len() as u64) < count {
                let slot = self.slot();
                if SLOTS[slot].without_wal == unlogged {
                    let op = self.op(slot);
                    batch.push((slot, op));
                }
            }
            return Step::Write { batch, synced, single: false };
        }
        let op = self.op(slot);
        Step::Write { batch: vec![(slot, op)], synced, single: !synced }
    }

    fn read(&mut self) -> Step {
        let slot = self.slot();
        match self.random.below(12) {
            0..=2 => Step::Get(slot, self.key()),
            3 => Step::MultiGet(slot, (0..6).map(|_| self.key()).collect()),
            4 | 5 => {
                let (start, end) = (self.key(), self.key());
                Step::Scan {
                    slot,
                    start,
                    end: self.random.one_in(2).then_some(end),
                    reverse: self.random.one_in(2),
                    limit: self.random.below(60) as usize,
                }
            }
            6 => {
                let key = self.key();
                let bytes = self.random.below(key.len() as u64 + 1) as usize;
                Step::PrefixScan(slot, key[..bytes].to_vec())
            }
            7 => {
                let moves = 3 + self.random.below(12);
                let step = |g: &mut Generator| (g.random.below(10) as u8, g.key());
                Step::Walk(slot, (0..moves).map(|_| step(self)).collect())
            }
            8 => Step::SnapshotRead(self.random.below(8) as usize, slot, self.key()),
            9 => Step::SnapshotScan(self.random.below(8) as usize, slot),
            10 => Step::IteratorOpen(slot, self.key()),
            _ => {
                let many = self.random.below(20) as usize;
                Step::IteratorAdvance(self.random.below(8) as usize, many)
            }
        }
    }

    fn step(&mut self) -> Step {
        let odds = self.profile.move_odds;
        if odds > 0 && self.random.one_in(odds) {
            return Step::RandomMove(self.slot());
        }
        let odds = self.profile.ingest_odds;
        if odds > 0 && self.random.one_in(odds) {
            return self.ingest();
        }
        let odds = self.profile.copy_odds;
        if odds > 0 && self.random.one_in(odds) {
            return match self.random.below(4) {
                0 => Step::Prune(1 + self.random.below(2) as usize),
                1 => Step::CatchUp,
                _ => Step::Backup,
            };
        }
        if self.profile.range_odds > 0 && self.random.one_in(12) {
            let number = self.random.below(8) as usize;
            return match self.random.below(3) {
                0 => Step::SnapshotTake,
                1 => Step::SnapshotScan(number, self.slot()),
                _ => Step::SnapshotRead(number, self.slot(), self.key()),
            };
        }
        if self.profile.expiry_odds > 0 && self.random.one_in(16) {
            return Step::Advance(self.random.below(60));
        }
        match self.random.below(200) {
            0..=2 => Step::Flush,
            3 => {
                let (a, b) = (self.key(), self.key());
                let both = self.random.one_in(2);
                Step::CompactRange(both.then(|| a.clone().min(b.clone())), both.then(|| a.max(b)))
            }
            4..=7 => Step::Sync,
            8 | 9 => Step::Turn(5),
            10..=14 => Step::SnapshotTake,
            15..=18 => Step::SnapshotDrop(self.random.below(8) as usize),
            19..=21 => Step::IteratorDrop(self.random.below(8) as usize),
            22 if self.profile.reopens => Step::Reopen,
            23 if self.profile.reopens && self.random.one_in(3) => Step::ReadOnly,
            24 if self.profile.reopens && self.random.one_in(3) => Step::Checkpoint,
            25 if self.profile.reopens && self.random.one_in(3) => Step::Check,
            26 => Step::WaitIdle,
            27..=100 if self.profile.reads => self.read(),
            _ => self.write(),
        }
    }
}

fn is_range(op: &Op) -> bool {
    matches!(op, Op::DeleteRange(start, end) if start < end)
}
