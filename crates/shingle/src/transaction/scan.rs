//! Ordered reads inside a transaction: the snapshot's keys with the transaction's own writes.

use super::watches::FirstExpiry;
use crate::api::Iter;
use base::key::successor;
use base::{Key, KeyRange, Result};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use table::Bytes;

type Pair = (Bytes, Bytes);

/// The part of a range that a scan has shown. Only changes in that part are conflicts.
#[derive(Debug)]
pub(super) struct Progress {
    range: KeyRange,
    /// The last key that was shown by `next`.
    front: Option<Key>,
    /// The last key that was shown from the back.
    back: Option<Key>,
    /// The scan met its end: the whole range is known.
    is_whole: bool,
    /// Of the values that were taken from the snapshot.
    first_expiry: FirstExpiry,
}

/// Shared by the scan and its transaction.
#[derive(Clone, Debug)]
pub(super) struct Shown(Arc<Mutex<Progress>>);

impl Shown {
    pub(super) fn new(range: KeyRange) -> Shown {
        let first_expiry = FirstExpiry::default();
        let progress = Progress { range, front: None, back: None, is_whole: false, first_expiry };
        Shown(Arc::new(Mutex::new(progress)))
    }

    /// The scan may show more: it exists, and has not met its end.
    pub(super) fn is_open(&self) -> bool {
        Arc::strong_count(&self.0) > 1 && !self.lock().is_whole
    }

    pub(super) fn first_expiry(&self) -> FirstExpiry {
        self.lock().first_expiry.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.0.lock()
    }

    /// The ranges whose content the scan has shown.
    pub(super) fn ranges(&self) -> Vec<KeyRange> {
        let progress = self.lock();
        let range = &progress.range;
        if progress.is_whole {
            return vec![range.clone()];
        }
        let front = progress.front.as_ref();
        let front = front.map(|key| KeyRange::new(range.start.clone(), Some(successor(key))));
        let back = progress.back.as_ref();
        let back = back.map(|key| KeyRange::new(key.clone(), range.end.clone()));
        front.into_iter().chain(back).collect()
    }
}

/// Keys and values that a transaction sees, in key order, from both ends. Owned and `Send`: it
/// shows the transaction as it was when the scan began.
///
/// An error ends the iteration, as in [`Iter`].
pub struct TransactionIter {
    below: Iter,
    /// What the transaction wrote in the range, in key order; `None`: it deleted the key.
    own: Vec<(Key, Option<Bytes>)>,
    deleted: Vec<KeyRange>,
    /// The part of `own` that was not shown yet.
    own_left: std::ops::Range<usize>,
    /// Taken from `below` and not shown yet.
    below_front: Option<Pair>,
    below_back: Option<Pair>,
    shown: Shown,
}

impl TransactionIter {
    pub(super) fn new(
        below: Iter,
        own: Vec<(Key, Option<Bytes>)>,
        deleted: Vec<KeyRange>,
        shown: Shown,
    ) -> TransactionIter {
        let own_left = 0..own.len();
        TransactionIter {
            below,
            own,
            deleted,
            own_left,
            below_front: None,
            below_back: None,
            shown,
        }
    }

    /// The transaction does not say otherwise about the key.
    fn is_visible(&self, key: &[u8]) -> bool {
        let is_own = self.own.binary_search_by(|(own, _)| (**own).cmp(key)).is_ok();
        !is_own && !self.deleted.iter().any(|range| range.contains(key))
    }

    /// Has the next visible pair of `below` in `below_front`, if there is one.
    fn fill_front(&mut self) -> Result<()> {
        while self.below_front.is_none() {
            match self.below.next().transpose()? {
                Some((key, value)) if self.is_visible(&key) => {
                    let expiry = self.below.expiry_at_front();
                    self.shown.lock().first_expiry.add(&key, expiry);
                    self.below_front = Some((key, value));
                }
                Some(_) => {}
                None => {
                    self.below_front = self.below_back.take();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn fill_back(&mut self) -> Result<()> {
        while self.below_back.is_none() {
            match self.below.next_back().transpose()? {
                Some((key, value)) if self.is_visible(&key) => {
                    let expiry = self.below.expiry_at_back();
                    self.shown.lock().first_expiry.add(&key, expiry);
                    self.below_back = Some((key, value));
                }
                Some(_) => {}
                None => {
                    self.below_back = self.below_front.take();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn own_front(&mut self) -> Option<usize> {
        let is_value = |&at: &usize| self.own[at].1.is_some();
        let first = self.own_left.clone().find(is_value);
        self.own_left.start = first.unwrap_or(self.own_left.end);
        first
    }

    fn own_back(&mut self) -> Option<usize> {
        let is_value = |&at: &usize| self.own[at].1.is_some();
        let last = self.own_left.clone().rev().find(is_value);
        self.own_left.end = last.map_or(self.own_left.start, |last| last + 1);
        last
    }

    fn own_pair(&self, at: usize) -> Pair {
        let (key, value) = &self.own[at];
        (Bytes::from(&key[..]), value.clone().unwrap_or_default())
    }

    fn advance_front(&mut self) -> Result<Option<Pair>> {
        self.fill_front()?;
        let own = self.own_front();
        let below = self.below_front.as_ref().map(|(key, _)| key);
        let pair = match own {
            Some(at) if below.is_none_or(|below| self.own[at].0[..] < **below) => {
                self.own_left.start = at + 1;
                Some(self.own_pair(at))
            }
            _ => self.below_front.take(),
        };
        let mut progress = self.shown.lock();
        match &pair {
            Some((key, _)) => progress.front = Some(Key::from(&key[..])),
            None => progress.is_whole = true,
        }
        drop(progress);
        Ok(pair)
    }

    fn advance_back(&mut self) -> Result<Option<Pair>> {
        self.fill_back()?;
        let own = self.own_back();
        let below = self.below_back.as_ref().map(|(key, _)| key);
        let pair = match own {
            Some(at) if below.is_none_or(|below| self.own[at].0[..] > **below) => {
                self.own_left.end = at;
                Some(self.own_pair(at))
            }
            _ => self.below_back.take(),
        };
        let mut progress = self.shown.lock();
        match &pair {
            Some((key, _)) => progress.back = Some(Key::from(&key[..])),
            None => progress.is_whole = true,
        }
        drop(progress);
        Ok(pair)
    }
}

impl Iterator for TransactionIter {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Result<Pair>> {
        self.advance_front().transpose()
    }
}

impl DoubleEndedIterator for TransactionIter {
    fn next_back(&mut self) -> Option<Result<Pair>> {
        self.advance_back().transpose()
    }
}
