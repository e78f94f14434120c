//! Tests of the metrics: every number is there, under a conventional name, and reads back from the
//! text formats.

#![allow(clippy::unwrap_used, missing_docs)]

mod alerts;
mod board;
mod complete;
mod database;
mod format;
mod manual;
mod otel;
mod parser;
mod query;
mod serve;
