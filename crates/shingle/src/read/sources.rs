//! What a cursor merges, newest first: the memtables, and what the tree has.

use super::source::{LevelIter, MemtableIter, SliceIter, Source};
use super::view::{LevelView, ReadView};
use base::{KeyRange, Result};
use std::sync::Arc;
use table::IterOptions;

/// The memtables that have entries, and the slices or levels of the tree.
pub(super) fn sources(
    view: &Arc<ReadView>,
    bounds: &KeyRange,
    options: &IterOptions,
) -> Result<Vec<Source>> {
    let prefix = bounds.common_prefix();
    let levels = &view.tree.levels;
    let count = |level: &Arc<LevelView>| match &level.nodes[..] {
        [node] => node.slices.len(),
        nodes => nodes.len().min(1),
    };
    let slices: usize = levels.iter().map(count).sum();
    let mut sources = Vec::with_capacity(1 + view.sealed.len() + slices);
    // Entries that come into an empty memtable later are newer than the cursor.
    for memtable in view.memtables().filter(|memtable| memtable.entries() > 0) {
        sources.push(Source::Memtable(MemtableIter::new(memtable)));
    }
    for (index, level) in levels.iter().enumerate() {
        match level.nodes.as_slice() {
            [] => {}
            // A single node's stack needs no merge of its own.
            [node] => {
                for slice in &node.slices {
                    sources.push(Source::Slice(SliceIter::open(slice, prefix, options.clone())?));
                }
            }
            _ => sources.push(Source::Level(LevelIter::new(
                view.tree.clone(),
                index,
                prefix.into(),
                options.clone(),
            ))),
        }
    }
    Ok(sources)
}
