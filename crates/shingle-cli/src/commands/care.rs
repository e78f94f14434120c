//! `check`, `compact`, `checkpoint`, `salvage`.

use crate::args::{CompactArgs, TargetArgs};
use crate::commands::data::argument;
use crate::context::{Access, Context};
use crate::failure::{Failure, Outcome};
use crate::units;
use serde_json::json;
use shingle::ErrorKind;

/// `shingle check`.
pub fn check(context: &mut Context) -> Outcome {
    let place = context.place()?;
    let (path, files) = (&place.path, place.files());
    let bar = context.bar("check", 1);
    let report = files.and_then(|files| shingle::check_store(files, &mut |each| bar.show(&each)));
    let report = match report {
        Err(error) if error.kind() == ErrorKind::Locked => context
            .open_beside(&place, context.options()?.absent_operators(true), error)
            .and_then(|db| db.check(&mut |each| bar.show(&each))),
        report => report,
    };
    drop(bar);
    let report = report.map_err(|error| context.explain(path, error))?;
    let problems = &report.problems;
    if context.global.json {
        context.json(&json!({
            "ok": report.is_clean(),
            "files": report.files,
            "bytes": report.bytes,
            "entries": report.entries,
            "problems": problems,
        }))?;
    } else {
        let (files, bytes) = (counted(report.files, "file"), units::bytes(report.bytes));
        writeln!(context.out, "checked {files}, {bytes}")?;
        for problem in problems {
            writeln!(context.out, "damage: {problem}")?;
        }
        if problems.is_empty() {
            writeln!(context.out, "everything is as it was written")?;
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure::said(
        format!("{} is damaged, in {}", path.display(), counted(problems.len() as u64, "place")),
        "restore from a checkpoint, or keep the files and run `shingle salvage`",
    ))
}

/// `1 file`, `2 files`.
fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", units::count(count))
}

/// `shingle compact`.
pub fn compact(context: &mut Context, args: CompactArgs) -> Outcome {
    let from = args.from.as_deref().map(|key| argument(context, key)).transpose()?;
    let to = args.to.as_deref().map(|key| argument(context, key)).transpose()?;
    let db = context.open(Access::Change)?;
    let before = db.stats().space_bytes;
    if args.all {
        for name in db.keyspaces() {
            db.keyspace(&name)?.compact_range(None, None)?;
        }
    } else {
        context.keyspace(&db, Access::Change)?.compact_range(from.as_deref(), to.as_deref())?;
    }
    db.wait_idle()?;
    db.close()?;
    // The files that the compaction replaced are gone when the database is closed.
    let files = context.place()?.files()?.list()?;
    let after = files.iter().map(|file| file.bytes).sum::<u64>();
    if context.global.json {
        return context.json(&json!({ "space_bytes_before": before, "space_bytes_after": after }));
    }
    let (before, after) = (units::bytes(before), units::bytes(after));
    writeln!(context.out, "compacted: {before} before, {after} now")?;
    Ok(())
}

/// `shingle checkpoint`.
pub fn checkpoint(context: &mut Context, args: TargetArgs) -> Outcome {
    let db = context.open(Access::Change)?;
    db.checkpoint(&args.target)?;
    db.close()?;
    if context.global.json {
        return context.json(&json!({ "target": args.target.display().to_string() }));
    }
    writeln!(context.out, "checkpoint: {}", args.target.display())?;
    Ok(())
}

/// `shingle salvage`.
pub fn salvage(context: &mut Context, args: TargetArgs) -> Outcome {
    let source = context.place()?;
    if args.target.exists() {
        return Err(Failure::said(
            format!("{} exists", args.target.display()),
            "salvage writes a new directory only",
        ));
    }
    let bar = context.bar("salvage", 1);
    let options = context.options()?;
    let report = source.files().and_then(|files| {
        let mut show = |progress| bar.show(&progress);
        shingle::salvage_store(files, &args.target, options, &mut show)
    });
    drop(bar);
    let report = report.map_err(|error| context.explain(&source.path, error))?;
    if context.global.json {
        return context.json(&json!({
            "target": args.target.display().to_string(),
            "entries": report.entries,
            "runs": report.runs,
            "losses": report.losses,
        }));
    }
    for loss in &report.losses {
        writeln!(context.out, "lost: {loss}")?;
    }
    let (entries, runs) = (units::count(report.entries), units::count(report.runs));
    writeln!(context.out, "saved {entries} entries of {runs} runs to {}", args.target.display())?;
    Ok(())
}
