//! `import`: records of a source, in batches or as sorted files.

use super::sorted::SortedFiles;
use super::{Each, Loader, Place, report, verify};
use crate::args::ImportArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::interrupt::{Interrupt, interrupted};
use crate::open::Access;
use crate::units;
use shingle::{Db, Keyspace};
use std::time::{Duration, Instant};

/// `shingle import`.
pub fn import(context: &mut Context, args: ImportArgs) -> Outcome {
    let place = Place::new(&args.transfer)?;
    context.check_no_batch("import")?;
    if place.is_stream() {
        context.check_stdin_is_free()?;
    }
    if !place.is_stream() && !place.path.exists() {
        return Err(Failure::said(
            format!("{} does not exist", place.path.display()),
            "look at the path; `-` is stdin",
        ));
    }
    let parts = place.parts()?;
    if parts.iter().any(|part| part.family.is_some()) {
        context.check_no_keyspace("each column family goes to the keyspace of its name")?;
    }
    let db = context.open(Access::Create)?;
    let keyspaces = parts.iter().map(|part| match &part.family {
        Some(family) => context.keyspace_of_name(&db, Access::Create, &family.name),
        None => context.keyspace(&db, Access::Create),
    });
    let keyspaces = keyspaces.collect::<Outcome<Vec<_>>>()?;
    let start = Instant::now();
    let interrupt = Interrupt::listen()?;
    let (mut records, mut bytes) = (0, 0);
    for (place, keyspace) in parts.iter().zip(&keyspaces) {
        let source = Source { context, place, ttl: args.ttl, interrupt: &interrupt };
        let (more_records, more_bytes) = match args.sorted {
            true => source.as_sorted_files(keyspace)?,
            false => source.in_batches(&db, keyspace)?,
        };
        records += more_records;
        bytes += more_bytes;
    }
    let ns = start.elapsed().as_nanos() as u64;
    for (place, keyspace) in parts.iter().zip(&keyspaces) {
        if args.transfer.verify && verify(context, place, keyspace, &interrupt)?.is_none() {
            db.close()?;
            let done =
                format!("{} records were stored, not all are verified", units::count(records));
            return Err(interrupted(&done, "they are durable; the same import again verifies all"));
        }
    }
    db.close()?;
    report(context, "imported", records, bytes, ns, args.transfer.verify)
}

/// The records of an import.
struct Source<'a, 'b> {
    context: &'a Context<'b>,
    place: &'a Place,
    /// Of records without an expiry of their own.
    ttl: Option<Duration>,
    interrupt: &'a Interrupt,
}

impl Source<'_, '_> {
    /// Hands each record on. `false`: the process was asked to end before the last one.
    fn read(&self, keyspace: &Keyspace, each: Each) -> Outcome<bool> {
        let bar = self.context.bar("import", self.place.bytes());
        let read = self.place.read(&bar, &mut |record| match self.interrupt.is_asked() {
            true => Err(Failure::OutputClosed),
            false => each(record.expiring_after(self.ttl, keyspace)),
        });
        if self.interrupt.is_asked() {
            return Ok(false);
        }
        read.map(|()| true)
    }

    /// Stores the records in batches; gives their number and bytes.
    fn in_batches(&self, db: &Db, keyspace: &Keyspace) -> Outcome<(u64, u64)> {
        let mut loader = Loader::new(db);
        let is_whole = self
            .read(keyspace, &mut |record| loader.put(keyspace, record))
            .map_err(|failure| failure.adding("records before it may have been stored"))?;
        loader.write()?;
        db.sync()?;
        if !is_whole {
            let done = format!("{} records were stored", units::count(loader.records));
            let help = "they are durable; the same import again stores all records";
            return Err(interrupted(&done, help));
        }
        Ok((loader.records, loader.bytes))
    }

    /// Stores all records or none, by an ingestion; gives their number and bytes.
    fn as_sorted_files(&self, keyspace: &Keyspace) -> Outcome<(u64, u64)> {
        let mut files = SortedFiles::begin(&self.context.path()?, keyspace)?;
        let name = self.place.path.display().to_string();
        let is_whole = self
            .read(keyspace, &mut |record| files.put(&name, record))
            .map_err(|failure| failure.adding("nothing was imported"))?;
        if !is_whole {
            let help = "the same import again stores all records";
            return Err(interrupted("nothing was imported", help));
        }
        files.ingest()
    }
}
