//! Lines of a stream with their numbers, and a reader that moves a progress bar.

use crate::failure::{Failure, Outcome};
use crate::progress::Bar;
use std::io::{BufRead, Read};

/// No line is longer than a record at its limits, every byte escaped.
const LINE_BYTES_MAX: u64 = 4 * (base::key::VALUE_BYTES_MAX + base::key::KEY_BYTES_MAX) as u64;

/// Passes bytes on and counts them on a bar.
pub struct Counting<'a, R> {
    inner: R,
    bar: &'a Bar,
}

impl<'a, R: Read> Counting<'a, R> {
    /// Counts what is read from `inner`.
    pub fn new(inner: R, bar: &'a Bar) -> Counting<'a, R> {
        Counting { inner, bar }
    }
}

impl<R: Read> Read for Counting<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.inner.read(into)?;
        self.bar.add(bytes as u64);
        Ok(bytes)
    }
}

/// Calls `each` with the number (from 1) and the bytes of every line, `\n` or `\r\n` taken off.
pub fn each_line(
    name: &str,
    input: &mut dyn BufRead,
    each: &mut dyn FnMut(u64, &[u8]) -> Outcome,
) -> Outcome {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut *input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let bytes = read.map_err(|error| Failure::io(format!("read {name}"), &error))?;
        if bytes == 0 {
            return Ok(());
        }
        if bytes as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
            return Err(wrong(name, number, "the line is longer than any record"));
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        each(number, text.strip_suffix(b"\r").unwrap_or(text))?;
    }
    Ok(())
}

/// A line that is not what its format says.
pub fn wrong(name: &str, line: u64, what: impl std::fmt::Display) -> Failure {
    Failure::said(format!("{name}, line {line}: {what}"), "correct the line and import again")
}
