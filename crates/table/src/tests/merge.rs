//! The merge of several runs against their sorted union.

use super::*;
use crate::{IterOptions, MergingIter};
use base::EntryKind;
use base::key::{compare_internal, internal_key};
use proptest::prelude::*;

/// A step of a walk.
#[derive(Clone, Debug)]
enum Step {
    First,
    Last,
    Seek(u8),
    SeekForPrev(u8),
    Next,
    Prev,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => Just(Step::First),
        1 => Just(Step::Last),
        2 => any::<u8>().prop_map(Step::Seek),
        2 => any::<u8>().prop_map(Step::SeekForPrev),
        8 => Just(Step::Next),
        8 => Just(Step::Prev),
    ];
    prop::collection::vec(step, 1..120)
}

fn key(n: u8, sequence: u64) -> Vec<u8> {
    internal_key(&[n / 4], sequence, EntryKind::Put)
}

proptest! {
    #[test]
    fn a_merge_walks_like_one_sorted_list(
        list in prop::collection::btree_map((any::<u8>(), 0u64..50), 0usize..9, 0..150),
        steps in steps(),
    ) {
        let mut children = vec![Entries::new(); 9];
        let mut all = Entries::new();
        for (n, ((k, sequence), child)) in list.into_iter().enumerate() {
            let entry = (key(k, sequence * 1000 + n as u64), vec![n as u8]);
            children[child].push(entry.clone());
            all.push(entry);
        }
        let sort = |list: &mut Entries| list.sort_by(|a, b| compare_internal(&a.0, &b.0));
        children.iter_mut().for_each(sort);
        sort(&mut all);
        let cache = BlockCache::new(1 << 20);
        let iters = children.iter().map(|entries| {
            let (file, summary) = write_run(&TableOptions::default(), entries, &[]);
            let run = open(&file, &summary, &cache).unwrap();
            Box::new(run.iter(IterOptions::cached(Cause::Scan))) as Box<dyn EntryIter>
        });
        let mut merge = MergingIter::new(iters.collect());
        prop_assert_eq!(&collect(&mut merge).unwrap(), &all);
        let mut at: Option<usize> = None;
        for step in steps {
            at = match step {
                Step::First => { merge.seek_to_first().unwrap(); Some(0) }
                Step::Last => { merge.seek_to_last().unwrap(); all.len().checked_sub(1) }
                Step::Seek(n) => {
                    let target = key(n, 25_000);
                    merge.seek(&target).unwrap();
                    Some(all.partition_point(|e| compare_internal(&e.0, &target).is_lt()))
                }
                Step::SeekForPrev(n) => {
                    let target = key(n, 25_000);
                    merge.seek_for_prev(&target).unwrap();
                    all.partition_point(|e| compare_internal(&e.0, &target).is_le()).checked_sub(1)
                }
                Step::Next => { merge.next().unwrap(); at.map(|at| at + 1) }
                Step::Prev => { merge.prev().unwrap(); at.and_then(|at| at.checked_sub(1)) }
            };
            at = at.filter(|&at| at < all.len());
            let expected = at.map(|at| (&all[at].0[..], &all[at].1[..]));
            let found = merge.valid().then(|| (merge.key(), merge.value()));
            prop_assert_eq!(found, expected);
        }
    }
}

#[test]
fn an_error_of_a_child_stays_the_error_of_the_merge() {
    let entries: Entries = (0..200u8).map(|n| (key(n, 999 - u64::from(n)), vec![n; 90])).collect();
    let (whole, summary) = write_run(&TableOptions::default(), &entries[..3].to_vec(), &[]);
    let (file, damaged) = write_run(&TableOptions::default(), &entries[3..].to_vec(), &[]);
    let mut bytes = file.bytes();
    bytes[9000] ^= 1;
    let cache = BlockCache::new(1 << 20);
    let runs = [
        open(&whole, &summary, &cache).unwrap(),
        open(&MemoryFile::with(bytes), &damaged, &cache).unwrap(),
    ];
    let iters = runs.iter().map(|run| run.iter(IterOptions::cached(Cause::Scan)));
    let mut merge = MergingIter::new(iters.collect());
    let error = collect(&mut merge).unwrap_err();
    assert_eq!(error.kind(), base::ErrorKind::Corruption);
    for again in [merge.next(), merge.prev(), merge.seek_to_first(), merge.seek(&entries[0].0)] {
        assert_eq!(again.unwrap_err().message(), error.message());
        assert!(!merge.valid() && merge.key().is_empty() && merge.value().is_empty());
    }
}
