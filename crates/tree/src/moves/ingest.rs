//! The edits that bring sorted files in, above what is there or below it.

use crate::edit::{Change, RunRecord, SliceRecord};
use crate::version::{BELOW_LEVEL, LEVEL0_NODE, NodeId, Version};
use base::{DatabaseId, KeyRange};

/// A sorted file that is to come in: one run in a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestedRun {
    /// Its run, newer than all that the version holds of its keys.
    pub run: RunRecord,
    /// What the checksums of the file know in place of the database.
    pub identity: DatabaseId,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// The level that it is for. Where that level or one above has a key of its range by now, it
    /// goes to level 0.
    pub to_level: u8,
}

/// Runs with disjoint ranges become nodes of their levels, or go on top of level 0. The keyspace
/// has nothing in memory: everything up to their sequence number is in runs. No log has that
/// number, so this is what tells a change feed of it.
pub fn ingest(version: &Version, runs: &[IngestedRun]) -> Vec<Change> {
    let mut changes = arrivals(runs);
    let mut next_node = version.next_node;
    let mut on_top: Vec<SliceRecord> = Vec::new();
    for IngestedRun { run, to_level, .. } in runs {
        if *to_level == 0 || !is_clear(version, *to_level, &run.range) {
            on_top.push(SliceRecord::whole(run));
            continue;
        }
        let (level, node, range) = (*to_level, NodeId(next_node), run.range.clone());
        changes.push(Change::AddNode { level, node, range, slices: vec![SliceRecord::whole(run)] });
        next_node += 1;
    }
    if !on_top.is_empty() {
        changes.push(Change::PushSlices { level: 0, node: LEVEL0_NODE, slices: on_top });
    }
    let newest = runs.iter().map(|run| run.run.sequence_max).max();
    changes.extend(newest.map(|sequence| Change::SetFlushed { sequence }));
    changes
}

/// Runs with disjoint ranges become nodes of [`BELOW_LEVEL`]. The first of them whose range that
/// level holds already is returned instead: what came first would hide it.
pub fn ingest_below<'a>(
    version: &Version,
    runs: &'a [IngestedRun],
) -> Result<Vec<Change>, &'a IngestedRun> {
    let below = version.level(BELOW_LEVEL);
    if let Some(held) = runs.iter().find(|run| !below.overlap(&run.run.range).is_empty()) {
        return Err(held);
    }
    let mut changes = arrivals(runs);
    let nodes = (version.next_node..).zip(runs).map(|(node, IngestedRun { run, .. })| {
        let (level, node, range) = (BELOW_LEVEL, NodeId(node), run.range.clone());
        Change::AddNode { level, node, range, slices: vec![SliceRecord::whole(run)] }
    });
    changes.extend(nodes);
    Ok(changes)
}

/// The files of `runs`, and the runs.
fn arrivals(runs: &[IngestedRun]) -> Vec<Change> {
    let changes = runs.iter().flat_map(|IngestedRun { run, identity, file_bytes, .. }| {
        let (file, bytes, identity) = (run.file, *file_bytes, *identity);
        [Change::IngestedFile { file, bytes, identity }, Change::AddRun(run.clone())]
    });
    changes.collect()
}

/// The levels down to `level` have no key of `range`, and `level` has no node there.
fn is_clear(version: &Version, level: u8, range: &KeyRange) -> bool {
    let above = (0..level).flat_map(|above| version.level(above).overlap(range));
    let mut slices = above.flat_map(|node| &node.slices);
    !slices.any(|slice| slice.range.overlaps(range))
        && version.level(level).overlap(range).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariant::{self, Shape};
    use crate::{KnownKeys, ObsoleteFiles, RunTable};
    use base::{FileId, RunId};
    use std::sync::Arc;

    fn run(id: u64, keys: (&[u8], &[u8]), sequence: u64, to_level: u8) -> IngestedRun {
        let range = KeyRange::closed(keys.0, keys.1);
        let run = RunRecord {
            id: RunId(id),
            file: FileId(id),
            offset: 36,
            bytes: 100,
            range,
            entries: 2,
            deletes: 0,
            range_deletes: 0,
            sequence_min: sequence,
            sequence_max: sequence,
            expiry: None,
            keys: KnownKeys::default(),
        };
        IngestedRun { run, identity: DatabaseId(7), file_bytes: 136, to_level }
    }

    #[test]
    fn a_file_goes_to_its_level_where_that_is_clear_and_to_level_0_elsewhere() {
        let mut table = RunTable::new(Arc::new(ObsoleteFiles::default()));
        let mut version = Version::empty(4);
        let mut add = |runs: &[IngestedRun]| {
            let changes = ingest(&version, runs);
            version = version.apply(&changes, &mut table).unwrap();
            invariant::check(&version, &Shape::ANY).unwrap();
            version.levels.iter().map(|level| level.nodes.len()).collect::<Vec<_>>()
        };
        assert_eq!(add(&[run(1, (b"a", b"c"), 1, 3), run(2, (b"d", b"f"), 1, 3)]), [1, 0, 0, 2]);
        assert_eq!(add(&[run(3, (b"b", b"e"), 2, 3), run(4, (b"x", b"y"), 2, 2)]), [1, 0, 1, 2]);
        assert_eq!(add(&[run(5, (b"e", b"e"), 3, 1)]), [1, 0, 1, 2]);
        assert_eq!(version.level0().iter().map(|s| s.run.id.0).collect::<Vec<_>>(), [5, 3]);
        assert_eq!(version.flushed_sequence, 3);
        let mut replayed = RunTable::new(Arc::new(ObsoleteFiles::default()));
        let again = Version::empty(4).apply(&version.snapshot_changes(), &mut replayed).unwrap();
        assert!(again == version);
        assert!(again.slices().all(|slice| slice.run.file.identity == Some(DatabaseId(7))));
    }

    #[test]
    fn a_file_below_lies_under_every_level_where_no_policy_sees_it() {
        let mut table = RunTable::new(Arc::new(ObsoleteFiles::default()));
        let mut version = Version::empty(BELOW_LEVEL + 1);
        let below = run(1, (b"a", b"m"), 0, 0);
        let changes = ingest_below(&version, std::slice::from_ref(&below)).unwrap();
        version = version.apply(&changes, &mut table).unwrap();
        version =
            version.apply(&ingest(&version, &[run(2, (b"b", b"c"), 5, 0)]), &mut table).unwrap();
        invariant::check(&version, &Shape::ANY).unwrap();
        let path: Vec<u64> = version.path(b"b").map(|node| node.slices[0].run.id.0).collect();
        assert_eq!(path, [2, 1]);
        let seen = Arc::new(version.clone()).without_below();
        assert_eq!(seen.slices().map(|slice| slice.run.id.0).collect::<Vec<_>>(), [2]);
        // What policies do not see must not look like garbage.
        assert_eq!((version.file_bytes(), seen.file_bytes()), (2 * 136, 136));
        let twice = [run(3, (b"n", b"z"), 0, 0), run(4, (b"m", b"m"), 0, 0)];
        assert_eq!(ingest_below(&version, &twice).unwrap_err().run.id, RunId(4));
    }

    #[test]
    fn an_ingested_file_has_one_sequence_number_and_a_number_of_its_own() {
        let mut table = RunTable::new(Arc::new(ObsoleteFiles::default()));
        let mut mixed = run(1, (b"a", b"c"), 1, 0);
        mixed.run.sequence_max = 2;
        let changes = ingest(&Version::empty(2), &[mixed]);
        assert!(Version::empty(2).apply(&changes, &mut table).is_err());
        let twice = [run(1, (b"a", b"c"), 1, 0), run(1, (b"d", b"e"), 1, 0)];
        let changes = ingest(&Version::empty(2), &twice);
        assert!(Version::empty(2).apply(&changes, &mut table).is_err());
    }
}
