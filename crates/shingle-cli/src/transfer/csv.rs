//! Comma-separated (RFC 4180). Without a key field: the columns `key,value,encoding`. The first row
//! names them, unless the caller says that it is a record. The third column says `base64` where key
//! or value is not UTF-8, and both are coded then; it is empty, or absent, where they are text.
//!
//! With a key field the first row names the columns. A row's value is the field that the value
//! field names, or the whole row as a JSON object of strings, in the order of the columns.

use super::fields::Fields;
use super::lines::wrong;
use super::quotes::{Quotes, WrongQuote};
use super::{Each, Record, Sink};
use crate::failure::{Failure, Outcome};
use crate::text::{base64, from_base64};
use csv::{ByteRecord, Reader, ReaderBuilder};
use std::io::{BufRead, Write};

const HEADER: [&str; 3] = ["key", "value", "encoding"];

type Input<'a> = Quotes<&'a mut dyn BufRead>;

/// Reads records. With `no_header` the first row is one.
pub fn read(
    name: &str,
    input: &mut dyn BufRead,
    fields: &Fields,
    no_header: bool,
    each: Each,
) -> Outcome {
    let input = Quotes::new(input);
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    match &fields.key {
        None => read_pairs(name, &mut reader, no_header, each),
        Some(key) => read_rows(name, &mut reader, key, fields.value.as_deref(), each),
    }
}

fn next(name: &str, reader: &mut Reader<Input>, row: &mut ByteRecord) -> Outcome<Option<u64>> {
    let is_there = reader.read_byte_record(row).map_err(|error| failed(name, &error))?;
    Ok(is_there.then(|| row.position().map_or(0, csv::Position::line)))
}

fn read_pairs(name: &str, reader: &mut Reader<Input>, no_header: bool, each: Each) -> Outcome {
    let mut row = ByteRecord::new();
    if !no_header {
        let Some(line) = next(name, reader, &mut row)? else { return Ok(()) };
        let is_header = (2..=3).contains(&row.len())
            && row.iter().zip(HEADER).all(|(field, name)| field == name.as_bytes());
        if !is_header {
            return Err(no_header_found(name, line, &row));
        }
    }
    while let Some(line) = next(name, reader, &mut row)? {
        let (key, value, encoding) = match (row.get(0), row.get(1), row.get(2), row.len()) {
            (Some(key), Some(value), encoding, 2 | 3) => (key, value, encoding.unwrap_or(b"")),
            _ => return Err(no_pair(name, line, &row)),
        };
        match encoding {
            b"" => each(Record::new(key, value))?,
            b"base64" => {
                let (key, value) = (decode(name, line, key)?, decode(name, line, value)?);
                each(Record::new(&key, &value))?;
            }
            _ => return Err(no_pair(name, line, &row)),
        }
    }
    Ok(())
}

/// The first row may be a record, or name columns of the file's own.
fn no_header_found(name: &str, line: u64, row: &ByteRecord) -> Failure {
    let first = String::from_utf8_lossy(row.get(0).unwrap_or_default());
    let mut help =
        format!("if it names the columns, say which one is the key: --key-field {first}");
    if (2..=3).contains(&row.len()) {
        help += "; if it is a record: --no-header";
    }
    Failure::said(format!("{name}, line {line}: the row is not the header `key,value`"), help)
}

/// A row that is not `key,value,encoding`.
fn no_pair(name: &str, line: u64, row: &ByteRecord) -> Failure {
    let what = format!("{} columns are not `key,value,encoding`", row.len());
    wrong(name, line, what)
}

fn read_rows(
    name: &str,
    reader: &mut Reader<Input>,
    key_field: &str,
    value_field: Option<&str>,
    each: Each,
) -> Outcome {
    let mut row = ByteRecord::new();
    let Some(line) = next(name, reader, &mut row)? else { return Ok(()) };
    let columns = row.iter().enumerate().map(|(at, field)| {
        // A mark that some programs write before the first name.
        let field =
            if at == 0 { field.strip_prefix(b"\xef\xbb\xbf").unwrap_or(field) } else { field };
        text(name, line, field).map(str::to_string)
    });
    let columns: Vec<String> = columns.collect::<Outcome<_>>()?;
    let place = |field: &str| {
        let at = columns.iter().position(|column| column == field);
        at.ok_or_else(|| {
            wrong(name, line, format!("no column `{field}`; there are {}", columns.join(", ")))
        })
    };
    let key_at = place(key_field)?;
    let value_at = value_field.map(place).transpose()?;
    while let Some(line) = next(name, reader, &mut row)? {
        if row.len() != columns.len() {
            let what = format!("{} columns, the first row has {}", row.len(), columns.len());
            return Err(wrong(name, line, what));
        }
        match value_at {
            Some(at) => each(Record::new(&row[key_at], &row[at]))?,
            None => {
                let object = object(name, line, &columns, &row)?;
                each(Record::new(&row[key_at], object.as_bytes()))?;
            }
        }
    }
    Ok(())
}

/// A row as a JSON object.
fn object(name: &str, line: u64, columns: &[String], row: &ByteRecord) -> Outcome<String> {
    let members = columns.iter().zip(row).map(|(column, field)| {
        let field = text(name, line, field)?;
        Ok(format!("{}:{}", serde_json::to_string(column)?, serde_json::to_string(field)?))
    });
    Ok(format!("{{{}}}", members.collect::<Outcome<Vec<_>>>()?.join(",")))
}

fn text<'a>(name: &str, line: u64, field: &'a [u8]) -> Outcome<&'a str> {
    std::str::from_utf8(field).map_err(|_| {
        wrong(name, line, "a field is not UTF-8; convert the file, or name a --value-field")
    })
}

fn decode(name: &str, line: u64, field: &[u8]) -> Outcome<Vec<u8>> {
    let decoded = std::str::from_utf8(field).ok().and_then(from_base64);
    decoded.ok_or_else(|| wrong(name, line, "the field is not base64"))
}

fn failed(name: &str, error: &csv::Error) -> Failure {
    match error.kind() {
        csv::ErrorKind::Io(error) => {
            match error.get_ref().and_then(|inner| inner.downcast_ref::<WrongQuote>()) {
                Some(quote) => wrong(name, quote.line, quote),
                None => Failure::io(format!("read {name}"), error),
            }
        }
        _ => Failure::said(format!("{name}: {error}"), "correct the file and import again"),
    }
}

fn written(result: csv::Result<()>) -> Outcome {
    result.map_err(|error| match error.into_kind() {
        csv::ErrorKind::Io(error) => Failure::from(error),
        kind => Failure::said(format!("write CSV: {kind:?}"), ""),
    })
}

/// Writes records.
pub struct Writer<'a>(csv::Writer<&'a mut dyn Write>);

impl<'a> Writer<'a> {
    /// To `out`, the header first unless it is not wanted.
    pub fn new(out: &'a mut dyn Write, no_header: bool) -> Outcome<Writer<'a>> {
        let mut writer = csv::Writer::from_writer(out);
        if !no_header {
            written(writer.write_record(HEADER))?;
        }
        Ok(Writer(writer))
    }
}

impl Sink for Writer<'_> {
    fn put(&mut self, Record { key, value, .. }: Record<'_>) -> Outcome {
        let is_text = std::str::from_utf8(key).is_ok() && std::str::from_utf8(value).is_ok();
        written(if is_text {
            self.0.write_record([key, value, b""])
        } else {
            self.0.write_record([&base64(key), &base64(value), "base64"])
        })
    }

    fn finish(&mut self) -> Outcome {
        Ok(self.0.flush()?)
    }
}
