//! `ingest`: brings sorted files into a keyspace.

use crate::args::IngestArgs;
use crate::context::Context;
use crate::failure::Outcome;
use crate::open::Access;
use crate::units::{self, counted};
use serde_json::json;
use shingle::IngestOptions;
use std::time::Instant;

/// `shingle ingest`.
pub fn ingest(context: &mut Context, args: IngestArgs) -> Outcome {
    context.check_no_batch("ingest")?;
    let db = context.open(Access::Create)?;
    let keyspace = context.keyspace(&db, Access::Create)?;
    let start = Instant::now();
    let options =
        IngestOptions { move_files: args.move_files, verify: !args.no_verify, below: args.below };
    let done = keyspace.ingest(&args.files, &options)?;
    db.close()?;
    let ns = start.elapsed().as_nanos() as u64;
    if context.global.json {
        return context.json(&json!({
            "files": done.files,
            "files_below_level0": done.files_below_level0,
            "entries": done.entries,
            "bytes": done.bytes,
            "copied_bytes": done.copied_bytes,
            "ns": ns,
        }));
    }
    let (files, entries) = (counted(done.files, "file"), units::count(done.entries));
    let (bytes, copied) = (units::bytes(done.bytes), units::bytes(done.copied_bytes));
    let time = units::time(ns);
    context.remark(&format!(
        "ingested {files}, {entries} entries, {bytes} in {time}; {copied} copied"
    ));
    Ok(())
}
