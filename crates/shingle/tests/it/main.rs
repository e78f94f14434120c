//! Tests of the whole engine against a model: equal answers on every configuration, recovery from
//! every crash, correct behaviour on every fault.
//!
//! `SHINGLE_TEST_SCALE` multiplies the volume; `SHINGLE_TEST_SEED` runs one seed.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

mod active_segments;
mod adapt;
mod archive;
mod backups;
mod bands;
mod begun_segments;
mod changes;
mod checkpoints;
mod clock;
mod closing;
mod cold;
mod config;
mod copies;
mod crash;
mod deletions;
mod events;
mod examples;
mod expiry;
mod fault;
mod filters;
mod follow;
mod gc_space;
mod guarded;
mod handles;
mod handover;
mod history;
mod ingest;
mod kill;
mod limits;
mod links;
mod long_calls;
mod maintenance;
mod manual;
mod medium;
mod metamorphic;
mod mirror;
mod model;
mod moves;
mod operators;
mod other_stores;
mod parts;
mod plain;
mod poisoned;
mod reads;
mod refusals;
mod regressions;
mod reserve;
mod run;
mod schedule;
mod script;
mod serial;
mod synced_logs;
mod threads;
mod together;
mod transactions;
mod values;
mod volume;
mod watched;
mod woken;
