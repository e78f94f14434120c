//! JSON Lines: one object a line, as [`super::fields`] describes them.
//!
//! A key whose operands are not merged has `operands` and `base` in place of `value`: it is written
//! so, and not read back.

use super::fields::{Fields, key_of, record_of};
use super::lines::{each_line, wrong};
use super::{Each, Record, Sink};
use crate::failure::{Failure, Outcome};
use crate::text::{brief, expiring_record, unmerged_record};
use shingle::{Expiry, Unmerged};
use std::io::{BufRead, Write};

/// Reads records; lines without anything are passed over.
pub fn read(name: &str, input: &mut dyn BufRead, fields: &Fields, each: Each) -> Outcome {
    each_line(name, input, &mut |number, line| {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let record = record_of(line, fields).map_err(|what| wrong(name, number, what))?;
        each(record.borrowed())
    })
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
    fn put(&mut self, Record { key, value, expiry }: Record<'_>) -> Outcome {
        match &self.field {
            None => {
                serde_json::to_writer(&mut *self.out, &expiring_record(key, Some(value), expiry))?;
            }
            Some(field) => {
                let is_line = !value.contains(&b'\n') && !value.ends_with(b"\r");
                check_object(key, value, field, is_line)?;
                self.out.write_all(value)?;
            }
        }
        Ok(self.out.write_all(b"\n")?)
    }

    fn keeps_expiry(&self) -> bool {
        self.field.is_none()
    }

    fn put_unmerged(
        &mut self,
        key: &[u8],
        held: &Unmerged,
        base_expiry: Option<Expiry>,
    ) -> Outcome<bool> {
        if self.field.is_some() {
            return Ok(false);
        }
        serde_json::to_writer(&mut *self.out, &unmerged_record(key, held, base_expiry))?;
        self.out.write_all(b"\n")?;
        Ok(true)
    }

    fn finish(&mut self) -> Outcome {
        Ok(())
    }
}

/// The value is an object that an import by `field` would store under `key`.
pub fn check_object(key: &[u8], value: &[u8], field: &str, is_line: bool) -> Outcome {
    let is_same = is_line
        && serde_json::from_slice(value)
            .is_ok_and(|object| key_of(&object, field).as_deref() == Ok(key));
    match is_same {
        true => Ok(()),
        false => Err(Failure::said(
            format!("{}: the value is no JSON object with `{field}` as its key", brief(key)),
            "export without --key-field",
        )),
    }
}
