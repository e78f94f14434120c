//! Point reads of many keys at one moment, which share their work.
//!
//! Keys are looked up in key order, source by source. The keys of a level that are in the same node
//! go through its slices together. In each run the filters are probed first. The data blocks of the
//! remaining keys are located, and prefetched where several must be read. Each block is read once
//! for all keys in it, with or without a cache (`table::Run::get_many`).

use super::clock::ReadTime;
use super::get::{Found, Lookup, combine};
use super::moment::Moment;
use super::view::{LevelView, NodeView, SliceView};
use crate::merge_operator::KeyspaceOperator;
use base::{Cause, Result};
use std::sync::Arc;
use table::{Bytes, Probe};

/// A key that is looked up, with its places in the caller's list.
struct Wanted<'a> {
    lookup: Lookup<'a>,
    found: Option<Found>,
}

/// The values of `keys` at `moment`, in the order of the keys.
pub(crate) fn multi_get<K: AsRef<[u8]>>(
    moment: &Moment,
    keys: &[K],
    operator: Option<&Arc<KeyspaceOperator>>,
) -> Result<Vec<Option<Bytes>>> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by(|&a, &b| keys[a].as_ref().cmp(keys[b].as_ref()));
    let mut wanted: Vec<Wanted<'_>> = Vec::with_capacity(keys.len());
    for &index in &order {
        let key = keys[index].as_ref();
        if wanted.last().is_none_or(|last| last.lookup.key() != key) {
            wanted.push(Wanted { lookup: Lookup::new(key, moment.sequence()), found: None });
        }
    }
    for one in &mut wanted {
        one.take(|lookup| lookup.find_in_memtables(moment.view()))?;
    }
    let mut open: Vec<&mut Wanted<'_>> = wanted.iter_mut().collect();
    for level in &moment.view().tree.levels {
        open.retain(|one| one.found.is_none());
        find_in_level(level, &mut open)?;
    }
    give(moment, keys, &order, wanted, operator)
}

/// The values in the order of `keys`; the same key may occur several times.
fn give<K: AsRef<[u8]>>(
    moment: &Moment,
    keys: &[K],
    order: &[usize],
    wanted: Vec<Wanted<'_>>,
    operator: Option<&Arc<KeyspaceOperator>>,
) -> Result<Vec<Option<Bytes>>> {
    let pointers = wanted.iter().filter_map(|one| match &one.found {
        Some(Found::Pointer(pointer)) => Some(pointer),
        Some(Found::Expiring(expiring)) if expiring.is_pointer => Some(&expiring.content),
        _ => None,
    });
    let files = &moment.view().tree.context.values;
    if wanted.len() > 1 {
        pointers.for_each(|pointer| files.prefetch(pointer));
    }
    let mut values = vec![None; keys.len()];
    // Combining the operands of a key reads expiring values too.
    let judges = |found: &Option<Found>| matches!(found, Some(Found::Expiring(_) | Found::Operand));
    let clock = &moment.view().tree.context.clock;
    let mut time = match wanted.iter().any(|one| judges(&one.found)) {
        true => ReadTime::now(clock),
        false => ReadTime::default(),
    };
    let mut places = order.iter().copied().peekable();
    for one in wanted {
        let key = one.lookup.key();
        let value = match one.found {
            Some(Found::Value(value)) => Some(value),
            Some(Found::Pointer(pointer)) => Some(files.read(&pointer, key, Cause::Get)?),
            Some(Found::Expiring(expiring)) => expiring.value(moment, key, &mut time)?,
            Some(Found::Operand) => combine(moment, key, operator, time)?.value()?,
            Some(Found::Absent) | None => None,
        };
        while let Some(place) = places.next_if(|&place| keys[place].as_ref() == key) {
            values[place] = value.clone();
        }
    }
    Ok(values)
}

impl Wanted<'_> {
    /// Notes what a source has; nothing leaves the key open.
    fn take(&mut self, find: impl FnOnce(&mut Lookup<'_>) -> Result<Option<Found>>) -> Result<()> {
        if let Some(found) = find(&mut self.lookup)? {
            self.found = Some(found);
        }
        Ok(())
    }
}

/// `open` is in key order, so the keys of one node are adjacent.
fn find_in_level(level: &LevelView, open: &mut [&mut Wanted<'_>]) -> Result<()> {
    let mut rest = open;
    while let Some(first) = rest.first() {
        let Some(node) = level.find(first.lookup.key()) else {
            rest = &mut rest[1..];
            continue;
        };
        let is_inside = |one: &&mut Wanted<'_>| node.range().is_before_end(one.lookup.key());
        let count = rest.iter().take_while(|one| is_inside(one)).count();
        let (inside, behind) = rest.split_at_mut(count.max(1));
        find_in_node(node, inside)?;
        rest = behind;
    }
    Ok(())
}

fn find_in_node(node: &NodeView, inside: &mut [&mut Wanted<'_>]) -> Result<()> {
    for slice in &node.slices {
        let is_open = |one: &&mut &mut Wanted<'_>| {
            let is_within = slice.range.contains(one.lookup.key());
            one.found.is_none() && is_within && one.lookup.needs(slice)
        };
        let mut open: Vec<&mut &mut Wanted<'_>> = inside.iter_mut().filter(is_open).collect();
        if !open.is_empty() {
            find_in_slice(slice, &mut open)?;
        }
    }
    Ok(())
}

fn find_in_slice(slice: &SliceView, open: &mut [&mut &mut Wanted<'_>]) -> Result<()> {
    let run = slice.run.run()?;
    if slice.has_range_deletes {
        for one in open.iter_mut() {
            one.lookup.note_range_deletes(run.range_deletes());
        }
    }
    let probes: Vec<Probe<'_>> = open
        .iter_mut()
        .map(|one| Probe {
            key: one.lookup.key(),
            hash: one.lookup.hash(),
            snapshot: one.lookup.snapshot(),
        })
        .collect();
    for (one, entry) in open.iter_mut().zip(run.get_many(&probes, Cause::Get)?) {
        if let Some(entry) = entry {
            one.take(|lookup| lookup.judge(entry.sequence, entry.kind, || entry.value).map(Some))?;
        }
    }
    Ok(())
}
