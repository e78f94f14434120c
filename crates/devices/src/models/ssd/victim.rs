//! Which superblock is emptied next.
//!
//! Invariant: the candidates are the closed superblocks, each once; the greedy choice finds one
//! with the fewest valid pages without a search.

use base::random::Random;
use std::collections::VecDeque;

/// No superblock, no bucket.
const NONE: u32 = u32::MAX;

/// How garbage collection chooses its victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The one with the fewest valid pages.
    Greedy,
    /// The best of age * (1 - u) / 2u, where u is the share of valid pages.
    CostBenefit,
    /// The one that was closed first.
    Fifo,
    /// The one with the fewest valid pages among this many that are drawn at random.
    Choice(u32),
}

/// What a choice may look at: by superblock.
pub(super) struct Superblocks {
    /// Pages of each.
    pub pages: u32,
    /// Pages whose content is still current.
    pub valid: Vec<u32>,
    /// Pages that were programmed in all when it was closed.
    pub closed_at: Vec<u64>,
}

/// The closed superblocks, kept as the choice needs them.
pub(super) struct Candidates {
    victim: Victim,
    random: Random,
    kept: Kept,
}

enum Kept {
    Order(VecDeque<u32>),
    Buckets(Buckets),
    List(Vec<u32>),
}

impl Candidates {
    pub(super) fn new(victim: Victim, seed: u64, superblocks: usize, pages: u32) -> Candidates {
        let kept = match victim {
            Victim::Fifo => Kept::Order(VecDeque::new()),
            Victim::Greedy => Kept::Buckets(Buckets::new(superblocks, pages)),
            Victim::CostBenefit | Victim::Choice(_) => Kept::List(Vec::new()),
        };
        Candidates { victim, random: Random::new(seed), kept }
    }

    /// `superblock` was closed.
    pub(super) fn insert(&mut self, superblock: u32, valid: u32) {
        match &mut self.kept {
            Kept::Order(order) => order.push_back(superblock),
            Kept::Buckets(buckets) => buckets.insert(superblock, valid),
            Kept::List(list) => list.push(superblock),
        }
    }

    /// A superblock, closed or not, has one valid page less: `valid` are left.
    pub(super) fn lost_page(&mut self, superblock: u32, valid: u32) {
        if let Kept::Buckets(buckets) = &mut self.kept {
            buckets.lower(superblock, valid);
        }
    }

    /// Takes the next victim out. `now` is on the scale of [`Superblocks::closed_at`].
    pub(super) fn take(&mut self, superblocks: &Superblocks, now: u64) -> Option<u32> {
        let list = match &mut self.kept {
            Kept::Order(order) => return order.pop_front(),
            Kept::Buckets(buckets) => return buckets.take_lowest(),
            Kept::List(list) => list,
        };
        let valid = |index: usize| superblocks.valid[list[index] as usize];
        let chosen = match self.victim {
            Victim::Choice(draws) => (0..draws.max(1))
                .map(|_| self.random.below(list.len() as u64) as usize)
                .take_while(|&index| index < list.len())
                .min_by_key(|&index| valid(index)),
            _ => {
                let score = |index: usize| {
                    // At least 1: an age of 0 times an infinite gain would be no number.
                    let age = now - superblocks.closed_at[list[index] as usize] + 1;
                    let dead = superblocks.pages - valid(index);
                    age as f64 * f64::from(dead) / f64::from(2 * valid(index))
                };
                (0..list.len()).max_by(|&a, &b| score(a).total_cmp(&score(b)))
            }
        };
        chosen.map(|index| list.swap_remove(index))
    }
}

/// Superblocks in doubly linked lists, one for each number of valid pages.
struct Buckets {
    first: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// The bucket that a superblock is in, or `NONE`.
    bucket: Vec<u32>,
    /// No bucket below it has a member.
    lowest: usize,
}

impl Buckets {
    fn new(superblocks: usize, pages: u32) -> Buckets {
        let none = vec![NONE; superblocks];
        Buckets {
            first: vec![NONE; pages as usize + 1],
            next: none.clone(),
            previous: none.clone(),
            bucket: none,
            lowest: pages as usize,
        }
    }

    fn insert(&mut self, superblock: u32, valid: u32) {
        let first = std::mem::replace(&mut self.first[valid as usize], superblock);
        self.next[superblock as usize] = first;
        self.previous[superblock as usize] = NONE;
        if first != NONE {
            self.previous[first as usize] = superblock;
        }
        self.bucket[superblock as usize] = valid;
        self.lowest = self.lowest.min(valid as usize);
    }

    fn remove(&mut self, superblock: u32) {
        let bucket = std::mem::replace(&mut self.bucket[superblock as usize], NONE);
        let (next, previous) = (self.next[superblock as usize], self.previous[superblock as usize]);
        if next != NONE {
            self.previous[next as usize] = previous;
        }
        match previous {
            NONE => self.first[bucket as usize] = next,
            _ => self.next[previous as usize] = next,
        }
    }

    fn lower(&mut self, superblock: u32, valid: u32) {
        if self.bucket[superblock as usize] != NONE {
            self.remove(superblock);
            self.insert(superblock, valid);
        }
    }

    fn take_lowest(&mut self) -> Option<u32> {
        while self.first.get(self.lowest).is_some_and(|&first| first == NONE) {
            self.lowest += 1;
        }
        let Some(&superblock) = self.first.get(self.lowest) else {
            self.lowest = self.first.len() - 1;
            return None;
        };
        self.remove(superblock);
        Some(superblock)
    }
}
