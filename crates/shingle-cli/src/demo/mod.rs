//! `demo`: the whole engine on data of this machine, in eight steps.

mod account;
pub mod crash;
mod load;
mod page;
mod reads;
mod source;
mod space;

use crate::args::DemoArgs;
use crate::commands::ledger;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::interrupt::{Interrupt, interrupted};
use crate::open::Access;
use crate::units::{bytes, count, per_second, share, time};
use account::{Account, LevelRow, Verification};
use base::random::Random;
use load::Data;
use shingle::Db;
use space::Sampler;
use std::path::{Path, PathBuf};
use std::time::Instant;

const STEPS: u8 = 8;
const KILLS: usize = 3;

/// The demonstration in progress.
struct Demo<'a, 'b> {
    context: &'a mut Context<'b>,
    path: PathBuf,
    seed: u64,
    account: Account,
    space: Sampler,
    step: u8,
    interrupt: Interrupt,
}

/// `shingle demo`.
pub fn demo(context: &mut Context, args: DemoArgs) -> Outcome {
    let path = fresh_directory(args.dir.as_deref())?;
    let start = Instant::now();
    let mut demo = Demo {
        context,
        path,
        seed: args.seed,
        account: Account { seed: args.seed, ..Account::default() },
        space: Sampler::new(start),
        step: 0,
        interrupt: Interrupt::listen()?,
    };
    let outcome = demo.run(&args);
    if outcome.is_err() && demo.interrupt.is_asked() {
        return Err(demo.end_early(args.keep));
    }
    demo.account.ns = start.elapsed().as_nanos() as u64;
    demo.account.space = std::mem::take(&mut demo.space.samples);
    let ok = outcome.is_ok() && demo.account.is_ok();
    demo.account.ok = ok;
    let kept = demo.clean(ok && !args.keep);
    outcome?;
    demo.finish(&args, kept)
}

/// A directory that is new or empty, so that removing it removes nothing of anybody's.
fn fresh_directory(named: Option<&Path>) -> Outcome<PathBuf> {
    let path = match named {
        Some(path) => path.to_path_buf(),
        None => std::env::temp_dir().join(format!("shingle-demo-{}", std::process::id())),
    };
    let failed = |error| Failure::io(format!("create {}", path.display()), &error);
    std::fs::create_dir_all(&path).map_err(failed)?;
    if std::fs::read_dir(&path).map_err(failed)?.next().is_some() {
        return Err(Failure::said(
            format!("{} is not empty", path.display()),
            "the demonstration needs a new or empty directory",
        ));
    }
    Ok(path)
}

impl Demo<'_, '_> {
    fn run(&mut self, args: &DemoArgs) -> Outcome {
        self.announce("find data on this machine")?;
        let found = source::find(args.mb * 1_000_000, &args.source)?;
        let total_bytes = found.file_bytes() + found.packages_bytes_max;
        for (root, files) in &found.files {
            let number = count(files.len() as u64);
            self.say(&format!("{:<9} {number} files in {}", root.name, root.path.display()))?;
        }
        if found.packages.is_some() {
            self.say("packages  the Debian package index")?;
        }
        let db = self.context.open_at(&self.path, Access::Create)?;
        self.space.attach(&db);
        let mut data = self.import(&db, found, total_bytes)?;
        self.announce("verify every value against its source")?;
        self.account.verified_import = self.verify(&db, &data, total_bytes)?;
        self.change(&db, &mut data)?;
        self.detach(db)?;
        let db = self.crash()?;
        self.announce("verify again, and sample reads")?;
        self.account.verified_end = self.verify(&db, &data, total_bytes)?;
        self.reads(&db, &data)?;
        self.check(&db)?;
        self.tell_bytes(db)
    }

    /// One line on stdout that begins a step.
    fn announce(&mut self, what: &str) -> Outcome {
        self.step += 1;
        self.line(&format!("{}/{STEPS}  {what}", self.step))
    }

    /// A figure of the step.
    fn say(&mut self, text: &str) -> Outcome {
        self.line(&format!("     {text}"))
    }

    fn line(&mut self, text: &str) -> Outcome {
        self.interrupt.check(String::new)?;
        if self.context.global.json || self.context.global.quiet {
            return Ok(());
        }
        writeln!(self.context.out, "{text}")?;
        Ok(self.context.out.flush()?)
    }

    fn import(&mut self, db: &Db, found: source::Found, total_bytes: u64) -> Outcome<Data> {
        self.announce("import it: paths to contents, package names to stanzas, an index of words")?;
        let bar = self.context.bar("import", total_bytes);
        let data = load::import(db, found, &mut self.account, &mut self.space, &bar)?;
        drop(bar);
        let a = &self.account;
        let text = format!(
            "{} records, {} in {} ({}/s)",
            count(a.import_records),
            bytes(a.import_bytes),
            time(a.import_ns),
            bytes(per_second(a.import_bytes, a.import_ns))
        );
        self.say(&text)?;
        Ok(data)
    }

    fn verify(&mut self, db: &Db, data: &Data, total_bytes: u64) -> Outcome<Verification> {
        let bar = self.context.bar("verify", total_bytes);
        let result = load::verify(db, data, &bar)?;
        drop(bar);
        self.say(&format!(
            "{} values, {} compared byte by byte; {} deleted keys absent; {} wrong ({})",
            count(result.values),
            bytes(result.bytes),
            count(result.absent),
            count(result.wrong),
            time(result.ns)
        ))?;
        if result.source_changed > 0 {
            let changed = count(result.source_changed);
            self.say(&format!("{changed} sources changed meanwhile: compared by checksum"))?;
        }
        for example in &result.wrong_examples {
            self.say(&format!("WRONG {example}"))?;
        }
        Ok(result)
    }

    fn change(&mut self, db: &Db, data: &mut Data) -> Outcome {
        self.announce(
            "update some, delete some, delete a whole directory with one range deletion",
        )?;
        load::change(db, data, &mut self.account, &mut self.space)?;
        let a = &self.account;
        let text = format!(
            "{} updated, {} deleted, {} files below {} gone with one record",
            count(a.updated),
            count(a.deleted),
            count(a.range_deleted_keys),
            a.range_deleted
        );
        self.say(&text)
    }

    fn crash(&mut self) -> Outcome<Db> {
        self.announce("kill -9 a writing process at a random moment, and count what is there")?;
        let mut random = Random::new(self.seed);
        let mut first = 0;
        let mut open: Option<Db> = None;
        for _ in 0..KILLS {
            if let Some(db) = open.take() {
                self.detach(db)?;
            }
            let (db, crash) =
                crash::kill_a_writer(self.context, &self.path, self.seed, first, &mut random)?;
            first = crash.found_total;
            self.say(&format!(
                "killed after {}: {} batches acknowledged ({} synced), {} lost, \
                 state is {}; opened in {}",
                time(crash.killed_after_ns),
                count(crash.acknowledged),
                count(crash.synced),
                count(crash.lost),
                crash.wrong.as_deref().unwrap_or("an exact prefix"),
                time(crash.open_ns)
            ))?;
            self.space.add_foreign(crash.user_write_bytes);
            self.account.crashes.push(crash);
            self.space.attach(&db);
            open = Some(db);
        }
        Ok(open.expect("there was at least one kill"))
    }

    fn reads(&mut self, db: &Db, data: &Data) -> Outcome {
        self.account.latencies = reads::sample(db, data, self.seed)?;
        for l in self.account.latencies.clone() {
            self.say(&format!(
                "{:<22} {:>9}/s   p50 {:>8}   p99 {:>8}   p99.9 {:>8}   max {:>8}",
                l.what,
                count(per_second(l.ops, l.ns)),
                time(l.p50_ns),
                time(l.p99_ns),
                time(l.p999_ns),
                time(l.max_ns)
            ))?;
        }
        Ok(())
    }

    fn check(&mut self, db: &Db) -> Outcome {
        self.announce("check every byte on the medium")?;
        db.flush()?;
        let start = Instant::now();
        let bar = self.context.bar("check", 1);
        let interrupt = &self.interrupt;
        let report = db.check(&mut |progress| {
            bar.show(&progress);
            if interrupt.is_asked() {
                progress.cancel();
            }
        })?;
        drop(bar);
        self.account.check_ns = start.elapsed().as_nanos() as u64;
        self.account.check_bytes = report.bytes;
        self.account.check_problems = report.problems;
        for problem in self.account.check_problems.clone() {
            self.say(&format!("DAMAGE {problem}"))?;
        }
        let a = &self.account;
        let text = format!(
            "{} read, {} problems ({})",
            bytes(a.check_bytes),
            a.check_problems.len(),
            time(a.check_ns)
        );
        self.say(&text)
    }

    /// Notes what this opening moved, and closes it.
    fn detach(&mut self, db: Db) -> Outcome {
        db.flush()?;
        db.wait_idle()?;
        self.space.detach();
        ledger::add(&mut self.account.ledger, &ledger::rows(&db.stats().ledger));
        Ok(db.close()?)
    }

    fn tell_bytes(&mut self, db: Db) -> Outcome {
        self.announce("where every byte went")?;
        db.flush()?;
        db.wait_idle()?;
        self.space.sample();
        let stats = db.stats();
        self.account.space_bytes = stats.space_bytes;
        self.account.levels = stats.levels.iter().map(level_row).collect();
        self.detach(db)?;
        let of_writers = ledger::Row {
            cause: "user (killed writers)".into(),
            write_bytes: self.account.crashes.iter().map(|crash| crash.user_write_bytes).sum(),
            ..ledger::Row::default()
        };
        self.account.ledger.insert(1, of_writers);
        self.line("")?;
        self.line(&ledger::table(&self.account.ledger))?;
        let mut table = ledger::plain_table(&["level", "files", "bytes", "share"]);
        let total = self.account.levels.iter().map(|level| level.bytes).sum();
        for level in self.account.levels.iter().filter(|level| level.files > 0) {
            table.add_row([
                format!("L{}", level.level),
                count(level.files),
                bytes(level.bytes),
                share(level.bytes, total),
            ]);
        }
        self.line("")?;
        self.line(&table.to_string())?;
        self.line("")
    }

    /// Says how far an interrupted demonstration came, and leaves nothing of it.
    fn end_early(mut self, keep: bool) -> Failure {
        self.space.detach();
        let done = format!("step {} of {STEPS} was not ended", self.step.max(1));
        match self.clean(!keep) {
            None => interrupted(&done, "the database was removed; no page was written"),
            Some(path) => interrupted(&done, format!("the database is {}", path.display())),
        }
    }

    /// Removes the database. Gives the path when it stays.
    fn clean(&self, remove: bool) -> Option<PathBuf> {
        if remove && std::fs::remove_dir_all(&self.path).is_ok() {
            return None;
        }
        Some(self.path.clone())
    }

    fn finish(&mut self, args: &DemoArgs, kept: Option<PathBuf>) -> Outcome {
        let html = page::render(&self.account);
        std::fs::write(&args.html, html)
            .map_err(|error| Failure::cannot_write(&args.html, &error))?;
        if self.context.global.json {
            self.context.json(&self.account)?;
        } else {
            let a = &self.account;
            let acknowledged = count(a.crashes.iter().map(|crash| crash.acknowledged).sum());
            let verdict = format!(
                "{} values as written, {acknowledged} acknowledged batches survived {} kills, \
                 {} on the medium for {} of live data, {} in all",
                count(a.verified_end.values),
                a.crashes.len(),
                bytes(a.space_bytes),
                bytes(a.live_bytes()),
                time(a.ns)
            );
            let word = if a.ok { "ok" } else { "NOT OK" };
            writeln!(self.context.out, "{word}: {verdict}")?;
            writeln!(self.context.out, "page: {}", args.html.display())?;
            if let Some(path) = &kept {
                writeln!(self.context.out, "database: {}", path.display())?;
            }
        }
        if self.account.ok {
            return Ok(());
        }
        Err(Failure::said(
            "the demonstration found something wrong; it is named above",
            "report it, and keep the database directory: it was not removed",
        ))
    }
}

fn level_row(level: &shingle::LevelStats) -> LevelRow {
    let shape = &level.shape;
    LevelRow { level: shape.level.into(), files: shape.files, bytes: shape.bytes }
}
