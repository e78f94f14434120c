//! A trace as a stream: line by line, in bounded memory. Lines that are no operation are counted,
//! and the first of them kept for the report; nothing in a trace ends its reading.

use super::formats::{Format, Line};
use super::operation::Operation;
use crate::text::escape;
use base::{Error, Result};
use serde::Serialize;
use std::io::BufRead;

/// Longer lines are bad ones: Redis prints whole values.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Bad lines that a report shows.
const BAD_LINES_SHOWN: usize = 5;
/// Bytes of a bad line that a report shows.
const BAD_LINE_BYTES_SHOWN: usize = 80;
/// The callback for progress is called once in this many bytes.
const BYTES_PER_STEP: u64 = 1 << 20;
/// Maximum number of lines that the format is recognised by.
const LINES_RECOGNISED: usize = 100;

/// A line that is no operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BadLine {
    /// Its number; the first line is 1.
    pub number: u64,
    /// What is wrong with it.
    pub reason: &'static str,
    /// Its beginning, escaped.
    pub text: String,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// The name of the format.
    pub format: &'static str,
    /// Lines.
    pub lines: u64,
    /// Lines of the format that hold no operation of a key-value store.
    pub other_lines: u64,
    /// Lines that are not of the format.
    pub bad_lines: u64,
    /// The first of them.
    pub first_bad_lines: Vec<BadLine>,
    /// Operations.
    pub operations: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Reads a whole trace; its format is recognised where none is named. `progress` is told of bytes.
pub fn read(
    input: &mut dyn BufRead,
    format: Option<Format>,
    visit: &mut dyn FnMut(&Operation<'_>),
    progress: &mut dyn FnMut(u64),
) -> Result<Reading> {
    let format = match format {
        Some(format) => format,
        None => recognise(input)?,
    };
    let mut reading = Reading { format: format.name(), ..Reading::default() };
    let (mut line, mut shown) = (Vec::new(), 0);
    while let Some(bytes) = next_line(input, &mut line)? {
        reading.bytes += bytes;
        reading.take(format, &line, visit);
        if reading.bytes - shown >= BYTES_PER_STEP {
            progress(reading.bytes - shown);
            shown = reading.bytes;
        }
    }
    progress(reading.bytes - shown);
    Ok(reading)
}

impl Reading {
    fn take(&mut self, format: Format, line: &[u8], visit: &mut dyn FnMut(&Operation<'_>)) {
        self.lines += 1;
        let operations = &mut self.operations;
        let mut counted = |operation: &Operation<'_>| {
            *operations += 1;
            visit(operation);
        };
        let parsed = match line.len() > LINE_BYTES_MAX {
            true => Err("longer than 16 MiB"),
            false if line.is_empty() => Ok(Line::Other),
            false => format.parse(line, &mut counted),
        };
        match parsed {
            Ok(Line::Operations) => {}
            Ok(Line::Other) => self.other_lines += 1,
            Err(reason) => self.count_bad(line, reason),
        }
    }

    fn count_bad(&mut self, line: &[u8], reason: &'static str) {
        self.bad_lines += 1;
        if self.first_bad_lines.len() < BAD_LINES_SHOWN {
            let text = escape(line.get(..BAD_LINE_BYTES_SHOWN).unwrap_or(line));
            self.first_bad_lines.push(BadLine { number: self.lines, reason, text });
        }
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::io("read the trace", error)
}

/// Replaces `line` by the next one, without its end; gives the bytes that it took. Of a line that
/// is too long, one byte more than may be stays.
fn next_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> Result<Option<u64>> {
    line.clear();
    let mut bytes = 0;
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        if chunk.is_empty() {
            return Ok((bytes > 0).then_some(bytes));
        }
        let end = chunk.iter().position(|&byte| byte == b'\n');
        let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
        let room = (LINE_BYTES_MAX + 1).saturating_sub(line.len());
        line.extend_from_slice(part.get(..room).unwrap_or(part));
        let taken = part.len() + usize::from(end.is_some());
        bytes += taken as u64;
        input.consume(taken);
        if end.is_some() {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(Some(bytes));
        }
    }
}

/// The format of the lines that the buffer begins with.
fn recognise(input: &mut dyn BufRead) -> Result<Format> {
    let chunk = input.fill_buf().map_err(failed)?;
    if chunk.is_empty() {
        return Err(Error::invalid("the trace is empty"));
    }
    let lines = chunk.split(|&byte| byte == b'\n').take(LINES_RECOGNISED);
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    Format::recognise(lines).ok_or_else(|| {
        let names = Format::ALL.map(Format::name).join(", ");
        let begins = escape(chunk.get(..BAD_LINE_BYTES_SHOWN).unwrap_or(chunk));
        Error::invalid(format!(
            "the trace is in no known format ({names}); name one with --format to see what is \
             wrong with its lines. It begins with: {begins}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::samples;
    use std::io::BufReader;

    fn reading(text: &[u8], format: Option<Format>) -> (Reading, Vec<String>) {
        let mut keys = Vec::new();
        // A small buffer, so that lines lie across its end.
        let mut input = BufReader::with_capacity(64, text);
        let mut visit = |operation: &Operation<'_>| keys.push(escape(operation.key));
        let mut told = 0;
        let reading = read(&mut input, format, &mut visit, &mut |bytes| told += bytes).unwrap();
        assert_eq!((told, reading.bytes), (text.len() as u64, text.len() as u64));
        assert_eq!(reading.operations, keys.len() as u64);
        (reading, keys)
    }

    #[test]
    fn every_sample_is_read_whole() {
        for (format, text) in samples::ALL {
            let (found, _) = reading(text.as_bytes(), Some(format));
            assert_eq!((found.lines, found.bad_lines), (text.lines().count() as u64, 0));
            let windows = text.replace('\n', "\r\n");
            let (same, _) = reading(windows.as_bytes(), Some(format));
            assert_eq!((same.operations, same.bad_lines), (found.operations, 0));
        }
    }

    #[test]
    fn bad_lines_are_counted_and_the_first_ones_shown() {
        let text = b"what\n1\tget\tk\t-\n\xff\xfe\n\n# remark\n1\tget\tlast\t-";
        let (found, keys) = reading(text, Some(Format::Shingle));
        assert_eq!(keys, ["k", "last"]);
        assert_eq!((found.lines, found.bad_lines, found.other_lines), (6, 2, 2));
        let shown: Vec<(u64, &str)> =
            found.first_bad_lines.iter().map(|bad| (bad.number, &*bad.text)).collect();
        assert_eq!(shown, [(1, "what"), (3, "\\xFF\\xFE")]);
        let many = "bad\n".repeat(1000);
        let (found, _) = reading(many.as_bytes(), Some(Format::Twitter));
        assert_eq!((found.bad_lines, found.first_bad_lines.len()), (1000, BAD_LINES_SHOWN));
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory() {
        let mut text = vec![b'x'; LINE_BYTES_MAX + 100];
        text.extend_from_slice(b"\n1\tget\tk\t-\n");
        let (found, keys) = reading(&text, Some(Format::Shingle));
        assert_eq!((found.bad_lines, keys), (1, vec!["k".to_string()]));
    }

    #[test]
    fn what_is_no_trace_is_refused_in_words() {
        for text in ["", "hello\nworld\n"] {
            let error = read(&mut text.as_bytes(), None, &mut |_| {}, &mut |_| {}).unwrap_err();
            assert_eq!(error.kind(), base::ErrorKind::InvalidArgument);
        }
    }
}
