//! `import` and `export`: records as a stream between a database and files of other programs.
//!
//! Memory is bounded by one batch and one record. What `export` writes, `import` reads back without
//! loss; a format that cannot carry a record says so instead of changing it.

mod csv;
mod deb822;
mod directory;
mod fields;
mod json;
mod jsonl;
mod lines;
#[cfg(test)]
mod tests;
mod tsv;

pub use deb822::Stanzas;

use crate::args::{Format, TransferArgs};
use crate::context::{Access, Context};
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::progress::Bar;
use crate::text::NotMerged;
use crate::{text, units};
use clap::ValueEnum;
use fields::Fields;
use flate2::Compression;
use flate2::bufread;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use lines::Counting;
use serde_json::json;
use shingle::{Db, Keyspace, ReadOptions, Unmerged, WriteBatch, WriteOptions};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A batch is written when it has this many bytes.
pub const BATCH_BYTES: usize = 1 << 20;
/// A batch is written when it has this many records.
pub const BATCH_RECORDS: usize = 1000;
/// How many differing keys a verification remembers and names.
const DIFFERENT_MAX: usize = 100_000;

/// Receives one record: key and value.
pub type Each<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Outcome;

/// Where records of one format are read from or written to.
struct Place {
    path: PathBuf,
    format: Format,
    fields: Fields,
    is_raw: bool,
    /// Compressed by gzip.
    is_compressed: bool,
}

/// How a file begins that gzip compressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Receives the records of an export.
trait Sink {
    /// Writes one record, or refuses it.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome;
    /// Writes a key whose operands are not merged; `false` where the format has no words for it.
    fn put_unmerged(&mut self, _key: &[u8], _held: &Unmerged) -> Outcome<bool> {
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
        let is_compressed = format != Format::Dir && has_extension(&path, "gz");
        let place = Place { path, format, fields, is_raw: args.raw, is_compressed };
        place.check_flags()?;
        if place.is_stream() && args.verify {
            return Err(Failure::usage(
                "--verify reads the source again, which a pipe does not allow",
                "name a file",
            ));
        }
        if place.is_stream() && format == Format::Dir {
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

    fn bytes(&self) -> u64 {
        match std::fs::metadata(&self.path) {
            Ok(metadata) if metadata.is_file() => metadata.len(),
            _ => 0,
        }
    }

    fn read(&self, bar: &Bar, each: Each) -> Outcome {
        if self.format == Format::Dir {
            return directory::read(&self.path, bar, each);
        }
        let name = self.path.display().to_string();
        let mut input = self.input(&name, bar)?;
        let fields = &self.fields;
        match self.format {
            Format::Tsv => tsv::read(&name, &mut input, self.is_raw, each),
            Format::Csv => csv::read(&name, &mut input, fields, each),
            Format::Jsonl => jsonl::read(&name, &mut input, fields, each),
            Format::Json => json::read(&name, &mut input, fields, each),
            Format::Deb822 => deb822::read(&name, &mut input, fields.key.as_deref(), each),
            Format::Dir => unreachable!("directories were read above"),
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
            Format::Csv => Box::new(csv::Writer::new(out)?),
            Format::Jsonl => Box::new(jsonl::Writer::new(out, field)),
            Format::Json => Box::new(json::Writer::new(out, field)),
            Format::Deb822 => Box::new(deb822::Writer::new(out, field)),
            Format::Dir => Box::new(directory::Writer::new(&self.path)?),
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
            "name it with --format tsv, csv, jsonl, json, dir or deb822",
        )),
    }
}

/// Writes records in batches.
pub struct Loader<'a> {
    db: &'a Db,
    batch: WriteBatch,
    batch_bytes: usize,
    /// Records so far.
    pub records: u64,
    /// Bytes of keys and values so far.
    pub bytes: u64,
}

impl<'a> Loader<'a> {
    /// For records of any keyspace of `db`.
    pub fn new(db: &'a Db) -> Loader<'a> {
        Loader { db, batch: WriteBatch::new(), batch_bytes: 0, records: 0, bytes: 0 }
    }

    /// One more record.
    pub fn put(&mut self, keyspace: &Keyspace, key: &[u8], value: &[u8]) -> Outcome {
        self.batch.put_in(keyspace, key, value)?;
        let bytes = key.len() + value.len();
        self.batch_bytes += bytes;
        self.records += 1;
        self.bytes += bytes as u64;
        self.write_when_full()
    }

    /// One record less.
    pub fn delete(&mut self, keyspace: &Keyspace, key: &[u8]) -> Outcome {
        self.batch.delete_in(keyspace, key)?;
        self.write_when_full()
    }

    fn write_when_full(&mut self) -> Outcome {
        if self.batch_bytes >= BATCH_BYTES || self.batch.len() >= BATCH_RECORDS {
            self.write()?;
        }
        Ok(())
    }

    /// Writes what is left.
    pub fn write(&mut self) -> Outcome {
        if !self.batch.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            self.db.write(batch, &WriteOptions { durability: None, wait: true })?;
        }
        self.batch_bytes = 0;
        Ok(())
    }
}

/// `shingle import`.
pub fn import(context: &mut Context, args: TransferArgs) -> Outcome {
    let place = Place::new(&args)?;
    if !place.is_stream() && !place.path.exists() {
        return Err(Failure::said(
            format!("{} does not exist", place.path.display()),
            "look at the path; `-` is stdin",
        ));
    }
    let db = context.open(Access::Create)?;
    let keyspace = context.keyspace(&db, Access::Create)?;
    let start = Instant::now();
    let mut loader = Loader::new(&db);
    let bar = context.bar("import", place.bytes());
    let interrupt = Interrupt::listen()?;
    let read = place.read(&bar, &mut |key, value| {
        if interrupt.is_asked() {
            return Err(Failure::OutputClosed);
        }
        loader.put(&keyspace, key, value)
    });
    if !interrupt.is_asked() {
        read?;
    }
    loader.write()?;
    drop(bar);
    let (records, bytes) = (loader.records, loader.bytes);
    db.sync()?;
    if interrupt.is_asked() {
        db.close()?;
        return Err(interrupted(records));
    }
    let ns = start.elapsed().as_nanos() as u64;
    if args.verify {
        verify(context, &place, &keyspace)?;
    }
    db.close()?;
    report(context, "imported", records, bytes, ns, args.verify)
}

fn interrupted(records: u64) -> Failure {
    Failure::Interrupted {
        message: format!("interrupted: {} records were stored", units::count(records)),
        help: "they are durable; the same import again stores all records".into(),
    }
}

/// `shingle export`.
pub fn export(context: &mut Context, args: TransferArgs) -> Outcome {
    let place = Place::new(&args)?;
    let db = context.open(Access::Read)?;
    let keyspace = context.keyspace(&db, Access::Read)?;
    let start = Instant::now();
    if place.is_stream() {
        let written = write_records(&place, &keyspace, &mut *context.out, None)?;
        return written.whole(context);
    }
    let bar = context.bar("export", 0);
    let written = if place.format == Format::Dir {
        write_records(&place, &keyspace, &mut std::io::sink(), Some(&bar))?
    } else {
        let doing = || format!("create {}", place.path.display());
        let file = File::create_new(&place.path).map_err(|e| Failure::io(doing(), &e))?;
        let mut file = BufWriter::with_capacity(1 << 18, file);
        let written = if place.is_compressed {
            let mut packed = GzEncoder::new(&mut file, Compression::default());
            let written = write_records(&place, &keyspace, &mut packed, Some(&bar))?;
            packed.finish().map_err(|error| Failure::io("write the export", &error))?;
            written
        } else {
            write_records(&place, &keyspace, &mut file, Some(&bar))?
        };
        file.flush().map_err(|error| Failure::io("write the export", &error))?;
        written
    };
    drop(bar);
    written.whole(context)?;
    let Written { records, bytes, .. } = written;
    let ns = start.elapsed().as_nanos() as u64;
    if args.verify {
        let found = verify(context, &place, &keyspace)?;
        if found != records {
            return Err(Failure::said(
                format!("{found} records in {}, {records} were written", place.path.display()),
                "report this: an export must not lose records",
            ));
        }
    }
    report(context, "exported", records, bytes, ns, args.verify)
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
}

impl Written {
    /// Says what is written as operands; fails where something was left out.
    fn whole(&self, context: &Context) -> Outcome {
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

fn write_records(
    place: &Place,
    keyspace: &Keyspace,
    out: &mut dyn Write,
    bar: Option<&Bar>,
) -> Outcome<Written> {
    let mut written = Written::default();
    let mut sink = place.sink(out)?;
    let mut cursor = keyspace.cursor(ReadOptions::default());
    let mut moved = cursor.seek_to_first();
    while cursor.valid() {
        if let Some(held) = cursor.unmerged() {
            let puts = sink.put_unmerged(cursor.key(), held)?;
            written.records += u64::from(puts);
            (if puts { &mut written.unmerged } else { &mut written.left }).add(held);
        } else {
            sink.put(cursor.key(), cursor.value())?;
            written.records += 1;
            let bytes = (cursor.key().len() + cursor.value().len()) as u64;
            written.bytes += bytes;
            if let Some(bar) = bar {
                bar.add(bytes);
            }
        }
        moved = cursor.next();
    }
    moved?;
    sink.finish()?;
    Ok(written)
}

/// Reads the source again and compares every record. Where a key occurs several times in the
/// source, its last record counts. Gives the number of records in the source.
fn verify(context: &Context, place: &Place, keyspace: &Keyspace) -> Outcome<u64> {
    let mut different: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut records = 0;
    let bar = context.bar("verify", place.bytes());
    place.read(&bar, &mut |key, value| {
        records += 1;
        if keyspace.get(key)?.as_deref() == Some(value) {
            different.remove(key);
        } else if different.len() < DIFFERENT_MAX {
            different.insert(key.to_vec());
        }
        Ok(())
    })?;
    let Some(first) = different.first() else { return Ok(records) };
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
