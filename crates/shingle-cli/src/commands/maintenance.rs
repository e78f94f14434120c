//! `check`, `compact`, `checkpoint`, `salvage`.

use crate::args::{CompactArgs, TargetArgs};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::interrupt::{Interrupt, interrupted};
use crate::open::{self, Access};
use crate::units::{self, counted};
use base::KeyRange;
use serde_json::json;
use shingle::{CheckReport, Db, ErrorKind, Progress};
use std::path::Path;

/// `shingle check`.
pub fn check(context: &mut Context) -> Outcome {
    let path = context.path()?;
    let interrupt = Interrupt::listen()?;
    let bar = context.bar("check", 1);
    let report = check_files(context, &mut |progress| {
        bar.show(&progress);
        if interrupt.is_asked() {
            progress.cancel();
        }
    })?;
    drop(bar);
    tell_check(context, &report)?;
    if report.is_cancelled {
        let done = format!("{} were checked", units::bytes(report.bytes));
        return Err(interrupted(&done, "nothing was changed; the rest is unknown"));
    }
    if report.is_clean() {
        return Ok(());
    }
    let places = counted(report.problems.len() as u64, "place");
    Err(Failure::said(
        format!("{} is damaged, in {places}", path.display()),
        "restore from a checkpoint, or keep the files and run `shingle salvage`",
    ))
}

/// Checks what a shell has open, or the files of a database that is closed, or what a process
/// has written that has it open.
fn check_files(context: &mut Context, each: &mut dyn FnMut(Progress)) -> Outcome<CheckReport> {
    if context.session.is_some() {
        return Ok(context.open(Access::Read)?.check(each)?);
    }
    let place = context.place()?;
    let report = place.files().and_then(|files| shingle::check_store(files, each));
    let report = match report {
        Err(error) if error.kind() == ErrorKind::Locked => context
            .open_beside(&place, context.options()?.absent_operators(true), error)
            .and_then(|db| db.check(each)),
        report => report,
    };
    report.map_err(|error| open::explain(&place.path, error))
}

fn tell_check(context: &mut Context, report: &CheckReport) -> Outcome {
    let problems = &report.problems;
    if context.global.json {
        return context.json(&json!({
            "ok": report.is_clean(),
            "files": report.files,
            "bytes": report.bytes,
            "entries": report.entries,
            "problems": problems,
        }));
    }
    let (files, bytes) = (counted(report.files, "file"), units::bytes(report.bytes));
    writeln!(context.out, "checked {files}, {bytes}")?;
    for problem in problems {
        writeln!(context.out, "damage: {problem}")?;
    }
    if report.is_clean() {
        writeln!(context.out, "everything is as it was written")?;
    }
    Ok(())
}

/// `shingle compact`.
pub fn compact(context: &mut Context, args: CompactArgs) -> Outcome {
    let range = context.range(&args.range)?;
    let db = context.open(Access::Change)?;
    let names = if args.all { db.keyspaces() } else { vec![context.global.keyspace.clone()] };
    if !args.all {
        context.keyspace(&db, Access::Change)?;
    }
    let before = db.stats().space_bytes;
    let interrupt = Interrupt::listen()?;
    let watch = interrupt.closes(&db)?;
    let compacted = compact_keyspaces(&db, &names, &range);
    drop(watch);
    let after = match &context.session {
        Some(_) => db.stats().space_bytes,
        None => {
            db.close()?;
            // The files that the compaction replaced are gone when the database is closed.
            let files = context.place()?.files()?.list()?;
            files.iter().map(|file| file.bytes).sum::<u64>()
        }
    };
    let (was, is) = (units::bytes(before), units::bytes(after));
    if compacted.is_err() && interrupt.is_asked() {
        let done = format!("{was} before, {is} now");
        let help = "each part of the compaction that ended is kept; `compact` again goes on";
        return Err(interrupted(&done, help));
    }
    compacted?;
    if context.global.json {
        return context.json(&json!({ "space_bytes_before": before, "space_bytes_after": after }));
    }
    writeln!(context.out, "compacted: {was} before, {is} now")?;
    Ok(())
}

fn compact_keyspaces(db: &Db, names: &[String], range: &KeyRange) -> shingle::Result<()> {
    for name in names {
        db.keyspace(name)?.compact_range(Some(&range.start), range.end.as_deref())?;
    }
    db.wait_idle()
}

/// `shingle checkpoint`.
pub fn checkpoint(context: &mut Context, args: TargetArgs) -> Outcome {
    let target = args.target;
    let db = context.open(Access::Change)?;
    let before = Before::of(&target);
    let interrupt = Interrupt::listen()?;
    let watch = interrupt.closes(&db)?;
    let written = db.checkpoint(&target);
    drop(watch);
    if written.is_err() && interrupt.is_asked() {
        db.close()?;
        before.restore(&target);
        let help = format!("{} was removed; the database is as it was", target.display());
        return Err(interrupted("no checkpoint was made", help));
    }
    written?;
    db.close()?;
    if context.global.json {
        return context.json(&json!({ "target": target.display().to_string() }));
    }
    writeln!(context.out, "checkpoint: {}", target.display())?;
    Ok(())
}

/// What a target was before a command wrote to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Absent,
    Empty,
    /// It has files that are not the command's.
    Used,
}

impl Before {
    fn of(target: &Path) -> Before {
        match std::fs::read_dir(target).map(|mut entries| entries.next().is_none()) {
            Ok(true) => Before::Empty,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Before::Absent,
            _ => Before::Used,
        }
    }

    /// Removes what the command has written to the target.
    fn restore(self, target: &Path) {
        if self == Before::Used {
            return;
        }
        for entry in std::fs::read_dir(target).into_iter().flatten().flatten() {
            let _ = std::fs::remove_file(entry.path());
        }
        if self == Before::Absent {
            let _ = std::fs::remove_dir(target);
        }
    }
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
    let interrupt = Interrupt::listen()?;
    let report = source.files().and_then(|files| {
        let mut show = |progress: Progress| {
            bar.show(&progress);
            if interrupt.is_asked() {
                progress.cancel();
            }
        };
        shingle::salvage_store(files, &args.target, options, &mut show)
    });
    drop(bar);
    if report.is_err() {
        // A part of the data would look like all of it.
        Before::Absent.restore(&args.target);
    }
    if matches!(&report, Err(error) if error.kind() == ErrorKind::Cancelled) {
        let help = "the target was removed; the damaged files are as they were";
        return Err(interrupted("nothing was saved", help));
    }
    let report = report.map_err(|error| open::explain(&source.path, error))?;
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
