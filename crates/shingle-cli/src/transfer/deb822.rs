//! Debian control stanzas: paragraphs of `Field: value` lines, blank lines between them. The key is
//! one field (`Package` unless another is named), the value the stanza as it stands, every line
//! ended by a newline.

use super::lines::{each_line, wrong};
use super::{Each, Record, Sink};
use crate::failure::{Failure, Outcome};
use crate::text::brief;
use std::io::{BufRead, Write};

const KEY_FIELD: &str = "Package";

/// Gathers lines to stanzas.
#[derive(Default)]
pub struct Stanzas {
    text: Vec<u8>,
}

impl Stanzas {
    /// One more line, without its end; a blank one completes a stanza.
    pub fn line(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        if line.trim_ascii().is_empty() {
            return self.end();
        }
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
        None
    }

    /// The stanza that no blank line ended.
    pub fn end(&mut self) -> Option<Vec<u8>> {
        (!self.text.is_empty()).then(|| std::mem::take(&mut self.text))
    }

    /// The value of a field on its own line; names compare without case.
    pub fn field<'a>(stanza: &'a [u8], name: &str) -> Option<&'a [u8]> {
        stanza.split(|&byte| byte == b'\n').find_map(|line| {
            let (field, value) = line.split_at_checked(name.len())?;
            let value = value.strip_prefix(b":")?;
            field.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
        })
    }
}

/// Reads records.
pub fn read(name: &str, input: &mut dyn BufRead, field: Option<&str>, each: Each) -> Outcome {
    let field = field.unwrap_or(KEY_FIELD);
    let mut stanzas = Stanzas::default();
    let mut last = 0;
    let mut put = |number, stanza: Vec<u8>| match Stanzas::field(&stanza, field) {
        Some(key) => each(Record::new(key, &stanza)),
        None => Err(wrong(name, number, format!("the stanza before has no field `{field}`"))),
    };
    each_line(name, input, &mut |number, line| {
        last = number;
        stanzas.line(line).map_or(Ok(()), |stanza| put(number, stanza))
    })?;
    stanzas.end().map_or(Ok(()), |stanza| put(last, stanza))
}

/// Writes records.
pub struct Writer<'a> {
    out: &'a mut dyn Write,
    field: String,
}

impl<'a> Writer<'a> {
    /// To `out`.
    pub fn new(out: &'a mut dyn Write, field: Option<String>) -> Writer<'a> {
        Writer { out, field: field.unwrap_or_else(|| KEY_FIELD.into()) }
    }
}

/// Reading `value` back would give exactly this record.
fn is_stanza(key: &[u8], value: &[u8], field: &str) -> bool {
    let Some(body) = value.strip_suffix(b"\n") else { return false };
    let whole = |line: &[u8]| !line.trim_ascii().is_empty() && !line.ends_with(b"\r");
    body.split(|&byte| byte == b'\n').all(whole) && Stanzas::field(value, field) == Some(key)
}

impl Sink for Writer<'_> {
    fn put(&mut self, Record { key, value, .. }: Record<'_>) -> Outcome {
        if !is_stanza(key, value, &self.field) {
            return Err(Failure::said(
                format!("{}: the value is no stanza with this `{}`", brief(key), self.field),
                "export as tsv, csv or jsonl",
            ));
        }
        self.out.write_all(value)?;
        Ok(self.out.write_all(b"\n")?)
    }

    fn finish(&mut self) -> Outcome {
        Ok(())
    }
}
