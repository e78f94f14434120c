//! Leveled compaction that writes little; see the module above.

use super::candidates::{Candidate, Why};
use super::{SHAPE, manual};
use crate::invariant::Shape;
use crate::plan::{Plan, Reason};
use crate::policy::{Debt, Policy, View};
use crate::version::Slice;
use base::KeyRange;

/// Leveled compaction with sizes that follow the data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Modern;

impl Policy for Modern {
    fn name(&self) -> &'static str {
        super::MODERN.name
    }

    fn shape(&self) -> Shape {
        SHAPE
    }

    fn pick(&self, view: &View<'_>) -> Option<Plan> {
        let slices: Vec<&Slice> = view.version.level0().iter().collect();
        if slices.len() < view.limits.level0_runs_trigger {
            return None;
        }
        let last = view.limits.levels - 1;
        let why = Why { reason: Reason::Level0Runs, score: 1.0 };
        let plan = Candidate::level0(view.version, &slices, last).plan(view, last, true, why);
        (!view.busy.conflicts(view.version, &plan)).then_some(plan)
    }

    fn scores(&self, view: &View<'_>) -> Vec<f64> {
        let runs = view.version.level0().len() as f64;
        vec![runs / view.limits.level0_runs_trigger as f64]
    }

    fn debt(&self, view: &View<'_>) -> Debt {
        Debt { level0_runs: view.version.level0().len() as u64, pending_bytes: 0 }
    }

    fn pick_manual(&self, view: &View<'_>, range: &KeyRange, to_level: Option<u8>) -> Option<Plan> {
        manual::pick(view, range, to_level)
    }
}
