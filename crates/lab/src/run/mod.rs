//! One run: an engine on a model of a device in virtual time, phase after phase, to a flat map of
//! named metrics.
//!
//! Invariant: nothing but the settings, and the trace that a phase replays, has influence; there is
//! no clock and no thread.

mod machine;
mod metrics;
mod phases;
mod probe;
mod replay;

use crate::experiment::Phase;
use crate::settings::Settings;
use base::{Error, Result};
use machine::Machine;
use std::collections::BTreeMap;

pub use metrics::CATALOGUE;
pub use phases::distinct_share;
#[cfg(test)]
pub(crate) use phases::scan_pairs;
pub use replay::operations as operations_of_trace;

/// Metrics of a run by `phase.metric`.
pub type Metrics = BTreeMap<String, f64>;

/// Runs the phases under `settings`.
pub fn execute(settings: &Settings, phases: &[Phase]) -> Result<Metrics> {
    let mut metrics = Metrics::new();
    if settings.is_on("raw") {
        return phases::raw(settings, phases);
    }
    let mut machine = Machine::new(settings)?;
    for (index, phase) in phases.iter().enumerate() {
        let explain = |error: Error| {
            let message = format!("phase {}: {}", phase.name, error.message());
            Error::new(error.kind(), message)
        };
        let settings = settings.with(&phase.settings).map_err(explain)?;
        let measured = phases::run(&mut machine, &settings, index as u64).map_err(explain)?;
        let named = |(name, value): (&str, f64)| (format!("{}.{name}", phase.name), value);
        metrics.extend(measured.into_iter().map(named));
    }
    machine.close()?;
    Ok(metrics)
}

/// The text that two runs share if and only if they are the same.
pub fn identity(settings: &Settings, phases: &[Phase]) -> String {
    let traces: Vec<String> = phases.iter().filter_map(|p| replay::identity(settings, p)).collect();
    format!("{:?} {:?} {phases:?}{}", settings.scale(), settings.map(), traces.concat())
}
