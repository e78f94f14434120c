//! Doors for tests: the tree as it stands, moves that no policy makes, what is due.

use super::db::Keyspace;
use crate::engine::requests;
use crate::engine::values::gc;
use base::Result;
use std::sync::Arc;
use tree::{Plan, Version};
use values::Collection;

impl Keyspace {
    /// The tree of now.
    pub fn tree_for_test(&self) -> Result<Arc<Version>> {
        Ok(self.engine().versions.lock().tree(self.id())?.version.clone())
    }

    /// Begins `plan` as if a policy had picked it; background steps end it. `false`: it does not
    /// fit the tree of now, and nothing happened.
    pub fn begin_plan_for_test(&self, plan: Plan) -> Result<bool> {
        requests::begin_plan(self.engine(), self.id(), plan)
    }

    /// Writes go to a new memtable; the one there was waits for its flush, which is not asked for.
    pub fn seal_for_test(&self) -> Result<()> {
        let engine = self.engine();
        engine.commits.seal(&mut engine.commits.lock(), &[self.id()])
    }

    /// Has a flush of everything written so far made by the background steps to come.
    pub fn ask_flush_for_test(&self) -> Result<()> {
        let engine = self.engine();
        engine.commits.request_flush(self.id(), engine.snapshots.visible())
    }

    /// Memory that waits for memtables to come.
    pub fn kept_memory_for_test(&self) -> u64 {
        self.engine().memory.chunks().kept_bytes()
    }

    /// The part of this memory that has huge pages, as far as the system has them.
    pub fn huge_memory_for_test(&self) -> u64 {
        self.engine().memory.chunks().huge_bytes()
    }

    /// Memtables get this number of further chunks of memory and then none; `None`: no limit.
    pub fn give_memory_for_test(&self, chunks: Option<usize>) {
        self.engine().memory.chunks().give_only(chunks);
    }

    /// What a GC that began now would read.
    pub fn due_collection_for_test(&self) -> Result<Option<Collection>> {
        let engine = self.engine();
        Ok(gc::pick(engine, engine.versions.lock().tree(self.id())?))
    }
}
