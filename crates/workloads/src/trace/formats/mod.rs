//! Formats of traces: each a function from a line to operations, without state.
//!
//! A format is a module here, and a variant and a line in [`Format::ALL`].

mod format;
mod own;
mod redis;
mod rocksdb;
#[cfg(test)]
mod tests;
mod twitter;
mod ycsb;

use super::operation::Operation;

pub use format::Format;
pub use own::{HEADER, write};

/// What a line was. An error is what is wrong with it.
pub type Parsed = Result<Line, &'static str>;

/// A line that was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// It held operations.
    Operations,
    /// It belongs to the format and holds nothing that a key-value store would do.
    Other,
}

/// Takes what a line holds.
pub type Visit<'a> = dyn FnMut(&Operation<'_>) + 'a;

/// A decimal number and nothing else.
fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?.parse().ok()
}

/// Decimal seconds, with or without a fraction, as nanoseconds.
fn seconds(text: &[u8]) -> Option<u64> {
    let mut parts = text.splitn(2, |&byte| byte == b'.');
    let whole = number(parts.next()?)?.checked_mul(1_000_000_000)?;
    let Some(fraction) = parts.next() else { return Some(whole) };
    if fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = fraction.iter().map(|digit| u64::from(digit - b'0')).chain(std::iter::repeat(0));
    whole.checked_add(digits.take(9).fold(0, |sum, digit| sum * 10 + digit))
}
