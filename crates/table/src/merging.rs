//! Merges sorted iterators into one.
//!
//! Children that stand at an entry are kept sorted by their keys in the direction of travel, so
//! that the first is the current one. Keys are compared where the children keep them; while the
//! same child stays first, a step costs one comparison with the second.

use crate::bytes::Bytes;
use crate::iter::EntryIter;
use base::key::compare_internal;
use base::{Error, Result};
use std::cmp::Ordering;

/// A k-way merge in the order of internal keys. No two children may hold the same internal key.
pub struct MergingIter<I: EntryIter> {
    children: Vec<I>,
    /// The children that stand at an entry, nearest key first.
    order: Vec<u32>,
    forward: bool,
    error: Option<Error>,
}

impl<I: EntryIter> MergingIter<I> {
    /// Merges `children`; stands nowhere.
    pub fn new(children: Vec<I>) -> MergingIter<I> {
        let order = Vec::with_capacity(children.len());
        MergingIter { children, order, forward: true, error: None }
    }

    /// The child that the current entry comes from, by its index.
    pub fn current(&self) -> Option<usize> {
        self.order.first().map(|&child| child as usize)
    }

    /// The children; their positions belong to the merge.
    pub fn children(&self) -> &[I] {
        &self.children
    }

    /// Lets children that stand before `target` in the direction of travel pass over entries that
    /// are not needed: `leap` moves a child towards `target`, not past it, or says that it stays.
    /// Says whether one moved.
    pub fn leap(
        &mut self,
        target: &[u8],
        mut leap: impl FnMut(&mut I) -> Result<bool>,
    ) -> Result<bool> {
        let mut moved = false;
        self.guard(|merge| {
            let mut order = std::mem::take(&mut merge.order);
            for &index in &order {
                let child = &mut merge.children[index as usize];
                let side = compare_internal(child.key(), target);
                let is_before = if merge.forward { side.is_lt() } else { side.is_gt() };
                moved |= is_before && leap(child)?;
            }
            if moved {
                order.retain(|&index| merge.children[index as usize].valid());
                order.sort_unstable_by(|&a, &b| merge.compare(a, b));
            }
            merge.order = order;
            Ok(())
        })?;
        Ok(moved)
    }

    #[inline]
    fn guard(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let done = step(self);
        if let Err(error) = &done {
            self.order.clear();
            self.error = Some(error.clone());
        }
        done
    }

    #[inline]
    fn compare(&self, a: u32, b: u32) -> Ordering {
        let key = |child: u32| self.children[child as usize].key();
        let order = compare_internal(key(a), key(b));
        if self.forward { order } else { order.reverse() }
    }

    /// Moves every child with `place` and sorts those that stand at an entry.
    fn place_all(
        &mut self,
        forward: bool,
        mut place: impl FnMut(usize, &mut I) -> Result<()>,
    ) -> Result<()> {
        self.forward = forward;
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        for (index, child) in self.children.iter_mut().enumerate() {
            place(index, child)?;
            if child.valid() {
                order.push(index as u32);
            }
        }
        order.sort_unstable_by(|&a, &b| self.compare(a, b));
        self.order = order;
        Ok(())
    }

    /// Moves the first child by one in the direction of travel and puts it where it belongs.
    #[inline(always)] // Both directions call it, once for each entry of a scan.
    fn step(&mut self) -> Result<()> {
        let Some(&first) = self.order.first() else { return Ok(()) };
        let child = &mut self.children[first as usize];
        if self.forward {
            child.next()?;
        } else {
            child.prev()?;
        }
        if !child.valid() {
            self.order.remove(0);
            return Ok(());
        }
        match self.order.get(1) {
            Some(&second) if self.compare(first, second).is_gt() => self.sink_first(first),
            _ => {}
        }
        Ok(())
    }

    /// The first child is behind the second: finds its place, near ones first.
    fn sink_first(&mut self, first: u32) {
        let others = &self.order[1..];
        let mut reach = 1;
        while reach < others.len() && self.compare(first, others[reach]).is_gt() {
            reach *= 2;
        }
        let from = reach / 2 + 1;
        let to = reach.min(others.len()).max(from);
        let behind = others[from..to].partition_point(|&other| self.compare(other, first).is_lt());
        let place = from + behind;
        self.order.copy_within(1..=place, 0);
        self.order[place] = first;
    }

    /// Turns round: every other child goes to the far side of the current key.
    fn turn(&mut self, forward: bool) -> Result<()> {
        let Some(current) = self.current() else { return Ok(()) };
        let key = self.children[current].key().to_vec();
        self.place_all(forward, |index, child| match (index == current, forward) {
            (true, _) => Ok(()),
            (false, true) => child.seek(&key),
            (false, false) => child.seek_for_prev(&key),
        })
    }
}

impl<I: EntryIter> EntryIter for MergingIter<I> {
    fn seek_to_first(&mut self) -> Result<()> {
        self.guard(|merge| merge.place_all(true, |_, child| child.seek_to_first()))
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.guard(|merge| merge.place_all(false, |_, child| child.seek_to_last()))
    }

    fn seek(&mut self, internal_key: &[u8]) -> Result<()> {
        self.guard(|merge| merge.place_all(true, |_, child| child.seek(internal_key)))
    }

    fn seek_for_prev(&mut self, internal_key: &[u8]) -> Result<()> {
        self.guard(|merge| merge.place_all(false, |_, child| child.seek_for_prev(internal_key)))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        self.guard(|merge| {
            if !merge.forward {
                merge.turn(true)?;
            }
            merge.step()
        })
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        self.guard(|merge| {
            if merge.forward {
                merge.turn(false)?;
            }
            merge.step()
        })
    }

    #[inline]
    fn valid(&self) -> bool {
        !self.order.is_empty()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        if let Some(child) = self.current() { self.children[child].key() } else { &[] }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        if let Some(child) = self.current() { self.children[child].value() } else { &[] }
    }

    fn value_bytes(&self) -> Bytes {
        self.current().map_or_else(Bytes::default, |child| self.children[child].value_bytes())
    }
}
