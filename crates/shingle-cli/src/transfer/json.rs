//! One JSON document: an array of objects as [`super::fields`] describes them, or an object, each
//! member of which is a record. It is read as a stream, one record at a time.

use super::fields::{Fields, record_of, text_of};
use super::jsonl::check_object;
use super::{Each, Record, Sink};
use crate::failure::{Failure, Outcome};
use crate::text::expiring_record;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::io::{BufRead, Write};

/// Reads records.
pub fn read(name: &str, input: &mut dyn BufRead, fields: &Fields, each: Each) -> Outcome {
    let mut stopped = None;
    let mut reader = serde_json::Deserializer::from_reader(input);
    let document = Document { fields, each, stopped: &mut stopped };
    let parsed = reader.deserialize_any(document).and_then(|()| reader.end());
    match (stopped, parsed) {
        (Some(failure), _) => Err(failure),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) if error.is_io() => {
            Err(Failure::io(format!("read {name}"), &std::io::Error::from(error)))
        }
        (None, Err(error)) => {
            Err(Failure::said(format!("{name}: {error}"), "correct the file and import again"))
        }
    }
}

/// Hands each record on as it is parsed.
struct Document<'a, 'b> {
    fields: &'a Fields,
    each: Each<'b>,
    /// Why a record was not taken, which is no error of the document.
    stopped: &'a mut Option<Failure>,
}

impl Document<'_, '_> {
    fn put<E: Error>(&mut self, record: Record<'_>) -> Result<(), E> {
        (self.each)(record).map_err(|failure| {
            *self.stopped = Some(failure);
            E::custom("the record was not stored")
        })
    }
}

impl<'de> Visitor<'de> for Document<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of objects, or an object of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let mut number = 0u64;
        while let Some(item) = items.next_element::<Box<RawValue>>()? {
            number += 1;
            let record = record_of(item.get().as_bytes(), self.fields)
                .map_err(|what| A::Error::custom(format!("object {number}: {what}")))?;
            self.put(record.borrowed())?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        if self.fields.key.is_some() {
            return Err(A::Error::custom("--key-field needs an array of objects"));
        }
        while let Some((key, item)) = members.next_entry::<String, Box<RawValue>>()? {
            let value = text_of(&key, &item).map_err(A::Error::custom)?;
            self.put(Record::new(key.as_bytes(), &value))?;
        }
        Ok(())
    }
}

/// Writes an array.
pub struct Writer<'a> {
    out: &'a mut dyn Write,
    field: Option<String>,
    is_empty: bool,
}

impl<'a> Writer<'a> {
    /// To `out`; with a key field, values as they stand.
    pub fn new(out: &'a mut dyn Write, field: Option<String>) -> Writer<'a> {
        Writer { out, field, is_empty: true }
    }
}

impl Sink for Writer<'_> {
    fn put(&mut self, Record { key, value, expiry }: Record<'_>) -> Outcome {
        let before = if std::mem::take(&mut self.is_empty) { "[\n" } else { ",\n" };
        self.out.write_all(before.as_bytes())?;
        match &self.field {
            None => {
                serde_json::to_writer(&mut *self.out, &expiring_record(key, Some(value), expiry))?;
            }
            Some(field) => {
                check_object(key, value, field, true)?;
                self.out.write_all(value.trim_ascii())?;
            }
        }
        Ok(())
    }

    fn keeps_expiry(&self) -> bool {
        self.field.is_none()
    }

    fn finish(&mut self) -> Outcome {
        let end = if self.is_empty { "[]\n" } else { "\n]\n" };
        Ok(self.out.write_all(end.as_bytes())?)
    }
}
