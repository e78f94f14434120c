//! The figures and tables of the five papers, rerun on models of their devices and held against
//! what the papers say.
//!
//! Everything about a figure is data in `data/`: [`paper`] has the systems and [`scale`]s of a
//! paper, [`experiment`] the runs of a figure and the [`expression`]s that link each value of a
//! [`claim`] to their metrics, [`rules`] when a value holds, and [`null`] what would be measured
//! without the paper's idea. The code knows no figure: [`settings`]
//! turns names and values of the papers' sizes into those of a scale, [`run`] executes one run on
//! the engine in virtual time, [`schedule`] all that differ, and [`compare`] makes the verdicts.
//!
//! Invariants: a run has no other input than its settings and its scale, so two runs give the same
//! figures to the last digit; nothing here has a figure of its own to fall back on.

pub mod claim;
pub mod compare;
pub mod data;
pub mod experiment;
pub mod expression;
pub mod null;
pub mod paper;
pub mod rules;
pub mod run;
pub mod scale;
pub mod schedule;
pub mod settings;
pub mod spread;
#[cfg(test)]
mod tests;

pub use claim::Claim;
pub use compare::{ClaimResult, Findings, ValueResult, Verdict};
pub use data::Library;
pub use experiment::Experiment;
pub use paper::Paper;
pub use run::Metrics;
pub use scale::Scale;
pub use spread::{ClaimSpread, ValueSpread};
