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
use base::{Cause, Result, RunId, SequenceNumber};
use std::sync::Arc;
use table::{Bytes, Probe};

/// A key that is looked up, with its places in the caller's list.
struct Wanted<'a> {
    lookup: Lookup<'a>,
    found: Option<Found>,
    /// The run that it was found in, if it was one.
    run: Option<RunId>,
    /// The run that ends the search, if there is one.
    seen_in: Option<RunId>,
    /// The search came to that run.
    is_there: bool,
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
            wanted.push(Wanted::new(Lookup::new(key, moment.sequence())));
        }
    }
    find_all(moment, &mut wanted)?;
    give(moment, keys, &order, wanted, operator)
}

/// What the tree and the memtables hold for each of `keys` at `moment`, without following pointers,
/// and the run that it was found in. The keys ascend and are distinct. GC compares what is found.
pub(crate) fn find_many(
    moment: &Moment,
    keys: &[&[u8]],
) -> Result<Vec<(Option<Found>, Option<RunId>)>> {
    let lookups = keys.iter().map(|key| Lookup::new(key, moment.sequence()));
    let mut wanted: Vec<Wanted<'_>> = lookups.map(Wanted::new).collect();
    find_all(moment, &mut wanted)?;
    Ok(wanted.into_iter().map(|one| (one.found, one.run)).collect())
}

/// Where a key's newest entry was found.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    /// The number of the moment.
    pub sequence: SequenceNumber,
    /// The run that has the entry.
    pub run: RunId,
}

/// Which of `keys` certainly have at `moment` what they had where they were seen. A run never
/// changes. So its entry is still the key's newest, if the tree still has the run for the key, and
/// nothing above it is newer than the moment of then. Only what has something newer is asked, so
/// this costs much less than [`find_many`]. The keys ascend and are distinct.
pub(crate) fn are_unchanged(moment: &Moment, keys: &[(&[u8], Seen)]) -> Result<Vec<bool>> {
    let newer = |key, seen: Seen| Lookup::newer_than(key, seen.sequence, moment.sequence());
    let wanted = keys
        .iter()
        .map(|&(key, seen)| Wanted { seen_in: Some(seen.run), ..Wanted::new(newer(key, seen)) });
    let mut wanted: Vec<Wanted<'_>> = wanted.collect();
    find_all(moment, &mut wanted)?;
    let is_unchanged = |(one, (_, seen)): (&Wanted<'_>, &(_, Seen))| {
        one.is_there && one.lookup.hides_below() == seen.sequence
    };
    Ok(wanted.iter().zip(keys).map(is_unchanged).collect())
}

fn find_all(moment: &Moment, wanted: &mut [Wanted<'_>]) -> Result<()> {
    for one in wanted.iter_mut() {
        one.take(None, |lookup| lookup.find_in_memtables(moment.view(), Bytes::from))?;
    }
    let mut open: Vec<&mut Wanted<'_>> = wanted.iter_mut().collect();
    for level in &moment.view().tree.levels {
        open.retain(|one| one.is_open());
        find_in_level(level, &mut open)?;
    }
    Ok(())
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

impl<'a> Wanted<'a> {
    fn new(lookup: Lookup<'a>) -> Wanted<'a> {
        Wanted { lookup, found: None, run: None, seen_in: None, is_there: false }
    }

    /// The search goes on.
    fn is_open(&self) -> bool {
        self.found.is_none() && !self.is_there
    }

    /// The slice must be asked. Notes if it is where the search ends.
    fn needs(&mut self, slice: &SliceView) -> bool {
        if !self.is_open() || !slice.range.contains(self.lookup.key()) {
            return false;
        }
        self.is_there = self.seen_in == Some(slice.id);
        !self.is_there && self.lookup.needs(slice)
    }

    /// Notes what a source has; nothing leaves the key open.
    fn take(
        &mut self,
        run: Option<RunId>,
        find: impl FnOnce(&mut Lookup<'a>) -> Result<Option<Found>>,
    ) -> Result<()> {
        if let Some(found) = find(&mut self.lookup)? {
            (self.found, self.run) = (Some(found), run);
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
        let mut open: Vec<&mut &mut Wanted<'_>> =
            inside.iter_mut().filter_map(|one| one.needs(slice).then_some(one)).collect();
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
            one.take(Some(slice.id), |lookup| {
                lookup.judge(entry.sequence, entry.kind, || entry.value).map(Some)
            })?;
        }
    }
    Ok(())
}
