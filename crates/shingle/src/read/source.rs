//! The iterators that a merged read is made of: memtables, slices, and whole levels.

use super::slice_iter::SliceIter;
use super::table_cache::TableCache;
use super::view::{NodeView, TreeView};
use crate::memtable::{MemIter, Memtable};
use base::key::user_key;
use base::{Error, Key, KeyRange, Result, SequenceNumber};
use std::sync::Arc;
use table::{Bytes, IterOptions};
use table::{EntryIter, MergingIter};

/// A memtable's entries; its reads cannot fail.
pub(crate) struct MemtableIter {
    iter: MemIter,
    /// The newest sequence number in it that a current reader may see.
    sequence_max: SequenceNumber,
}

impl MemtableIter {
    pub(crate) fn new(memtable: &Memtable) -> MemtableIter {
        let sequence_max = memtable.sequence_max().unwrap_or(0);
        MemtableIter { iter: memtable.iter(), sequence_max }
    }
}

impl EntryIter for MemtableIter {
    fn seek_to_first(&mut self) -> Result<()> {
        self.iter.seek_to_first();
        Ok(())
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.iter.seek_to_last();
        Ok(())
    }
    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.iter.seek(target)
    }
    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        self.iter.seek_for_prev(target)
    }
    #[inline]
    fn next(&mut self) -> Result<()> {
        self.iter.next();
        Ok(())
    }
    fn prev(&mut self) -> Result<()> {
        self.iter.prev();
        Ok(())
    }
    #[inline]
    fn valid(&self) -> bool {
        self.iter.valid()
    }
    #[inline]
    fn key(&self) -> &[u8] {
        self.iter.key()
    }
    #[inline]
    fn value(&self) -> &[u8] {
        self.iter.value()
    }
    fn value_bytes(&self) -> Bytes {
        Bytes::from(self.iter.value())
    }
}

/// One sorted input of a merged read.
#[allow(clippy::large_enum_variant)] // Few of them, and no pointer to chase for each entry.
pub(crate) enum Source {
    Memtable(MemtableIter),
    Slice(SliceIter),
    Level(LevelIter),
    Chain(ChainIter),
}

/// The slices of a node: nearly always one, which needs no merge.
#[allow(clippy::large_enum_variant)] // One for each level.
enum Stack {
    One(SliceIter),
    Many(MergingIter<SliceIter>),
}

/// An enum of iterators is an iterator.
macro_rules! entry_iter_of {
    ($name:ident: $($variant:ident),+) => {
        impl EntryIter for $name {
            fn seek_to_first(&mut self) -> Result<()> {
                match self { $($name::$variant(inner) => inner.seek_to_first(),)+ }
            }
            fn seek_to_last(&mut self) -> Result<()> {
                match self { $($name::$variant(inner) => inner.seek_to_last(),)+ }
            }
            fn seek(&mut self, target: &[u8]) -> Result<()> {
                match self { $($name::$variant(inner) => inner.seek(target),)+ }
            }
            fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
                match self { $($name::$variant(inner) => inner.seek_for_prev(target),)+ }
            }
            #[inline]
            fn next(&mut self) -> Result<()> {
                match self { $($name::$variant(inner) => inner.next(),)+ }
            }
            fn prev(&mut self) -> Result<()> {
                match self { $($name::$variant(inner) => inner.prev(),)+ }
            }
            #[inline]
            fn valid(&self) -> bool {
                match self { $($name::$variant(inner) => inner.valid(),)+ }
            }
            #[inline]
            fn key(&self) -> &[u8] {
                match self { $($name::$variant(inner) => inner.key(),)+ }
            }
            #[inline]
            fn value(&self) -> &[u8] {
                match self { $($name::$variant(inner) => inner.value(),)+ }
            }
            fn value_bytes(&self) -> Bytes {
                match self { $($name::$variant(inner) => inner.value_bytes(),)+ }
            }
        }
    };
}

entry_iter_of!(Source: Memtable, Slice, Level, Chain);
entry_iter_of!(Stack: One, Many);

/// How a cursor passes what range tombstones hide.
#[derive(Clone, Copy)]
pub(crate) struct Leap<'a> {
    /// An internal key that no input goes past.
    pub target: &'a [u8],
    pub is_forward: bool,
    /// Everything older is hidden between an input's position and the target.
    pub below: SequenceNumber,
}

impl Leap<'_> {
    pub(super) fn run(&self, iter: &mut impl EntryIter) -> Result<()> {
        if self.is_forward { iter.seek(self.target) } else { iter.seek_for_prev(self.target) }
    }
}

impl Source {
    /// Moves to the target of `leap`, or as far as possible without passing a visible entry.
    /// `false`: the position is unchanged.
    pub(crate) fn leap(&mut self, leap: Leap<'_>) -> Result<bool> {
        match self {
            Source::Memtable(memtable) if memtable.sequence_max < leap.below => {
                leap.run(memtable).map(|()| true)
            }
            Source::Slice(slice) => slice.leap(leap),
            Source::Level(level) => level.leap(leap),
            Source::Memtable(_) | Source::Chain(_) => Ok(false),
        }
    }
}

impl Stack {
    fn leap(&mut self, leap: Leap<'_>) -> Result<bool> {
        match self {
            Stack::One(slice) => slice.leap(leap),
            Stack::Many(merge) => merge.leap(leap.target, |slice| slice.leap(leap)),
        }
    }

    /// The current readahead of the walk through it, in bytes, of all slices together.
    fn walk_bytes(&self) -> u32 {
        match self {
            Stack::One(slice) => slice.walk_bytes(),
            Stack::Many(merge) => {
                merge.children().iter().fold(0, |sum, slice| sum.saturating_add(slice.walk_bytes()))
            }
        }
    }
}

/// A level's nodes one after another; the stack of each is merged.
pub(crate) struct LevelIter {
    tree: Arc<TreeView>,
    level: usize,
    /// See [`SliceIter::open`].
    prefix: Key,
    options: IterOptions,
    /// The node that `stack` iterates.
    index: usize,
    stack: Option<Stack>,
}

impl LevelIter {
    pub(crate) fn new(
        tree: Arc<TreeView>,
        level: usize,
        prefix: Key,
        options: IterOptions,
    ) -> LevelIter {
        LevelIter { tree, level, prefix, options, index: 0, stack: None }
    }

    fn nodes(&self) -> &[Arc<NodeView>] {
        &self.tree.levels[self.level].nodes
    }

    /// Moves to node `index`; past the last one there is no stack.
    fn enter(&mut self, index: usize) -> Result<()> {
        if self.stack.is_some() && self.index == index {
            return Ok(());
        }
        self.open(index, 0)
    }

    /// Opens node `index` for a walk with a readahead of `walk_bytes`.
    fn open(&mut self, index: usize, walk_bytes: u32) -> Result<()> {
        self.stack = None;
        self.index = index;
        let Some(node) = self.tree.levels[self.level].nodes.get(index) else { return Ok(()) };
        let walk_bytes = walk_bytes / node.slices.len().max(1) as u32;
        let options = IterOptions { walk_bytes, ..self.options.clone() };
        let open = |slice| SliceIter::open(slice, &self.prefix, options.clone());
        self.stack = Some(match &node.slices[..] {
            [slice] => Stack::One(open(slice)?),
            slices => {
                Stack::Many(MergingIter::new(slices.iter().map(open).collect::<Result<_>>()?))
            }
        });
        Ok(())
    }

    fn note_seek(&self) {
        if let Some(node) = self.nodes().get(self.index) {
            node.note_seek(&self.tree.context);
        }
    }

    /// The walk's readahead at its current position, in bytes.
    fn walk_bytes(&self) -> u32 {
        self.stack.as_ref().map_or(0, Stack::walk_bytes)
    }

    /// Tells the store of the first reads of a walk through the opened node, in the slices' order
    /// on the medium: the slices of one file then take one arm movement instead of one each.
    fn announce(&self) -> Result<()> {
        let Some(Stack::Many(merge)) = &self.stack else { return Ok(()) };
        let slices = &self.tree.levels[self.level].nodes[self.index].slices;
        let mut order: Vec<_> = slices.iter().zip(merge.children()).collect();
        order.sort_unstable_by_key(|(slice, _)| slice.run.place());
        order.into_iter().try_for_each(|(_, iter)| iter.announce())
    }

    /// Passes whole nodes without visible entries, without opening them.
    fn leap(&mut self, leap: Leap<'_>) -> Result<bool> {
        let nodes = &self.tree.levels[self.level].nodes;
        let is_newer = |node: &NodeView| node.slices.iter().any(|s| s.sequence_max >= leap.below);
        let target = user_key(leap.target);
        // The next node that must be walked, this one included.
        let newer = if leap.is_forward {
            let ahead = nodes.iter().enumerate().skip(self.index);
            ahead.take_while(|(_, n)| *n.range().start < *target).find(|(_, n)| is_newer(n))
        } else {
            let ahead = nodes[..=self.index].iter().enumerate().rev();
            ahead.take_while(|(_, n)| n.range().is_before_end(target)).find(|(_, n)| is_newer(n))
        };
        let Some((newer, _)) = newer else { return leap.run(self).map(|()| true) };
        let is_here = newer == self.index;
        self.enter(newer)?;
        let Some(stack) = &mut self.stack else { return Ok(false) };
        let moved = match (is_here, leap.is_forward) {
            (true, _) => stack.leap(leap)?,
            (false, true) => stack.seek_to_first().map(|()| true)?,
            (false, false) => stack.seek_to_last().map(|()| true)?,
        };
        self.skip(leap.is_forward)?;
        Ok(moved)
    }

    fn skip(&mut self, forward: bool) -> Result<()> {
        if forward { self.skip_forward() } else { self.skip_backward() }
    }

    fn skip_forward(&mut self) -> Result<()> {
        while self.stack.as_ref().is_some_and(|stack| !stack.valid()) {
            self.open(self.index + 1, self.walk_bytes())?;
            self.announce()?;
            if let Some(stack) = &mut self.stack {
                stack.seek_to_first()?;
            }
        }
        Ok(())
    }

    fn skip_backward(&mut self) -> Result<()> {
        while self.stack.as_ref().is_some_and(|stack| !stack.valid()) {
            if self.index == 0 {
                self.stack = None;
                return Ok(());
            }
            self.open(self.index - 1, self.walk_bytes())?;
            if let Some(stack) = &mut self.stack {
                stack.seek_to_last()?;
            }
        }
        Ok(())
    }
}

impl EntryIter for LevelIter {
    fn seek_to_first(&mut self) -> Result<()> {
        self.enter(0)?;
        if let Some(stack) = &mut self.stack {
            stack.seek_to_first()?;
        }
        self.skip_forward()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        let Some(last) = self.nodes().len().checked_sub(1) else {
            self.stack = None;
            return Ok(());
        };
        self.enter(last)?;
        if let Some(stack) = &mut self.stack {
            stack.seek_to_last()?;
        }
        self.skip_backward()
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        let key = user_key(target);
        let level = &self.tree.levels[self.level];
        let after = level.first_after(key);
        let holds = after > 0 && level.nodes[after - 1].range().is_before_end(key);
        self.enter(if holds { after - 1 } else { after })?;
        self.note_seek();
        if let Some(stack) = &mut self.stack {
            stack.seek(target)?;
        }
        self.skip_forward()
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        let after = self.tree.levels[self.level].first_after(user_key(target));
        let Some(index) = after.checked_sub(1) else {
            self.stack = None;
            return Ok(());
        };
        self.enter(index)?;
        self.note_seek();
        if let Some(stack) = &mut self.stack {
            stack.seek_for_prev(target)?;
        }
        self.skip_backward()
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if let Some(stack) = &mut self.stack {
            stack.next()?;
            if stack.valid() {
                return Ok(());
            }
        }
        self.skip_forward()
    }

    fn prev(&mut self) -> Result<()> {
        if let Some(stack) = &mut self.stack {
            stack.prev()?;
        }
        self.skip_backward()
    }

    #[inline]
    fn valid(&self) -> bool {
        self.stack.as_ref().is_some_and(|stack| stack.valid())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        if let Some(stack) = &self.stack { stack.key() } else { &[] }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        if let Some(stack) = &self.stack { stack.value() } else { &[] }
    }

    fn value_bytes(&self) -> Bytes {
        self.stack.as_ref().map_or_else(|| Bytes::from(Vec::new()), |stack| stack.value_bytes())
    }
}

/// Slices with disjoint ranges, one after another, for background work: each is open, with a
/// buffer, only while it is read. It only goes forward from the first entry.
pub(crate) struct ChainIter {
    tables: Arc<TableCache>,
    /// The slices still to read; the next one is last.
    rest: Vec<(tree::Slice, KeyRange)>,
    options: IterOptions,
    current: Option<SliceIter>,
}

impl ChainIter {
    /// Reads each slice inside the range beside it, in key order.
    pub(crate) fn new(
        tables: Arc<TableCache>,
        mut slices: Vec<(tree::Slice, KeyRange)>,
        options: IterOptions,
    ) -> ChainIter {
        slices.reverse();
        ChainIter { tables, rest: slices, options, current: None }
    }

    fn skip_forward(&mut self) -> Result<()> {
        while !self.valid() {
            // Frees the buffer of the last slice before that of the next is made.
            self.current = None;
            let Some((slice, range)) = self.rest.pop() else { return Ok(()) };
            let clip = (!range.covers(&slice.run.range)).then_some(range);
            let in_part = clip.is_some();
            let run =
                self.tables.handle(&slice.run).open_for_rewrite(in_part, self.options.cause)?;
            // Other slices of this run need the same index blocks. Parts of one rewrite share only
            // the blocks at their ends; all others would stay in the cache unused.
            let fill_cache = !slice.range.covers(&slice.run.range);
            let options = IterOptions { fill_cache, ..self.options.clone() };
            let mut iter = SliceIter::new(run.iter(options), clip, slice.run.sequence_max);
            iter.seek_to_first()?;
            self.current = Some(iter);
        }
        Ok(())
    }

    fn only_forward() -> Result<()> {
        Err(Error::invalid("a chain of slices is read forward, from its first entry"))
    }
}

impl EntryIter for ChainIter {
    fn seek_to_first(&mut self) -> Result<()> {
        if self.current.is_some() { ChainIter::only_forward() } else { self.skip_forward() }
    }

    fn seek_to_last(&mut self) -> Result<()> {
        ChainIter::only_forward()
    }

    fn seek(&mut self, _: &[u8]) -> Result<()> {
        ChainIter::only_forward()
    }

    fn seek_for_prev(&mut self, _: &[u8]) -> Result<()> {
        ChainIter::only_forward()
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if let Some(current) = &mut self.current {
            current.next()?;
            if current.valid() {
                return Ok(());
            }
        }
        self.skip_forward()
    }

    fn prev(&mut self) -> Result<()> {
        ChainIter::only_forward()
    }

    #[inline]
    fn valid(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.valid())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        if let Some(current) = &self.current { current.key() } else { &[] }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        if let Some(current) = &self.current { current.value() } else { &[] }
    }

    fn value_bytes(&self) -> Bytes {
        self.current.as_ref().map_or_else(Bytes::default, |current| current.value_bytes())
    }
}
