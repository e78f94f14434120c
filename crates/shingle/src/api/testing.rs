//! Doors for tests: the tree as it stands, and moves that no policy makes.

use super::db::Keyspace;
use crate::engine::scheduler;
use base::Result;
use std::sync::Arc;
use tree::{Plan, Version};

impl Keyspace {
    /// The tree of now.
    pub fn tree_for_test(&self) -> Result<Arc<Version>> {
        Ok(self.engine().lock_trees().tree(self.id())?.version.clone())
    }

    /// Begins `plan` as if a policy had picked it; background steps end it. `false`: it does not
    /// fit the tree of now, and nothing happened.
    pub fn begin_plan_for_test(&self, plan: Plan) -> Result<bool> {
        scheduler::begin_plan(self.engine(), self.id(), plan)
    }
}
