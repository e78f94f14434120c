//! `dump`: what the files of a database say, read without the engine.

use crate::args::{DumpArgs, DumpKind};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::open::Place;
use crate::text::{Notation, brief};
use crate::units;
use base::key::{split_internal_key, trailer_kind, trailer_sequence};
use base::{Cause, DatabaseId};
use media::{FileKind, FileName, FileStore, ReadFile};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use table::log::{End, LogIdentity, LogKind, LogReader};
use table::log_record::{LogBegin, LogRecord, Origin};
use table::manifest::{Root, decode_edit, decode_root, render_edit};
use table::{BlockCache, EntryIter, Extent, IterOptions, Run, RunSummary, TablePlace};

mod groups;
mod levels;
mod picture;

const CACHE_BYTES: u64 = 8 << 20;
const READAHEAD_BYTES: u32 = 256 << 10;

/// A database's files, and where the text goes.
struct Dump<'a, 'b> {
    context: &'a mut Context<'b>,
    store: Arc<dyn FileStore>,
    database: DatabaseId,
    root: Root,
    entries: bool,
    notation: Notation,
}

/// `shingle dump`.
pub fn dump(context: &mut Context, args: DumpArgs) -> Outcome {
    if context.global.json {
        return Err(Failure::usage("dump writes text only", "leave --json out"));
    }
    if args.svg.is_some() && !matches!(args.kind, DumpKind::Tree | DumpKind::Values) {
        let example = "`shingle dump tree --svg FILE`";
        return Err(Failure::usage("--svg draws the tree, or the values by group", example));
    }
    let directory = directory(context, args.file.as_deref())?;
    let cold = context.global.cold_store.clone();
    let store = Place { path: directory.clone(), cold }.files()?;
    let root = store.root()?.ok_or_else(|| {
        Failure::said(
            format!("there is no database in {}", directory.display()),
            "name the directory with --db, or a file in it",
        )
    })?;
    let root = decode_root(&root)?;
    let (notation, entries, database) = (context.notation(), args.entries, root.database);
    let mut dump = Dump { context, store, database, root, entries, notation };
    let kind = match args.kind {
        DumpKind::Tree => return dump.tree(args.svg.as_deref()),
        DumpKind::Values => return dump.values(args.svg.as_deref()),
        DumpKind::Table => FileKind::Table,
        DumpKind::Manifest => FileKind::Manifest,
        DumpKind::Wal => FileKind::Wal,
        DumpKind::Options => return dump.options(),
    };
    for name in dump.names(kind, args.file.as_deref())? {
        match kind {
            FileKind::Table => dump.table(name)?,
            FileKind::Manifest => dump.manifest(name)?,
            _ => dump.wal(name)?,
        }
    }
    Ok(())
}

/// The database's directory: `--db`, or where the file lies.
fn directory(context: &Context, file: Option<&Path>) -> Outcome<PathBuf> {
    match (&context.global.db, file) {
        (Some(db), _) => Ok(db.clone()),
        (None, Some(file)) => match file.parent() {
            Some(parent) if parent != Path::new("") => Ok(parent.to_path_buf()),
            _ => Ok(PathBuf::from(".")),
        },
        (None, None) => context.path(),
    }
}

impl Dump<'_, '_> {
    /// The file that was named, or every one of its kind, in the order of numbers.
    fn names(&self, kind: FileKind, file: Option<&Path>) -> Outcome<Vec<FileName>> {
        if let Some(file) = file {
            let text = file.file_name().unwrap_or_default().to_string_lossy();
            let name = FileName::parse(&text).filter(|name| name.kind == kind);
            return name.map(|name| vec![name]).ok_or_else(|| {
                Failure::usage(format!("{text} is not such a file"), "see `shingle dump --help`")
            });
        }
        let files = self.store.list()?.into_iter().map(|file| file.name);
        let mut names: Vec<FileName> = files.filter(|name| name.kind == kind).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn line(&mut self, text: &str) -> Outcome {
        Ok(writeln!(self.context.out, "{text}")?)
    }

    fn options(&mut self) -> Outcome {
        let text = self.store.notes().map(|notes| notes.read_note("OPTIONS")).transpose()?;
        let Some(text) = text.flatten() else {
            return Err(Failure::said(
                "the database keeps no options",
                "`shingle options` lists the defaults",
            ));
        };
        Ok(self.context.out.write_all(&text)?)
    }

    fn table(&mut self, name: FileName) -> Outcome {
        let file = self.store.open(name, true)?;
        let bytes = file.len()?;
        self.line(&format!("{name}: {}", units::bytes(bytes)))?;
        let header = table::format::header_place(file.as_ref(), Cause::Check)?;
        if header.is_some_and(|place| place == TablePlace::of_sorted(place.database)) {
            return self.ingested(&file);
        }
        let place = TablePlace { database: self.database, file: name.id };
        table::format::check_header(file.as_ref(), place, Cause::Check)?;
        let (mut footers, end) =
            table::format::footers_backwards(file.as_ref(), place, bytes, Cause::Check);
        footers.reverse();
        let cache = BlockCache::new(CACHE_BYTES);
        for footer in footers {
            let extent = Extent {
                database: self.database,
                file: name.id,
                run: footer.run,
                offset: footer.start,
                bytes: footer.bytes,
                sequence: None,
            };
            let run = Run::open(file.clone(), extent, cache.clone(), Cause::Check)?;
            self.run(&run)?;
        }
        end.map_or(Ok(()), |error| Err(error.into()))
    }

    /// A sorted file that was ingested. Its entries are shown as they are stored, without sequence
    /// numbers: the manifest has the one of all of them.
    fn ingested(&mut self, file: &Arc<dyn ReadFile>) -> Outcome {
        let identity = table::sorted::identity(file.as_ref(), Cause::Check)?;
        self.line(&format!("  sorted file of identity {:016x}", identity.0))?;
        let extent = Extent::of_sorted(identity, file.len()?, 0);
        let run = Run::open(file.clone(), extent, BlockCache::new(CACHE_BYTES), Cause::Check)?;
        self.run(&run)
    }

    fn run(&mut self, run: &Arc<Run>) -> Outcome {
        for line in describe(run.summary()) {
            self.line(&line)?;
        }
        if !self.entries {
            return Ok(());
        }
        for fragment in run.range_deletes().fragments() {
            self.line(&format!("  {fragment:?}"))?;
        }
        let mut entries = run.iter(IterOptions::streaming(Cause::Check, READAHEAD_BYTES));
        entries.seek_to_first()?;
        while entries.valid() {
            let Some((key, trailer)) = split_internal_key(entries.key()) else { break };
            let kind = trailer_kind(trailer).map_or("?".into(), |kind| format!("{kind:?}"));
            let line = format!(
                "  {} @ {} {kind} => {}",
                self.notation.show(key),
                trailer_sequence(trailer),
                self.notation.show(entries.value())
            );
            self.line(&line)?;
            entries.next()?;
        }
        Ok(())
    }

    /// Calls `each` with offset and payload of every record, and says how the log ended.
    fn records(
        &mut self,
        name: FileName,
        kind: LogKind,
        mut each: impl FnMut(&mut Self, u64, &[u8]) -> Outcome,
    ) -> Outcome {
        let file = self.store.open(name, true)?;
        self.line(&format!("{name}: {}", units::bytes(file.len()?)))?;
        let identity = LogIdentity { database: self.database, file: name.id, kind };
        let mut reader = LogReader::open(file.as_ref(), identity, 0, Cause::Check)?;
        while let Some(record) = reader.next()? {
            each(self, record.offset, record.payload)?;
        }
        let records = units::count(reader.records());
        match reader.end() {
            Some(End::TornTail { at, bytes_dropped }) => self.line(&format!(
                "{records} records; then {bytes_dropped} bytes at {at} that never became durable"
            )),
            _ if reader.bytes() < file.len()? => self.line(&format!(
                "{records} records up to byte {}; then zeros, which mean nothing",
                reader.bytes()
            )),
            _ => self.line(&format!("{records} records")),
        }
    }

    fn manifest(&mut self, name: FileName) -> Outcome {
        self.records(name, LogKind::Manifest, |dump, offset, payload| {
            let edit = decode_edit(payload, name, offset)?;
            dump.line(&format!("edit at byte {offset}"))?;
            for line in render_edit(&edit).lines() {
                dump.line(&format!("  {line}"))?;
            }
            Ok(())
        })
    }

    fn wal(&mut self, name: FileName) -> Outcome {
        self.line("Sequence,Count,ByteSize,Physical Offset")?;
        self.records(name, LogKind::Wal, |dump, offset, payload| {
            let record = LogRecord::parse(payload, true);
            let record = record.map_err(|error| error.in_file(name.to_string()).at(offset))?;
            let (first, origin, batch) = match record {
                LogRecord::Proof => return Ok(()),
                LogRecord::Begin(LogBegin { first_sequence, wall_micros }) => {
                    return dump.line(&format!(
                        "begins with sequence {first_sequence}, {wall_micros} us since 1970"
                    ));
                }
                LogRecord::Batch { first, origin, batch } => (first, origin, batch),
            };
            let by = if origin == Origin::Engine { ", by the engine" } else { "" };
            dump.line(&format!("{first},{},{},{offset}{by}", batch.len(), payload.len()))?;
            let is_shown = dump.entries;
            for operation in batch.iter().filter(|_| is_shown) {
                let line = format!(
                    "  keyspace {} {:?} {} : {}",
                    operation.keyspace(),
                    operation.kind(),
                    dump.notation.show(operation.key()),
                    dump.notation.show(operation.value())
                );
                dump.line(&line)?;
            }
            Ok(())
        })
    }
}

/// A run in a few lines.
fn describe(summary: &RunSummary) -> [String; 4] {
    let run = &summary.run;
    let (smallest, largest) = (brief(&summary.smallest), brief(&summary.largest));
    let (raw_keys, raw_values) = (summary.raw_key_bytes, summary.raw_value_bytes);
    [
        format!("run {} at byte {}, {}", run.id, run.offset, units::bytes(run.bytes)),
        format!(
            "  keys {smallest} to {largest}, sequence {} to {}",
            run.sequence_min, run.sequence_max
        ),
        format!(
            "  {} entries: {} deletes, {} merges, {} pointers; {} range deletes",
            units::count(run.entries),
            units::count(run.deletes),
            units::count(summary.merges),
            units::count(summary.pointers),
            units::count(run.range_deletes)
        ),
        format!(
            "  {} data blocks of {}, filters {}, indexes {}; keys {} and values {} before \
             compression",
            units::count(summary.data_blocks),
            units::bytes(summary.data_bytes),
            units::bytes(summary.filter_bytes),
            units::bytes(summary.index_bytes),
            units::bytes(raw_keys),
            units::bytes(raw_values)
        ),
    ]
}

#[cfg(test)]
mod tests;
