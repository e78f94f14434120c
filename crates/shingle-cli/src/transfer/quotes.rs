//! Quotes of comma-separated text, checked as the text is read. The parser takes every text: of a
//! quote that is never closed it makes one field with all rows up to the end, and of text behind a
//! closing quote a part of the field. Both would lose records without a word.

use std::fmt;
use std::io::{Error, ErrorKind, Read, Result};

/// A mark that some programs write before the first field.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What is wrong with a quoted field.
#[derive(Debug)]
pub struct WrongQuote {
    /// The line where the quote opens, from 1.
    pub line: u64,
    is_open: bool,
}

impl fmt::Display for WrongQuote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.is_open {
            true => "the quote that opens here is not closed before the file ends",
            false => {
                "the field that is quoted from here has text behind its closing quote; inside a \
                 quoted field a quote is written twice"
            }
        })
    }
}

impl std::error::Error for WrongQuote {}

/// Where in a field the text is.
#[derive(Clone, Copy)]
enum State {
    Begin,
    Plain,
    Quoted,
    /// Behind a quote of a quoted field: its end, or the first of two.
    Quote,
}

/// Passes bytes on; fails where a quoted field is wrong.
pub struct Quotes<R> {
    inner: R,
    state: State,
    bytes: usize,
    line: u64,
    /// Where the last quoted field opened.
    opened_line: u64,
}

impl<R: Read> Quotes<R> {
    /// Checks what is read from `inner`.
    pub fn new(inner: R) -> Quotes<R> {
        Quotes { inner, state: State::Begin, bytes: 0, line: 1, opened_line: 1 }
    }

    fn step(&mut self, byte: u8) -> Result<()> {
        let is_mark = BYTE_ORDER_MARK.get(self.bytes) == Some(&byte);
        self.bytes = self.bytes.saturating_add(1);
        self.state = match (self.state, byte) {
            (State::Begin, b'"') => {
                self.opened_line = self.line;
                State::Quoted
            }
            (State::Begin, _) if is_mark => State::Begin,
            (State::Quoted, b'"') => State::Quote,
            (State::Quoted, _) | (State::Quote, b'"') => State::Quoted,
            (_, b',' | b'\n' | b'\r') => State::Begin,
            (State::Quote, _) => return Err(self.wrong(false)),
            (State::Begin | State::Plain, _) => State::Plain,
        };
        self.line += u64::from(byte == b'\n');
        Ok(())
    }

    fn wrong(&self, is_open: bool) -> Error {
        Error::new(ErrorKind::InvalidData, WrongQuote { line: self.opened_line, is_open })
    }
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let bytes = self.inner.read(into)?;
        if bytes == 0 && !into.is_empty() && matches!(self.state, State::Quoted) {
            return Err(self.wrong(true));
        }
        into[..bytes].iter().try_for_each(|&byte| self.step(byte))?;
        Ok(bytes)
    }
}
