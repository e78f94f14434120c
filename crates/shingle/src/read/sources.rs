//! What a cursor merges, newest first: the memtables, and what the tree has.

use super::slice_iter::SliceIter;
use super::source::{LevelIter, MemtableIter, Source};
use super::view::{LevelView, ReadView};
use base::key::prefix_end;
use base::{KeyRange, Result};
use std::sync::Arc;
use table::IterOptions;

/// The memtables that have entries, and the slices or levels of the tree.
pub(super) fn sources(
    view: &Arc<ReadView>,
    bounds: &KeyRange,
    options: &IterOptions,
) -> Result<Vec<Source>> {
    let prefix = common_prefix(bounds);
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

/// The longest prefix that all keys of the range have; empty where they have none in common.
fn common_prefix(range: &KeyRange) -> &[u8] {
    let is_whole = |bytes: &usize| match prefix_end(&range.start[..*bytes]) {
        None => true,
        Some(last) => range.end.as_ref().is_some_and(|end| **end <= *last),
    };
    let bytes = (1..=range.start.len()).take_while(is_whole).last().unwrap_or(0);
    &range.start[..bytes]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_prefix_is_that_of_every_key() {
        let range = |start: &[u8], end: Option<&[u8]>| KeyRange {
            start: start.into(),
            end: end.map(Into::into),
        };
        assert_eq!(common_prefix(&KeyRange::prefix(b"ab")), b"ab");
        assert_eq!(common_prefix(&KeyRange::prefix(b"a\xff")), b"a\xff");
        assert_eq!(common_prefix(&range(b"abc", Some(b"abd"))), b"abc");
        assert_eq!(common_prefix(&range(b"abc", Some(b"abx"))), b"ab");
        assert_eq!(common_prefix(&range(b"abc", Some(b"ac"))), b"ab");
        assert_eq!(common_prefix(&range(b"abc", Some(b"ac\0"))), b"a");
        assert_eq!(common_prefix(&range(b"abc", Some(b"b"))), b"a");
        assert_eq!(common_prefix(&range(b"abc", Some(b"c"))), b"");
        assert_eq!(common_prefix(&range(b"abc", None)), b"");
        assert_eq!(common_prefix(&range(b"\xff", None)), b"\xff");
        assert_eq!(common_prefix(&KeyRange::all()), b"");
    }
}
