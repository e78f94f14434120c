//! Comma-separated (RFC 4180) with the columns `key,value,encoding`. The third says `base64` where
//! key or value is not UTF-8, and both are coded then; it is empty, or absent, where they are text.

use super::lines::wrong;
use super::{Each, Sink};
use crate::failure::{Failure, Outcome};
use crate::text::{base64, from_base64};
use csv::{ByteRecord, ReaderBuilder};
use std::io::{BufRead, Write};

const HEADER: [&str; 3] = ["key", "value", "encoding"];

/// Reads records. A first row that says `key,value` is a header; any other is a record.
pub fn read(name: &str, input: &mut dyn BufRead, each: Each) -> Outcome {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let mut row = ByteRecord::new();
    let mut first = true;
    while reader.read_byte_record(&mut row).map_err(|error| failed(name, &error))? {
        let line = row.position().map_or(0, csv::Position::line);
        let header = std::mem::take(&mut first)
            && (2..=3).contains(&row.len())
            && row.iter().zip(HEADER).all(|(field, name)| field == name.as_bytes());
        if header {
            continue;
        }
        let (key, value, encoding) = match (row.get(0), row.get(1), row.get(2), row.len()) {
            (Some(key), Some(value), encoding, 2 | 3) => (key, value, encoding.unwrap_or(b"")),
            _ => return Err(wrong(name, line, format!("{} columns, not 2 or 3", row.len()))),
        };
        match encoding {
            b"" => each(key, value)?,
            b"base64" => each(&decode(name, line, key)?, &decode(name, line, value)?)?,
            _ => return Err(wrong(name, line, "the encoding is neither empty nor `base64`")),
        }
    }
    Ok(())
}

fn decode(name: &str, line: u64, field: &[u8]) -> Outcome<Vec<u8>> {
    let decoded = std::str::from_utf8(field).ok().and_then(from_base64);
    decoded.ok_or_else(|| wrong(name, line, "the field is not base64"))
}

fn failed(name: &str, error: &csv::Error) -> Failure {
    match error.kind() {
        csv::ErrorKind::Io(error) => Failure::io(format!("read {name}"), error),
        _ => Failure::said(format!("{name}: {error}"), "correct the file and import again"),
    }
}

fn written(result: csv::Result<()>) -> Outcome {
    result.map_err(|error| match error.into_kind() {
        csv::ErrorKind::Io(error) => Failure::from(error),
        kind => Failure::said(format!("write CSV: {kind:?}"), ""),
    })
}

/// Writes records, the header first.
pub struct Writer<'a>(csv::Writer<&'a mut dyn Write>);

impl<'a> Writer<'a> {
    /// To `out`.
    pub fn new(out: &'a mut dyn Write) -> Outcome<Writer<'a>> {
        let mut writer = csv::Writer::from_writer(out);
        written(writer.write_record(HEADER))?;
        Ok(Writer(writer))
    }
}

impl Sink for Writer<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome {
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
