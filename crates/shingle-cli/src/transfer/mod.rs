//! `import` and `export`: records as a stream between a database and files of other programs.
//!
//! Memory is bounded by one batch and one record. What `export` writes, `import` reads back without
//! loss; a format that cannot carry a record says so instead of changing it.

mod csv;
mod deb822;
mod directory;
mod fields;
mod foreign_source;
mod import;
mod json;
mod jsonl;
mod leveldb;
mod lines;
mod loader;
mod quotes;
mod record;
mod rocksdb;
mod sorted;
#[cfg(test)]
mod tests;
mod tsv;

pub use deb822::Stanzas;
pub use import::import;
pub use loader::Loader;
pub use record::Record;

use crate::args::{ExportArgs, Format, TransferArgs};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::interrupt::{Interrupt, interrupted};
use crate::open::Access;
use crate::progress::Bar;
use crate::text::NotMerged;
use crate::walk::Walk;
use crate::{text, units};
use clap::ValueEnum;
use fields::Fields;
use flate2::Compression;
use flate2::bufread;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use foreign::Store;
use lines::Counting;
use serde_json::json;
use shingle::{Expiry, Keyspace, Unmerged};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How many differing keys a verification remembers and names.
const DIFFERENT_MAX: usize = 100_000;

/// Receives one record.
pub type Each<'a> = &'a mut dyn FnMut(Record<'_>) -> Outcome;

/// Where records of one format are read from or written to.
#[derive(Clone)]
struct Place {
    path: PathBuf,
    format: Format,
    fields: Fields,
    is_raw: bool,
    has_no_header: bool,
    /// Compressed by gzip.
    is_compressed: bool,
    /// Values that expire are written without their expiry.
    is_without_expiry: bool,
    /// What of a database of RocksDB is read.
    family: Option<rocksdb::Family>,
}

/// How a file begins that gzip compressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Receives the records of an export.
trait Sink {
    /// Writes one record, or refuses it.
    fn put(&mut self, record: Record<'_>) -> Outcome;
    /// The format has a place for the expiry of a record.
    fn keeps_expiry(&self) -> bool {
        false
    }
    /// Writes a key whose operands are not merged; `false` where the format has no words for it.
    fn put_unmerged(
        &mut self,
        _key: &[u8],
        _held: &Unmerged,
        _base_expiry: Option<Expiry>,
    ) -> Outcome<bool> {
        Ok(false)
    }
    /// Writes what must stand after the last record.
    fn finish(&mut self) -> Outcome;
}

impl Place {
    fn new(args: &TransferArgs) -> Outcome<Place> {
        let format = match args.format {
            Some(format) => format,
            None => guess(&args.path)?,
        };
        let fields = Fields { key: args.key_field.clone(), value: args.value_field.clone() };
        let path = args.path.clone();
        let is_compressed = !format.is_directory() && has_extension(&path, "gz");
        let (is_raw, has_no_header) = (args.raw, args.no_header);
        let place = Place {
            path,
            format,
            fields,
            is_raw,
            has_no_header,
            is_compressed,
            is_without_expiry: false,
            family: None,
        };
        place.check_flags()?;
        if place.is_stream() && args.verify {
            return Err(Failure::usage(
                "--verify reads the source again, which a pipe does not allow",
                "name a file",
            ));
        }
        if place.is_stream() && format.is_directory() {
            return Err(Failure::usage("a pipe is no directory", "choose another --format"));
        }
        Ok(place)
    }

    /// A flag that the format does not have would silently mean nothing.
    fn check_flags(&self) -> Outcome {
        let refuse = |flag: &str, formats: &str| {
            let message = format!("{flag} is for {formats}, not for {}", name_of(self.format));
            Err(Failure::usage(message, "leave it out, or choose another --format"))
        };
        let has_fields = matches!(self.format, Format::Csv | Format::Jsonl | Format::Json);
        if self.is_raw && self.format != Format::Tsv {
            return refuse("--raw", "tsv");
        }
        if self.has_no_header && self.format != Format::Csv {
            return refuse("--no-header", "csv");
        }
        if self.fields.key.is_some() && !has_fields && self.format != Format::Deb822 {
            return refuse("--key-field", "csv, jsonl, json and deb822");
        }
        if self.fields.value.is_some() && !has_fields {
            return refuse("--value-field", "csv, jsonl and json");
        }
        Ok(())
    }

    fn is_stream(&self) -> bool {
        self.path == Path::new("-")
    }

    /// The sources that go to keyspaces of their own.
    fn parts(&self) -> Outcome<Vec<Place>> {
        if self.format != Format::Rocksdb {
            return Ok(vec![self.clone()]);
        }
        let families = rocksdb::Family::all(&self.path)?.into_iter();
        Ok(families.map(|family| Place { family: Some(family), ..self.clone() }).collect())
    }

    /// The format has no place for an expiry, or each value is a whole object.
    fn cannot_expire(&self, record: Record<'_>) -> Failure {
        let (key, format) = (text::brief(record.key), name_of(self.format));
        let format = match self.fields.key {
            Some(_) => format!("{format} with --key-field"),
            None => format,
        };
        Failure::said(
            format!("{key}: the value expires, and {format} has no place for the time"),
            "--format jsonl keeps it; --without-expiry exports the values alone",
        )
    }

    fn bytes(&self) -> u64 {
        match std::fs::metadata(&self.path) {
            Ok(metadata) if metadata.is_file() => metadata.len(),
            _ => 0,
        }
    }

    fn read(&self, bar: &Bar, each: Each) -> Outcome {
        match self.format {
            Format::Dir => return directory::read(&self.path, bar, each),
            Format::Leveldb => return leveldb::read(&self.path, bar, each),
            Format::Rocksdb => {
                let mut families = self.family.iter();
                return families.try_for_each(|family| family.read(bar, each));
            }
            _ => {}
        }
        let name = self.path.display().to_string();
        let mut input = self.input(&name, bar)?;
        let fields = &self.fields;
        match self.format {
            Format::Tsv => tsv::read(&name, &mut input, self.is_raw, each),
            Format::Csv => csv::read(&name, &mut input, fields, self.has_no_header, each),
            Format::Jsonl => jsonl::read(&name, &mut input, fields, each),
            Format::Json => json::read(&name, &mut input, fields, each),
            Format::Deb822 => deb822::read(&name, &mut input, fields.key.as_deref(), each),
            Format::Dir | Format::Leveldb | Format::Rocksdb => {
                unreachable!("directories were read above")
            }
        }
    }

    /// The text, uncompressed. The bar counts bytes of the file. A pipe has no name: its first
    /// bytes tell whether it is compressed.
    fn input<'a>(&self, name: &str, bar: &'a Bar) -> Outcome<Box<dyn BufRead + 'a>> {
        if self.is_stream() {
            let mut pipe = BufReader::new(Counting::new(std::io::stdin().lock(), bar));
            let begin = pipe.fill_buf().map_err(|error| Failure::io("read stdin", &error))?;
            return Ok(match begin.starts_with(&GZIP) {
                true => Box::new(BufReader::new(bufread::MultiGzDecoder::new(pipe))),
                false => Box::new(pipe),
            });
        }
        let file =
            File::open(&self.path).map_err(|error| Failure::io(format!("open {name}"), &error))?;
        let file = Counting::new(file, bar);
        Ok(match self.is_compressed {
            true => Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(file))),
            false => Box::new(BufReader::with_capacity(1 << 18, file)),
        })
    }

    fn sink<'a>(&self, out: &'a mut dyn Write) -> Outcome<Box<dyn Sink + 'a>> {
        if self.fields.value.is_some() || self.format == Format::Csv && self.fields.key.is_some() {
            return Err(Failure::usage(
                "an export has whole records: it takes no --value-field, and csv no --key-field",
                "leave it out",
            ));
        }
        let field = self.fields.key.clone();
        Ok(match self.format {
            Format::Tsv => Box::new(tsv::Writer::new(out, self.is_raw)),
            Format::Csv => Box::new(csv::Writer::new(out, self.has_no_header)?),
            Format::Jsonl => Box::new(jsonl::Writer::new(out, field)),
            Format::Json => Box::new(json::Writer::new(out, field)),
            Format::Deb822 => Box::new(deb822::Writer::new(out, field)),
            Format::Dir => Box::new(directory::Writer::new(&self.path)?),
            Format::Leveldb | Format::Rocksdb => {
                return Err(Failure::usage(
                    "shingle reads databases of LevelDB and RocksDB and writes none",
                    "choose another --format",
                ));
            }
        })
    }
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(wanted))
}

fn name_of(format: Format) -> String {
    format.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
}

fn guess(path: &Path) -> Outcome<Format> {
    match foreign::store_at(path) {
        Some(Store::LevelDb) => return Ok(Format::Leveldb),
        Some(Store::RocksDb) => return Ok(Format::Rocksdb),
        None => {}
    }
    if path.is_dir() {
        return Ok(Format::Dir);
    }
    let inner = if has_extension(path, "gz") { path.with_extension("") } else { path.into() };
    let text = inner.to_string_lossy();
    let extension = inner.extension().map(|e| e.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("tsv" | "tab") => Ok(Format::Tsv),
        Some("csv") => Ok(Format::Csv),
        Some("jsonl" | "ndjson") => Ok(Format::Jsonl),
        Some("json") => Ok(Format::Json),
        Some("deb822" | "sources" | "control") => Ok(Format::Deb822),
        _ if text.ends_with("Packages") || text.ends_with("Sources") => Ok(Format::Deb822),
        _ if text.ends_with('/') => Ok(Format::Dir),
        _ => Err(Failure::usage(
            format!("the format does not follow from the name {text}"),
            "name it with --format tsv, csv, jsonl, json, dir, deb822, leveldb or rocksdb",
        )),
    }
}

/// `shingle export`.
pub fn export(context: &mut Context, args: ExportArgs) -> Outcome {
    let mut place = Place::new(&args.transfer)?;
    place.is_without_expiry = args.without_expiry;
    let range = context.range(&args.range)?;
    let db = context.open(Access::Read)?;
    let keyspace = context.keyspace(&db, Access::Read)?;
    let start = Instant::now();
    let interrupt = Interrupt::listen()?;
    let mut walk = Walk::new(&keyspace, range, &args.order);
    if place.is_stream() {
        let written = write_records(&place, &mut walk, &mut *context.out, None, &interrupt)?;
        return written.whole(context, "the output ends there");
    }
    let unfinished = Unfinished::new(&place)?;
    let bar = context.bar("export", 0);
    let written = write_files(&place, &mut walk, &bar, &interrupt)?;
    drop(bar);
    if !written.is_cut {
        unfinished.keep();
    }
    let help = format!("{} was removed; the database is as it was", place.path.display());
    written.whole(context, &help)?;
    let Written { records, bytes, .. } = written;
    let ns = start.elapsed().as_nanos() as u64;
    if args.transfer.verify {
        let found = verify(context, &place, &keyspace, &interrupt)?.ok_or_else(|| {
            let done = format!("{} records were written, not all are verified", records);
            interrupted(&done, format!("{} is complete", place.path.display()))
        })?;
        if found != records {
            return Err(Failure::said(
                format!("{found} records in {}, {records} were written", place.path.display()),
                "report this: an export must not lose records",
            ));
        }
    }
    report(context, "exported", records, bytes, ns, args.transfer.verify)
}

/// A file or directory that an export is writing: goes again unless it is finished.
struct Unfinished<'a> {
    place: &'a Place,
    /// The directory was there, and empty.
    was_there: bool,
    is_kept: bool,
}

impl<'a> Unfinished<'a> {
    /// Refuses a target that has something in it already.
    fn new(place: &'a Place) -> Outcome<Unfinished<'a>> {
        let was_there = place.path.exists();
        if place.format == Format::Dir {
            directory::check_empty(&place.path)?;
        } else if was_there {
            return Err(Failure::said(
                format!("{} exists already", place.path.display()),
                "choose another name, or remove the file",
            ));
        }
        Ok(Unfinished { place, was_there, is_kept: false })
    }

    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let path = &self.place.path;
        if self.is_kept {
        } else if self.place.format != Format::Dir {
            let _ = std::fs::remove_file(path);
        } else if directory::clear(path).is_ok() && !self.was_there {
            let _ = std::fs::remove_dir(path);
        }
    }
}

/// Writes the records to a new file or directory.
fn write_files(
    place: &Place,
    walk: &mut Walk,
    bar: &Bar,
    interrupt: &Interrupt,
) -> Outcome<Written> {
    if place.format == Format::Dir {
        return write_records(place, walk, &mut std::io::sink(), Some(bar), interrupt);
    }
    let failed = |error| Failure::io("write the export", &error);
    let doing = || format!("create {}", place.path.display());
    let file = File::create_new(&place.path).map_err(|e| Failure::io(doing(), &e))?;
    let mut file = BufWriter::with_capacity(1 << 18, file);
    let written = if place.is_compressed {
        let mut packed = GzEncoder::new(&mut file, Compression::default());
        let written = write_records(place, walk, &mut packed, Some(bar), interrupt)?;
        packed.finish().map_err(failed)?;
        written
    } else {
        write_records(place, walk, &mut file, Some(bar), interrupt)?
    };
    file.flush().map_err(failed)?;
    Ok(written)
}

/// What an export wrote.
#[derive(Default)]
struct Written {
    records: u64,
    bytes: u64,
    /// Written as operands.
    unmerged: NotMerged,
    /// Left out.
    left: NotMerged,
    /// The process was asked to end before the last record.
    is_cut: bool,
}

impl Written {
    /// Says what is written as operands; fails where something was left out.
    fn whole(&self, context: &Context, help: &str) -> Outcome {
        if self.is_cut {
            let records = units::counted(self.records, "record");
            return Err(interrupted(&format!("{records} written"), help));
        }
        if self.unmerged.keys > 0 {
            context.remark(&self.unmerged.sentence("are written as operands that are not merged"));
        }
        if self.left.keys == 0 {
            return Ok(());
        }
        Err(Failure::said(
            self.left.sentence("were left out, as their operands are not merged"),
            "--format jsonl carries operands; the rest is written",
        ))
    }
}

/// Writes records to the end, or until the process is asked to end.
fn write_records(
    place: &Place,
    walk: &mut Walk,
    out: &mut dyn Write,
    bar: Option<&Bar>,
    interrupt: &Interrupt,
) -> Outcome<Written> {
    let mut written = Written::default();
    let mut sink = place.sink(out)?;
    while let Some(cursor) = walk.next()? {
        if interrupt.is_asked() {
            written.is_cut = true;
            break;
        }
        let expiry = if place.is_without_expiry { None } else { cursor.expiry() };
        if let Some(held) = cursor.unmerged() {
            let puts = sink.put_unmerged(cursor.key(), held, expiry)?;
            written.records += u64::from(puts);
            (if puts { &mut written.unmerged } else { &mut written.left }).add(held);
            continue;
        }
        let record = Record { key: cursor.key(), value: cursor.value(), expiry };
        if expiry.is_some() && !sink.keeps_expiry() {
            return Err(place.cannot_expire(record));
        }
        sink.put(record)?;
        written.records += 1;
        let bytes = record.bytes();
        written.bytes += bytes;
        if let Some(bar) = bar {
            bar.add(bytes);
        }
    }
    sink.finish()?;
    Ok(written)
}

/// Reads the source again and compares every record. Where a key occurs several times in the
/// source, its last record counts. Gives the number of records in the source; none when the process
/// was asked to end.
fn verify(
    context: &Context,
    place: &Place,
    keyspace: &Keyspace,
    interrupt: &Interrupt,
) -> Outcome<Option<u64>> {
    let mut different: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut records = 0;
    let bar = context.bar("verify", place.bytes());
    let read = place.read(&bar, &mut |record| {
        if interrupt.is_asked() {
            return Err(Failure::OutputClosed);
        }
        records += 1;
        if record.is_in(keyspace)? {
            different.remove(record.key);
        } else if different.len() < DIFFERENT_MAX {
            different.insert(record.key.to_vec());
        }
        Ok(())
    });
    if interrupt.is_asked() {
        return Ok(None);
    }
    read?;
    let Some(first) = different.first() else { return Ok(Some(records)) };
    Err(Failure::said(
        format!(
            "{} records differ from {}; the first is {}",
            units::count(different.len() as u64),
            place.path.display(),
            text::brief(first)
        ),
        "did the source change meanwhile? If not, run `shingle check`",
    ))
}

fn report(
    context: &mut Context,
    done: &str,
    records: u64,
    bytes: u64,
    ns: u64,
    verified: bool,
) -> Outcome {
    if context.global.json {
        return context.json(&json!({
            "records": records, "bytes": bytes, "ns": ns, "verified": verified,
        }));
    }
    let mut text = format!(
        "{done} {} records, {} in {} ({}/s)",
        units::count(records),
        units::bytes(bytes),
        units::time(ns),
        units::bytes(units::per_second(bytes, ns)),
    );
    if verified {
        text.push_str(", verified");
    }
    context.remark(&text);
    Ok(())
}
