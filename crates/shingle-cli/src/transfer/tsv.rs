//! Tab-separated: `key TAB value`, both escaped as in [`crate::text`].

use super::lines::{each_line, wrong};
use super::{Each, Sink};
use crate::failure::Outcome;
use crate::text::{escape, unescape};
use std::io::{BufRead, Write};

/// Reads records; lines without anything are passed over.
pub fn read(name: &str, input: &mut dyn BufRead, each: Each) -> Outcome {
    each_line(name, input, &mut |number, line| {
        if line.is_empty() {
            return Ok(());
        }
        let Some(tab) = line.iter().position(|&byte| byte == b'\t') else {
            return Err(wrong(name, number, "no tab between key and value"));
        };
        let field = |text: &[u8]| unescape(text).map_err(|what| wrong(name, number, what));
        each(&field(&line[..tab])?, &field(&line[tab + 1..])?)
    })
}

/// Writes records.
pub struct Writer<'a>(&'a mut dyn Write);

impl<'a> Writer<'a> {
    /// To `out`.
    pub fn new(out: &'a mut dyn Write) -> Writer<'a> {
        Writer(out)
    }
}

impl Sink for Writer<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome {
        Ok(writeln!(self.0, "{}\t{}", escape(key), escape(value))?)
    }

    fn finish(&mut self) -> Outcome {
        Ok(())
    }
}
