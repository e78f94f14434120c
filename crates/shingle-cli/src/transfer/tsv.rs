//! Tab-separated: `key TAB value`, both escaped as in [`crate::text`], or raw: as they stand.

use super::lines::{each_line, wrong};
use super::{Each, Record, Sink};
use crate::failure::{Failure, Outcome};
use crate::text::{brief, escape, unescape};
use std::io::{BufRead, Write};

/// Reads records; lines without anything are passed over.
pub fn read(name: &str, input: &mut dyn BufRead, is_raw: bool, each: Each) -> Outcome {
    each_line(name, input, &mut |number, line| {
        if line.is_empty() {
            return Ok(());
        }
        let Some(tab) = line.iter().position(|&byte| byte == b'\t') else {
            return Err(wrong(name, number, "no tab between key and value"));
        };
        let (key, value) = (&line[..tab], &line[tab + 1..]);
        if is_raw {
            return each(Record::new(key, value));
        }
        let field = |text: &[u8]| {
            let hint = "--raw reads a file whose backslashes are no escapes";
            unescape(text).map_err(|what| wrong(name, number, format!("{what}; {hint}")))
        };
        each(Record::new(&field(key)?, &field(value)?))
    })
}

/// Writes records.
pub struct Writer<'a> {
    out: &'a mut dyn Write,
    is_raw: bool,
}

impl<'a> Writer<'a> {
    /// To `out`, escaped or raw.
    pub fn new(out: &'a mut dyn Write, is_raw: bool) -> Writer<'a> {
        Writer { out, is_raw }
    }

    fn put_raw(&mut self, key: &[u8], value: &[u8]) -> Outcome {
        let is_line = !key.contains(&b'\t')
            && !key.contains(&b'\n')
            && !value.contains(&b'\n')
            && !value.ends_with(b"\r");
        if !is_line {
            return Err(Failure::said(
                format!("{}: a tab or a line break cannot be written raw", brief(key)),
                "export without --raw",
            ));
        }
        self.out.write_all(key)?;
        self.out.write_all(b"\t")?;
        self.out.write_all(value)?;
        Ok(self.out.write_all(b"\n")?)
    }
}

impl Sink for Writer<'_> {
    fn put(&mut self, Record { key, value, .. }: Record<'_>) -> Outcome {
        match self.is_raw {
            true => self.put_raw(key, value),
            false => Ok(writeln!(self.out, "{}\t{}", escape(key), escape(value))?),
        }
    }

    fn finish(&mut self) -> Outcome {
        Ok(())
    }
}
