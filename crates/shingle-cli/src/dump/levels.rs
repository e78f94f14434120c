//! `dump tree`: the tree that a manifest leads to, as text and as a picture.

use super::{Dump, picture};
use crate::failure::{Failure, Outcome};
use crate::text::brief;
use crate::units;
use base::{Cause, Error, KeyspaceId, Result};
use media::FileName;
use std::path::Path;
use std::sync::Arc;
use table::log::{LogIdentity, LogKind, LogReader};
use table::manifest::decode_edit;
use tree::version::Node;
use tree::{ObsoleteFiles, RunTable, Version};

impl Dump<'_, '_> {
    pub(super) fn tree(&mut self, svg: Option<&Path>) -> Outcome {
        let keyspace = self.context.global.keyspace.clone();
        let version = self.known_version(&keyspace)?;
        let Some(path) = svg else { return self.levels(&version) };
        self.draw(path, &picture::svg(&version, &format!("The tree of keyspace {keyspace}")))
    }

    /// The tree of a keyspace that must be there.
    pub(super) fn known_version(&self, keyspace: &str) -> Outcome<Version> {
        self.version(keyspace)?.ok_or_else(|| {
            Failure::said(
                format!("there is no keyspace {keyspace}"),
                "list them with `shingle keyspace list`",
            )
        })
    }

    /// The tree of a keyspace, by the edits of the manifest. None: there is no such keyspace.
    fn version(&self, keyspace: &str) -> Result<Option<Version>> {
        let name = FileName::manifest(self.root.manifest);
        let file = self.store.open(name, false)?;
        let (database, kind) = (self.database, LogKind::Manifest);
        let identity = LogIdentity { database, file: name.id, kind };
        let bytes_min = self.root.manifest_bytes_min;
        let mut reader = LogReader::open(&*file, identity, bytes_min, Cause::Check)?;
        let mut found: Option<(KeyspaceId, Version, RunTable)> = None;
        while let Some(record) = reader.next()? {
            let edit = decode_edit(record.payload, name, record.offset)?;
            found = found.filter(|(id, ..)| !edit.dropped.contains(id));
            if let Some(created) = edit.created.iter().find(|record| record.name == keyspace) {
                let runs = RunTable::new(Arc::new(ObsoleteFiles::default()));
                found = Some((created.id, Version::empty(base::cause::LEVELS_MAX), runs));
            }
            let Some((id, version, runs)) = &mut found else { continue };
            for part in edit.keyspaces.iter().filter(|part| part.keyspace == *id) {
                let applied = version.apply(&part.changes, runs);
                let at = |error: Error| error.in_file(name.to_string()).at(record.offset);
                *version = applied.map_err(at)?;
            }
        }
        Ok(found.map(|(_, version, _)| version))
    }

    fn levels(&mut self, version: &Version) -> Outcome {
        for (number, level) in version.levels.iter().enumerate() {
            if level.nodes.iter().all(|node| node.slices.is_empty()) {
                continue;
            }
            let (nodes, bytes) = (level.nodes.len() as u64, units::bytes(level.bytes()));
            self.line(&format!("level {number}: {} nodes, {bytes}", units::count(nodes)))?;
            for node in level.nodes.iter() {
                self.node(node)?;
            }
        }
        for usage in version.files() {
            let name = FileName::table(usage.file.id);
            let (live, total) = (usage.live_bytes, usage.total_bytes);
            let share = units::share(live, total);
            self.line(&format!("{name}: {}, {share} of it live", units::bytes(total)))?;
        }
        Ok(())
    }

    fn node(&mut self, node: &Node) -> Outcome {
        let end = node.range.end.as_deref().map_or("the end".into(), brief);
        self.line(&format!("  node {}: from {} to {end}", node.id.0, brief(&node.range.start)))?;
        for slice in &node.slices {
            let part = if slice.is_whole() { "" } else { "a part of " };
            let (run, name) = (slice.run.id, FileName::table(slice.run.file.id));
            let bytes = units::bytes(slice.bytes);
            self.line(&format!("    {part}run {run} in {name}, {bytes}"))?;
        }
        Ok(())
    }
}
