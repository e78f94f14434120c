//! Why a plan is made.

use crate::plan::{Move, Plan, Reason};

/// Reason and urgency of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Why {
    pub(super) reason: Reason,
    pub(super) score: f64,
}

impl Why {
    /// A plan that rewrites `bytes`.
    pub(super) fn plan(self, action: Move, bytes: u64) -> Plan {
        Plan::new(action, self.reason, self.score, bytes)
    }
}
