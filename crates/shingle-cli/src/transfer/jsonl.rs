//! JSON Lines: one object a line, `{"key": .., "value": ..}`; `key_base64` and `value_base64` carry
//! bytes that are not UTF-8. A value that is no string is stored as its JSON text.
//!
//! A key whose operands are not merged has `operands` and `base` in place of `value`: it is written
//! so, and not read back.
//!
//! With a key field, each line as it stands is the value, and that field of it is the key.

use super::lines::{each_line, wrong};
use super::{Each, Sink};
use crate::failure::{Failure, Outcome};
use crate::text::{brief, from_base64, record, unmerged_record};
use serde_json::{Map, Value};
use shingle::Unmerged;
use std::io::{BufRead, Write};

/// Reads records; lines without anything are passed over.
pub fn read(name: &str, input: &mut dyn BufRead, field: Option<&str>, each: Each) -> Outcome {
    each_line(name, input, &mut |number, line| {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let object: Map<String, Value> =
            serde_json::from_slice(line).map_err(|error| wrong(name, number, error))?;
        if field.is_none() && object.keys().any(|name| name.starts_with("operands")) {
            let message = "a record of operands: only a program that knows their operator can \
                           write them";
            return Err(wrong(name, number, message));
        }
        let outcome = match field {
            Some(field) => key_of(&object, field).map(|key| (key, line.to_vec())),
            None => bytes_of(&object, "key")
                .and_then(|key| bytes_of(&object, "value").map(|value| (key, value))),
        };
        let (key, value) = outcome.map_err(|what| wrong(name, number, what))?;
        each(&key, &value)
    })
}

fn bytes_of(object: &Map<String, Value>, name: &str) -> Result<Vec<u8>, String> {
    let coded_name = format!("{name}_base64");
    match (object.get(name), object.get(&coded_name)) {
        (Some(_), Some(_)) => Err(format!("both `{name}` and `{coded_name}`")),
        (Some(Value::String(text)), None) => Ok(text.clone().into_bytes()),
        (Some(other), None) => Ok(other.to_string().into_bytes()),
        (None, Some(coded)) => coded
            .as_str()
            .and_then(from_base64)
            .ok_or_else(|| format!("`{coded_name}` is not base64")),
        (None, None) => Err(format!("neither `{name}` nor `{coded_name}`")),
    }
}

fn key_of(object: &Map<String, Value>, field: &str) -> Result<Vec<u8>, String> {
    match object.get(field) {
        Some(Value::String(text)) => Ok(text.clone().into_bytes()),
        Some(Value::Number(number)) => Ok(number.to_string().into_bytes()),
        Some(_) => Err(format!("`{field}` is neither text nor a number")),
        None => Err(format!("no field `{field}`")),
    }
}

/// Writes records.
pub struct Writer<'a> {
    out: &'a mut dyn Write,
    field: Option<String>,
}

impl<'a> Writer<'a> {
    /// To `out`; with a key field, values as they stand.
    pub fn new(out: &'a mut dyn Write, field: Option<String>) -> Writer<'a> {
        Writer { out, field }
    }
}

impl Sink for Writer<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome {
        match &self.field {
            None => serde_json::to_writer(&mut *self.out, &record(key, Some(value)))?,
            Some(field) => {
                let same = !value.contains(&b'\n')
                    && !value.ends_with(b"\r")
                    && serde_json::from_slice(value)
                        .is_ok_and(|object| key_of(&object, field).as_deref() == Ok(key));
                if !same {
                    return Err(Failure::said(
                        format!("{}: the value is no line with `{field}` as its key", brief(key)),
                        "export without --key-field",
                    ));
                }
                self.out.write_all(value)?;
            }
        }
        Ok(self.out.write_all(b"\n")?)
    }

    fn put_unmerged(&mut self, key: &[u8], held: &Unmerged) -> Outcome<bool> {
        if self.field.is_some() {
            return Ok(false);
        }
        serde_json::to_writer(&mut *self.out, &unmerged_record(key, held))?;
        self.out.write_all(b"\n")?;
        Ok(true)
    }

    fn finish(&mut self) -> Outcome {
        Ok(())
    }
}
