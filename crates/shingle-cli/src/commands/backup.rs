//! `backup`.

use crate::args::backup::{BackupArgs, BackupStep, Kept, PruneArgs, RestoreArgs, VerifyArgs};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::interrupt::{Interrupt, interrupted};
use crate::open::Access;
use crate::units::{self, counted};
use comfy_table::{Table, presets};
use serde_json::{Value, json};
use shingle::{Backup, Backups, ErrorKind, Keep, Progress, Result};
use std::path::Path;

/// `shingle backup`.
pub fn backup(context: &mut Context, args: BackupArgs) -> Outcome {
    match args.step {
        BackupStep::Create(args) => create(context, &args.directory),
        BackupStep::List(args) => list(context, &args),
        BackupStep::Verify(args) => verify(context, &args),
        BackupStep::Restore(args) => restore(context, &args),
        BackupStep::Prune(args) => prune(context, &args),
    }
}

fn as_json(backup: &Backup) -> Value {
    json!({
        "number": backup.number,
        "database": format!("{:016x}", backup.database),
        "taken_micros": backup.taken_micros,
        "sequence": backup.sequence,
        "files": backup.files,
        "bytes": backup.bytes,
        "new_bytes": backup.new_bytes,
    })
}

/// The backups in a directory, of the database that was chosen.
fn opened(kept: &Kept) -> Outcome<Backups> {
    let backups = Backups::open(&kept.directory)?;
    Ok(match kept.database {
        Some(database) => backups.of_database(database),
        None => backups,
    })
}

/// Runs `work` under a progress bar; Ctrl-C cancels it. `None`: it was cancelled.
fn cancellable<T>(
    context: &Context,
    what: &str,
    work: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<T>,
) -> Outcome<Option<T>> {
    let interrupt = Interrupt::listen()?;
    let bar = context.bar(what, 1);
    let done = work(&mut |progress: Progress| {
        bar.show(&progress);
        if interrupt.is_asked() {
            progress.cancel();
        }
    });
    match done {
        Err(error) if error.kind() == ErrorKind::Cancelled => Ok(None),
        done => Ok(Some(done?)),
    }
}

fn create(context: &mut Context, directory: &Path) -> Outcome {
    let db = context.open(Access::Change)?;
    let backups = Backups::open(directory)?;
    let taken = cancellable(context, "backup", |progress| backups.create(&db, progress))?;
    db.close()?;
    let Some(backup) = taken else {
        return Err(interrupted("no backup was taken", "earlier backups are as they were"));
    };
    if context.global.json {
        return context.json(&as_json(&backup));
    }
    let (all, new) = (units::bytes(backup.bytes), units::bytes(backup.new_bytes));
    let files = counted(backup.files, "file");
    writeln!(context.out, "backup {}: {files}, {all}, of which {new} are new", backup.number)?;
    Ok(())
}

fn list(context: &mut Context, kept: &Kept) -> Outcome {
    let backups = opened(kept)?.list()?;
    if context.global.json {
        return context.json(&backups.iter().map(as_json).collect::<Vec<_>>());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["number", "database", "taken (seconds since 1970)", "files", "size", "new"]);
    for backup in &backups {
        table.add_row([
            backup.number.to_string(),
            format!("{:016x}", backup.database),
            (backup.taken_micros / 1_000_000).to_string(),
            backup.files.to_string(),
            units::bytes(backup.bytes),
            units::bytes(backup.new_bytes),
        ]);
    }
    writeln!(context.out, "{table}")?;
    Ok(())
}

/// The backup called for, or the newest.
fn chosen(backups: &Backups, directory: &Path, number: Option<u64>) -> Outcome<u64> {
    if let Some(number) = number {
        return Ok(number);
    }
    Ok(backups.newest()?.ok_or_else(|| no_backup(directory))?.number)
}

fn no_backup(directory: &Path) -> Failure {
    Failure::said(
        format!("there is no such backup in {}", directory.display()),
        "`shingle backup list DIRECTORY` shows what there is",
    )
}

fn verify(context: &mut Context, args: &VerifyArgs) -> Outcome {
    let backups = opened(&args.kept)?;
    let number = chosen(&backups, &args.kept.directory, args.number)?;
    let verified = cancellable(context, "verify", |progress| backups.verify(number, progress))?;
    let Some(problems) = verified else {
        return Err(interrupted("the backup was read in part", "nothing was changed"));
    };
    if context.global.json {
        let ok = problems.is_empty();
        context.json(&json!({ "number": number, "ok": ok, "problems": problems }))?;
    } else {
        for problem in &problems {
            writeln!(context.out, "damage: {problem}")?;
        }
        if problems.is_empty() {
            writeln!(context.out, "backup {number} is as it was stored")?;
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let places = counted(problems.len() as u64, "place");
    Err(Failure::said(
        format!("backup {number} is damaged, in {places}"),
        "restore another one, and take a new backup in a new directory",
    ))
}

fn restore(context: &mut Context, args: &RestoreArgs) -> Outcome {
    let backups = opened(&args.kept)?;
    let number = match args.at {
        None => chosen(&backups, &args.kept.directory, args.number)?,
        Some(seconds) => {
            let micros = seconds.saturating_add(1).saturating_mul(1_000_000) - 1;
            backups.at(micros)?.ok_or_else(|| no_backup(&args.kept.directory))?.number
        }
    };
    let restored = cancellable(context, "restore", |progress| {
        backups.restore(number, &args.target, progress)
    })?;
    if restored.is_none() {
        return Err(interrupted("nothing was restored", "the backup is as it was"));
    }
    let target = args.target.display().to_string();
    if context.global.json {
        return context.json(&json!({ "number": number, "target": target }));
    }
    writeln!(context.out, "restored backup {number} to {target}")?;
    Ok(())
}

fn prune(context: &mut Context, args: &PruneArgs) -> Outcome {
    let pruned = opened(&args.kept)?.prune(&Keep { last: args.keep, ..Keep::default() })?;
    if context.global.json {
        return context.json(&json!({
            "backups": pruned.backups,
            "files": pruned.files,
            "bytes": pruned.bytes,
        }));
    }
    let (gone, files) =
        (counted(pruned.backups.len() as u64, "backup"), counted(pruned.files, "file"));
    writeln!(context.out, "removed {gone}: {files}, {}", units::bytes(pruned.bytes))?;
    Ok(())
}
